# SPDX-License-Identifier: MIT
"""Measures the cases of a cost database through FBGEMM.

    fbgemm_samples.py [--seconds S] [--small] FROM TO

FROM is a database of `neuroshard bench`. Its fused cases, single tables and
reference cases (sentinels) are repeated with FBGEMM's table-batched
embeddings, in the order of their measurement, but single tables last. The
results are stored in TO (created if missing) as samples of the device
"fbgemm:NAME". A model that `neuroshard train` makes from TO predicts the
operators that a TorchRec job runs. Cases that TO already has are not measured
again.

Lookups have the reuse histogram and the unique rows of the sample; indices
have 64 bits. A repetition is as in microbench/setup.c: cache flush, forward,
cache flush, fused backward, everything queued before it starts. A repetition
does not count if the host was too slow. Cases that do not fit the memory are
left out. --small is a dry run on the CPU: its times mean nothing, and tables
have at most 1,000 rows and 32 samples.
"""

import argparse
import gc
import sqlite3
import statistics
import struct
import time

import fbgemm_gpu
import torch
from fbgemm_gpu import split_table_batched_embeddings_ops_training as tbe
from fbgemm_gpu.split_embedding_configs import EmbOptimType, SparseType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import BoundsCheckMode

SETS, LAPS, WARM_UP, MOST_LAPS = 4, 10, 3, 30
HOLD_CYCLES, HOLD_S = 6_000_000, 2.8e-3  # at 1.98 GHz
RATE = 1e-6
# prime: number * SCATTER mod rows is a permutation of the rows
SCATTER = 2654435761
TIMES = ("forward", "backward", "total")
# Lookups of a row in bin k; same as reuse_bin_count (core/table.h).
BIN_COUNTS = [1.0, 2.0] + [3.0 * 2**k for k in range(15)]
KINDS = {
    "sgd": EmbOptimType.EXACT_SGD,
    "rowwise_adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD,
}


def draw_table(table, batch, device):
    """Returns the row of each lookup of a set, and the number of lookups."""
    n_rows, _, pooling, n_unique, bins = table
    n = round(pooling * batch)
    unique = max(1, min(round(n_unique), n_rows, n)) if n else 0
    counts = torch.tensor(BIN_COUNTS, device=device) - 1
    shares = torch.tensor(bins, device=device).cumsum(0)
    place = (torch.arange(unique, device=device) + 0.5) / max(unique, 1) * shares[-1]
    # Each row once; extra lookups where the histogram has more.
    more = counts[torch.searchsorted(shares, place).clamp_(max=16)].double().cumsum(0)
    extra = torch.zeros(0, dtype=torch.int64, device=device)
    if n > unique:
        if more[-1] == 0:
            more = torch.arange(1, unique + 1, dtype=torch.float64, device=device)
        at = (torch.arange(n - unique, device=device) + 0.5) / (n - unique)
        extra = torch.searchsorted(more, at * more[-1]).clamp_(max=unique - 1)
    rows = torch.cat([torch.arange(unique, device=device), extra])
    return rows[torch.randperm(n, device=device)], n


