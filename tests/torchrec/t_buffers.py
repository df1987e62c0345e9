# SPDX-License-Identifier: MIT
"""Compares the buffers of a step that plans count with the bytes that TorchRec
allocates, on two processes of this machine with gloo. A process of a GPU runs
the same code but for FBGEMM's kernels, so the sorted ids of the backward pass
are not measured. Speaks TAP; NEUROSHARD is the program.
"""
import json
import os
import tempfile
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.profiler import ProfilerActivity, profile
from torchrec import (
    EmbeddingBagCollection,
    EmbeddingBagConfig,
    EmbeddingCollection,
    EmbeddingConfig,
    KeyedJaggedTensor,
)
from torchrec.distributed.train_pipeline import TrainPipelineSparseDist
from torchrec.streamable import Pipelineable

import ranks
from t_plans import Job
from tap import finish, neuroshard, ok

JOB = Job(2, 2)
PIPELINES = ("none", "sdd")
BATCH, POOLING, ROWS, DIM = 256, 60, 2000, 32
STEPS, WARM = 9, 3
# Tables are pinned such that ids have to be put in the order of the GPUs.
PINS = (1, 0, 1, 0)
# name: (kinds, outputs of the tables, least share of the count). The count of
# pieces has the ids in two orders, which a plan without whole tables never has
# at the same time.
CASES = {
    "whole tables": ("table", ("pooled",) * 4, 0.99),
    "columns": ("column", ("pooled",) * 4, 0.88),
    "rows": ("row", ("pooled",) * 4, 0.85),
    "replicas": ("replicate", ("pooled",) * 4, 0.75),
    "sequences": ("table", ("sequence",) * 4, 0.99),
    "both outputs": ("table", ("pooled", "sequence") * 2, 0.99),
}


@dataclass
class Batch(Pipelineable):
    """A batch on the host; to() makes the copy on the device."""

    features: KeyedJaggedTensor

    def to(self, device, non_blocking=False):
        here = self.features
        return Batch(
            KeyedJaggedTensor(
                keys=here.keys(),
                values=here.values().clone(),
                lengths=here.lengths().clone(),
            )
        )

    def record_stream(self, stream):
        pass

    def pin_memory(self):
        return self


class Model(torch.nn.Module):
    """Tables of a plan, and a sum of all outputs as the loss."""

    def __init__(self, tables):
        super().__init__()
        named = {
            output: [
                {
                    "name": table["name"],
                    "embedding_dim": table["dim"],
                    "num_embeddings": table["num_embeddings"],
                    "feature_names": [table["name"]],
                }
                for table in tables
                if table["output"] == output
            ]
            for output in ("pooled", "sequence")
        }
        self.sequences = [config["name"] for config in named["sequence"]]
        self.is_pooled = bool(named["pooled"])
        if self.is_pooled:
            self.ebc = EmbeddingBagCollection(
                [EmbeddingBagConfig(**config) for config in named["pooled"]]
            )
        if self.sequences:
            self.ec = EmbeddingCollection(
                [EmbeddingConfig(**config) for config in named["sequence"]]
            )
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, batch):
        total = torch.zeros(1)
        if self.is_pooled:
            total = total + self.ebc(batch.features).values().sum()
        if self.sequences:
            found = self.ec(batch.features)
            for name in self.sequences:
                total = total + found[name].values().sum()
        loss = total * self.scale
        return loss, loss.detach()


def features(names):
    n = len(names) * BATCH
    return KeyedJaggedTensor(
        keys=names,
        values=torch.randint(0, ROWS, (n * POOLING,)),
        lengths=torch.full((n,), POOLING, dtype=torch.int32),
    )


def moments(trace):
    """Returns two numbers of bytes: those that are allocated when the backward
    pass of the lookups begins (that of replicas: at its peak), and the peak
    before. A thread of gloo may be the last to free a buffer, which the trace
    does not show. So each number is the least of all warm steps, and what is
    older than two steps counts as freed, except for the gradients of
    replicas."""
    with open(trace, encoding="utf-8") as file:
        events = sorted(
            json.load(file)["traceEvents"], key=lambda e: e.get("ts", 0)
        )
    steps = [e["ts"] for e in events if e.get("name") == "a step"]
    backward = [
        e["ts"]
        for e in events
        if e.get("name", "").startswith("fbgemm::split_embedding")
        and "_backward_" in e["name"]
    ]
    ends = steps[WARM + 1 :] + [events[-1]["ts"]]
    found = []
    for n, (begin, end) in enumerate(zip(steps[WARM:], ends)):
        end = min([ts for ts in backward if begin <= ts < end] or [end])
        alive, sizes = {}, [0]
        oldest = steps[WARM + n - 2] if backward else 0
        for event in events:
            if event.get("name") != "[memory]":
                continue
            if not oldest <= event["ts"] < end:
                continue
            size, at = event["args"]["Bytes"], event["args"]["Addr"]
            alive.pop(at, None)
            if size > 0:
                alive[at] = size
            if event["ts"] >= begin:
                sizes.append(sum(alive.values()))
        found.append((sizes[-1] if backward else max(sizes), max(sizes)))
    return [min(sizes) for sizes in zip(*found)]


