# SPDX-License-Identifier: MIT
"""Compares FBGEMM's table-batched embeddings with our kernels.

    fbgemm_tbe.py [--csv FILE] [--grid] [--int32] [--seconds S] [--small] [LOG]

First both optimizers are checked on a small case. Then comes a case with times
published for an H100: ten tables, 1,048,570 lookups, 350,280 of them unique,
SGD. Then come the fp32 cases of LOG, the output of tests/bench/bench_kernels:
the same number of tables of the same sizes, lookups of the same skew, row-wise
Adagrad. --grid adds single tables, which show the cost of a lookup and of a
call.

Times are medians over iterations, separate for forward and fused backward.
Index sets alternate, and nothing waits for the host. Cold: the cache is
flushed before each iteration. Indices have 64 bits, the default of PyTorch, or
the width of ours with --int32. Bounds are not checked. Stops after S seconds.
--small is a dry run on the CPU and measures nothing.
"""

import argparse
import collections
import csv
import gc
import math
import re
import statistics
import time

import fbgemm_gpu
import torch
from fbgemm_gpu import split_table_batched_embeddings_ops_training as tbe
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import BoundsCheckMode

SETS, ITERATIONS, WARM_UP = 4, 20, 4
HOLD_CYCLES = 6_000_000  # about 3 ms, enough to queue a whole step
# prime: rank * SCATTER mod rows is a permutation of the rows
SCATTER = 2654435761
SGD, ADAGRAD = "SGD", "ROWWISE_ADAGRAD"
PHASES = ("forward", "backward")
CASE = "name tables rows dim batch pooling zipf optimizer ours_forward ours_backward"
Case = collections.namedtuple("Case", CASE)
LINE = (
    "{name:9} {tables:2} x {rows:8} x {dim:3}, L {pooling:3}, zipf {zipf:4.2f}, "
    "{unique:8} rows, {optimizer:15} {cache} {ours_forward:8.4f} {forward:8.4f} "
    "{:5.2f} {ours_backward:8.4f} {backward:8.4f} {:5.2f}"
)
FIELDS = Case._fields + ("index_bits", "unique", "cache", *PHASES)
# This exponent gives the published number of unique rows.
PUBLISHED = Case("published", 10, 1 << 20, 128, 104857, 1, 1.0276, SGD, 0.345, 0.614)
GRID = [
    Case("grid", 1, 10**6, dim, 65536, pooling, 0, ADAGRAD, math.nan, math.nan)
    for dim in (4, 16, 32, 64, 128, 256)
    for pooling in (1, 20, 200)
]


