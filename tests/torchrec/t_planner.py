# SPDX-License-Identifier: MIT
"""Compares neuroshard's model of TorchRec's planner with the planner itself:
every GPU's costs of emitted plans with its estimator (1e-12), and the plan of
`compare` for this planner with its own plan (0.1 %). Speaks TAP; NEUROSHARD is
the program, NEUROSHARD_DATA its data, NEUROSHARD_SHARED the reference data.
With TEST_SIZE=full the planner also runs on lists that take it minutes.
"""
import csv
import json
import logging
import os
import random
import tempfile

import torch
import torchrec.optim
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.enumerators import get_partition_by_type
from torchrec.distributed.planner.shard_estimators import (
    EmbeddingPerfEstimator,
)
from torchrec.distributed.planner.storage_reservations import (
    FixedPercentageStorageReservation,
)
from torchrec.distributed.planner.types import (
    ParameterConstraints,
    Shard,
    ShardingOption,
)
from torchrec.distributed.planner.utils import (
    build_sharder_data_map,
    sharder_name,
)
from torchrec.modules.embedding_configs import (
    EmbeddingBagConfig,
    EmbeddingConfig,
)
from torchrec.modules.embedding_modules import (
    EmbeddingBagCollection,
    EmbeddingCollection,
)

from tap import finish, neuroshard, ok

BATCH = 65536
MEMORY_GIB = 80
COSTS_TOLERANCE = 1e-12
PLANS_TOLERANCE = 1e-3
KINDS = (
    "table,column,row,grid,replicate",
    "table",
    "column",
    "row",
    "row,grid",
    "replicate",
)
ELEMENT_BYTES = {"fp32": torch.float32, "fp16": torch.float16}


def printed(*args):
    """Returns the output of neuroshard; if it fails, None, and prints the
    reason."""
    status, text, why = neuroshard(*args)
    if status:
        print("# " + why.strip())
    return None if status else text


# --- Lists -------------------------------------------------------------------


def read_list(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if line[0] != "#"))


def write_list(work, name, rows):
    path = f"{work}/{name}.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def shipped(name):
    return f"{os.environ['NEUROSHARD_DATA']}/tables/{name}.csv"


def drawn(work, name, n_tables, draw, dims=(8, 16, 32, 64, 128, 256, 512)):
    """Draws a list with 3 to 2 10^7 rows per table, uniform in the
    logarithm."""
    return write_list(
        work,
        name,
        [
            {
                "name": f"t{i}",
                "num_embeddings": int(10 ** draw.uniform(0.5, 7.3)),
                "dim": draw.choice(dims),
                "pooling_factor": round(draw.uniform(0.2, 30), 2),
            }
            for i in range(n_tables)
        ],
    )


def mixed(work, name, n_tables, draw):
    """Draws a list with sequences, half precision and less than one lookup per
    sample."""
    rows = read_list(drawn(work, name, n_tables, draw))
    for row in rows:
        row["precision"] = row["comm_precision"] = draw.choice(
            ("fp32", "fp16")
        )
        row["output"] = draw.choice(("pooled", "pooled", "sequence"))
        if row["output"] == "sequence":
            row["num_embeddings"] = 1000 + int(row["num_embeddings"])
            row["pooling_factor"] = draw.choice((1, 0.5))
            row["dim"] = 64
    return write_list(work, name, rows)


def few_rows(work, name, draw):
    """20 tables with fewer rows than 8 ranks, and 20 others."""
    rows = read_list(drawn(work, name, 40, draw))
    for row in rows[::2]:
        row["num_embeddings"] = draw.randint(2, 7)
    return write_list(work, name, rows)


def of_pool(work, name, draw):
    """100 tables of the reference pool that have lookups; None: no pool."""
    shared = os.environ.get("NEUROSHARD_SHARED", "../shared")
    path = f"{shared}/data/tables/dlrm_t856_calibrated.csv"
    if not os.path.exists(path):
        return None
    pool = [r for r in read_list(path) if float(r["pooling_factor"]) > 0]
    keys = ("name", "num_embeddings", "pooling_factor")
    return write_list(
        work,
        name,
        [
            {
                **{key: row[key] for key in keys},
                "dim": draw.choice((4, 8, 16, 32, 64, 128)),
            }
            for row in draw.sample(pool, 100)
        ],
    )


