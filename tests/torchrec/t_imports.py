# SPDX-License-Identifier: MIT
"""TorchRec's plans as input of neuroshard: plans of the stock planner, dumped
or printed, are priced as its estimator prices them. Constraints improve
TorchRec's own plans. Speaks TAP; variables as in t_planner.py.
"""
import json
import logging
import random
import tempfile

import torch
import torchrec.optim
from neuroshard.torchrec import dump
from torch import nn
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.storage_reservations import (
    FixedPercentageStorageReservation,
)
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection

from t_planner import BATCH, drawn, printed, read_list, shipped, write_list
from tap import finish, ok

COSTS_TOLERANCE = 1e-9
PRINTED_TOLERANCE = 1e-3  # lookups are printed with three decimals
TYPES = (
    "table_wise",
    "column_wise",
    "row_wise",
    "data_parallel",
    "table_row_wise",
    "table_column_wise",
    "grid_shard",
)


class Model(nn.Module):
    """A model with the tables of a list."""

    def __init__(self, rows):
        super().__init__()
        self.ebc = EmbeddingBagCollection(
            [
                EmbeddingBagConfig(
                    name=row["name"],
                    num_embeddings=int(row["num_embeddings"]),
                    embedding_dim=int(row["dim"]),
                    feature_names=[row["name"]],
                )
                for row in rows
            ],
            device=torch.device("meta"),
        )
        for parameter in self.ebc.parameters():
            parameter._optimizer_classes = [torchrec.optim.RowWiseAdagrad]


class Lines(logging.Handler):
    """Collects logged lines as text with the logger's prefix."""

    def __init__(self):
        super().__init__()
        self.text = ""

    def emit(self, record):
        self.text += f"INFO:{record.name}:{record.getMessage()}\n"


class Stock:
    """A plan of the stock planner, its printed form, and each rank's ms."""

    def __init__(self, path, n_ranks, n_local, constraints):
        lines = Lines()
        logger = logging.getLogger("torchrec.distributed.planner.stats")
        logger.addHandler(lines)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        self.topology = Topology(
            world_size=n_ranks,
            local_world_size=n_local,
            compute_device="cuda",
            hbm_cap=80 << 30,
        )
        planner = EmbeddingShardingPlanner(
            topology=self.topology,
            batch_size=BATCH // n_ranks,
            constraints=constraints,
            storage_reservation=FixedPercentageStorageReservation(0.15),
            debug=True,
        )
        self.plan = planner.plan(
            Model(read_list(path)), [EmbeddingBagCollectionSharder()]
        )
        logger.removeHandler(lines)
        self.text = lines.text
        self.ranks = [0.0] * n_ranks
        options = planner.get_selected_options()
        self.types = {option.sharding_type for option in options}
        for shard in (shard for o in options for shard in o.shards):
            self.ranks[shard.rank] += shard.perf.total


def pooling(path):
    return {
        row["name"]: ParameterConstraints(
            pooling_factors=[float(row["pooling_factor"])]
        )
        for row in read_list(path)
    }


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def priced(path, *args):
    """Returns the ms of each rank by neuroshard; [] if it fails."""
    text = printed(
        *("cost", path, "--cost", "torchrec", "--json"),
        *("--memory", "80GiB", "--reserve", "0", *args),
    )
    if text is None:
        return []
    return [device["total_ms"] for device in json.loads(text)["devices"]]


def farthest(got, want):
    if len(got) != len(want):
        return float("inf")
    return max(abs(x - y) / max(y, 1e-9) for x, y in zip(got, want))


def check_plan(work, name, path, shape, constraints):
    stock = Stock(path, *shape, constraints)
    dumped = write(
        f"{work}/dump.json", json.dumps(dump(stock.plan, stock.topology))
    )
    stats = write(f"{work}/stats.txt", stock.text)
    given = ("--tables", path, "--batch", str(BATCH))
    local = ("--gpus-per-host", str(shape[1]))
    off = farthest(priced(dumped, *given), stock.ranks)
    ok(
        off <= COSTS_TOLERANCE,
        f"{name} dumped: {off:.1e} from the estimator, "
        + ", ".join(sorted(stock.types)),
    )
    off = farthest(priced(stats, *given, *local), stock.ranks)
    ok(off <= COSTS_TOLERANCE, f"{name} printed, with its list: {off:.1e}")
    off = farthest(priced(stats, *local), stock.ranks)
    ok(off <= PRINTED_TOLERANCE, f"{name} printed, by itself: {off:.1e}")
    return stock


def check_types(work, draw):
    """Each sharding type alone, on two hosts of four."""
    path = drawn(work, "types", 10, draw, dims=(64, 128, 256))
    for kind in TYPES:
        constraints = {
            name: ParameterConstraints(
                sharding_types=[kind],
                compute_kernels=[
                    "dense" if kind == "data_parallel" else "fused"
                ],
                pooling_factors=constraint.pooling_factors,
                min_partition=32,
            )
            for name, constraint in pooling(path).items()
        }
        if kind == "data_parallel":
            rows = [
                {**row, "num_embeddings": 1 + int(row["num_embeddings"]) % 999}
                for row in read_list(path)
            ]
            path = write_list(work, "small", rows)
        check_plan(work, kind, path, (8, 4), constraints)


def with_constraints(work, path, shape):
    """TorchRec's plan with the constraints from our plan."""
    ours, constraints = work + "/ours.json", work + "/constraints.json"
    printed(
        *("plan", path, "--gpus", str(shape[0]), "--cost", "torchrec"),
        *("--gpus-per-host", str(shape[1]), "--memory", "80GiB"),
        *("--effort", "200000", "-o", ours),
    )
    printed(
        *("emit", ours, "--format", "torchrec-constraints"),
        *("-o", constraints),
    )
    with open(constraints, encoding="utf-8") as file:
        given = {
            name: ParameterConstraints(**constraint)
            for name, constraint in json.load(file).items()
        }
    with open(ours, encoding="utf-8") as file:
        total_ms = json.load(file)["total_ms"]
    return Stock(path, *shape, given), total_ms


def check_constraints(work, name, path, shape):
    """Plans without constraints, with lookups only, and with all that is
    emitted."""
    given = ("--tables", path, "--batch", str(BATCH))
    plain = Stock(path, *shape, None)
    dumped = write(
        work + "/plain.json", json.dumps(dump(plain.plan, plain.topology))
    )
    plain_ms = max(priced(dumped, *given), default=0.0)
    hot_ms = max(Stock(path, *shape, pooling(path)).ranks)
    stock, ours_ms = with_constraints(work, path, shape)
    better_ms = max(stock.ranks)
    ok(
        better_ms < hot_ms and better_ms < plain_ms,
        f"constraints for {name}: {plain_ms:.4g} ms by itself, {hot_ms:.4g} "
        f"with look-ups, {better_ms:.4g} with constraints, ours {ours_ms:.4g}",
    )


def main():
    draw = random.Random(20261123)
    for name in ("", "torchrec.distributed.planner.types"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as work:
        check_types(work, draw)
        path = drawn(work, "drawn", 40, draw)
        check_plan(work, "40 drawn tables", path, (4, 4), pooling(path))
        check_constraints(work, "40 drawn tables", path, (4, 4))
        for name in ("mlperf_dlrm_dcnv2_multihot", "criteo_kaggle_26"):
            check_constraints(work, name, shipped(name), (8, 8))
    finish()


if __name__ == "__main__":
    main()
