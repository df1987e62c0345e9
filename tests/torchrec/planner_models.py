# SPDX-License-Identifier: MIT
"""Models, topologies and planners shared by tests of NeuroShardPlanner."""
import csv
import logging
import os

import torch
import torchrec.optim
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import Topology
from torchrec.distributed.planner.proposers import GreedyProposer
from torchrec.distributed.planner.storage_reservations import (
    FixedPercentageStorageReservation,
)
from torchrec.distributed.planner.types import ParameterConstraints

from neuroshard import _model
from neuroshard.torchrec import NeuroShardPlanner
from tap import ok

GIB = 1 << 30
MAX_ROWS = 100000
QUICK = {"effort": 2000, "seed": 3}
JOB = _model.Job("cuda", 4, 512, False)
SHARDERS = [EmbeddingBagCollectionSharder(), EmbeddingCollectionSharder()]


class Log(logging.Handler):
    """Collects lines of the logger while it is entered."""

    def __init__(self):
        super().__init__()
        self.lines, self.levels = [], []

    def emit(self, record):
        self.lines.append(record.getMessage())
        self.levels.append(record.levelname)

    def __enter__(self):
        logging.getLogger("neuroshard").addHandler(self)
        return self

    def __exit__(self, *_):
        logging.getLogger("neuroshard").removeHandler(self)


def bags(name, rows, dim, features=("f",), **more):
    return EmbeddingBagConfig(
        name=name,
        num_embeddings=rows,
        embedding_dim=dim,
        feature_names=[f"{name}_{feature}" for feature in features],
        **more,
    )


def collection(*configs):
    return EmbeddingBagCollection(list(configs), device=torch.device("meta"))


def shipped(name):
    """Returns a shipped list as a collection on the meta device, and its
    constraints."""
    path = f"{os.environ['NEUROSHARD_DATA']}/tables/{name}.csv"
    configs, constraints = [], {}
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if line[0] != "#"):
            n = int(row.get("num_features") or row.get("num_outputs") or 1)
            rows = min(MAX_ROWS, int(row["num_embeddings"]))
            dim = int(row["dim"])
            configs.append(bags(row["name"], rows, dim, range(n)))
            constraints[row["name"]] = ParameterConstraints(
                pooling_factors=[float(row["pooling_factor"]) / n] * n
            )
    model = collection(*configs)
    for parameter in model.parameters():
        parameter._optimizer_classes = [torchrec.optim.RowWiseAdagrad]
    return model, constraints


def topology(n_ranks=4, **more):
    more = {"compute_device": "cuda", "hbm_cap": 8 * GIB, **more}
    return Topology(world_size=n_ranks, **more)


def stock_arguments(constraints=None, **more):
    return {
        "topology": topology(),
        "batch_size": 512,
        "constraints": constraints,
        "storage_reservation": FixedPercentageStorageReservation(0.1),
        "proposer": GreedyProposer(),
        "stats": [],
        "debug": False,
        **more,
    }


def planned(model, sharders=None, constraints=None, arguments=(), **more):
    """Returns tables by name, and the planner. arguments: for TorchRec's
    planner."""
    planner = NeuroShardPlanner(
        **stock_arguments(constraints, **dict(arguments)),
        **{**QUICK, **more},
        fallback=False,
    )
    planner.plan(model, sharders or SHARDERS)
    tables = planner.neuroshard_plan.json["tables"]
    return {table["name"]: table for table in tables}, planner


def has(table, name, **want):
    got = {key: table.get(key) for key in want}
    ok(got == want, name, f"{got}, not {want}")


def same_ms(got, want, name):
    off = max(abs(x - y) / y for x, y in zip(got, want))
    ok(off <= 1e-9, f"{name}, {want} ms: off by {off:.0e}", str(got))
