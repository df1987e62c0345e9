#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""emit --format hugectr against HugeCTR's own rules (hugectr_rules.py). They
accept the plans of drawn lists (500 with TEST_SIZE=full), put each piece on
the GPU that the plan names, and refuse planted faults. Speaks TAP; NEUROSHARD
is the program.
"""
import copy
import json
import os
import random
import tempfile
from pathlib import Path

import hugectr_rules as rules
from hugectr_rules import Communication, Compression
from tap import finish, neuroshard, ok

N_PLANS = {"tiny": 3, "full": 500}.get(os.environ.get("TEST_SIZE"), 12)
COSTS = ("roofline:h100", "torchrec", "model:h100.nsm")


def draw_list(rng, path):
    per_host, n_hosts = rng.choice((2, 4, 8)), rng.choice((1, 2))
    gpus = per_host * n_hosts
    wide = [d for d in (512, 1024) if d <= 256 * gpus]
    dim, lines = 64, ["name,num_embeddings,dim,pooling_factor,output"]
    long = rng.random() < 0.5
    for i in range(rng.randrange(3, 20)):
        rows = int(10 ** rng.uniform(1, 7.7))
        output, hot = "pooled", rng.choice((1, 3, 20, 100))
        width = rng.choice((12, 16, 64, 96, 128, 256, *wide))
        if rng.random() < 0.15:
            output, width, hot = "sequence", dim, hot if long else 1
        rows = max(rows, 9000) if width > 256 else rows
        lines.append(f"t{i},{rows},{width},{hot},{output}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return gpus, per_host


def tables_of(plan):
    return {
        t["name"]: (
            t["num_embeddings"],
            t["dim"],
            "concat" if t["output"] == "sequence" else "sum",
            t["pooling_factor"],
        )
        for t in plan["tables"]
    }


def misplaced(plan, config, pieces):
    """The first shard of a plan that HugeCTR would put elsewhere."""
    for shard in plan["shards"]:
        name, rows, dim, _ = [
            plan["tables"][shard["table"]][key]
            for key in ("name", "num_embeddings", "dim", "output")
        ]
        width = shard["col_end"] - shard["col_begin"]
        gpus = pieces[name, shard["col_begin"] // width]
        n_rows = shard["row_end"] - shard["row_begin"]
        is_replica = shard["kind"] == "replicate"
        if (
            dim % width
            or shard["device"] not in gpus
            or name not in config.matrix[shard["device"]]
            or (not is_replica)
            * (n_rows - rules.rows_of(gpus, shard["device"], rows))
        ):
            return name, shard
    n_listed = sum(len(row) for row in config.matrix)
    return None if n_listed == len(plan["shards"]) else "a piece is missing"


def test_plans(folder):
    rng, faults = random.Random(7), []
    n_cut = {"column": 0, "row": 0, "grid": 0, "replicate": 0}
    for i in range(N_PLANS):
        table_path, plan_path = folder / "t.csv", folder / "p.json"
        gpus, host = draw_list(rng, table_path)
        line = ["plan", table_path, "--gpus", gpus, "--gpus-per-host", host]
        line += ["--target", "hugectr", "--cost", COSTS[i % 3]]
        line += ["--effort", 1500, "--no-rivals", "-o", plan_path]
        wants_grids = i % 4 == 3
        if wants_grids:
            line += ["--shard", "table,grid"]
        status, _, said = neuroshard(*map(str, line))
        if status and wants_grids and "cannot be placed" in said:
            continue
        if status:
            faults.append((i, said))
            continue
        plan = json.loads(plan_path.read_text(encoding="utf-8"))
        for shard in plan["shards"]:
            if shard["kind"] in n_cut:
                n_cut[shard["kind"]] += 1
        comm = rng.choice(("uniform", "hierarchical"))
        line = ["emit", plan_path, "--format", "hugectr", "--comm", comm]
        status, text, said = neuroshard(*map(str, line))
        try:
            config = rules.load(text)
            pieces = rules.check_all(config, tables_of(plan), gpus, host)
            wrong = misplaced(plan, config, pieces)
        except (rules.Refused, SyntaxError, KeyError) as error:
            wrong = f"{said}{error!r}"
        if wrong:
            faults.append((i, wrong))
    ok(not faults, f"{N_PLANS} plans: {n_cut}", str(faults[:3]))


TABLES = {
    "whole": (1000, 64, "sum", 3),
    "wide": (9000, 512, "average", 3),
    "rows": (9000, 32, "sum", 3),
    "small": (10, 16, "sum", 1),
    "list": (90, 16, "concat", 1),
}


def sound():
    model = ["whole", ("wide", 2), "rows", "list"]
    return rules.Config(
        [
            ["whole", "wide", "small"],
            ["wide", "rows", "small", "list"],
            ["wide", "rows", "small"],
            ["wide", "rows", "small"],
        ],
        [("mp", model), ("dp", ["small"])],
        {
            Compression.Reduction: ["whole", "wide", "rows"],
            Compression.Unique: ["list"],
        },
    )


def replaced(table, **columns):
    keys = ("rows", "dim", "combiner", "hotness")
    old = dict(zip(keys, TABLES[table]))
    return {**TABLES, table: tuple({**old, **columns}.values())}


def plant(change):
    """A fault that changes the arguments."""

    def apply():
        config = sound()
        change(config)
        return config, TABLES

    return apply


def among(table, **columns):
    """A fault of a table."""
    return lambda: (sound(), replaced(table, **columns))


REDUCTION, UNIQUE = Compression.Reduction, Compression.Unique
FAULTS = [
    plant(lambda c: c.matrix.pop()),
    plant(lambda c: c.matrix.append([])),
    plant(lambda c: c.matrix[0].append("whole")),
    plant(lambda c: c.matrix[0].append("unknown")),
    plant(lambda c: c.matrix[3].remove("small")),
    plant(lambda c: c.matrix[0].remove("whole")),
    plant(lambda c: c.matrix[0].remove("wide")),
    plant(lambda c: c.strategy.pop()),
    plant(lambda c: c.strategy[1][1].append("whole")),
    plant(lambda c: c.strategy[1][1].append("rows")),
    plant(lambda c: c.strategy[0][1].append("small")),
    plant(lambda c: c.strategy.append(("pp", []))),
    plant(lambda c: c.strategy[0][1].append("unknown")),
    plant(lambda c: c.strategy[0][1].remove("rows")),
    plant(lambda c: c.strategy[1][1].__setitem__(0, ("small", 4))),
    plant(lambda c: c.strategy[0][1].__setitem__(1, "wide")),
    plant(lambda c: c.strategy[0][1].__setitem__(1, ("wide", 3))),
    plant(lambda c: c.strategy[0][1].__setitem__(2, ("rows", 2))),
    plant(lambda c: c.strategy[0][1].__setitem__(1, ("wide", 0))),
    plant(lambda c: c.compression[UNIQUE].append("whole")),
    plant(lambda c: c.compression[REDUCTION].remove("rows")),
    plant(lambda c: c.compression[REDUCTION].append("small")),
    plant(lambda c: c.compression.__setitem__(UNIQUE, [])),
    plant(
        lambda c: c.compression.update(
            {REDUCTION: ["whole", "wide", "rows", "list"], UNIQUE: []}
        )
    ),
    plant(lambda c: setattr(c, "comm", Communication.Hierarchical)),
    among("list", hotness=2),
    among("whole", dim=260),
    among("wide", dim=511),
    among("small", dim=300),
    among("rows", combiner="concat"),
]


def test_faults():
    rules.check_all(copy.deepcopy(sound()), TABLES, 4)
    missed = []
    for i, fault in enumerate(FAULTS):
        try:
            rules.check_all(*fault(), 4)
            missed.append(i)
        except rules.Refused:
            pass
    ok(not missed, f"{len(FAULTS)} faults are refused", str(missed))


def test_split():
    pieces = rules.split(sound(), TABLES)
    ok(
        pieces["wide", 0] == [0, 1] and pieces["wide", 1] == [2, 3],
        "two column pieces on two GPUs each",
        str(pieces),
    )
    ok(
        [rules.rows_of([1, 2, 3], g, 8) for g in (1, 2, 3)] == [3, 3, 2],
        "rows are dealt",
    )


with tempfile.TemporaryDirectory() as scratch:
    test_plans(Path(scratch))
test_faults()
test_split()
finish()
