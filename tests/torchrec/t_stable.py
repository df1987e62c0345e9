# SPDX-License-Identifier: MIT
"""Plans that stay the same from restart to restart (previous=). Speaks TAP;
NEUROSHARD is the program, NEUROSHARD_DATA its data.
"""
import json
import logging
import random
import tempfile

import torch
import torchrec.optim
from torchrec.distributed.planner.types import ParameterConstraints

from neuroshard.torchrec import NeuroShardPlanner, dump
from planner_models import SHARDERS, Log, bags, collection, stock_arguments
from planner_models import GIB, topology
from tap import finish, ok

OPTIMIZERS = (
    torchrec.optim.RowWiseAdagrad,
    torch.optim.SGD,
    torch.optim.Adagrad,
)
N_TABLES, N_RESTARTS, JITTER = 18, 20, 0.001


def drawn():
    """Returns a model of tables with three optimizers, and pooling factors."""
    rng = random.Random(5)
    names = [f"t{i}" for i in range(N_TABLES)]
    model = collection(
        *[
            bags(name, rng.randint(1000, 3000000), rng.choice((32, 64, 128)))
            for name in names
        ]
    )
    for i, parameter in enumerate(model.parameters()):
        parameter._optimizer_classes = [OPTIMIZERS[i % len(OPTIMIZERS)]]
    return model, {name: rng.uniform(1, 40) for name in names}


def restart(model, pooling, previous=None, **arguments):
    """Returns the plan as JSON and the log."""
    constraints = {
        name: ParameterConstraints(pooling_factors=[factor])
        for name, factor in pooling.items()
    }
    arguments = stock_arguments(constraints, **arguments)
    arguments.pop("proposer")
    planner = NeuroShardPlanner(
        **arguments,
        **{"effort": 1000, "seed": 3, "host_ms": 0, "fallback": False},
        previous=previous,
    )
    with Log() as log:
        plan = planner.plan(model, SHARDERS)
    return dump(plan, arguments["topology"]), "\n".join(log.lines)


def jittered(pooling, rng):
    return {
        name: factor * (1 + rng.uniform(-JITTER, JITTER))
        for name, factor in pooling.items()
    }


def check_restarts(model, pooling, first):
    rng = random.Random(7)
    last, plans, fresh = first, set(), set()
    for i in range(N_RESTARTS):
        now = jittered(pooling, rng)
        last, _ = restart(model, now, last)
        plans.add(json.dumps(last["plan"], sort_keys=True))
        if i < 3:
            alone, _ = restart(model, now)
            fresh.add(json.dumps(alone["plan"], sort_keys=True))
    ok(len(plans) == 1, f"{N_RESTARTS} restarts, {len(plans)} plans")
    ok(last["plan"] == first["plan"], "which is the first one")
    ok(len(fresh) > 1, f"without previous 3 restarts have {len(fresh)}")


def pieces(plan, name):
    entry = plan["plan"][""][name]
    shards = entry.get("shards") or [{"shard_offsets": [0, 0]}]
    columns = {shard["shard_offsets"][1] for shard in shards}
    return entry["sharding_type"] == "data_parallel", len(columns)


def check_gain(model, pooling, first):
    """Lookups that change much change the plan, but no table's state is
    lost."""
    rng = random.Random(11)
    other = {name: rng.choice((1, 60, 200)) for name in pooling}
    now, _ = restart(model, other, first)
    ok(now["plan"] != first["plan"], "a plan that gains replaces the other")
    lost = [
        name
        for i, name in enumerate(pooling)
        if OPTIMIZERS[i % 3] is torchrec.optim.RowWiseAdagrad
        and pieces(now, name) != pieces(first, name)
    ]
    ok(not lost, "row-wise state is cut as before", str(lost))


def check_other_jobs(model, pooling, first):
    """Plans that fit no more, or that are of another job."""
    small = topology(4, hbm_cap=3 * GIB)
    now, _ = restart(model, pooling, first)
    ok(now["plan"] == first["plan"], "a plan is kept by its JSON")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(first, file)
        file.flush()
        now, _ = restart(model, pooling, file.name)
    ok(now["plan"] == first["plan"], "and by its path")
    only = {"plan": {"": {"t0": first["plan"][""]["t0"]}}}
    now, log = restart(model, pooling, only)
    ok(
        "previous is the plan of another job" in log,
        "a plan of other tables gives a note",
        log,
    )
    now, _ = restart(model, pooling, first, topology=small)
    ok(
        now["plan"] != first["plan"],
        "a plan that does not fit any more is replaced",
    )


def main():
    logging.getLogger().setLevel(logging.CRITICAL)
    logging.getLogger("neuroshard").setLevel(logging.INFO)
    logging.getLogger("neuroshard").propagate = False
    model, pooling = drawn()
    first, _ = restart(model, pooling)
    check_restarts(model, pooling, first)
    check_gain(model, pooling, first)
    check_other_jobs(model, pooling, first)
    finish()


if __name__ == "__main__":
    main()
