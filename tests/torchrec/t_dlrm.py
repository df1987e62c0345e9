# SPDX-License-Identifier: MIT
"""Runs the script of `emit --format dlrm` in dlrm_main.py of
facebookresearch/dlrm, whose folder is DLRM_DIR. Tables are as planned, with
several widths, fp16 and replicas, in jobs of 2 and 4 processes. Losses and
weights after some steps are compared with the unsharded model. Speaks TAP;
NEUROSHARD is the program.
"""
import copy
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import finish, neuroshard, ok

STEPS = 3
RATE, EPSILON = 0.05, 0.01
BATCH = 16
TOLERANCE = 5e-6
# three times half a step of fp16 between 1/4 and 1/2
HALF_TOLERANCE = 2.0**-12
TABLES = """name,num_embeddings,dim,pooling_factor,precision,sharding,optimizer
cat_0,4000,16,3,fp32,column,{0}
cat_1,50,16,1,fp32,replicate,{0}
cat_2,3000,8,2,fp16,table,{0}
cat_3,500,16,1,fp16,row,{0}
cat_4,700,4,1,fp32,table,{0}
cat_5,60,8,4,fp32,replicate,{0}
cat_6,60,12,4,fp16,replicate,{0}
"""
# A fake torchrun that keeps the files and arguments that it gets.
TORCHRUN = """#!/bin/sh
for arg; do
    case $arg in
    */train.py) cp -R "${arg%/train.py}" "$KEPT"; shift; break ;;
    esac
    shift
done
printf '%s\\n' "$@" >"$KEPT/arguments"
"""


def batch_of(rank, step, device):
    import torch
    from torchrec import KeyedJaggedTensor
    from torchrec.datasets.criteo import DEFAULT_CAT_NAMES, DEFAULT_INT_NAMES
    from torchrec.datasets.utils import Batch

    rng = torch.Generator().manual_seed(1009 * step + rank)
    rows = [int(r.split(",")[1]) for r in TABLES.splitlines()[1:]]
    lengths = torch.randint(0, 4, [len(rows), BATCH], generator=rng)
    values = [
        torch.randint(0, n_rows, [int(n.sum())], generator=rng)
        for n_rows, n in zip(rows, lengths)
    ]
    return Batch(
        dense_features=torch.randn(
            BATCH, len(DEFAULT_INT_NAMES), generator=rng
        ),
        sparse_features=KeyedJaggedTensor(
            keys=list(DEFAULT_CAT_NAMES),
            values=torch.cat(values),
            lengths=lengths.flatten().int(),
        ),
        labels=torch.randint(0, 2, [BATCH], generator=rng).int(),
    ).to(device)


def compare(optimizer_name, whole, model, optimizer):
    """Replaces dlrm_main's train_val_test: trains the sharded and the whole
    model."""
    import torch
    import torch.distributed as dist
    from neuroshard.torchrec import dump
    from ranks import _difference, _pieces
    from unsharded import Unsharded, table_of

    rank, n_ranks = dist.get_rank(), dist.get_world_size()
    whole.model.sparse_arch.embedding_bag_collection.to_empty(device="cpu")
    formats = {n: str(w.dtype) for n, w in whole.named_parameters()}
    torch.manual_seed(1)
    for weights in whole.parameters():
        torch.nn.init.uniform_(weights, -0.1, 0.1)
    whole.float()
    modules = dump(model._plan)["plan"].values()
    entries = {name: e for part in modules for name, e in part.items()}
    kind = {"sgd": torch.optim.SGD}.get(optimizer_name, torch.optim.Adagrad)
    more = {} if optimizer_name == "sgd" else {"eps": EPSILON}
    reference = Unsharded(
        whole,
        entries,
        RATE,
        lambda dense: kind(dense, lr=RATE, **more),
        optimizer_name,
        EPSILON,
        are_dense=False,
    )
    here, there = (m.state_dict() for m in (model, whole))
    for mine, other in _pieces(here, there):
        mine.detach().copy_(other)
    losses = [0.0]
    model.train()
    for step in range(STEPS):
        batches = [batch_of(r, step, "cpu") for r in range(n_ranks)]
        loss, _ = model(batches[rank])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss := loss.detach(), dist.ReduceOp.SUM)
        losses.append(abs(loss.item() / n_ranks - reference.step(batches)))
    worst = {"losses": max(losses), "dense": 0.0}
    for name in here:
        pairs = _pieces({name: here[name]}, there)
        found = max([_difference(a.float(), b) for a, b in pairs] + [0.0])
        what = "dense"
        if table_of(name):
            what = formats[name] + (
                "" if "shards" in entries[table_of(name)] else ", replicated"
            )
        worst[what] = max(worst.get(what, 0.0), found)
    types = sorted({e["sharding_type"] for e in entries.values()})
    return [worst, types]


