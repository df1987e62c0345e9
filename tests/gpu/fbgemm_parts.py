# SPDX-License-Identifier: MIT
"""Times the parts of a TorchRec step that a cost sample does not contain.

    fbgemm_parts.py [--seconds S] [--small] PART CSV

replicas  tables that every rank holds: FBGEMM's dense table-batched embeddings
          on a rank's part of the batch, the copy of the gradient into the
          bucket that DistributedDataParallel reduces, and the step of a dense
          optimizer over all rows. TorchRec gives an optimizer one parameter
          per table, of a special class, so that torch.optim updates them one
          by one (sgd, adagrad; rowwise: TorchRec's dense form). The variants
          _foreach and _fused are for plain parameters. For comparison, the
          same tables through split embeddings with fused row-wise Adagrad.
groups    the same tables as one batch of split embeddings and as two, alone
          and one after the other.
input     permute_2D_sparse_data and block_bucketize_sparse_features.
overlap   lookups concurrent with work of another stream that takes 0.5 to 2
          times as long: bf16 products, a copy by few multiprocessors (like
          collectives), an upload from the host. Each alone, and both together.
checks    the forward without and with FBGEMM's check that ids are inside their
          tables, which TorchRec's lookups make, and the sums of 32-bit
          lengths that precede it.
updates   the same lookups with each optimizer that FBGEMM fuses into the
          backward.
chunks    the forward of the batch as one operation, and as 2, 4 and 8 equal
          chunks one after the other.
dedup     lookups whose output is a sequence, of all ids and of unique ids:
          the search for unique ids (jagged_unique_indices), their lookup, and
          the copy of their vectors to all requests, by index_select and by
          gather, as TorchRec has both; also backward of each.

Tables are a list of ROWSxDIMxPOOLING, with fp32 weights and 64-bit indices.
Times are medians in ms over repetitions whose work was queued before it
started, with the cache flushed before each phase. Columns host_ are the time
that the host took to queue the work. If it took more than 3 ms the host was
late, and the phase's time is the host's. Designed cases come first, then
random ones until S seconds are over. --small is a dry run on the CPU and
measures nothing.
"""

import argparse
import collections
import csv
import functools
import gc
import itertools
import math
import os
import random
import statistics
import time

import torch
from fbgemm_gpu import split_table_batched_embeddings_ops_training as tbe
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import BoundsCheckMode

SETS, LAPS, WARM_UP, MOST_LAPS = 4, 10, 3, 24
HOLD_CYCLES, HOLD_MS = 7_000_000, 3.3  # at 1.98 GHz
RATE = 1e-6
# prime: rank * SCATTER mod rows is a permutation of the rows
SCATTER = 2654435761
MOST_ELEMENTS, MOST_IDS = 1 << 29, 1 << 24
GLOBAL_BATCH = 65536
KAGGLE = os.path.join(
    os.path.dirname(__file__), "../../data/tables/criteo_kaggle_26.csv"
)
SIDES = ("matmul", "exchange", "upload")
COPY = """
extern "C" __global__ void copy(const uint4 *from, uint4 *to, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * blockDim.x)
        to[i] = from[i];
}
"""
Case = collections.namedtuple("Case", "name tables batch ranks zipf")
Table = collections.namedtuple("Table", "rows dim pooling")
UPDATES = {
    "sgd": EmbOptimType.EXACT_SGD,
    "rowwise_adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD,
    "adagrad": EmbOptimType.EXACT_ADAGRAD,
    "adam": EmbOptimType.ADAM,
    "partial_rowwise_adam": EmbOptimType.PARTIAL_ROWWISE_ADAM,
    "lamb": EmbOptimType.LAMB,
    "partial_rowwise_lamb": EmbOptimType.PARTIAL_ROWWISE_LAMB,
}
CHUNKS = (1, 2, 4, 8)
OPTIMIZERS = "sgd sgd_foreach sgd_fused adagrad adagrad_foreach rowwise".split()
PHASES = {
    "replicas": ["dense_forward", "dense_backward", "bucket", *OPTIMIZERS]
    + ["forward", "backward"],
    "groups": [
        f"{which}_{phase}"
        for which in ("one", "first", "second", "two")
        for phase in ("forward", "backward")
    ],
    "input": ["permute", "bucketize"],
    "overlap": ["forward", "backward"]
    + [
        f"{side}_{phase}_{how}"
        for side in SIDES
        for phase in ("forward", "backward")
        for how in ("alone", "both")
    ],
    "checks": ["without", "with", "sums"],
    "updates": ["forward", *UPDATES],
    "chunks": [f"in_{n}" for n in CHUNKS],
    "dedup": ["unique"]
    + [
        which + phase
        for which in ("select", "gather", "all", "once")
        for phase in ("", "_backward")
    ],
}


