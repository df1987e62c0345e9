# SPDX-License-Identifier: MIT
"""Checkpoints across plans, as described in neuroshard-torchrec(7): trained
with one plan and saved by torch.distributed.checkpoint, loaded with another
plan, and the reverse, on 2 processes. Speaks TAP; NEUROSHARD is the program.
"""
import json
import logging
import random
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner

from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology

import ranks
from neuroshard import _loader
from neuroshard.torchrec import NeuroShardPlanner
from tap import finish, ok
from t_planner_jobs import PIECE, drawn_entry, drawn_tables, entry
from t_plans import JOBS

JOB = JOBS[0]
STEPS = 2


# --- On each rank -----------------------------------------------------------


def model_of(case, seed, entries):
    torch.manual_seed(seed)
    model = ranks.Model(case["tables"])
    shape = {"world_size": JOB.n_ranks, "local_world_size": JOB.n_local}
    plan = _loader.build_plan({**shape, "plan": entries}, model, "cpu")
    return ranks.shard(model, plan, case["optimizer"])


def train(model, tables, rank):
    for step in range(STEPS):
        model.zero_grad()
        ranks._loss(model(ranks._features(tables, step, rank))).backward()


def states(model):
    """Returns {table: its state} of this rank."""
    state = model.fused_optimizer.state_dict()["state"]
    return {key.split(".")[-2]: (key, part) for key, part in state.items()}


def here(tensor):
    """Returns [first row, first column, values] of each shard; a replica is
    one shard."""
    if not hasattr(tensor, "local_shards"):
        return [[[0] * tensor.dim(), tensor.detach().tolist()]]
    return [
        [list(s.metadata.shard_offsets), s.tensor.detach().tolist()]
        for s in tensor.local_shards()
    ]


def whole(parts):
    """Combines the shards of all ranks: a list of numbers by their
    position."""
    found = {}
    for offsets, values in (piece for part in parts for piece in part):
        for i, row in enumerate(values):
            for j, value in enumerate(row if len(offsets) > 1 else [row]):
                place = (offsets[0] + i, (offsets + [0])[1] + j)
                found[place] = value
    return sorted(found.items())


def gathered(mine):
    """Returns {table: whole} from the shards of each rank."""
    parts = [None] * JOB.n_ranks
    dist.all_gather_object(parts, mine)
    names = sorted({name for part in parts for name in part})
    return {n: whole(part.get(n, []) for part in parts) for n in names}


def content(model):
    """Returns weights and optimizer state, by table."""
    weights = {n: here(w) for n, w in ranks._weights(model).items()}
    moments = {
        name: here(moment)
        for name, (_, part) in states(model).items()
        for moment in part.values()
    }
    return gathered(weights), gathered(moments)


def load_state(model, table, path):
    """Whether the state of a table can be loaded."""
    mine = states(model)
    key, part = mine.get(table, (None, None))
    wanted = {"optim": {"state": {key: part} if key else {}}}
    try:
        dcp.load(wanted, checkpoint_id=path)
    except dcp.api.CheckpointException:
        return False
    return True


def load_partly(model, path):
    """Loads all state that exists; returns whether that works."""
    wanted = {"optim": model.fused_optimizer.state_dict()}
    planner = DefaultLoadPlanner(allow_partial_load=True)
    try:
        dcp.load(wanted, checkpoint_id=path, planner=planner)
    except dcp.api.CheckpointException:
        return False
    return True


def change(case, i, path, rank):
    """Saves under plan i of the case and loads under the other plan."""
    model = model_of(case, 1, case["plans"][i])
    train(model, case["tables"], rank)
    saved = {
        "model": model.state_dict(),
        "optim": model.fused_optimizer.state_dict(),
    }
    dcp.save(saved, checkpoint_id=path)
    want = content(model)
    model = model_of(case, 2, case["plans"][1 - i])
    dcp.load({"model": model.state_dict()}, checkpoint_id=path)
    names = sorted(table["name"] for table in case["tables"])
    loads = {name: load_state(model, name, path) for name in names}
    got = content(model)
    return {
        "weights": {name: want[0][name] == got[0][name] for name in names},
        "loads": loads,
        "state": {n: want[1].get(n) == got[1].get(n) for n in names},
        "partly": load_partly(model, path),
    }


def run(rank, work, cases):
    ranks.start(rank, JOB, work)
    for case in cases:
        path = f"{work}/{case['name']}"
        found = [change(case, i, f"{path} {i}", rank) for i in (0, 1)]
        if rank == 0:
            with open(f"{work}/results", "a", encoding="utf-8") as file:
                print(json.dumps(found), file=file)
    dist.destroy_process_group()


