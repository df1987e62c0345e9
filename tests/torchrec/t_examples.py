# SPDX-License-Identifier: MIT
"""The worked example before and after its one changed line, and in shadow
mode, in jobs of 2 and 4 processes. Predictions and weights after some steps
are compared with the unsharded model. Speaks TAP; NEUROSHARD is the program.
"""
import copy
import difflib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import finish, ok

EXAMPLES = Path(__file__).parents[2] / "src" / "python" / "examples"
CPU = "cpu"
STEPS = 5
TOLERANCE = 5e-6
SHADOW = ("planner = Planner(", 'planner = Planner(mode="shadow", ')


def imported(path):
    spec = importlib.util.spec_from_file_location("example", path)
    script = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(EXAMPLES))
    spec.loader.exec_module(script)
    return script


def run_rank(path, results):
    """Body of a rank that torchrun started."""
    import torch
    import torch.distributed as dist
    from neuroshard.torchrec import dump
    from ranks import _difference, _pieces
    from unsharded import Unsharded

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, n_ranks = dist.get_rank(), dist.get_world_size()
    script = imported(path)
    script.STEPS = STEPS
    kept = []
    script.DLRM = lambda *args, of=script.DLRM: (
        kept.append(copy.deepcopy(of(*args))) or copy.deepcopy(kept[0])
    )
    model, optimizer = script.build(torch.device(CPU))
    modules = dump(model._plan)["plan"].values()
    entries = {name: e for part in modules for name, e in part.items()}
    whole = kept[0]
    whole.sparse_arch.to_empty(device=CPU)
    torch.manual_seed(1)  # reseed: ranks have drawn other tables
    for weights in whole.parameters():
        torch.nn.init.uniform_(weights, -0.1, 0.1)
    reference = Unsharded(
        script.DLRMTrain(whole),
        entries,
        script.LEARNING_RATE,
        lambda dense: torch.optim.SGD(dense, lr=script.LEARNING_RATE),
    )
    here, there = (m.state_dict() for m in (model, reference.train))
    for mine, other in _pieces(here, there):
        mine.detach().copy_(other)

    batches = [iter(script.Clicks(script.BATCH, r)) for r in range(n_ranks)]
    losses = script.train(
        model, optimizer, script.Clicks(script.BATCH, rank), torch.device(CPU)
    )
    wanted = [reference.step([next(b) for b in batches]) for _ in losses]
    last = script.Clicks(script.BATCH, rank, seed=9).batch()
    predicted = [m(last)[1][1] for m in (model, reference.train)]
    found = {
        "losses": max(abs(a - b) for a, b in zip(losses, wanted)),
        "fell": losses[0] - losses[-1],
        "outputs": _difference(*predicted),
        "weights": max(_difference(*pair) for pair in _pieces(here, there)),
        "types": sorted({e["sharding_type"] for e in entries.values()}),
        "plan": {
            name: [entry["sharding_type"], entry["ranks"]]
            for name, entry in entries.items()
        },
    }
    every = [None] * n_ranks
    dist.all_gather_object(every, found)
    if rank == 0:
        Path(results).write_text(json.dumps(every), encoding="utf-8")
    dist.destroy_process_group()


def run_example(folder, path, n_ranks):
    """Returns the results of the ranks, and the output of the job."""
    results = Path(folder) / "results"
    results.unlink(missing_ok=True)
    done = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "torch.distributed.run"),
            *("--standalone", "--nproc_per_node", str(n_ranks)),
            *(__file__, str(path), str(results)),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    if not results.exists():
        return None, said
    return json.loads(results.read_text(encoding="utf-8")), said


def check_example(folder, path, n_ranks):
    """Returns the plan of the job, and its output."""
    found, said = run_example(folder, path, n_ranks)
    name = f"{Path(path).stem}, {n_ranks} ranks"
    if not found:
        ok(False, name, said[-3000:])
        return None, said
    worst = {
        what: max(rank[what] for rank in found)
        for what in ("losses", "outputs", "weights")
    }
    ok(
        max(worst.values()) <= TOLERANCE and found[0]["fell"] > 0,
        f"{name}, {', '.join(found[0]['types'])}: "
        + ", ".join(f"{what} {value:.1e}" for what, value in worst.items()),
        said[-1000:],
    )
    return found[0]["plan"], said


def check_job(folder, n_ranks):
    stock, said = check_example(folder, EXAMPLES / "before.py", n_ranks)
    ok("neuroshard" not in said, "before: nothing of neuroshard")
    ours, said = check_example(folder, EXAMPLES / "after.py", n_ranks)
    ok(
        ours and ours != stock and "own planner plans" not in said,
        "after: another plan than TorchRec's",
        f"{ours} {said[-1000:]}",
    )
    path = Path(folder) / "shadow.py"
    text = (EXAMPLES / "after.py").read_text(encoding="utf-8")
    path.write_text(text.replace(*SHADOW), encoding="utf-8")
    same, said = check_example(folder, path, n_ranks)
    report = said.partition("shadow: TorchRec's plan is in place")[2]
    ok(
        same == stock and f" for {n_ranks} x cpu (a CPU job); " in report,
        "shadow: TorchRec's plan, and the report",
        f"{same} {stock} {said[-1000:]}",
    )


def main():
    if "RANK" in os.environ:
        run_rank(*sys.argv[1:])
        return
    texts = [
        (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
        for name in ("before.py", "after.py")
    ]
    changed = [
        line for line in difflib.ndiff(*texts) if line.startswith(("- ", "+ "))
    ]
    ok(
        [line[0] for line in changed] == ["-", "+"],
        "one line is changed",
        "\n".join(changed),
    )
    with tempfile.TemporaryDirectory() as folder:
        for n_ranks in (2, 4):
            check_job(folder, n_ranks)
    finish()


main()