def read_log(path):
    """Yields the fp32 cases of bench_kernels."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    setting = re.search(r"batch (\d+), (\d+) tables in ([0-9.]+) GiB", text)
    batch, tables, gib = int(setting[1]), int(setting[2]), float(setting[3])
    for words in map(str.split, text.splitlines()):
        if words[1:2] == ["fp32"] and len(words) == 19:
            dim, skew = int(words[0]), (int(words[2]), float(words[3]))
            rows = int(gib * 2**30) // tables // (4 * dim) // 64 * 64
            ours = float(words[5]), float(words[10])
            yield Case("log", tables, rows, dim, batch, *skew, ADAGRAD, *ours)


def timed(flush, prepare, work):
    """Median of the milliseconds of work(prepare(set number)). Without flush
    the cache is warm."""
    times = []
    for i in range(WARM_UP + ITERATIONS):
        subject = prepare(i % SETS)
        if subject.device.type == "cpu":
            work(subject)
            continue
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(HOLD_CYCLES)
        if flush is not None:
            flush.sum()
        begin.record()
        work(subject)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[WARM_UP:] or [math.nan])


def make_tables(case, device, rate):
    gpu = device == "cuda"
    place = tbe.EmbeddingLocation.DEVICE if gpu else tbe.EmbeddingLocation.HOST
    processor = tbe.ComputeDevice.CUDA if gpu else tbe.ComputeDevice.CPU
    module = tbe.SplitTableBatchedEmbeddingBagsCodegen(
        [(case.rows, case.dim, place, processor)] * case.tables,
        optimizer=EmbOptimType["EXACT_" + case.optimizer],
        learning_rate=rate,
        bounds_check_mode=BoundsCheckMode.NONE,
    )
    module.init_embedding_weights_uniform(-1, 1)
    return module


def draw(case, device, dtype):
    """Returns index sets, each table after table, and their offsets."""
    n = case.tables * case.batch * case.pooling
    ranks = torch.arange(1, case.rows + 1, dtype=torch.float64, device=device)
    sums = ranks.pow_(-case.zipf).cumsum_(0)
    sets = []
    for _ in range(SETS):
        shares = torch.rand(n, dtype=torch.float64, device=device) * sums[-1]
        drawn = torch.searchsorted(sums, shares).clamp_(max=case.rows - 1)
        sets.append((drawn * SCATTER % case.rows).to(dtype))
    offsets = torch.arange(0, n + 1, case.pooling, dtype=dtype, device=device)
    return sets, offsets


def check(optimizer, device, dtype):
    """Checks forward and a step of a small case."""
    case = Case("", 1, 500, 64, 200, 5, 0, optimizer, math.nan, math.nan)
    module = make_tables(case, device, 0.5)
    sets, offsets = draw(case, device, dtype)
    rows = sets[0].long()
    (weights,) = module.split_embedding_weights()
    before = weights.clone()
    pooled = module(sets[0], offsets)
    sums = before[rows].view(case.batch, case.pooling, case.dim).sum(1)
    torch.testing.assert_close(pooled.detach(), sums)
    gradient = torch.randn_like(pooled)
    pooled.backward(gradient)
    each = gradient.repeat_interleave(case.pooling, 0)
    step = torch.zeros_like(before).index_add_(0, rows, each)
    if optimizer == ADAGRAD:
        step /= step.square().mean(1, keepdim=True).sqrt() + 1e-8
    torch.testing.assert_close(weights, before - 0.5 * step, atol=1e-4, rtol=1e-4)


def run_case(case, flush, dtype):
    """Returns rows of the CSV: cold and, unless ours was only measured cold,
    warm."""
    device = flush.device.type
    module = make_tables(case, device, 1e-6)
    sets, offsets = draw(case, device, dtype)
    unique = sum(t.unique().numel() for t in sets[0].view(case.tables, -1))
    gradient = torch.randn(case.batch, case.tables * case.dim, device=device)

    def forward(k):
        return module(sets[k], offsets)

    for cache in ("cold",) if case.name == "log" else ("cold", "warm"):
        flushed = flush if cache == "cold" else None
        with torch.no_grad():
            ms = timed(flushed, lambda k: sets[k], lambda s: module(s, offsets))
        backward_ms = timed(flushed, forward, lambda out: out.backward(gradient))
        measured = torch.iinfo(dtype).bits, unique, cache, ms, backward_ms
        yield dict(zip(FIELDS, case + measured))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("log", nargs="?")
    parser.add_argument("--csv", default="/dev/null")
    parser.add_argument("--seconds", type=float, default=150)
    for name in ("--grid", "--int32", "--small"):
        parser.add_argument(name, action="store_true")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    cases = [PUBLISHED, *(read_log(options.log) if options.log else ())]
    cases += GRID if options.grid else ()
    device = "cpu" if options.small else "cuda"
    if options.small:
        cases = [case._replace(rows=1000, batch=32) for case in cases]
    flush = torch.ones(96 << 20, device=device)
    dtype = torch.int32 if options.int32 else torch.int64
    for optimizer in (SGD, ADAGRAD):
        check(optimizer, device, dtype)
    name = "cpu" if options.small else torch.cuda.get_device_name()
    print(f"torch {torch.__version__}, fbgemm_gpu {fbgemm_gpu.__version__}, {name}")
    print("forward and backward in ms: ours, FBGEMM's and its ratio to ours")
    ratios = []
    with open(options.csv, "w", encoding="utf-8", buffering=1) as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for case in cases:
            if time.monotonic() > end:
                print("the time is over")
                break
            for row in run_case(case, flush, dtype):
                ratio = [row[phase] / row[f"ours_{phase}"] for phase in PHASES]
                ratios += [ratio] if case.name == "log" else []
                writer.writerow(row)
                print(LINE.format(*ratio, **row), flush=True)
            gc.collect()
            torch.cuda.empty_cache()
    for phase, of in zip(PHASES, zip(*ratios)):
        middle = statistics.median(of)
        print(f"{phase}: {middle:.2f} of our time, {min(of):.2f} to {max(of):.2f}")


main()
