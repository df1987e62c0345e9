# SPDX-License-Identifier: MIT
"""NeuroShardPlanner in jobs of several processes: rank 0 plans, all ranks get
the plan and train with it; ranks.py describes the comparisons. Speaks TAP;
NEUROSHARD is the program, and TEST_SIZE=full runs more models.
"""
import os
import random
import tempfile

from tap import finish
from t_plans import JOBS, Job, run_job


def drawn_tables(rng, n_tables, optimizer):
    """Draws pooled tables, and sequences of one width. Tables have many rows,
    because on a CPU TorchRec pools replicated sequences and needs rows on all
    ranks."""
    tables = []
    for i in range(n_tables):
        is_sequence = rng.random() < 0.25
        tables.append(
            {
                "name": f"t{i}",
                "num_embeddings": rng.randint(20, 200),
                "dim": 16 if is_sequence else 4 * rng.randint(1, 9),
                "num_outputs": rng.choice((1, 1, 2)),
                "output": "sequence" if is_sequence else "pooled",
                "optimizer": optimizer,
            }
        )
    return tables


def drawn_constraints(rng, tables):
    constraints = {}
    for table in tables:
        if table["output"] == "sequence":
            types = ["table_wise", "row_wise"]
        else:
            types = rng.choice(
                (
                    ["table_wise"],
                    ["column_wise"],
                    ["data_parallel"],
                    ["table_wise", "column_wise", "data_parallel"],
                )
            )
        constraints[table["name"]] = {
            "sharding_types": types,
            "pooling_factors": [1.5] * table["num_outputs"],
        }
    return constraints


def cases(job):
    yield column_case()
    n = 40 if os.environ.get("TEST_SIZE") == "full" else 4
    for seed in range(n):
        rng = random.Random(f"{seed} {job}")
        optimizer = rng.choice(("sgd", "rowwise_adagrad"))
        tables = drawn_tables(rng, rng.randint(2, 10), optimizer)
        yield {
            "name": f"planner, model {seed}, {optimizer}",
            "tables": tables,
            "optimizer": optimizer,
            "constraints": drawn_constraints(rng, tables),
            "planner": {"effort": 3000, "seed": seed, "fallback": False},
        }


def column_case():
    """A case with all tables in column shards."""
    tables = drawn_tables(random.Random(1), 6, "rowwise_adagrad")
    for table in tables:
        table.update(dim=24, output="pooled")
    return {
        "name": "planner, column pieces",
        "tables": tables,
        "optimizer": "rowwise_adagrad",
        "planner": {"effort": 3000, "shard": "column", "fallback": False},
    }


def fault_case(work, name, text):
    path = f"{work}/{name}"
    with open(path, "w", encoding="utf-8") as file:
        real = os.environ["NEUROSHARD"]
        head = f"#!/bin/sh\n[ $1 = --version ] && exec '{real}' --version\n"
        file.write(head + text)
    os.chmod(path, 0o755)
    rng = random.Random(name)
    return {
        "name": f"stock planner, as the program is {name}",
        "tables": drawn_tables(rng, 5, "sgd"),
        "optimizer": "sgd",
        "planner": {},
        "program": path,
    }


def fault_cases(work):
    yield fault_case(work, "killed", "kill -9 $$\n")
    yield fault_case(work, "mute", "exit 0\n")
    yield fault_case(work, "failing", "exit 1\n")
    yield {**fault_case(work, "missing", ""), "program": "/none/neuroshard"}


# --- Plans for the stock planner --------------------------------------------


def entry(kind, ranks, shards):
    """An entry as emit writes it; shards are (first row, column, rows,
    columns)."""
    shown = {
        "sharding_type": kind,
        "compute_kernel": "dense" if kind == "data_parallel" else "fused",
        "ranks": ranks,
    }
    if kind != "data_parallel":
        shown["shards"] = [
            {
                "shard_offsets": list(shard[:2]),
                "shard_sizes": list(shard[2:]),
                "placement": f"rank:{rank}/cpu",
            }
            for rank, shard in zip(ranks, shards)
        ]
    return shown


PIECE = 8


