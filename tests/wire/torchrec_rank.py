# SPDX-License-Identifier: MIT
"""One rank of a TorchRec job over links of a known rate; torchrec_jobs.py
starts the ranks with mpirun.

usage: torchrec_rank.py JOB, a file of JSON:
  mode     "record": trains each of `lists` by a plan of its own, and writes
           the plan and the times of its phases
           "pair": trains by TorchRec's plan and by ours in turns
  folder   where the results go
  lists    paths of table lists
  batch    samples of each rank
  options  options of NeuroShardPlanner
  steps    steps of a measurement
  pairs    measurements of each plan, in mode "pair"
"""
import csv
import json
import os
import re
import statistics
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from torchrec import (EmbeddingBagCollection, EmbeddingBagConfig,
                      KeyedJaggedTensor)
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import Topology
from torchrec.distributed.planner.types import ParameterConstraints

from neuroshard.torchrec import NeuroShardPlanner

RANK = int(os.environ["OMPI_COMM_WORLD_RANK"])
N_RANKS = int(os.environ["OMPI_COMM_WORLD_SIZE"])
PORT = 29500
WARM_UP = 3


def join(job):
    """Joins the other ranks. Gloo uses the link of the host."""
    os.environ.update(
        RANK=str(RANK), WORLD_SIZE=str(N_RANKS),
        LOCAL_RANK=os.environ["OMPI_COMM_WORLD_LOCAL_RANK"],
        LOCAL_WORLD_SIZE=str(job["ranks"]), GLOO_SOCKET_IFNAME="wire")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://10.99.0.1:{PORT}",
                            rank=RANK, world_size=N_RANKS,
                            timeout=timedelta(seconds=300))


def read_tables(path):
    with open(path, encoding="utf-8") as file:
        return [{"name": row["name"], "rows": int(row["num_embeddings"]),
                 "dim": int(row["dim"]),
                 "pooling": round(float(row["pooling_factor"]))}
                for row in csv.DictReader(file)]


def make_model(tables):
    torch.manual_seed(1)
    return EmbeddingBagCollection([
        EmbeddingBagConfig(name=t["name"], embedding_dim=t["dim"],
                           num_embeddings=t["rows"],
                           feature_names=[t["name"]]) for t in tables])


def draw_batch(tables, batch, step):
    """Draws the samples of this rank: as many lookups of each table as its
    pooling factor, of uniform rows."""
    rng = torch.Generator().manual_seed(1009 * step + RANK)
    values = [torch.randint(0, t["rows"], [batch * t["pooling"]],
                            generator=rng) for t in tables]
    lengths = [torch.full([batch], t["pooling"], dtype=torch.int32)
               for t in tables]
    return KeyedJaggedTensor(keys=[t["name"] for t in tables],
                             values=torch.cat(values),
                             lengths=torch.cat(lengths))


def sharders():
    return [EmbeddingBagCollectionSharder(fused_params={
        "optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD,
        "learning_rate": 0.01})]


def planner(job, tables, **options):
    return NeuroShardPlanner(
        topology=Topology(world_size=N_RANKS, local_world_size=job["ranks"],
                          compute_device="cpu", ddr_cap=4 << 30),
        batch_size=job["batch"], stats=[], debug=False,
        constraints={t["name"]: ParameterConstraints(
            pooling_factors=[float(t["pooling"])]) for t in tables},
        usage={t["name"]: {"zipf_alpha": 0} for t in tables},
        fallback=False, **job["options"], **options)


class Trained:
    """A model that is trained by a plan."""

    def __init__(self, tables, plan):
        self.model = DistributedModelParallel(
            module=make_model(tables), device=torch.device("cpu"), plan=plan,
            sharders=sharders(), init_data_parallel=True)
        replicas = [p for p in self.model.parameters() if p.requires_grad
                    and not hasattr(p, "_overlapped_optimizer")]
        self.dense = torch.optim.SGD(replicas, 0.01) if replicas else None

    def step(self, batch):
        self.model.zero_grad()
        found = self.model(batch)
        found.values().sum().backward()
        if self.dense:
            self.dense.step()


def measure(trained, batches):
    """Returns the median time of a step in ms, from the last rank that begins
    to the last one that ends."""
    times = []
    for batch in batches:
        dist.barrier()
        begin = time.perf_counter()
        trained.step(batch)
        dist.barrier()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def pair(job):
    """Writes the times of both plans, and what our cost model says of them."""
    tables = read_tables(job["lists"][0])
    both = planner(job, tables, mode="shadow")
    found = [None]
    if RANK == 0:
        both.plan(make_model(tables), sharders())
        shadow = both.shadow
        found = [(shadow.stock, shadow.ours, shadow.neuroshard_ms,
                  shadow.diff["gain_error_frac"])]
    dist.broadcast_object_list(found)
    stock, ours, predicted_ms, error_frac = found[0]
    plans = [Trained(tables, plan) for plan in (stock, ours)]
    batches = [draw_batch(tables, job["batch"], i)
               for i in range(job["steps"])]
    for trained in plans:
        measure(trained, batches[:WARM_UP])
    # Each plan goes first in every second pair.
    measured = []
    for i in range(job["pairs"]):
        order = (0, 1) if i % 2 == 0 else (1, 0)
        times = {which: measure(plans[which], batches) for which in order}
        measured.append([times[0], times[1]])
    if RANK == 0:
        write(job, "pair.json", {
            "stock_ms": [one for one, _ in measured],
            "ours_ms": [other for _, other in measured],
            "predicted_ms": predicted_ms, "error_frac": error_frac,
            "stock": str(stock), "ours": str(ours)})


def record_lines():
    """Returns the lines of neuroshard-record(1) that time a job."""
    page = os.environ["NEUROSHARD_DATA"] + "/../man/neuroshard-record.1"
    with open(page, encoding="utf-8") as file:
        return re.search(r"^import .*?(?=^\.Ed)", file.read(),
                         re.M | re.S).group()


def record(job):
    """Writes the plan of each list, and times of its phases by rank."""
    for number, path in enumerate(job["lists"]):
        tables = read_tables(path)
        own = planner(job, tables, seed=number)
        plan = own.collective_plan(make_model(tables), sharders())
        trained = Trained(tables, plan)
        lines = {}
        exec(record_lines(), lines)  # pylint: disable=exec-used
        lines["watch"](trained.model.module)
        for step in range(WARM_UP + job["steps"]):
            trained.step(draw_batch(tables, job["batch"], step))
            lines["steps"][0] += 1
        lines["save"](f"{job['folder']}/{number}-{RANK}.csv", RANK)
        if RANK == 0:
            own.neuroshard_plan.save(f"{job['folder']}/{number}.plan")


def write(job, name, content):
    with open(f"{job['folder']}/{name}", "w", encoding="utf-8") as file:
        json.dump(content, file)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    join(job)
    {"pair": pair, "record": record}[job["mode"]](job)
    dist.barrier()
    dist.destroy_process_group()


main()
