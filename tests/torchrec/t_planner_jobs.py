# SPDX-License-Identifier: MIT
"""NeuroShardPlanner in jobs of several processes: rank 0 plans, all get the
plan, and train by it; see ranks.py for what is held against what. Speaks TAP;
NEUROSHARD is the program, and TEST_SIZE=full runs more models.
"""
import os
import random
import tempfile

from tap import finish
from t_plans import JOBS, Job, run_job


def drawn_tables(rng, n_tables, optimizer):
    """Pooled ones and sequences of one width. On a CPU TorchRec pools
    replicated sequences and wants rows on all ranks, so that there are
    many."""
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
    """All tables in pieces."""
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


def main():
    with tempfile.TemporaryDirectory() as work:
        for job in (Job(2, 2), Job(4, 4), Job(4, 2)):
            print(f"# {job}")
            run_job(work, job, list(cases(job)))
        run_job(work, JOBS[0], list(fault_cases(work)))
    finish()


main()