class Clock:
    """Times phases on a device and flushes the cache between them."""

    def __init__(self, device):
        self.device = device
        self.flush = torch.ones(64 << 20 if device == "cuda" else 8, device=device)

    def lap(self, phases):
        """Runs the phases once, each on the result of the one before. Returns
        whether the host was late, and [(ms, host's ms)] of the phases."""
        results, marks, hosts, value = [], [], [], None
        if self.device == "cpu":
            for work in phases:
                value = work(value)
                results.append((math.nan, math.nan))
            return False, results
        begin = time.perf_counter()
        torch.cuda._sleep(HOLD_CYCLES)
        for work in phases:
            pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            self.flush.sum()
            pair[0].record()
            start = time.perf_counter()
            value = work(value)
            hosts.append((time.perf_counter() - start) * 1e3)
            pair[1].record()
            marks.append(pair)
        is_late = (time.perf_counter() - begin) * 1e3 > HOLD_MS
        torch.cuda.synchronize()
        times = [a.elapsed_time(b) for a, b in marks]
        return is_late, list(zip(times, hosts))

    def measure(self, names, phases_of_set):
        """Medians over repetitions: {name: ms, host_name: ms}."""
        laps, late = [], []
        for i in range(WARM_UP + MOST_LAPS if self.device == "cuda" else 1):
            is_late, taken = self.lap(phases_of_set(i % SETS))
            if i >= WARM_UP or self.device == "cpu":
                (late if is_late else laps).append(taken)
            if len(laps) == LAPS:
                break
        laps = laps if len(laps) >= LAPS // 2 else laps + late
        results = {}
        for name, of in itertools.zip_longest(names, zip(*laps)):
            for key, values in zip((name, "host_" + name), zip(*(of or ()))):
                results[key] = statistics.median(values)
        return results


def draw_ids(case, device):
    """Returns index sets (table after table), their offsets, and the number of
    unique rows of one set."""
    sets = [[] for _ in range(SETS)]
    offsets, n, unique = [torch.zeros(1, dtype=torch.int64, device=device)], 0, 0
    steps = torch.arange(1, case.batch + 1, device=device)
    for table in case.tables:
        shares = torch.arange(
            1, table.rows + 1, dtype=torch.float64, device=device
        ).pow_(-case.zipf)
        sums = shares.cumsum_(0)
        n_ids = case.batch * table.pooling
        for of in sets:
            at = torch.rand(n_ids, dtype=torch.float64, device=device) * sums[-1]
            ranks = torch.searchsorted(sums, at).clamp_(max=table.rows - 1)
            of.append(ranks * SCATTER % table.rows)
        unique += sets[0][-1].unique().numel()
        offsets.append(n + steps * table.pooling)
        n += n_ids
    return [torch.cat(of) for of in sets], torch.cat(offsets), unique


