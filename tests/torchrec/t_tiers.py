# SPDX-License-Identifier: MIT
"""Plans with tables in host memory, against the code of TorchRec and FBGEMM
that makes caches: drawn plans are priced, emitted and loaded. For each rank,
TorchRec groups the tables, and FBGEMM allocates the operators of the groups on
the meta device. Their caches and memory must be those of the plan. Only the
calls of CUDA that ask for free memory are replaced. Speaks TAP; NEUROSHARD is
the program, and TEST_SIZE=full draws 500 plans.
"""
import json
import logging
import os
import random
import tempfile
from types import SimpleNamespace
from unittest import mock

import torch
import torch.distributed as dist
from fbgemm_gpu.split_embedding_configs import EmbOptimType, SparseType
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    ComputeDevice,
    SplitTableBatchedEmbeddingBagsCodegen,
)
from torch.testing._internal.distributed.fake_pg import FakeStore
from torchrec.distributed import embedding, embeddingbag
from torchrec.distributed.embedding_types import (
    EmbeddingComputeKernel,
    compute_kernel_to_embedding_location,
)
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import Topology
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import ShardingEnv
from torchrec.modules.embedding_configs import (
    DataType,
    EmbeddingBagConfig,
    EmbeddingConfig,
)
from torchrec.modules.embedding_modules import (
    EmbeddingBagCollection,
    EmbeddingCollection,
)

from neuroshard import _loader, _model, _placing
from neuroshard.torchrec import dump
from tap import finish, neuroshard, ok

N_PLANS = 500 if os.environ.get("TEST_SIZE") == "full" else 50
SHAPES = [(1, 1), (2, 2), (4, 4), (8, 4), (8, 2)]  # GPUs, GPUs of a host
PRECISIONS = {"fp32": DataType.FP32, "fp16": DataType.FP16}
META = torch.device("meta")
UNLIMITED = 1 << 50


# --- Plans ------------------------------------------------------------------