class Loop:
    """Training without a pipeline."""

    def __init__(self, model, optimizer, device):
        self._model, self._optimizer = model, optimizer

    def progress(self, batches):
        batch = next(batches).to("cpu")
        self._optimizer.zero_grad()
        loss, _ = self._model(batch)
        loss.backward()
        self._optimizer.step()


def measure(rank, case, loader, work):
    torch.manual_seed(1)
    model = Model(case["tables"])
    plan = loader.load_plan(case["emitted"], model, JOB.n_ranks, "cpu")
    sharded = ranks.shard(model, plan, "sgd")
    dense = torch.optim.SGD(sharded.parameters(), 0.1)
    kind = Loop if case["pipeline"] == "none" else TrainPipelineSparseDist
    pipeline = kind(sharded, dense, torch.device("cpu"))
    host = features([table["name"] for table in case["tables"]])
    batches = iter([Batch(host) for _ in range(STEPS + 4)])
    trace = f"{work}/trace-{rank}.json"
    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=True
    ) as profiled:
        for _ in range(STEPS):
            with torch.profiler.record_function("a step"):
                pipeline.progress(batches)
    profiled.export_chrome_trace(trace)
    return moments(trace)


def run(rank, work, cases):
    """Writes the moments of each rank to work/results, a line per case."""
    ranks.start(rank, JOB, work)
    loader = ranks._loader(f"{work}/loader.py")
    for case in cases:
        results = [None] * JOB.n_ranks
        dist.all_gather_object(results, measure(rank, case, loader, work))
        if rank == 0:
            with open(f"{work}/results", "a", encoding="utf-8") as file:
                print(json.dumps(results), file=file)
    dist.destroy_process_group()


def planned(work, name, pipeline):
    """Returns a case: a plan, and the same for TorchRec."""
    kinds, outputs, _ = CASES[name]
    lines = [
        f"t{i},{ROWS},{DIM},{POOLING},0,{output}"
        + f",{PINS[i] if kinds == 'table' else ''}"
        for i, output in enumerate(outputs)
    ]
    with open(f"{work}/list.csv", "w", encoding="utf-8") as file:
        print(
            "name,num_embeddings,dim,pooling_factor,zipf_alpha,output,device",
            *lines,
            sep="\n",
            file=file,
        )
    rc, _, said = neuroshard(
        *("plan", f"{work}/list.csv", "--gpus", "2", "--shard", kinds),
        *("--cost", "roofline:h100", "--batch-per-gpu", str(BATCH)),
        *("--pipeline", pipeline, "-o", f"{work}/plan.json"),
        *("--effort", "1000", "--simplest-within", "0%"),
    )
    if rc:
        raise RuntimeError(said)
    path = f"{work}/{len(os.listdir(work))}.json"
    neuroshard(
        *("emit", f"{work}/plan.json", "--format", "torchrec", "-o", path),
        *("--module", "ebc", "--sequence-module", "ec"),
    )
    neuroshard(
        *("emit", f"{work}/plan.json", "--format", "torchrec-loader"),
        *("-o", f"{work}/loader.py"),
    )
    with open(f"{work}/plan.json", encoding="utf-8") as file:
        plan = json.load(file)
    return {
        "name": name,
        "pipeline": pipeline,
        "emitted": path,
        "tables": plan["tables"],
        "counted": counted(plan),
    }


def counted(plan):
    """Returns two numbers of bytes for each rank: buffers while the lookups go
    back, without the sorted ids, and all buffers."""
    found = []
    for device, entry in enumerate(plan["devices"]):
        gradients = 0
        for shard in plan["shards"]:
            table = plan["tables"][shard["table"]]
            if shard["device"] != device:
                continue
            width = shard["col_end"] - shard["col_begin"]
            if shard["kind"] == "replicate":
                gradients += 2 * 4 * table["num_embeddings"] * width
            else:
                is_pooled = table["output"] == "pooled"
                n = plan["batch"] * (1 if is_pooled else POOLING)
                gradients += 4 * n * width
        memory = entry["memory_bytes"]
        found.append(
            (memory["input"] + gradients, memory["input"] + memory["outputs"])
        )
    return found


def main():
    with tempfile.TemporaryDirectory() as work:
        cases = [
            planned(work, name, pipeline)
            for name in CASES
            for pipeline in PIPELINES
        ]
        mp.spawn(run, args=(work, cases), nprocs=JOB.n_ranks)
        with open(f"{work}/results", encoding="utf-8") as file:
            results = [json.loads(line) for line in file]
    for case, measured in zip(cases, results):
        what = f"{case['name']}, {case['pipeline']}"
        shares = [
            [took / count for took, count in zip(*pair)]
            for pair in zip(measured, case["counted"])
        ]
        least = CASES[case["name"]][2]
        said = f"measured {measured}, counted {case['counted']}"
        backward, peaks = zip(*shares)
        print(f"# {what}: {[[round(x, 3) for x in s] for s in shares]}")
        ok(
            least <= min(backward) and max(backward) <= 1.001,
            f"{what}: bytes while the lookups go back",
            said,
        )
        ok(
            max(peaks) <= 1,
            f"{what}: the peak before is no larger than the count",
            said,
        )
    finish()


if __name__ == "__main__":
    main()
