# SPDX-License-Identifier: MIT
"""Compares steps of a TorchRec job on one GPU with their prediction.

    torchrec_steps.py [--program FILE] [--cost COST] [--seconds S] [--small] OUT

A job consists of some tables of a shipped list, with rows reduced until a GPU
holds them, and a batch size. `neuroshard plan --gpus 1` places the tables, the
emitted loader gives the plan to TorchRec's DistributedModelParallel, the lines
of neuroshard-record(1) time the lookups, and `neuroshard record` reads the
times. OUT gets one CSV line per job: measured and predicted ms of input,
forward and backward, the time of a step, and the time of the host to queue it.
The last columns say which tables the job has: the number by which their rows
are divided, and the index of each table in the list, counted from 0, with a z
if its skew is not that of the list but a Zipf law with exponent 1.05.
Nothing waits for the device in between, so the device is never idle while it
has more work than the host.

Gradients are random. Ids follow the list's Zipf law and are scattered over the
rows; indices have 64 bits. --small is a dry run on the CPU.
"""

import argparse
import csv
import gc
import importlib.util
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import time

import torch
import torch.distributed as dist
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
STEPS, WARM_UP, SETS = 24, 8, 3
MOST_BYTES, MOST_IDS = 24 << 30, 1 << 25
# prime: rank * SCATTER mod rows is a permutation of the rows
SCATTER = 2654435761
LISTS = (
    "mlperf_dlrm_dcnv2_multihot criteo_kaggle_26 hugectr_200table_100B_hotness20 "
    "nvidia_synthetic_tiny_v3 nvidia_synthetic_small_v3 deeprecsys_dlrm_rm2 "
    "nvidia_synthetic_medium_v3 deeprecsys_dlrm_rm1"
).split()
PHASES = ("input", "forward", "backward")
FIELDS = ["list", "n_tables", "batch", "n_ids", "n_columns", "gib"]
FIELDS += [f"{phase}_ms" for phase in PHASES]
FIELDS += [f"predicted_{phase}_ms" for phase in PHASES] + ["step_ms", "host_ms"]
FIELDS += ["rows_divisor", "tables"]