# --- The estimator -----------------------------------------------------------

MODULES = {
    "pooled": EmbeddingBagCollection(
        tables=[
            EmbeddingBagConfig(
                name="t", num_embeddings=4, embedding_dim=4, feature_names=["f"]
            )
        ],
        device=torch.device("meta"),
    ),
    "sequence": EmbeddingCollection(
        tables=[
            EmbeddingConfig(
                name="t", num_embeddings=4, embedding_dim=4, feature_names=["f"]
            )
        ],
        device=torch.device("meta"),
    ),
}
SHARDERS = build_sharder_data_map(
    {
        sharder_name(sharder.module_type): sharder
        for sharder in (
            EmbeddingBagCollectionSharder(),
            EmbeddingCollectionSharder(),
        )
    }
)


def sharding_option(table, entry, n_ranks):
    """A table of the emitted plan, including row blocks that are empty."""
    size = (table["num_embeddings"], table["dim"])
    shards = [
        Shard(size=s["shard_sizes"], offset=s["shard_offsets"], rank=rank)
        for s, rank in zip(entry.get("shards", ()), entry["ranks"])
    ] or [Shard(size=list(size), offset=[0, 0], rank=r) for r in range(n_ranks)]
    n_features = max(1, round(table["num_outputs"]))
    return ShardingOption(
        name=table["name"],
        tensor=torch.empty(
            size, dtype=ELEMENT_BYTES[table["precision"]], device="meta"
        ),
        module=("m", MODULES[table["output"]]),
        input_lengths=[table["pooling_factor"] / n_features] * n_features,
        batch_size=BATCH // n_ranks,
        sharding_type=entry["sharding_type"],
        partition_by=get_partition_by_type(entry["sharding_type"]),
        compute_kernel=entry["compute_kernel"],
        shards=shards,
        is_pooled=table["output"] == "pooled",
    )


def estimated(plan, emitted):
    """Compute, forward and backward communication of each rank, in ms."""
    cluster = plan["cluster"]
    n_ranks = cluster["gpus"]
    topology = Topology(
        world_size=n_ranks,
        local_world_size=cluster["gpus_per_host"],
        compute_device="cuda",
    )
    options = []
    for table in plan["tables"]:
        module = "ec" if table["output"] == "sequence" else "ebc"
        entry = emitted["plan"][module][table["name"]]
        options.append(sharding_option(table, entry, n_ranks))
    EmbeddingPerfEstimator(topology).estimate(options, SHARDERS)
    ranks = [[0.0, 0.0, 0.0] for _ in range(n_ranks)]
    for shard in (shard for option in options for shard in option.shards):
        perf, rank = shard.perf, ranks[shard.rank]
        rank[0] += perf.fwd_compute + perf.bwd_compute
        rank[1] += perf.fwd_comms
        rank[2] += perf.bwd_comms
    return ranks


def check_costs(work, name, path, n_ranks, n_local):
    """Compares costs with all kinds allowed, and with each kind alone that has
    a plan."""
    worst, kinds = 0.0, set()
    for allowed in KINDS:
        plan_path, emitted_path = work + "/plan.json", work + "/emitted.json"
        args = ("--gpus", str(n_ranks), "--gpus-per-host", str(n_local))
        if (
            printed(
                *("plan", path, *args, "--cost", "torchrec"),
                *("--shard", allowed, "--memory", "1TiB", "--effort", "1000"),
                *("-o", plan_path),
            )
            is None
            or printed(
                *("emit", plan_path, "--format", "torchrec"),
                *("--module", "ebc", "--sequence-module", "ec"),
                *("-o", emitted_path),
            )
            is None
        ):
            continue
        with open(plan_path, encoding="utf-8") as file:
            plan = json.load(file)
        with open(emitted_path, encoding="utf-8") as file:
            want = estimated(plan, json.load(file))
        kinds |= {shard["kind"] for shard in plan["shards"]}
        for device, rank in zip(plan["devices"], want):
            got = (
                device["compute_ms"],
                device["fwd_comm_ms"],
                device["bwd_comm_ms"],
            )
            for x, y in zip(got, rank):
                worst = max(worst, abs(x - y) / max(y, 1e-9))
    ok(
        worst <= COSTS_TOLERANCE and len(kinds) >= 3,
        f"costs of {name} x {n_ranks}: {worst:.1e} from the estimator, "
        + ", ".join(sorted(kinds)),
    )


