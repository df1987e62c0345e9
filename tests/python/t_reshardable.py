#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plan --from PLAN --reshardable on drawn plans of TorchRec: by diff --format
reshard nothing needs a checkpoint, and by a second reading of the rules,
pieces go to other ranks as they are. Speaks TAP; NEUROSHARD is the program.
"""
import json
import os
import random
import tempfile
from collections import defaultdict
from pathlib import Path

from tap import finish, neuroshard, ok

N_PLANS = {"tiny": 3, "full": 300}.get(os.environ.get("TEST_SIZE"), 12)
COSTS = ("roofline:h100", "torchrec", "model:h100.nsm")


def blocks_of(rows, n):
    size = -(-rows // n)
    return [(i, min(i * size, rows), min(i * size + size, rows))
            for i in range(n)]


def draw_entry(rng, table, n):
    """TorchRec's entry of a table: whole, of column pieces, of row blocks or
    replicated."""
    rows, dim = table["rows"], table["dim"]
    kind = rng.choice(["column_wise"] * 6 + ["row_wise", "data_parallel"])
    ranks, whole = list(range(n)), table["output"] == "sequence"
    if kind == "row_wise":
        pieces = [(r, a, b, 0, dim) for r, a, b in blocks_of(rows, n)]
    elif kind == "data_parallel":
        pieces = []
    else:
        parts = 1 if whole else min(rng.choice((1, 1, 2, 2, 3)), n, dim // 8)
        cuts = sorted(rng.sample(range(1, dim // 4), parts - 1))
        bounds = [0, *(4 * c for c in cuts), dim]
        ranks = rng.sample(range(n), parts)
        if parts == 2 and rng.random() < 0.2:  # two pieces on one rank
            bounds, ranks = [0, dim // 2, dim], [ranks[0]] * 2
        pieces = [(r, 0, rows, a, b)
                  for r, a, b in zip(ranks, bounds, bounds[1:])]
        kind = "table_wise" if whole else "column_wise"
    entry = {"sharding_type": kind, "compute_kernel": "fused", "ranks": ranks}
    if kind == "data_parallel":
        return {**entry, "compute_kernel": "dense"}
    entry["shards"] = [
        {
            "shard_offsets": [a, c],
            "shard_sizes": [b - a, d - c],
            "placement": f"rank:{r}/cuda:{r}",
        }
        for r, a, b, c, d in pieces
    ]
    return entry


def draw_job(rng, folder):
    """Writes the tables of a job and its plan. Returns the options."""
    per_host = rng.choice((2, 4, 8))
    n = per_host * rng.choice((1, 1, 2))
    tables, lines = [], ["name,num_embeddings,dim,pooling_factor,output"]
    for i in range(rng.randrange(6, 30)):
        output = "sequence" if rng.random() < 0.1 else "pooled"
        table = {"rows": int(10 ** rng.uniform(3, 6.5)), "output": output,
                 "dim": 32 if output == "sequence" else rng.choice((32, 128))}
        name = ("m.ec" if output == "sequence" else "m.ebc") + f".t{i}"
        tables.append((name, table))
        lookups = 2 if output == "sequence" else rng.choice((1, 3, 20, 100))
        size = f"{table['rows']},{table['dim']}"
        lines.append(f"{name},{size},{lookups},{output}")
    plan = defaultdict(dict)
    for name, table in tables:
        module, short = name.rsplit(".", 1)
        plan[module][short] = draw_entry(rng, table, n)
    (folder / "tables.csv").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "old.json").write_text(
        json.dumps({"world_size": n, "local_world_size": per_host,
                    "plan": plan}), "utf-8")
    return ["--gpus", n, "--gpus-per-host", per_host]


def pieces_of(plan):
    """Pieces of each table by name, in the order of columns and rows."""
    out = defaultdict(list)
    for shard in plan["shards"]:
        name = plan["tables"][shard["table"]]["name"]
        ends = ("col_begin", "col_end", "row_begin", "row_end")
        cut = [shard[end] for end in ends]
        out[name].append((*cut, shard["kind"], shard["device"]))
    return {name: sorted(pieces) for name, pieces in out.items()}


def is_movable(table, pieces):
    ranks = [p[-1] for p in pieces]
    return (
        table["output"] == "pooled"
        and pieces[0][4] in ("table", "column")
        and len(set(ranks)) == len(ranks)
    )


def faults_of(old, new):
    """Tables that change in a way that reshard cannot make."""
    before, after = pieces_of(old), pieces_of(new)
    for table in new["tables"]:
        a, b = before[table["name"]], after[table["name"]]
        ranks = [p[-1] for p in b]
        if is_movable(table, a):
            fault = [p[:-1] for p in a] != [p[:-1] for p in b]
            fault = fault or len(set(ranks)) < len(ranks)
        else:
            fault = a != b
        if fault:
            yield table["name"], a, b


def run(folder, *words):
    status, text, said = neuroshard(*map(str, words), "--json")
    return status, json.loads(text) if text else None, said


def test_plans(folder):
    rng, faults = random.Random(5), []
    n_moved = n_refused = 0
    for i in range(N_PLANS):
        options = draw_job(rng, folder)
        tables, files = folder / "tables.csv", [folder / "old.json",
                                                folder / "new.json"]
        options += ["--batch", 8192, "--cost", COSTS[i % 3]]
        status, old, said = run(folder, "cost", files[0], "--tables", tables,
                                *options)
        assert not status, said
        status, new, said = run(
            folder, "plan", tables, *options, "--from", files[0],
            *["--reshardable", "--effort", 3000, "-o", files[1]],
            *["--no-rivals"] + ["--move-limit", "20MiB"] * (i % 2))
        if status:
            n_refused += 1
            faults.append((i, said))
            continue
        status, moves, said = run(folder, "diff", *files, "--tables", tables,
                                  "--batch", 8192, "--format", "reshard")
        assert not status, said
        n_moved += len(moves["reshard"])
        if moves["checkpoint"] or not new["movement"]["reshardable"]:
            faults.append((i, moves["checkpoint"]))
        if i % 2 and moves["moved_bytes"] > 20 << 20:
            faults.append((i, moves["moved_bytes"]))
        if new["total_ms"] > new["movement"]["standing"]["total_ms"] * 1.0001:
            faults.append((i, "dearer than the current plan"))
        faults += [(i, fault) for fault in faults_of(old, new)]
    ok(
        not faults and n_moved > N_PLANS,
        f"{n_moved} tables move in {N_PLANS} plans, {n_refused} refused",
        f"{faults[:4]}",
    )


with tempfile.TemporaryDirectory() as scratch:
    test_plans(Path(scratch))
finish()