# --- Behaviour described in the manual ---------------------------------------


def n_columns(shown):
    """Number of column shards; 0 for a replica."""
    return len({s["shard_offsets"][1] for s in shown.get("shards", ())})


def expected(optimizer, before, after):
    """Whether the manual says that state can be loaded."""
    if optimizer == "sgd" or "shards" not in after:
        return True
    if "shards" not in before:
        return False
    return optimizer == "adagrad" or n_columns(before) == n_columns(after)


def judge(case, i, found):
    wrong, n_lost, is_partly = [], 0, True
    for table in case["tables"]:
        name = table["name"]
        module = "ec" if table["output"] == "sequence" else "ebc"
        before, after = (case["plans"][k][module][name] for k in (i, 1 - i))
        loads = expected(case["optimizer"], before, after)
        n_lost += not loads
        if not loads and "shards" in before:
            is_partly = False
        is_kept = loads and "shards" in before and "shards" in after
        if (
            not found["weights"][name]
            or found["loads"][name] != loads
            or (is_kept and not found["state"][name])
        ):
            wrong.append((name, before, after))
    ok(
        not wrong and found["partly"] == is_partly,
        f"{case['name']}, {'and back' if i else 'there'}: weights and "
        f"state are kept, except the state of {n_lost} of "
        f"{len(case['tables'])} tables",
        f"{wrong}\n{found}",
    )


def drawn_case(seed, optimizer):
    rng = random.Random(f"checkpoint {seed}")
    tables = drawn_tables(rng, 6, optimizer)
    for table in tables:
        if table["output"] == "pooled":
            table["dim"] = PIECE * rng.randint(1, 3)
    plans = []
    for _ in range(2):
        modules = {}
        for table in tables:
            module = "ec" if table["output"] == "sequence" else "ebc"
            shown = drawn_entry(rng, table, JOB.n_ranks)
            modules.setdefault(module, {})[table["name"]] = shown
        plans.append(modules)
    return {
        "name": f"plans {seed}, {optimizer}",
        "tables": tables,
        "optimizer": optimizer,
        "plans": plans,
    }


def planned_case(seed, optimizer, **options):
    """A case with TorchRec's own plan, and ours."""
    rng = random.Random(f"planned {seed}")
    tables = drawn_tables(rng, 10, optimizer)
    inputs = {
        "topology": Topology(
            world_size=JOB.n_ranks, compute_device="cpu", ddr_cap=1 << 30
        ),
        "stats": [],
        "debug": False,
    }
    plans = []
    for planner in (
        EmbeddingShardingPlanner(**inputs),
        NeuroShardPlanner(**inputs, **options, effort=2000, fallback=False),
    ):
        model = ranks.Model(tables)
        plan = planner.plan(model, ranks.sharders(optimizer))
        plans.append(plan._serialize()["plan"])
    return {
        "name": f"TorchRec's plan and ours, {seed}, {optimizer}",
        "tables": tables,
        "optimizer": optimizer,
        "plans": plans,
    }


def widths_case():
    """A case with the same number of shards but other widths. State loads,
    because only the number counts, although it belongs to other columns."""
    table = {
        **drawn_tables(random.Random(1), 1, "rowwise_adagrad")[0],
        "dim": 24,
        "output": "pooled",
    }
    rows = table["num_embeddings"]
    plans = [
        entry("column_wise", [0, 1], [(0, 0, rows, w), (0, w, rows, 24 - w)])
        for w in (8, 16)
    ]
    return {
        "name": "pieces of other widths, rowwise_adagrad",
        "tables": [table],
        "optimizer": "rowwise_adagrad",
        "plans": [{"ebc": {table["name"]: shown}} for shown in plans],
    }


def main():
    logging.disable(logging.CRITICAL)
    cases = [
        planned_case(1, "sgd"),
        planned_case(2, "adagrad"),
        planned_case(3, "rowwise_adagrad"),
        planned_case(4, "rowwise_adagrad", shard="table,row"),
        widths_case(),
    ] + [
        drawn_case(seed, optimizer)
        for optimizer in ("sgd", "adagrad", "rowwise_adagrad")
        for seed in range(3)
    ]
    with tempfile.TemporaryDirectory() as work:
        mp.start_processes(
            run, (work, cases), JOB.n_ranks, start_method="fork"
        )
        with open(f"{work}/results", encoding="utf-8") as file:
            for case, line in zip(cases, file):
                for i, found in enumerate(json.loads(line)):
                    judge(case, i, found)
    finish()


if __name__ == "__main__":
    main()