# --- The planner -------------------------------------------------------------


def real_plan_ms(path, n_ranks, n_local):
    configs, constraints = [], {}
    for row in read_list(path):
        n_features = int(row.get("num_features") or 1)
        names = [f"{row['name']}_{i}" for i in range(n_features)]
        pooling = float(row["pooling_factor"]) / n_features
        configs.append(
            EmbeddingBagConfig(
                name=row["name"],
                num_embeddings=int(row["num_embeddings"]),
                embedding_dim=int(row["dim"]),
                feature_names=names,
            )
        )
        constraints[row["name"]] = ParameterConstraints(
            pooling_factors=[pooling] * n_features
        )
    module = EmbeddingBagCollection(configs, device=torch.device("meta"))
    for parameter in module.parameters():
        parameter._optimizer_classes = [torchrec.optim.RowWiseAdagrad]
    planner = EmbeddingShardingPlanner(
        topology=Topology(
            world_size=n_ranks,
            local_world_size=n_local,
            compute_device="cuda",
            hbm_cap=MEMORY_GIB << 30,
        ),
        batch_size=BATCH // n_ranks,
        constraints=constraints,
        storage_reservation=FixedPercentageStorageReservation(0.15),
        stats=[],
        debug=False,
    )
    planner.plan(module, [EmbeddingBagCollectionSharder()])
    ranks = [0.0] * n_ranks
    for option in planner.get_selected_options():
        for shard in option.shards:
            ranks[shard.rank] += shard.perf.total
    return max(ranks)


def check_planner(name, path, n_ranks, n_local):
    text = printed(
        *("compare", path, "--cost", "torchrec", "--json"),
        *("--gpus", str(n_ranks), "--gpus-per-host", str(n_local)),
        *("--memory", f"{MEMORY_GIB}GiB", "--reserve", "15%"),
        *("--effort", "1000", "--rival-limit", "0"),
    )
    want = real_plan_ms(path, n_ranks, n_local)
    got = 0.0
    for planner in json.loads(text)["planners"] if text else ():
        if planner["planner"] == "torchrec":
            got = planner["total_ms"]
    ok(
        abs(got / want - 1) <= PLANS_TOLERANCE,
        f"the planner on {name} x {n_ranks}: {want:.6g} ms, "
        f"as compare has it {got:.6g} ms, off by {abs(got / want - 1):.1e}",
    )


def check(work):
    draw = random.Random(1)
    kaggle, tiny = shipped("criteo_kaggle_26"), shipped(
        "nvidia_synthetic_tiny_v3"
    )
    dcn = shipped("mlperf_dlrm_dcnv2_multihot")
    drawn_40 = drawn(work, "drawn_40", 40, draw)
    drawn_60 = drawn(work, "drawn_60", 60, draw)
    check_costs(work, "criteo_kaggle", kaggle, 8, 8)
    check_costs(work, "dcnv2", dcn, 16, 8)
    check_costs(work, "nvidia_tiny", tiny, 8, 4)
    check_costs(work, "drawn_60", drawn_60, 32, 8)
    check_costs(work, "mixed", mixed(work, "mixed", 40, draw), 16, 4)
    check_costs(work, "few_rows", few_rows(work, "few_rows", draw), 8, 4)
    check_planner("criteo_kaggle", kaggle, 8, 8)
    check_planner("dcnv2", dcn, 8, 8)
    check_planner("drawn_40", drawn_40, 4, 4)
    if os.environ.get("TEST_SIZE") != "full":
        return
    check_planner("nvidia_tiny", tiny, 8, 8)
    check_planner("drawn_60", drawn_60, 16, 8)
    check_planner("nvidia_small", shipped("nvidia_synthetic_small_v3"), 8, 8)
    pool = of_pool(work, "pool_100", draw)
    if pool:
        check_planner("100 of dlrm_t856", pool, 8, 8)
    else:
        print("# no reference data: the pool was left out")


def main():
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as work:
        check(work)
    finish()


if __name__ == "__main__":
    main()