def blocks(rows, first, n, columns):
    size = -(-rows // n)
    for i in range(n):
        yield (i * size, min(rows, (i + 1) * size)), columns, first + i


def pieces(rng, table, shape):
    """Cuts a table in one of the ways of TorchRec."""
    gpus, per_host = shape
    rows, dim = table["num_embeddings"], table["dim"]
    ways = ["whole", "columns", "rows"]
    if table["output"] == "pooled":
        ways += ["host", "grid"]
    way = rng.choice(ways)
    first = rng.randrange(gpus // per_host) * per_host
    if way == "rows":
        yield from blocks(rows, 0, gpus, (0, dim))
    elif way == "host":
        yield from blocks(rows, first, per_host, (0, dim))
    elif way == "grid":
        for half in (0, dim // 2):
            columns = (half, half + dim // 2)
            yield from blocks(rows, first, per_host, columns)
    else:
        n = 1 if way == "whole" else 2
        if n == 2 and table["output"] == "pooled":
            n = rng.choice([2, 4])  # pieces of sequences have one width
        for i in range(n):
            columns = (i * dim // n, (i + 1) * dim // n)
            yield (0, rows), columns, rng.randrange(gpus)


def draw(rng, shape):
    """Returns a plan as written by hand."""
    gpus, per_host = shape
    tables, shards = [], []
    for t in range(rng.randint(1, 14)):
        sequence = rng.random() < 0.25
        module = rng.choice(["", "", "more."])  # a second collection
        table = {
            "name": f"t{t}" if sequence else f"{module}t{t}",
            "num_embeddings": int(10 ** rng.uniform(2, 5.5)),
            "dim": 32 if sequence else rng.choice([16, 32, 64, 128]),
            "pooling_factor": rng.randint(1, 20),
            "output": "sequence" if sequence else "pooled",
            "precision": rng.choice(["fp32", "fp32", "fp16"]),
            "optimizer": "rowwise_adagrad",
        }
        held = {"tier": rng.choice(["hbm", "cached", "cached", "host"])}
        if held["tier"] == "cached":
            held["load_factor"] = 10 ** rng.uniform(-4, 0)
        for rows, columns, rank in pieces(rng, table, shape):
            shards.append(
                {
                    "table": t,
                    "row_begin": rows[0],
                    "row_end": rows[1],
                    "col_begin": columns[0],
                    "col_end": columns[1],
                    "device": rank,
                    **held,
                }
            )
        tables.append(table)
    return {
        "neuroshard_plan": 1,
        "batch": 64 * gpus,
        "cluster": {
            "gpus": gpus,
            "gpus_per_host": per_host,
            "memory_bytes": [1 << 34] * gpus,
            "host_bytes": UNLIMITED,
        },
        "tables": tables,
        "shards": shards,
    }


def emitted(plan, pipeline, folder):
    """Returns the priced plan and the path of the emitted one."""
    paths = [f"{folder}/{name}.json" for name in ("drawn", "plan", "torchrec")]
    with open(paths[0], "w", encoding="utf-8") as file:
        json.dump(plan, file)
    status, priced, why = neuroshard(
        "cost", paths[0], "--json", "--pipeline", pipeline
    )
    if status:
        return None, why
    with open(paths[1], "w", encoding="utf-8") as file:
        file.write(priced)
    status, _, why = neuroshard(
        *("emit", paths[1], "--format", "torchrec", "-o", paths[2]),
        *("--module", "ebc", "--sequence-module", "ec"),
    )
    return (json.loads(priced), paths[2]) if not status else (None, why)


# --- TorchRec's caches ------------------------------------------------------


def path_of(table):
    path = {"pooled": "ebc", "sequence": "ec"}[table["output"]]
    return table["name"].rpartition(".")[0] or path


class Model(torch.nn.Module):
    def __init__(self, tables):
        super().__init__()
        for name, kind, config in (
            ("ebc", EmbeddingBagCollection, EmbeddingBagConfig),
            ("more", EmbeddingBagCollection, EmbeddingBagConfig),
            ("ec", EmbeddingCollection, EmbeddingConfig),
        ):
            configs = [
                config(
                    name=t["name"].rpartition(".")[2],
                    embedding_dim=t["dim"],
                    num_embeddings=t["num_embeddings"],
                    feature_names=["f_" + t["name"]],
                    data_type=PRECISIONS[t["precision"]],
                )
                for t in tables
                if path_of(t) == name
            ]
            if configs:
                setattr(self, name, kind(tables=configs, device=META))


def grouped(model, sharding, gpus):
    """Yields the output, the sharding type, the rank and the group of each
    operator."""
    env = ShardingEnv(gpus, 0, dist.group.WORLD)
    fused = {"optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD}
    for path in sharding.plan:
        code = embedding if path == "ec" else embeddingbag
        infos = code.create_sharding_infos_by_sharding_device_group(
            getattr(model, path),
            sharding.plan[path],
            **({"prefix": "embedding_bags."} if path != "ec" else {}),
            fused_params=dict(fused),
        )
        for (kind, _), of_kind in infos.items():
            if path != "ec":
                of_module = embeddingbag.ShardedEmbeddingBagCollection
                made = of_module.create_embedding_bag_sharding(
                    of_kind, env, META, permute_embeddings=True
                )
            else:
                of_module = embedding.ShardedEmbeddingCollection
                made = of_module.create_embedding_sharding(
                    kind, of_kind, env, META
                )
            ranks = made._grouped_embedding_configs_per_rank
            for rank, groups in enumerate(ranks):
                for group in groups:
                    yield path, kind, rank, group


def operator(group):
    """FBGEMM's operator of a group, as BatchedFusedEmbeddingBag makes it on a
    GPU."""
    locations = [
        compute_kernel_to_embedding_location(table.compute_kernel)
        for table in group.embedding_tables
    ]
    precision = SparseType(group.data_type.value.lower())
    return SplitTableBatchedEmbeddingBagsCodegen(
        [
            (t.local_rows, t.local_cols, location, ComputeDevice.CUDA)
            for t, location in zip(group.embedding_tables, locations)
        ],
        device=META,
        weights_precision=precision,
        cache_precision=precision,
        **group.fused_params,
    )


def n_bytes(module, *names):
    buffers = dict(module.named_buffers())
    found = [buffers[name] for name in names if name in buffers]
    return sum(b.numel() * b.element_size() for b in found)


def caches(model, sharding, gpus):
    """Returns for each rank {pool: slots, width, load factor}, and the bytes
    of slots and of their state."""
    found = [({}, [0, 0]) for _ in range(gpus)]
    for path, kind, rank, group in grouped(model, sharding, gpus):
        kernels = {t.compute_kernel for t in group.embedding_tables}
        if EmbeddingComputeKernel.FUSED_UVM_CACHING not in kernels:
            continue
        module = operator(group)
        slots, width = module.lxu_cache_weights.shape
        output = "sequence" if path == "ec" else "pooled"
        if kind == "table_wise" and output == "pooled":
            kind = "column_wise"  # a plan without cut columns
        precision = group.data_type.value.lower()
        pool = f"{output}/{kind}/{precision}/rowwise_adagrad"
        pool = f"more/{pool}" if path == "more" else pool
        if group.fused_params.get("prefetch_pipeline"):
            pool += f"/{width}"
        pools, memory = found[rank]
        while pool in pools:  # the plan has no such pool
            pool += " again"
        pools[pool] = slots, width, group.fused_params["cache_load_factor"]
        memory[0] += n_bytes(module, "lxu_cache_weights")
        memory[1] += n_bytes(
            *(module, "lxu_cache_state", "lxu_state"),
            *("lxu_cache_locking_counter", "cache_index_table_map"),
        )
    return found


def differences(priced, found):
    """Returns the caches in which the plan and TorchRec differ."""
    wrong = []
    for rank, (device, (pools, memory)) in enumerate(
        zip(priced["devices"], found)
    ):
        planned = {
            c["pool"]: (c["slots"], c["slot_width"], c["load_factor"])
            for c in device.get("caches", [])
        }
        alike = planned.keys() == pools.keys() and all(
            planned[pool][:2] == pools[pool][:2]
            and abs(planned[pool][2] / pools[pool][2] - 1) <= 1e-6
            for pool in pools
        )
        counted = device["memory_bytes"]
        if not alike or memory != [counted["cache"], counted["cache_state"]]:
            wrong.append((rank, planned, pools, memory, counted))
    return wrong


def check(seed, folder):
    rng = random.Random(seed)
    shape = SHAPES[seed % len(SHAPES)]
    plan = draw(rng, shape)
    pipeline = rng.choice(["sdd", "prefetch"])
    priced, path = emitted(plan, pipeline, folder)
    if priced is None:
        ok(False, f"plan {seed} is emitted", path)
        return 0
    os.environ["LOCAL_WORLD_SIZE"] = str(shape[1])
    dist.init_process_group(
        "fake", rank=0, world_size=shape[0], store=FakeStore()
    )
    try:
        model = Model(plan["tables"])
        sharding = _loader.load_plan(path, model, shape[0])
        found = caches(model, sharding, shape[0])
    finally:
        dist.destroy_process_group()
    wrong = differences(priced, found)
    n = sum(len(pools) for pools, _ in found)
    ok(not wrong, f"plan {seed}: {n} caches on {shape[0]} ranks", str(wrong))
    return n


# --- Constraints, dumps and the planner ------------------------------------

# A batch uses 320 of 1280 rows. A cache of these rows misses 160, one of the
# 480 rows of two batches 80.
CACHED = {
    "name": "user",
    "num_embeddings": 1280,
    "dim": 16,
    "pooling_factor": 2,
    "output": "pooled",
    "optimizer": "rowwise_adagrad",
    "precision": "fp32",
    "reach": [320, 480],
    "misses": [160, 80],
}


def small_plan():
    shard = {"row_begin": 0, "col_begin": 0, "col_end": 16, "device": 0}
    tables = [CACHED, {**CACHED, "name": "item"}, {**CACHED, "name": "hot"}]
    held = [{"tier": "cached", "load_factor": 0.25}, {"tier": "host"}, {}]
    return {
        "neuroshard_plan": 1,
        "batch": 64,
        "cluster": {
            "gpus": 1,
            "memory_bytes": [1 << 30],
            "host_bytes": UNLIMITED,
        },
        "tables": tables,
        "shards": [
            {"table": t, "row_end": 1280, **shard, **tier}
            for t, tier in enumerate(held)
        ],
    }


def check_constraints(path, folder):
    other = f"{folder}/constraints.json"
    neuroshard(
        *("emit", path, "--format", "torchrec-constraints", "-o", other)
    )
    constraints = _loader.load_constraints(other)
    kernels = [constraints[n].compute_kernels for n in ("user", "item", "hot")]
    ok(
        kernels == [["fused_uvm_caching"], ["fused_uvm"], ["fused"]],
        "constraints have the kernels",
        str(kernels),
    )
    cache = constraints["user"].cache_params
    missed = [cache.stats.expected_miss_rate(x / 128) for x in (16, 32, 48)]
    ok(
        cache.load_factor == 0.25
        and cache.stats.expected_lookups == 320
        and all(abs(a - b) < 1e-6 for a, b in zip(missed, (0.75, 0.5, 0.25)))
        and cache.stats.expected_miss_rate(0) == 1
        and cache.stats.expected_miss_rate(1) == 0,
        "TorchRec's miss rates are those of the measured reach",
        str(missed),
    )
    ok(constraints["item"].cache_params is None, "only cached tables have any")


def check_loader(path, model):
    sharding = _loader.load_plan(path, model, 1)
    with open(path, encoding="utf-8") as file:
        made_for = json.load(file)
    topology = Topology(world_size=1, compute_device="cuda")
    again = dump(sharding, topology)
    ok(again["plan"] == made_for["plan"], "dump writes what was loaded")
    _placing.check(found_tables(model), again, topology)
    cache = made_for["plan"]["ebc"]["user"]["cache_params"]
    cache["algorithm"] = "LFU"
    try:
        _loader.build_plan(made_for, model)
        ok(False, "the loader refuses another algorithm")
    except ValueError as error:
        want = "user: cache_params with ['algorithm']"
        ok(str(error) == want, "the loader refuses another algorithm", error)


def found_tables(model, constraints=None, has_tiers=True):
    job = _model.Job("cuda", 1, 64, False, has_tiers=has_tiers)
    sharders = [EmbeddingBagCollectionSharder()]
    return _model.tables(model, sharders, constraints or {}, job)[0]


def check_tables(model):
    """Tiers of tables by the kernels of their constraints."""
    kernels = {
        "user": ["fused_uvm_caching"],
        "item": ["fused", "fused_uvm"],
        "hot": ["fused", "dense"],
    }
    constraints = {
        name: ParameterConstraints(compute_kernels=some)
        for name, some in kernels.items()
    }
    tiers = {
        table.name: (table.columns.get("tier"), "data_parallel" in table.types)
        for table in found_tables(model, constraints)
    }
    want = {
        "user": ("cached", False),
        "item": ("hbm|host", False),
        "hot": (None, True),
    }
    ok(tiers == want, "kernels of constraints are tiers", str(tiers))
    found = found_tables(model, constraints, has_tiers=False)
    ok(
        [table.name for table in found] == ["item", "hot"],
        "without host memory, a table that must be cached is left alone",
    )


def main():
    logging.disable(logging.WARNING)
    free = SimpleNamespace(total_memory=UNLIMITED)
    with tempfile.TemporaryDirectory() as folder, mock.patch(
        "torch.cuda.get_device_properties", return_value=free
    ), mock.patch("torch.cuda.memory_reserved", return_value=0):
        n = sum(check(seed, folder) for seed in range(N_PLANS))
        _, path = emitted(small_plan(), "sdd", folder)
        check_constraints(f"{folder}/plan.json", folder)
        os.environ["LOCAL_WORLD_SIZE"] = "1"
        model = Model(small_plan()["tables"])
        check_loader(path, model)
        check_tables(model)
    ok(n >= 4 * N_PLANS, f"{n} caches were compared")
    finish()


if __name__ == "__main__":
    main()