def draw_sets(tables, batch, device):
    """Returns index sets, each table after table, and their offsets."""
    drawn = [draw_table(table, batch, device) for table in tables]
    sets = []
    for k in range(SETS):
        parts = [
            (rows.roll(k * 977) + k * 7919 + t) * SCATTER % table[0]
            for t, ((rows, _), table) in enumerate(zip(drawn, tables))
        ]
        sets.append(torch.cat(parts))
    ends, begin = [torch.zeros(1, dtype=torch.int64, device=device)], 0
    steps = torch.arange(1, batch + 1, device=device)
    for _, n in drawn:
        ends.append(begin + steps * n // batch)
        begin += n
    return sets, torch.cat(ends)


def open_tables(tables, precision, optimizer, device):
    gpu = device == "cuda"
    place = tbe.EmbeddingLocation.DEVICE if gpu else tbe.EmbeddingLocation.HOST
    processor = tbe.ComputeDevice.CUDA if gpu else tbe.ComputeDevice.CPU
    module = tbe.SplitTableBatchedEmbeddingBagsCodegen(
        [(table[0], table[1], place, processor) for table in tables],
        optimizer=KINDS[optimizer],
        learning_rate=RATE,
        weights_precision=SparseType.FP16 if precision == "fp16" else SparseType.FP32,
        bounds_check_mode=BoundsCheckMode.NONE,
    )
    module.init_embedding_weights_uniform(-0.05, 0.05)
    return module


def lap(module, indices, offsets, gradient, flush):
    """Milliseconds of forward and backward; None if the host was late."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
    begin = time.perf_counter()
    torch.cuda._sleep(HOLD_CYCLES)
    flush.sum()
    marks[0].record()
    out = module(indices, offsets)
    marks[1].record()
    flush.sum()
    marks[2].record()
    out.backward(gradient)
    marks[3].record()
    is_late = time.perf_counter() - begin > HOLD_S
    marks[3].synchronize()
    if is_late:
        return None
    return marks[0].elapsed_time(marks[1]), marks[2].elapsed_time(marks[3])


def measure(tables, batch, precision, optimizer, flush):
    """Returns (forward, backward) in ms of each repetition; None if too few
    repetitions were valid."""
    device = flush.device.type
    sets, offsets = draw_sets(tables, batch, device)
    module = open_tables(tables, precision, optimizer, device)
    gradient = torch.randn(batch, sum(table[1] for table in tables), device=device)
    if device == "cpu":
        module(sets[0], offsets).backward(gradient)
        return [(1.0, 1.0)] * LAPS
    laps = []
    for i in range(WARM_UP + MOST_LAPS):
        taken = lap(module, sets[i % SETS], offsets, gradient, flush)
        if i >= WARM_UP and taken:
            laps.append(taken)
        if len(laps) == LAPS:
            return laps
    return laps if len(laps) >= LAPS // 2 else None


def read_tables(source, sample_id, small):
    tables = []
    for row in source.execute(
        "SELECT * FROM sample_table WHERE sample_id = ? ORDER BY table_idx",
        (sample_id,),
    ):
        rows, unique = row["n_rows"], row["n_unique"]
        if small:
            rows, unique = min(rows, 1000), min(unique, 32)
        bins = struct.unpack("<17d", row["bins"])
        tables.append((rows, row["dim"], row["pooling_factor"], unique, bins))
    return tables


def open_target(path, source):
    """Opens a database with the schema of source."""
    target = sqlite3.connect(path)
    if not target.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        for pragma in ("application_id", "user_version"):
            value = source.execute(f"PRAGMA {pragma}").fetchone()[0]
            target.execute(f"PRAGMA {pragma} = {value}")
        for (sql,) in source.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
        ):
            target.execute(sql)
        target.commit()
    return target


def insert(target, table, values):
    names, marks = ", ".join(values), ", ".join("?" * len(values))
    sql = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})"
    return target.execute(sql, list(values.values())).lastrowid


def setting_id(target, source, number, device):
    values = dict(
        source.execute("SELECT * FROM setting WHERE id = ?", (number,)).fetchone()
    )
    values.update(device=device, id=None)
    key = {k: v for k, v in values.items() if k != "id"}
    where = " AND ".join(f"{name} = ?" for name in key)
    insert(target, "setting", values)
    found = target.execute(f"SELECT id FROM setting WHERE {where}", list(key.values()))
    return found.fetchone()[0]


def store(target, source, sample, setting, laps):
    values = dict(sample)
    for name in values:
        if name.startswith(("linearise", "sort", "update")):
            values[name] = 0
    columns = [*zip(*laps), [sum(both) for both in laps]]
    for name, of in zip(TIMES, columns):
        p10, *_, p90 = statistics.quantiles(of, n=10, method="inclusive")
        values[f"{name}_median_ms"] = statistics.median(of)
        values[f"{name}_p10_ms"], values[f"{name}_p90_ms"] = p10, p90
    values.update(
        id=None,
        setting_id=setting,
        n_iterations=len(laps),
        version=f"fbgemm_gpu {fbgemm_gpu.__version__}",
        started_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
    number = insert(target, "sample", values)
    for row in source.execute(
        "SELECT * FROM sample_table WHERE sample_id = ?", (sample["id"],)
    ):
        insert(target, "sample_table", {**dict(row), "sample_id": number})
    target.commit()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    source = sqlite3.connect(options.source)
    source.row_factory = sqlite3.Row
    target = open_target(options.target, source)
    device = "cpu" if options.small else "cuda"
    flush = torch.ones(64 << 20, device=device)
    if device == "cuda":
        # PyTorch keeps this memory and allocates tables from it. Asking the
        # driver for memory in each case takes longer than measuring it.
        torch.empty(int(0.9 * torch.cuda.mem_get_info()[0]) // 4, device=device)
    name = "fbgemm:" + ("processor" if options.small else torch.cuda.get_device_name())
    n_done = n_left = 0
    known = {}
    for sample in source.execute(
        "SELECT * FROM sample ORDER BY kind = 'single', id"
    ).fetchall():
        if time.monotonic() > end:
            break
        old = sample["setting_id"]
        batch, precision, optimizer = source.execute(
            "SELECT batch, precision, optimizer FROM setting WHERE id = ?", (old,)
        ).fetchone()
        if old not in known:
            known[old] = setting_id(target, source, old, name)
        key = (known[old], *(sample[k] for k in ("seed", "case_idx", "kind", "part")))
        if target.execute(
            "SELECT 1 FROM sample WHERE (setting_id, seed, case_idx, kind, part) = (?, ?, ?, ?, ?)",
            key,
        ).fetchone():
            continue
        tables = read_tables(source, sample["id"], options.small)
        try:
            laps = measure(
                tables,
                min(batch, 32) if options.small else batch,
                precision,
                optimizer,
                flush,
            )
        except torch.OutOfMemoryError:
            laps = None
        if n_done % 50 == 0 or not laps:
            gc.collect()
        if laps:
            store(target, source, sample, known[old], laps)
        n_done, n_left = n_done + bool(laps), n_left + (not laps)
    print(
        f"{n_done} samples by FBGEMM {fbgemm_gpu.__version__} stored, {n_left} left out"
    )


main()