def open_split(
    tables,
    device,
    optimizer=EmbOptimType.EXACT_ROWWISE_ADAGRAD,
    pooling=tbe.PoolingMode.SUM,
    check=BoundsCheckMode.NONE,
):
    gpu = device == "cuda"
    place = tbe.EmbeddingLocation.DEVICE if gpu else tbe.EmbeddingLocation.HOST
    processor = tbe.ComputeDevice.CUDA if gpu else tbe.ComputeDevice.CPU
    module = tbe.SplitTableBatchedEmbeddingBagsCodegen(
        [(table.rows, table.dim, place, processor) for table in tables],
        optimizer=optimizer,
        learning_rate=RATE,
        bounds_check_mode=check,
        pooling_mode=pooling,
    )
    module.init_embedding_weights_uniform(-0.05, 0.05)
    return module


def rowwise_step(parameters, sums):
    """Row-wise Adagrad over whole tables, with the same operations as
    TorchRec."""
    for parameter, row_sum in zip(parameters, sums):
        gradient = parameter.grad
        row_sum += gradient.pow(2).mean(1).view(-1, 1)
        scale = row_sum.sqrt().add_(1e-10)
        parameter.addcdiv_(gradient, scale, value=-RATE)


def optimizer_step(name, parameters):
    """Returns a function that does one optimizer step."""
    if name == "rowwise":
        sums = [torch.zeros_like(parameter[:, :1]) for parameter in parameters]
        return lambda: rowwise_step(parameters, sums)
    kind, _, how = name.partition("_")
    make = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}[kind]
    fused = {"fused": True} if how == "fused" else {"foreach": how == "foreach"}
    return make(parameters, lr=RATE, **fused).step


def check_dense(device):
    """Checks the gradient of a small case."""
    module = tbe.DenseTableBatchedEmbeddingBagsCodegen(
        [(500, 64)], use_cpu=device == "cpu"
    )
    ids = torch.randint(500, (1000,), device=device)
    out = module(ids, torch.arange(0, 1001, 5, device=device))
    gradient = torch.randn_like(out)
    out.backward(gradient)
    want = torch.zeros(500, 64, device=device)
    want.index_add_(0, ids, gradient.repeat_interleave(5, 0))
    torch.testing.assert_close(module.weights.grad.view(500, 64), want)
    sums = module.weights.detach().view(500, 64)[ids].view(200, 5, 64).sum(1)
    torch.testing.assert_close(out.detach(), sums)


def time_replicas(case, clock):
    device = clock.device
    sets, offsets, unique = draw_ids(case, device)
    n_columns = sum(table.dim for table in case.tables)
    gradient = torch.randn(case.batch, n_columns, device=device)
    specs = [(table.rows, table.dim) for table in case.tables]
    dense = tbe.DenseTableBatchedEmbeddingBagsCodegen(specs, use_cpu=device == "cpu")
    dense.init_embedding_weights_uniform(-0.05, 0.05)

    def of_set(module):
        def phases(k):
            for parameter in module.parameters():
                parameter.grad = None
            return [
                lambda _: module(sets[k], offsets),
                lambda out: out.backward(gradient),
            ]

        return phases

    times = clock.measure(["dense_forward", "dense_backward"], of_set(dense))
    weights, flat = dense.weights, dense.weights.grad
    bucket = torch.empty_like(flat)
    scale = torch.tensor(1 / case.ranks)
    times |= clock.measure(
        ["bucket"], lambda _: [lambda _: torch.mul(flat, scale, out=bucket)]
    )
    parameters, begin = [], 0
    for rows, dim in specs:
        span = slice(begin, begin + rows * dim)
        parameter = torch.nn.Parameter(weights.detach()[span].view(rows, dim))
        parameter.grad = bucket[span].view(rows, dim)
        parameters.append(parameter)
        begin = span.stop
    for name in OPTIMIZERS:
        with torch.no_grad():
            step = optimizer_step(name, parameters)
            times |= clock.measure([name], lambda _: [lambda _: step()])
        step = None
    del dense, weights, flat, bucket, parameters
    split = open_split(case.tables, device)
    return times | clock.measure(["forward", "backward"], of_set(split)), unique