def read_list(name):
    with open(f"{ROOT}/data/tables/{name}.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if line[0] != "#"))
    for row in rows:
        yield {
            "name": row["name"],
            "num_embeddings": int(row["num_embeddings"]),
            "dim": int(row["dim"]),
            "pooling_factor": max(1, round(float(row["pooling_factor"]))),
            "zipf_alpha": float(row.get("zipf_alpha") or 0),
        }


def jobs(source):
    """Yields (list, all or some of its tables, batch, divisor of their rows),
    endlessly."""
    for turn in itertools.count():
        for name in LISTS:
            tables = list(read_list(name))
            share = 1 if turn == 0 else source.choice((0.5, 0.25, 0.125))
            n = max(1, round(share * len(tables)))
            tables = source.sample(tables, n) if n < len(tables) else tables
            batch = 16384 if turn == 0 else source.choice((8192, 32768, 65536))
            while batch * sum(t["pooling_factor"] for t in tables) > MOST_IDS:
                batch //= 2
            divisor = 1
            while n_bytes(tables, divisor) > MOST_BYTES:
                divisor *= 2
            for table in tables:
                rows = max(4, table["num_embeddings"] // divisor)
                table["num_embeddings"] = rows
                if turn and source.random() < 0.5:
                    table["zipf_alpha"] = 1.05
            yield name, tables, batch, divisor


def n_bytes(tables, divisor):
    return sum(t["num_embeddings"] // divisor * t["dim"] * 4 for t in tables)


def command(program, *arguments):
    found = subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if found.returncode:
        raise RuntimeError(f"{arguments[0]}: {found.stderr}")
    return found.stdout


def make_plan(options, work, tables, batch):
    with open(f"{work}/tables.csv", "w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, tables[0])
        writer.writeheader()
        writer.writerows(tables)
    plan = f"{work}/plan.json"
    command(
        *(options.program, "plan", f"{work}/tables.csv", "--gpus", 1),
        *("--batch", batch, "--cost", options.cost, "--memory", "70GiB"),
        *("--shard", "table", "--effort", 1000, "-o", plan),
    )
    for name, form in (("emitted", "torchrec"), ("loader.py", "torchrec-loader")):
        module = ("--module", "ebc") if form == "torchrec" else ()
        command(
            options.program,
            *("emit", plan, "--format", form, *module, "-o", f"{work}/{name}"),
        )
    with open(plan, encoding="utf-8") as file:
        return json.load(file)["devices"][0]["phases_ms"]


class Model(torch.nn.Module):
    def __init__(self, tables):
        super().__init__()
        self.ebc = EmbeddingBagCollection(
            [
                EmbeddingBagConfig(
                    name=t["name"],
                    embedding_dim=t["dim"],
                    num_embeddings=t["num_embeddings"],
                    feature_names=[t["name"]],
                )
                for t in tables
            ],
            device=torch.device("meta"),
        )

    def forward(self, features):
        return self.ebc(features)


def draw(tables, batch, device):
    """Returns one batch."""
    values = []
    for table in tables:
        n_rows, n = table["num_embeddings"], batch * table["pooling_factor"]
        at = torch.rand(n, dtype=torch.float64, device=device)
        if table["zipf_alpha"]:
            sums = torch.arange(1, n_rows + 1, dtype=torch.float64, device=device)
            sums = sums.pow_(-table["zipf_alpha"]).cumsum_(0)
            ranks = torch.searchsorted(sums, at * sums[-1])
        else:
            ranks = (at * n_rows).long()
        values.append(ranks.clamp_(max=n_rows - 1) * SCATTER % n_rows)
    lengths = [
        torch.full((batch,), t["pooling_factor"], dtype=torch.int32) for t in tables
    ]
    return KeyedJaggedTensor(
        keys=[t["name"] for t in tables],
        values=torch.cat(values),
        lengths=torch.cat(lengths).to(device),
    )


def shard(work, tables, device):
    spec = importlib.util.spec_from_file_location("loader", f"{work}/loader.py")
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    model = Model(tables)
    fused = {"optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD, "learning_rate": 1e-6}
    return DistributedModelParallel(
        module=model,
        device=torch.device(device),
        plan=loader.load_plan(f"{work}/emitted", model, 1, device),
        sharders=[EmbeddingBagCollectionSharder(fused_params=fused)],
    ).module.ebc


def page_lines():
    """Returns the functions that the manual gives for a job."""
    with open(f"{ROOT}/man/neuroshard-record.1", encoding="utf-8") as file:
        found = re.search(r"^import .*?(?=^\.Ed)", file.read(), re.M | re.S)
    lines = {}
    exec(found.group(), lines)
    return lines


def train(work, tables, batch, device):
    """Returns the median ms of the input phase, of a step, and of the host's
    part in it. Writes the other times to times.csv."""
    ebc = shard(work, tables, device)
    batches = [draw(tables, batch, device) for _ in range(SETS)]
    n_columns = sum(t["dim"] for t in tables)
    gradient = torch.randn(batch, n_columns, device=device)
    lines = page_lines()
    lines["watch"](ebc)
    inputs, begins, hosts = [], [], []
    for step in range(STEPS):
        begin, context = time.perf_counter(), ebc.create_context()
        begins.append(lines["mark"]())
        own = ebc.input_dist(context, batches[step % SETS]).wait().wait()
        inputs.append((begins[-1], lines["mark"]()))
        found = ebc.compute_and_output_dist(context, own).wait()
        found.values().backward(gradient)
        lines["steps"][0] += 1
        hosts.append((time.perf_counter() - begin) * 1e3)
    if device == "cuda":
        torch.cuda.synchronize()
    lines["save"](f"{work}/times.csv", 0)

    def median_ms(pairs):
        gpu = lines["gpu"]
        taken = [a.elapsed_time(b) if gpu else 1e3 * (b - a) for a, b in pairs]
        return statistics.median(taken[WARM_UP:])

    steps = list(zip(begins, begins[1:]))
    return median_ms(inputs), median_ms(steps), statistics.median(hosts[WARM_UP:])


def marked(name, tables):
    """Returns the indices of the tables, with their marks."""
    source = {t["name"]: (i, t) for i, t in enumerate(read_list(name))}
    for table in tables:
        i, before = source[table["name"]]
        yield f"{i}z" if table["zipf_alpha"] != before["zipf_alpha"] else f"{i}"


def run_job(options, work, name, tables, batch, divisor, device):
    predicted = make_plan(options, work, tables, batch)
    input_ms, step_ms, host_ms = train(work, tables, batch, device)
    arch = torch.cuda.get_device_capability() if device == "cuda" else None
    of = f"cuda:{torch.cuda.get_device_name()}" if arch else "cpu:any"
    isa = f"sm_{arch[0]}{arch[1]}" if arch else "avx2"
    found = json.loads(
        command(
            *(options.program, "record", f"{work}/plan.json"),
            *("--times", f"{work}/times.csv", "--db", f"{work}/costs.db"),
            *("--warm-up", WARM_UP, "--device", of, "--isa", isa, "--json"),
            *(() if arch else ("--threads", 1)),
        )
    )
    measured = {p["phase"]: p["measured_ms"] for p in found["phases"]}
    measured["input"] = input_ms
    row = {
        "list": name,
        "n_tables": len(tables),
        "batch": batch,
        "n_ids": batch * sum(t["pooling_factor"] for t in tables),
        "n_columns": sum(t["dim"] for t in tables),
        "gib": f"{n_bytes(tables, 1) / 2**30:.2f}",
        "step_ms": f"{step_ms:.4f}",
        "host_ms": f"{host_ms:.4f}",
        "rows_divisor": divisor,
        "tables": " ".join(marked(name, tables)),
    }
    for phase in PHASES:
        row[f"{phase}_ms"] = f"{measured[phase]:.4f}"
        row[f"predicted_{phase}_ms"] = f"{predicted[phase]:.4f}"
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--program", default=f"{ROOT}/neuroshard")
    parser.add_argument("--cost", default="model:h100")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    device = "cpu" if options.small else "cuda"
    end = time.monotonic() + options.seconds
    torch.manual_seed(1)
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
    os.environ.update(GLOO_SOCKET_IFNAME="lo", NCCL_SOCKET_IFNAME="lo")
    n_done = n_failed = 0
    with tempfile.TemporaryDirectory() as work:
        dist.init_process_group(
            "nccl" if device == "cuda" else "gloo",
            init_method=f"file://{work}/meeting",
            rank=0,
            world_size=1,
        )
        with open(options.out, "w", encoding="utf-8", buffering=1) as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            for name, tables, batch, divisor in jobs(random.Random(2)):
                if time.monotonic() > end or n_failed > 5:
                    break
                if options.small:
                    batch = 16
                    for t in tables:
                        t["num_embeddings"] = min(t["num_embeddings"], 1000)
                try:
                    writer.writerow(
                        run_job(
                            *(options, work, name, tables, batch, divisor, device)
                        )
                    )
                    n_done += 1
                except RuntimeError as error:
                    print(f"{name}: {str(error)[:300]}")
                    n_failed += 1
                gc.collect()
                if device == "cuda":
                    torch.cuda.empty_cache()
        dist.destroy_process_group()
    print(f"torchrec: {n_done} jobs, {n_failed} failed, torch {torch.__version__}")


main()
