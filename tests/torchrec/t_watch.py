# SPDX-License-Identifier: MIT
"""A job whose half-precision tables are slow in a way that no cost model knows
(a kernel that sleeps). Its times, taken by watch(), make the next plan faster:
both plans are trained in turns. Speaks TAP; NEUROSHARD is the program.
"""
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    SplitTableBatchedEmbeddingBagsCodegen as Lookup,
)
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
from torchrec import KeyedJaggedTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import Topology
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.modules.embedding_configs import DataType

import ranks
from neuroshard.torchrec import NeuroShardPlanner, dump, watch
from tap import ok

N_RANKS, BATCH, PAIRS = 2, 32, 5
SLOW_S = 0.02  # of each slow table in a step
# Rows, precision and lookups per sample. By the prediction one table is as dear
# as all slow ones, so the first plan puts these on one rank.
TABLES = {f"slow_{i}": (2000, DataType.FP16, 8) for i in range(6)}
TABLES["plain"] = (2000, DataType.FP32, 48)


def plant():
    """Makes lookups of half-precision tables sleep, as a slow kernel of
    FBGEMM's name."""
    look_up = Lookup.forward

    def forward(self, *args, **kwargs):
        n = len(self.embedding_specs)
        if self.weights_precision.value == "fp16":
            with torch.profiler.record_function("embedding_forward_slow"):
                time.sleep(SLOW_S * n)
        return look_up(self, *args, **kwargs)

    Lookup.forward = forward


def model():
    return EmbeddingBagCollection(
        tables=[
            EmbeddingBagConfig(
                name=name,
                embedding_dim=16,
                num_embeddings=rows,
                feature_names=[name],
                data_type=kind,
            )
            for name, (rows, kind, _) in TABLES.items()
        ]
    )


def batch(rank):
    rng = torch.Generator().manual_seed(rank)
    lengths = [[n] * BATCH for _, _, n in TABLES.values()]
    values = [
        torch.randint(0, rows, [n * BATCH], generator=rng)
        for rows, _, n in TABLES.values()
    ]
    return KeyedJaggedTensor(
        keys=list(TABLES),
        values=torch.cat(values),
        lengths=torch.tensor(lengths).flatten().int(),
    )


def planner(work):
    return NeuroShardPlanner(
        topology=Topology(
            world_size=N_RANKS, compute_device="cpu", ddr_cap=1 << 33
        ),
        batch_size=BATCH,
        constraints={
            name: ParameterConstraints(
                sharding_types=["table_wise"], pooling_factors=[n]
            )
            for name, (_, _, n) in TABLES.items()
        },
        **{"fallback": False, "effort": 500, "simplest_within": "0%"},
        measured=f"{work}/measured.csv",
    )


def steps(sharded, kjt, n):
    for _ in range(n):
        out = sharded(kjt).to_dict()
        sum(x.float().sum() for x in out.values()).backward()


def timed(sharded, kjt):
    dist.barrier()
    begin = time.perf_counter()
    steps(sharded, kjt, 10)
    dist.barrier()
    return time.perf_counter() - begin


def job(rank, work):
    ranks.meet(rank, N_RANKS, N_RANKS, work)
    plant()
    sharders = [EmbeddingBagCollectionSharder()]
    kjt, plans, jobs, report = batch(rank), [], [], ""
    for _ in range(2):
        plan = planner(work).collective_plan(model(), sharders)
        plans.append(dump(plan)["plan"][""])
        jobs.append(
            DistributedModelParallel(
                model(), device=torch.device("cpu"), plan=plan,
                sharders=sharders,
            )
        )
        if len(jobs) == 1:
            with watch(jobs[0], f"{work}/measured.csv", 12) as watched:
                steps(jobs[0], kjt, 14)
            report = watched.report
    pairs = [[timed(one, kjt) for one in jobs] for _ in range(PAIRS)]
    if rank == 0:
        check(work, plans, report, pairs)
    dist.destroy_process_group()


def slow_by_rank(plan):
    ranks = [e["ranks"][0] for t, e in plan.items() if t.startswith("slow")]
    return [ranks.count(r) for r in range(N_RANKS)]


def check(work, plans, report, pairs):
    print("# " + report.replace("\n", "\n# "))
    with open(f"{work}/measured.csv", encoding="utf-8") as file:
        ok("forward_factor" in file.read(), "measured factors are written")
    ok("pooled fp16" in report, "the report has the slow class", report)
    before, after = map(slow_by_rank, plans)
    print(f"# slow tables by rank: {before}, then {after}")
    ok(
        max(after) < max(before),
        "the second plan spreads the slow tables",
        f"{before} {after}",
    )
    ratio = statistics.median(first / second for first, second in pairs)
    print(f"# first / second plan: {ratio:.3f}, {pairs}")
    ok(ratio >= 1.15, "the second plan is at least 15 % faster", str(pairs))


def main():
    with tempfile.TemporaryDirectory() as work:
        mp.start_processes(
            job, (work,), nprocs=N_RANKS, start_method="fork"
        )
    # The checks ran on rank 0.
    print("1..4")


if __name__ == "__main__":
    main()