def time_groups(case, clock):
    """Times all tables together, and the first half and the rest, which are
    drawn from the same distribution."""
    device, half = clock.device, (len(case.tables) + 1) // 2
    sides = [case.tables[:half], case.tables[half:]]
    works, uniques = [], []
    for tables in (case.tables, *sides):
        sets, offsets, unique = draw_ids(case._replace(tables=tables), device)
        n_columns = sum(table.dim for table in tables)
        gradient = torch.randn(case.batch, n_columns, device=device)
        works.append((open_split(tables, device), sets, offsets, gradient))
        uniques.append(unique)

    def of_groups(groups):
        gradients = [group[3] for group in groups]
        return lambda k: [
            lambda _: [module(sets[k], at) for module, sets, at, _ in groups],
            lambda outs: torch.autograd.backward(outs, gradients),
        ]

    times = {}
    for which, groups in zip(
        ("one", "first", "second", "two"),
        (works[:1], works[1:2], works[2:], works[1:]),
    ):
        names = [which + "_forward", which + "_backward"]
        times |= clock.measure(names, of_groups(groups))
    return times, uniques[0]


def time_input(case, clock):
    """Times the input; case.tables are features, with the rows of their
    tables."""
    device = clock.device
    n_features = len(case.tables)
    sets, _, _ = draw_ids(case._replace(zipf=0), device)
    # The lookups of a feature are spread over its bags at random.
    lengths = torch.stack(
        [
            torch.bincount(
                torch.randint(case.batch, (case.batch * table.pooling,), device=device),
                minlength=case.batch,
            )
            for table in case.tables
        ]
    )
    order = torch.randperm(n_features).to(device=device, dtype=torch.int32)
    blocks = torch.tensor(
        [-(-table.rows // case.ranks) for table in case.tables], device=device
    )
    flat, n = lengths.view(-1), sets[0].numel()
    permute = torch.ops.fbgemm.permute_2D_sparse_data
    bucketize = torch.ops.fbgemm.block_bucketize_sparse_features
    times = clock.measure(
        ["permute"],
        lambda k: [lambda _: permute(order, lengths, sets[k], None, n)],
    )
    times |= clock.measure(
        ["bucketize"],
        lambda k: [
            lambda _: bucketize(flat, sets[k], False, False, blocks, case.ranks)
        ],
    )
    return times, 0


class Sides:
    """Work for a second stream: matrix products, or copies of megabytes."""

    def __init__(self):
        size = 1 << 30
        self.stream = torch.cuda.Stream()
        self.left = torch.randn(8192, 1024, device="cuda").bfloat16()
        self.right = torch.randn(1024, 1024, device="cuda").bfloat16()
        self.product = torch.empty_like(self.left)
        self.source = torch.randint(255, (size,), dtype=torch.uint8, device="cuda")
        self.target = torch.empty_like(self.source)
        self.host = torch.empty(size, dtype=torch.uint8).pin_memory()
        self.copy = torch.cuda._compile_kernel(COPY, "copy")
        self.most = {"matmul": 100, "exchange": size >> 20, "upload": size >> 20}

    def start(self, side, amount):
        if side == "matmul":
            for _ in range(amount):
                torch.mm(self.left, self.right, out=self.product)
        elif side == "exchange":
            arguments = [self.source, self.target, amount << 16]
            self.copy(grid=(16, 1, 1), block=(512, 1, 1), args=arguments)
        else:
            n = amount << 20
            self.target[:n].copy_(self.host[:n], non_blocking=True)

    def beside(self, side, amount, work):
        def both(value):
            here = torch.cuda.current_stream()
            self.stream.wait_stream(here)
            with torch.cuda.stream(self.stream):
                self.start(side, amount)
            result = work(value)
            here.wait_stream(self.stream)
            return result

        return both


@functools.cache
def open_sides(clock):
    """Returns the sides and the ms per unit of work of each."""
    sides = Sides()
    units = {}
    for side in SIDES:
        work = functools.partial(lambda side, _: sides.start(side, 20), side)
        units[side] = clock.measure([side], lambda _: [work])[side] / 20
    return sides, units


def time_overlap(case, clock):
    sets, offsets, unique = draw_ids(case, clock.device)
    n_columns = sum(table.dim for table in case.tables)
    gradient = torch.randn(case.batch, n_columns, device=clock.device)
    module = open_split(case.tables, clock.device)

    def works(k):
        return [lambda _: module(sets[k], offsets), lambda out: out.backward(gradient)]

    times = clock.measure(["forward", "backward"], works)
    if clock.device == "cpu":
        return times, unique
    sides, units = open_sides(clock)
    for side, (which, phase) in itertools.product(
        SIDES, enumerate(("forward", "backward"))
    ):
        target = times[phase] * random.choice((0.5, 1, 2))
        amount = min(max(round(target / units[side]), 1), sides.most[side])
        name = f"{side}_{phase}"
        times |= clock.measure(
            [name + "_alone"], lambda _: [lambda _: sides.start(side, amount)]
        )

        def phases(k):
            of = works(k)
            of[which] = sides.beside(side, amount, of[which])
            return of[: which + 1]

        times |= clock.measure(["before"] * which + [name + "_both"], phases)
    return times, unique


def time_checks(case, clock):
    device = clock.device
    sets, offsets, unique = draw_ids(case, device)
    lengths = offsets.diff().to(torch.int32)
    times = {}
    with torch.no_grad():
        for name, check in (
            ("without", BoundsCheckMode.NONE),
            ("with", BoundsCheckMode.WARNING),
        ):
            module = open_split(case.tables, device, check=check)
            times |= clock.measure(
                [name], lambda k: [lambda _: module(sets[k], offsets)]
            )
            del module
        sums = torch.ops.fbgemm.asynchronous_complete_cumsum
        times |= clock.measure(["sums"], lambda _: [lambda _: sums(lengths)])
    return times, unique


def time_updates(case, clock):
    device = clock.device
    sets, offsets, unique = draw_ids(case, device)
    n_columns = sum(table.dim for table in case.tables)
    gradient = torch.randn(case.batch, n_columns, device=device)
    times, known = {}, list(UPDATES.items())
    for name, optimizer in known if device == "cuda" else known[:3]:
        module = open_split(case.tables, device, optimizer)
        taken = clock.measure(
            ["forward", name],
            lambda k: [
                lambda _: module(sets[k], offsets),
                lambda out: out.backward(gradient),
            ],
        )
        times = taken | times  # keep the first forward time
        del module
    return times, unique


def time_chunks(case, clock):
    """Times chunks. Ids are stored table after table, so the ids of a chunk
    are collected from all tables."""
    device = clock.device
    module = open_split(case.tables, device)
    times = {}
    sets, _, unique = draw_ids(case, device)
    for n in CHUNKS:
        size = case.batch // n
        steps = torch.arange(1, size + 1, device=device)
        ends, begin = [torch.zeros(1, dtype=torch.int64, device=device)], 0
        of_tables, at = [], 0
        for table in case.tables:
            ends.append(begin + steps * table.pooling)
            begin += size * table.pooling
            of_tables.append((at, size * table.pooling))
            at += case.batch * table.pooling
        offsets = torch.cat(ends)
        parts = [
            [
                torch.cat([ids[a + i * m : a + (i + 1) * m] for a, m in of_tables])
                for i in range(n)
            ]
            for ids in sets
        ]
        with torch.no_grad():
            times |= clock.measure(
                [f"in_{n}"],
                lambda k: [lambda _: [module(ids, offsets) for ids in parts[k]]],
            )
    return times, unique


def time_dedup(case, clock):
    """Times de-duplication for sequence tables of one width. A CPU does not
    have this operation."""
    device, tables = clock.device, case.tables
    sets, offsets, _ = draw_ids(case, device)
    ends = torch.tensor([0] + [table.rows for table in tables]).cumsum(0).to(device)
    features = torch.arange(len(tables) + 1, device=device)
    find = torch.ops.fbgemm.jagged_unique_indices
    if device == "cpu":
        return {}, 0
    drawn = [find(ends, features, offsets, ids) for ids in sets]
    assert (drawn[0][2][drawn[0][3]] == sets[0]).all()
    module = open_split(tables, device, pooling=tbe.PoolingMode.NONE)
    dim = tables[0].dim
    vectors = [torch.randn(found[2].numel(), dim, device=device) for found in drawn]
    for value in vectors:
        value.requires_grad_()
    gradient = torch.randn(sets[0].numel(), dim, device=device)
    times = clock.measure(
        ["unique"], lambda k: [lambda _: find(ends, features, offsets, sets[k])]
    )
    copies = {
        "select": lambda of, at: torch.index_select(of, 0, at.to(torch.int32)),
        "gather": lambda of, at: torch.gather(of, 0, at[:, None].expand(-1, dim)),
    }
    for name, copy in copies.items():
        times |= clock.measure(
            [name, name + "_backward"],
            lambda k: [
                lambda _: copy(vectors[k], drawn[k][3]),
                lambda out: out.backward(gradient),
            ],
        )
    gradients = [value.grad for value in vectors]
    times |= clock.measure(
        ["all", "all_backward"],
        lambda k: [
            lambda _: module(sets[k], offsets),
            lambda out: out.backward(gradient),
        ],
    )
    times |= clock.measure(
        ["once", "once_backward"],
        lambda k: [
            lambda _: module(drawn[k][2], drawn[k][1]),
            lambda out: out.backward(gradients[k]),
        ],
    )
    return times, drawn[0][2].numel()


def designed(part):
    """Yields single tables that determine constants, and a published list."""
    if part == "input":
        sizes = itertools.product((1, 8, 26, 64, 200), (512, 4096, 16384), (1, 10, 40))
        for features, batch, pooling in sizes:
            tables = [Table(10**6, 4, pooling)] * features
            if features * batch * pooling <= 12_000_000:
                yield Case("designed", tables, batch, 8, 0)
        for ranks in (2, 4, 16, 64):
            yield Case("designed", [Table(10**6, 4, 20)] * 26, 4096, ranks, 0)
        return
    if part == "overlap":
        for dim, pooling in itertools.product((16, 64, 128), (1, 20)):
            yield Case("designed", [Table(10**6, dim, pooling)] * 8, 16384, 1, 0)
        return
    if part in ("checks", "updates", "chunks", "dedup"):
        sizes = itertools.product((1, 8), (10**5, 10**6), (16, 64, 128), (1, 20))
        for (n, rows, dim, pooling), zipf in itertools.product(sizes, (0, 1.05)):
            tables = [Table(rows, dim, pooling)] * n
            yield Case("designed", tables, GLOBAL_BATCH // 4, 1, zipf)
        return
    if part == "groups":
        for tables, pooling in itertools.product((2, 8, 32), (1, 20)):
            same = [Table(10**5, 64, pooling)] * tables
            yield Case("designed", same, GLOBAL_BATCH // 4, 1, 0)
        return
    for rows, dim in itertools.product((10**3, 10**5, 10**6), (16, 64, 128)):
        for pooling in (0, 1, 20):
            yield Case("designed", [Table(rows, dim, pooling)], 8192, 8, 0)
    for rows, pooling in itertools.product((3, 10, 100), (1, 20)):
        yield Case("hot", [Table(rows, 64, pooling)], 8192, 8, 0)
    for skew in (1.05, 1.3):
        yield Case("hot", [Table(10**5, 64, 20)], 8192, 8, skew)
    with open(KAGGLE, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    rows = [int(line["num_embeddings"]) for line in csv.DictReader(lines)]
    for ranks, zipf, dim in itertools.product((4, 8, 16), (0, 1.05), (16, 128)):
        tables = [Table(min(n, 10**6), dim, 1) for n in rows]
        yield Case("kaggle", tables, GLOBAL_BATCH // ranks, ranks, zipf)


def drawn(part):
    """Yields random cases, endlessly."""
    source = random.Random(1)

    def log_uniform(low, high):
        return round(math.exp(source.uniform(math.log(low), math.log(high))))

    while True:
        is_whole = part not in ("replicas", "input")
        ranks = 1 if is_whole else source.choice((4, 8, 16))
        batch = GLOBAL_BATCH // (ranks if ranks > 1 else source.choice((1, 4)))
        dims = [source.choice((4, 8, 16, 32, 64, 128, 256)) for _ in range(26)]
        if source.random() < 0.5 or part == "dedup":
            dims = dims[:1] * 26
        tables = []
        lowest = 2 if part == "groups" else 1
        for dim in dims[: source.randint(lowest, 26)]:
            tables.append(Table(log_uniform(10, 10**6), dim, log_uniform(1, 100)))
        if part == "input":
            tables *= source.choice((1, 1, 4, 8))
            tables = [table._replace(rows=10**6) for table in tables[:200]]
        while batch * sum(table.pooling for table in tables) > MOST_IDS:
            tables = [t._replace(pooling=(t.pooling + 1) // 2) for t in tables]
            if all(table.pooling == 1 for table in tables):
                break
        elements = sum(table.rows * table.dim for table in tables)
        if part == "input" or elements <= MOST_ELEMENTS:
            zipf = source.choice((0, 0, 0.8, 1.05, 1.2))
            yield Case("drawn", tables, batch, ranks, zipf)


def shrink(case):
    """Shrinks a case for a dry run."""
    tables = [
        t._replace(rows=min(t.rows, 500), pooling=min(t.pooling, 3))
        for t in case.tables
    ]
    return case._replace(tables=tables, batch=16)


def row_of(case, unique, times):
    tables = case.tables
    return case._asdict() | {
        "n_tables": len(tables),
        "n_ids": case.batch * sum(table.pooling for table in tables),
        "n_unique": unique,
        "n_elements": sum(table.rows * table.dim for table in tables),
        "tables": " ".join("x".join(map(str, table)) for table in tables),
        **{key: f"{value:.5f}" for key, value in times.items()},
    }


def main():
    parts = {
        "replicas": time_replicas,
        "groups": time_groups,
        "input": time_input,
        "overlap": time_overlap,
        "checks": time_checks,
        "updates": time_updates,
        "chunks": time_chunks,
        "dedup": time_dedup,
    }
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=parts)
    parser.add_argument("csv")
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    clock = Clock("cpu" if options.small else "cuda")
    random.seed(1)
    torch.manual_seed(1)
    if options.part == "replicas":
        check_dense(clock.device)
    names = PHASES[options.part]
    fields = "name ranks batch zipf n_tables n_ids n_unique n_elements tables".split()
    fields += [*names, *("host_" + name for name in names)]
    n_done = n_failed = 0
    with open(options.csv, "w", encoding="utf-8", buffering=1) as file:
        writer = csv.DictWriter(
            file, fields, lineterminator="\n", extrasaction="ignore"
        )
        writer.writeheader()
        for case in itertools.chain(designed(options.part), drawn(options.part)):
            if time.monotonic() > end or n_failed > 20:
                break
            if options.small:
                case = shrink(case)
            try:
                times, unique = parts[options.part](case, clock)
            except RuntimeError as error:  # for example out of memory
                print(f"{case.name} {case.tables[:2]}: {str(error)[:200]}")
                n_failed += 1
                continue
            finally:
                gc.collect()
            writer.writerow(row_of(case, unique, times))
            n_done += 1
            if not options.small and torch.cuda.memory_reserved() > 30 << 30:
                torch.cuda.empty_cache()
    device = "the processor" if options.small else torch.cuda.get_device_name()
    print(f"{options.part}: {n_done} cases on {device}, torch {torch.__version__}")


main()
