#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plan --target on drawn lists: the rules of each target, once more in Python,
hold for every plan. 1,000 lists for each target with TEST_SIZE=full. Speaks
TAP; NEUROSHARD is the program.
"""
import json
import os
import random
import tempfile
from collections import defaultdict
from pathlib import Path

from tap import finish, neuroshard, ok

N_LISTS = {"tiny": 2, "full": 1000}.get(os.environ.get("TEST_SIZE"), 8)
COSTS = ("roofline:h100", "torchrec", "model:h100.nsm")


def draw_list(rng, target, path):
    """Writes a list of tables that the target takes. Returns the options of
    the cluster."""
    per_host = rng.choice((1, 2, 4, 8))
    gpus = per_host * rng.choice((1, 1, 2, 3))
    # HugeCTR's pieces have at most 256 columns
    wide = [d for d in (512, 1024) if target != "hugectr" or d <= 256 * gpus]
    sequence_dim = rng.choice((16, 64, 128))
    names = "name,num_embeddings,dim,pooling_factor,output,device,sharding"
    lines = [names]
    for i in range(rng.randrange(2, 25)):
        rows = int(10 ** rng.uniform(1, 7.7))
        dim = rng.choice((4, 12, 16, 48, 64, 96, 128, 256, *wide))
        output, pin, kinds = "pooled", "", ""
        if target != "dlrm" and rng.random() < 0.2:
            output, dim = "sequence", sequence_dim
        if rng.random() < 0.05 and dim <= 256:
            pin = rng.randrange(gpus)
        if rng.random() < 0.05 and gpus > 1 and dim <= 256:
            kinds = rng.choice(("table|column", "column|table", "table|row"))
        lookups = rng.choice((1, 1, 3, 20, 100))
        lines.append(f"t{i},{rows},{dim},{lookups},{output},{pin},{kinds}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ["--gpus", gpus, "--gpus-per-host", per_host]


def blocks(rows, n):
    """Row ranges of a table that is cut into equal blocks."""
    size = -(-rows // n)
    return [(a, min(a + size, rows)) for a in range(0, rows, size)]


def dealt(rows, n):
    """Row ranges that stand for the rows dealt to n GPUs."""
    counts = [len(range(i, rows, n)) for i in range(n)]
    return [(sum(counts[:i]), sum(counts[: i + 1])) for i in range(n)]


def over_ranks(pieces, rows, n, local, hosts):
    """Whether these row blocks of one column range are in the order of all
    ranks, or of those of one host."""
    cut = [(*p["row"], p["device"]) for p in pieces]
    first = pieces[0]["device"] // local * local
    places = [(0, n)] + [(first, local)] * hosts
    return any(
        cut
        == [(a, b, start + i) for i, (a, b) in enumerate(blocks(rows, size))]
        for start, size in places
    )


def fault_torchrec(table, pieces, plan, target):
    n = len(plan["devices"])
    local = plan["cluster"]["gpus_per_host"]
    kind, is_sequence = pieces[0]["kind"], table["output"] == "sequence"
    if kind == "grid" and (is_sequence or target == "torchrec-ec"):
        return "grid"
    widths = defaultdict(set)
    ranges = defaultdict(list)
    for piece in pieces:
        begin, end = piece["col"]
        widths[piece["device"]].add(end - begin)
        ranges[begin].append(piece)
    if any(len(w) > 1 or min(w) % 4 for w in widths.values()):
        return "widths"
    if is_sequence and kind == "column":
        if {w for s in widths.values() for w in s} != {table["dim"] // 2}:
            return "widths of a sequence"
    hosts = not is_sequence and target != "torchrec-ec"
    if kind in ("row", "grid") and not all(
        over_ranks(cut, table["num_embeddings"], n, local, hosts)
        and (kind == "row" or len({p["device"] // local for p in cut}) == 1)
        for cut in ranges.values()
    ):
        return "rows"
    return None


def fault_hugectr(table, pieces, plan):
    kind, dim = pieces[0]["kind"], table["dim"]
    longs = [
        t
        for t in plan["tables"]
        if t["output"] == "sequence" and t["pooling_factor"] > 1
    ]
    if kind == "replicate":
        return "replica" if longs or dim > 256 else None
    gpus = sorted(p["device"] for p in pieces)
    if len(set(gpus)) < len(gpus):
        return "two pieces on a GPU"
    width = pieces[0]["col"][1] - pieces[0]["col"][0]
    factor = dim // width
    if width > 256 or dim % width or len(gpus) % factor:
        return "columns"
    per = len(gpus) // factor
    cut = dealt(table["num_embeddings"], per)
    for piece in pieces:
        i = gpus.index(piece["device"])
        begin = i // per * width
        if piece["col"] != [begin, begin + width]:
            return "order of columns"
        if tuple(piece["row"]) != cut[i % per]:
            return "order of rows"
    return None


def fault_of(plan, target):
    """The first broken rule, or None."""
    by_table = defaultdict(list)
    for shard in plan["shards"]:
        for part in ("row", "col"):
            shard[part] = [shard[f"{part}_begin"], shard[f"{part}_end"]]
        by_table[shard["table"]].append(shard)
    for idx, table in enumerate(plan["tables"]):
        pieces = by_table[idx]
        pieces.sort(key=lambda p: (p["col"], p["row"], p["device"]))
        if target == "hugectr":
            fault = fault_hugectr(table, pieces, plan)
        else:
            fault = fault_torchrec(table, pieces, plan, target)
        if fault:
            return f"{table['name']}: {fault}"
    return None


def test_lists(target, folder):
    rng = random.Random(target)
    faults, n_planned, kinds = [], 0, defaultdict(int)
    for i in range(N_LISTS):
        path = Path(folder) / "tables.csv"
        cluster = draw_list(rng, target, path)
        line = ["plan", path, *cluster, "--target", target]
        line += ["--cost", COSTS[i % 3], "--effort", 2000, "--no-rivals"]
        status, text, said = neuroshard(*map(str, line), "--json")
        if status:
            if "no plan" not in said:
                faults.append((i, said))
            continue
        plan = json.loads(text)
        n_planned += 1
        for shard in plan["shards"]:
            kinds[shard["kind"]] += 1
        if fault_of(plan, target):
            faults.append((i, fault_of(plan, target)))
    ok(
        not faults and n_planned >= N_LISTS * 0.9,
        f"{target}: {n_planned} plans of {N_LISTS} lists, {dict(kinds)}",
        f"{faults[:5]}",
    )


with tempfile.TemporaryDirectory() as scratch:
    for name in ("torchrec", "torchrec-ec", "dlrm", "hugectr"):
        test_lists(name, scratch)
finish()
