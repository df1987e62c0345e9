# SPDX-License-Identifier: MIT
"""Compares torch.nn.EmbeddingBag with our kernels.

    embedding_bag.py LOG

LOG is the output of tests/bench/bench_kernels. Its fp32 cases with uniform
lookups are repeated with PyTorch: the same number of tables of the same sizes,
one EmbeddingBag per table, sum pooling. Forward is timed, and backward with
sparse gradients followed by SGD (ours is row-wise Adagrad, which does a little
more). Prints medians over iterations. As in bench_kernels, the cache is
flushed before each iteration and index sets alternate. Stops after SECONDS.
"""

import re
import statistics
import sys
import time

import torch

SETS = 4
ITERATIONS = 12
WARM_UP = 3
SECONDS = 90


def read_log(path):
    """Returns (batch, tables, GiB) and {(dim, pooling): (forward, backward) in
    ms}."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    setting = re.search(r"batch (\d+), (\d+) tables in ([0-9.]+) GiB", text)
    ours = {}
    for line in text.splitlines():
        words = line.split()
        if words[1:2] == ["fp32"] and words[3:4] == ["0.00"] and len(words) == 19:
            ours[int(words[0]), int(words[2])] = (float(words[5]), float(words[10]))
    return int(setting[1]), int(setting[2]), float(setting[3]), ours


def timed(flush, work):
    """Median of the milliseconds of work(set number)."""
    times = []
    for i in range(WARM_UP + ITERATIONS):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        flush.sum()
        begin.record()
        work(i % SETS)
        end.record()
        end.synchronize()
        if i >= WARM_UP:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def run_case(dim, pooling, batch, n_tables, n_rows, flush):
    """Times of forward, and of a step of forward, backward and SGD, in ms."""
    bags = [
        torch.nn.EmbeddingBag(n_rows, dim, mode="sum", sparse=True, device="cuda")
        for _ in range(n_tables)
    ]
    optimizer = torch.optim.SGD([bag.weight for bag in bags], lr=1e-6)
    sets = [
        [torch.randint(n_rows, (batch * pooling,), device="cuda") for _ in bags]
        for _ in range(SETS)
    ]
    offsets = torch.arange(0, batch * pooling, pooling, device="cuda")
    gradient = torch.randn(batch, dim, device="cuda")

    def forward(k):
        with torch.no_grad():
            for bag, indices in zip(bags, sets[k]):
                bag(indices, offsets)

    def step(k):
        optimizer.zero_grad()
        for bag, indices in zip(bags, sets[k]):
            bag(indices, offsets).backward(gradient)
        optimizer.step()

    return timed(flush, forward), timed(flush, step)


def main():
    end = time.monotonic() + SECONDS
    batch, n_tables, gib, ours = read_log(sys.argv[1])
    flush = torch.ones(96 << 20, dtype=torch.float32, device="cuda")
    print(f"torch {torch.__version__}: ms of {n_tables} EmbeddingBags, and ours")
    print("dim    L   forward     ours   forward, backward     ours")
    for (dim, pooling), (forward_ms, backward_ms) in ours.items():
        if time.monotonic() > end:
            print("the time is over")
            break
        n_rows = int(gib * 2**30) // n_tables // (4 * dim)
        torch_forward, torch_step = run_case(
            dim, pooling, batch, n_tables, n_rows, flush
        )
        print(
            f"{dim:3d} {pooling:4d} {torch_forward:9.3f} {forward_ms:8.3f}"
            f" {torch_step:19.3f} {forward_ms + backward_ms:8.3f}",
            flush=True,
        )


main()
