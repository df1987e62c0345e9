# SPDX-License-Identifier: MIT
"""A job of the real TorchRec on this machine's CPU is profiled, and `neuroshard
record` reads the traces. Speaks TAP; NEUROSHARD is the program, NEUROSHARD_DATA
its data.
"""
import csv
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder

import ranks
from tap import finish, neuroshard, ok

N_RANKS = 2
STEPS = 8
MAX_ROWS = 1500


def train(rank, work):
    ranks.meet(rank, N_RANKS, N_RANKS, work)
    with open(f"{work}/plan.json", encoding="utf-8") as file:
        tables = json.load(file)["tables"]
    model = ranks.Model(tables)
    loader = ranks._loader(f"{work}/loader.py")
    plan = loader.load_plan(f"{work}/emitted", model, N_RANKS, "cpu")
    sharded = DistributedModelParallel(
        module=model,
        device=torch.device("cpu"),
        plan=plan,
        sharders=[EmbeddingBagCollectionSharder()],
    )
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=0, warmup=0, active=STEPS + 1),
    ) as profiler:
        for step in range(STEPS):
            found = sharded(ranks._features(tables, step, rank))
            ranks._loss(found).backward()
            profiler.step()
    profiler.export_chrome_trace(f"{work}/trace_{rank}.json")
    dist.destroy_process_group()


def prepare(work):
    source = os.environ["NEUROSHARD_DATA"] + "/tables/criteo_kaggle_26.csv"
    with open(source, encoding="utf-8") as file:
        rows = list(csv.DictReader(r for r in file if r[0] != "#"))
    for row in rows:
        row["num_embeddings"] = min(int(row["num_embeddings"]), MAX_ROWS)
    with open(f"{work}/tables.csv", "w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    for command in (
        ("plan", f"{work}/tables.csv", "--gpus", str(N_RANKS), "--batch", "12")
        + ("--shard", "table", "--effort", "100", "-o", f"{work}/plan.json"),
        ("emit", f"{work}/plan.json", "--format", "torchrec")
        + ("--module", "ebc", "-o", f"{work}/emitted"),
        ("emit", f"{work}/plan.json", "--format", "torchrec-loader")
        + ("-o", f"{work}/loader.py"),
    ):
        status, _, why = neuroshard(*command)
        ok(status == 0, f"{command[0]} {command[3]}", why)


def recorded(work, name, *files):
    """Records the files under this name; returns the phases that were
    found."""
    status, out, why = neuroshard(
        *("record", f"{work}/plan.json", *files[1:]),
        *("--times", files[0], "--db", f"{work}/{name}.db"),
        *("--device", "cpu:any", "--isa", "avx2"),
        *("--device-threads", "1", "--json"),
    )
    ok(status == 0, f"{name}: the job is recorded", why)
    found = json.loads(out) if status == 0 else {"phases": []}
    print("# " + json.dumps(found, indent=1).replace("\n", "\n# "))
    ok(found.get("steps") == STEPS - 3, "all steps but the first three")
    ok(found.get("stored") == N_RANKS, "one sample per rank")
    ok(found.get("exchanges") == 1, "and the exchange of outputs")
    ok(
        all(p["measured_ms"] > 0 for p in found["phases"]),
        "all phases take some time",
    )
    return {(p["rank"], p["phase"]) for p in found["phases"]}


def check(work):
    prepare(work)
    mp.start_processes(train, (work,), nprocs=N_RANKS, start_method="fork")
    want = {(r, p) for r in "01" for p in ("forward", "backward")}
    want |= {("all", phase) for phase in ("input", "output", "gradient")}
    found = recorded(
        work, "profiled", *(f"{work}/trace_{r}.json" for r in range(N_RANKS))
    )
    ok(found == want, "every phase of the trace is recorded", str(found))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        check(folder)
    finish()