def run_rank(work, optimizer_name, results):
    """Body of a rank that torchrun started."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    sys.path[:0] = [work, os.environ["DLRM_DIR"]]
    import dlrm_main

    kept = []
    sharded = dlrm_main.DistributedModelParallel

    def keep(module, **rest):
        kept.append(copy.deepcopy(module))
        return sharded(module=module, **rest)

    def train(args, model, optimizer, *_):
        every = [None] * dist.get_world_size()
        found = compare(optimizer_name, kept[0], model, optimizer)
        dist.all_gather_object(every, found)
        if dist.get_rank() == 0:
            Path(results).write_text(json.dumps(every), encoding="utf-8")

    dlrm_main.DistributedModelParallel = keep
    dlrm_main.train_val_test = train
    arguments = Path(work, "arguments").read_text(encoding="utf-8")
    sys.argv[1:] = arguments.splitlines()
    path = Path(work, "train.py")
    exec(
        compile(path.read_text(encoding="utf-8"), path, "exec"),
        {"__name__": "train", "__file__": str(path)},
    )


def emitted(folder, name, optimizer, n_ranks, options):
    """Returns the folder with the files that the script would have run."""
    tables, plan, script = (
        folder / f"{name}.{ext}" for ext in ("csv", "json", "sh")
    )
    tables.write_text(TABLES.format(optimizer), encoding="utf-8")
    _, _, why = neuroshard(
        *("plan", str(tables), "--gpus", str(n_ranks), "--batch", "64"),
        *("--dense-optimizer", "table", "--effort", "2000"),
        *("-o", str(plan)),
    )
    status, _, why = neuroshard(
        "emit", str(plan), "--format", "dlrm", "-o", str(script)
    )
    if status:
        raise ValueError(why)
    torchrun = folder / "bin" / "torchrun"
    torchrun.parent.mkdir(exist_ok=True)
    torchrun.write_text(TORCHRUN, encoding="utf-8")
    torchrun.chmod(0o755)
    kept = folder / f"{name}.kept"
    path = f"{torchrun.parent}:{os.environ['PATH']}"
    rates = ("--learning_rate", str(RATE), "--eps", str(EPSILON))
    subprocess.run(
        ["bash", script, *rates, *options],
        env={**os.environ, "PATH": path, "KEPT": str(kept)},
        check=True,
    )
    return kept


def check(folder, name, optimizer, n_ranks, options):
    kept = emitted(folder, name, optimizer, n_ranks, options)
    results = folder / f"{name}.results"
    done = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "torch.distributed.run"),
            *("--standalone", "--nproc_per_node", str(n_ranks)),
            *(__file__, str(kept), optimizer, str(results)),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        check=False,
    )
    if not results.exists():
        ok(False, name, (done.stdout + done.stderr)[-3000:])
        return
    every = json.loads(results.read_text(encoding="utf-8"))
    worst = {}
    for found, _ in every:
        for what, value in found.items():
            worst[what] = max(worst.get(what, 0.0), value)
    broken = [
        what
        for what, value in worst.items()
        if value > (HALF_TOLERANCE if "16" in what else TOLERANCE)
    ]
    ok(
        not broken and {"torch.float16", "torch.float32"} < set(worst),
        f"{name}, {n_ranks} ranks, {', '.join(every[0][1])}: "
        + ", ".join(f"{what} {value:.1e}" for what, value in worst.items()),
    )


def main():
    if "RANK" in os.environ:
        run_rank(*sys.argv[1:])
        return
    if not Path(os.environ.get("DLRM_DIR", ""), "dlrm_main.py").exists():
        print("1..0 # SKIP DLRM_DIR names no folder with dlrm_main.py")
        return
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        check(folder, "sgd", "sgd", 2, ())
        check(folder, "adagrad", "rowwise_adagrad", 2, ())
        dcn = ("--interaction_type", "dcn", "--dcn_low_rank_dim", "16")
        check(folder, "dcn", "sgd", 4, dcn)
        check(folder, "four", "rowwise_adagrad", 4, ())
    finish()


main()