def drawn_entry(rng, table, n_ranks):
    """Draws one of the entries that TorchRec's enumerator offers on a CPU."""
    rows, dim = table["num_embeddings"], table["dim"]
    whole = (0, 0, rows, dim)
    if table["output"] == "sequence":
        kind = rng.choice(("table_wise", "row_wise"))
    else:
        kind = rng.choice(("table_wise", "column_wise", "data_parallel"))
    if kind == "table_wise":
        return entry(kind, [rng.randrange(n_ranks)], [whole])
    if kind == "data_parallel":
        return entry(kind, list(range(n_ranks)), [])
    if kind == "row_wise":
        block = -(-rows // n_ranks)
        blocks = [min(block, rows - i * block) for i in range(n_ranks)]
        shards = [(i * block, 0, n, dim) for i, n in enumerate(blocks)]
        return entry(kind, list(range(n_ranks)), shards)
    shards = [(0, col, rows, PIECE) for col in range(0, dim, PIECE)]
    return entry(kind, [rng.randrange(n_ranks) for _ in shards], shards)


def offered_case(seed, job):
    rng = random.Random(f"offered {seed} {job}")
    optimizer = rng.choice(("sgd", "rowwise_adagrad"))
    tables = drawn_tables(rng, rng.randint(2, 8), optimizer)
    modules = {}
    for table in tables:
        if table["output"] == "pooled":
            table["dim"] = PIECE * rng.randint(1, 4)
        module = "ec" if table["output"] == "sequence" else "ebc"
        modules.setdefault(module, {})[table["name"]] = drawn_entry(
            rng, table, job.n_ranks
        )
    return {
        "name": f"PlanLoader, plan {seed}, {optimizer}",
        "tables": tables,
        "optimizer": optimizer,
        "constraints": {
            table["name"]: {
                "min_partition": PIECE,
                "pooling_factors": [1.5] * table["num_outputs"],
            }
            for table in tables
        },
        "offered": {"plan": modules},
    }


def refused_case(name, shown, refusal, **constraint):
    """A table of 40 rows and 24 columns with an entry that is not offered."""
    table = drawn_tables(random.Random(1), 1, "sgd")[0]
    table.update(num_embeddings=40, dim=24, output="pooled")
    return {
        "name": f"PlanLoader refuses {name}",
        "tables": [table],
        "optimizer": "sgd",
        "constraints": {
            "t0": {
                "min_partition": PIECE,
                "pooling_factors": [1.0] * table["num_outputs"],
                **constraint,
            }
        },
        "offered": {"plan": {"ebc": {"t0": shown} if shown else {}}},
        "refusal": "TorchRec's planner does not offer what the plan has: "
        f"table 't0' of module 'ebc' {refusal}",
    }


def refused_cases():
    yield refused_case(
        "unequal columns",
        entry("column_wise", [0, 1], [(0, 0, 40, 16), (0, 16, 40, 8)]),
        "is column_wise (fused) in [40, 16], [40, 8]",
    )
    yield refused_case(
        "narrower pieces",
        entry(
            *("column_wise", [0, 1, 0, 1, 0, 1]),
            [(0, col, 40, 4) for col in range(0, 24, 4)],
        ),
        "is column_wise (fused) in [40, 4], [40, 4], [40, 4], [40, 4], ...",
    )
    yield refused_case(
        "rows on a CPU",
        entry("row_wise", [0, 1], [(0, 0, 20, 24), (20, 0, 20, 24)]),
        "is row_wise (fused) in [20, 24], [20, 24]",
    )
    yield refused_case(
        "what a constraint excludes",
        entry("data_parallel", [0, 1], []),
        "is data_parallel (dense)",
        sharding_types=["table_wise"],
    )
    yield refused_case(
        "another kernel",
        {
            **entry("table_wise", [0], [(0, 0, 40, 24)]),
            "compute_kernel": "fused_uvm",
        },
        "is table_wise (fused_uvm) in [40, 24]",
    )
    yield refused_case("a table that is not there", None, "is not in it")


def main():
    with tempfile.TemporaryDirectory() as work:
        for job in (Job(2, 2), Job(4, 4), Job(4, 2)):
            print(f"# {job}")
            run_job(work, job, list(cases(job)))
        run_job(work, JOBS[0], list(fault_cases(work)))
        for job, n in ((JOBS[0], 20), (Job(4, 2), 5)):
            run_job(work, job, [offered_case(seed, job) for seed in range(n)])
        run_job(work, JOBS[0], list(refused_cases()))
    finish()


if __name__ == "__main__":
    main()
