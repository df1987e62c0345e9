# SPDX-License-Identifier: MIT
"""Times torch.nn.EmbeddingBag on the cases of bench_kernels.

One table, sum pooling, fp32, uniform indices; forward, and backward with a
sparse gradient followed by SGD. Medians over iterations; the cache is read
over before each and index sets take turns, as bench_kernels does it.
"""

import statistics

import torch

BATCH = 65536
ROWS = 10_000_000
SETS = 4
ITERATIONS = 15
CASES = [(dim, pooling) for dim in (16, 32, 64, 128, 256) for pooling in (1, 20)]


def timed(flush, work):
    """Milliseconds of work(set number), a median."""
    times = []
    for i in range(ITERATIONS + 3):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        flush.sum()
        begin.record()
        work(i % SETS)
        end.record()
        end.synchronize()
        if i >= 3:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def run_case(dim, pooling, flush):
    bag = torch.nn.EmbeddingBag(ROWS, dim, mode="sum", sparse=True, device="cuda")
    optimizer = torch.optim.SGD(bag.parameters(), lr=1e-6)
    sets = [torch.randint(ROWS, (BATCH * pooling,), device="cuda") for _ in range(SETS)]
    offsets = torch.arange(0, BATCH * pooling, pooling, device="cuda")
    gradient = torch.randn(BATCH, dim, device="cuda")

    def forward(k):
        with torch.no_grad():
            bag(sets[k], offsets)

    forward_ms = timed(flush, forward)

    def step(k):
        optimizer.zero_grad()
        bag(sets[k], offsets).backward(gradient)
        optimizer.step()

    step_ms = timed(flush, step)
    print(f"EmbeddingBag dim {dim:4d} pooling {pooling:3d}: forward {forward_ms:8.3f} ms,"
          f" forward, backward and SGD {step_ms:8.3f} ms")


def main():
    flush = torch.ones(96 << 20, dtype=torch.float32, device="cuda")
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()},"
          f" batch {BATCH}, {ROWS} rows")
    for dim, pooling in CASES:
        run_case(dim, pooling, flush)


main()
