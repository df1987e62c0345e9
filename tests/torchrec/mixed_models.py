# SPDX-License-Identifier: MIT
"""Random models with tables that NeuroShardPlanner places beside tables that it
leaves where TorchRec's own planner puts them, and the body of each rank of a
job that trains them. All outputs and weights are compared with the unsharded
model, which gets the samples of all ranks."""
import copy
import os
import random

import torch
import torch.distributed as dist
import torchrec.optim
from torch import nn
from torchrec import (
    EmbeddingBagCollection,
    EmbeddingBagConfig,
    EmbeddingCollection,
    EmbeddingConfig,
    KeyedJaggedTensor,
)
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.fp_embeddingbag import (
    FeatureProcessedEmbeddingBagCollectionSharder,
)
from torchrec.distributed.fused_embeddingbag import (
    FusedEmbeddingBagCollectionSharder,
)
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.modules.feature_processor_ import (
    PositionWeightedModuleCollection,
)
from torchrec.modules.fp_embedding_modules import (
    FeatureProcessedEmbeddingBagCollection,
)
from torchrec.modules.fused_embedding_modules import (
    FusedEmbeddingBagCollection,
)

from neuroshard.torchrec import NeuroShardPlanner

# A large epsilon, so that Adagrad does not enlarge rounding errors of gradients
# near 0.
BATCH, STEPS, MAX_IDS, RATE, EPSILON = 5, 10, 3, 0.1, 1e-2
SHARDERS = (
    EmbeddingBagCollectionSharder,
    EmbeddingCollectionSharder,
    FeatureProcessedEmbeddingBagCollectionSharder,
    FusedEmbeddingBagCollectionSharder,
)
OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"lr": RATE}),
    "adagrad": (torch.optim.Adagrad, {"lr": RATE, "eps": EPSILON}),
    "rowwise": (torchrec.optim.RowWiseAdagrad, {"lr": RATE, "eps": EPSILON}),
}


class Unsharded(EmbeddingBagCollection):
    """A collection that no sharder asks for."""


class Model(nn.Module):
    """The modules of a drawn job: {name: (kind, tables)}."""

    def __init__(self, parts):
        super().__init__()
        self.parts = parts
        for name, (kind, tables) in parts.items():
            setattr(self, name, made(kind, tables))
        self.over = nn.Linear(3, 1)

    def forward(self, features):
        found = {}
        for name, (kind, _) in self.parts.items():
            part = getattr(self, name)
            if kind == "sequence":
                for key, jagged in part(features[name]).items():
                    found[f"{name}.{key}"] = jagged.values()
            else:
                for key, rows in part(features[name]).to_dict().items():
                    found[f"{name}.{key}"] = rows
        return found, self.over(features["dense"])


def made(kind, tables):
    """Returns a module of this kind with the drawn tables."""
    config = EmbeddingConfig if kind == "sequence" else EmbeddingBagConfig
    configs = [
        config(
            name=table["name"],
            num_embeddings=table["rows"],
            embedding_dim=table["dim"],
            feature_names=[f"{table['name']}_f"],
        )
        for table in tables
    ]
    if kind == "sequence":
        return EmbeddingCollection(configs)
    if kind == "fused":
        return FusedEmbeddingBagCollection(
            configs, torch.optim.SGD, {"lr": RATE}
        )
    if kind == "unsharded":
        return Unsharded(configs)
    weighted = kind in ("weighted", "processed")
    bags = EmbeddingBagCollection(configs, is_weighted=weighted)
    if kind != "processed":
        return bags
    lengths = {f"{table['name']}_f": MAX_IDS for table in tables}
    return FeatureProcessedEmbeddingBagCollection(
        bags, PositionWeightedModuleCollection(lengths)
    )


# --- drawing ----------------------------------------------------------------


def drawn(seed, n_ranks):
    """Returns the parts of a model, and the constraints of its tables."""
    rng = random.Random(f"{seed} {n_ranks}")
    kinds = ["bags"] + rng.sample(
        ["bags", "weighted", "sequence", "processed", "fused", "unsharded"],
        rng.randint(1, 3),
    )
    parts, constraints = {}, {}
    for i, kind in enumerate(kinds):
        tables = [
            drawn_table(rng, f"t{i}{k}", kind, constraints)
            for k in range(rng.randint(1, 4))
        ]
        parts[f"part{i}"] = (kind, tables)
    return parts, constraints


def drawn_table(rng, name, kind, constraints):
    """Draws a table. A third of the pooled ones ask for table_column_wise,
    which our planner does not place."""
    optimizer = rng.choice(list(OPTIMIZERS))
    table = {
        "name": name,
        "rows": rng.randint(20, 200),
        "dim": 16 if kind == "sequence" else 4 * rng.randint(1, 9),
        "optimizer": "sgd" if kind in ("fused", "unsharded") else optimizer,
    }
    given = {"pooling_factors": [1.5]}
    if kind in ("bags", "weighted"):
        types = rng.choice((["table_wise"], ["table_wise", "column_wise"]))
        if table["optimizer"] == "sgd":
            types = rng.choice((types, ["data_parallel"]))
        given["sharding_types"] = types
        if rng.random() < 1 / 3:
            table.update(dim=16, optimizer=rng.choice(("sgd", "adagrad")))
            given.update(sharding_types=["table_column_wise"], min_partition=8)
    elif kind == "sequence":
        given["sharding_types"] = ["table_wise", "row_wise"]
    elif kind in ("processed", "fused"):
        given["sharding_types"] = ["table_wise"]
    if kind != "unsharded":
        constraints[name] = ParameterConstraints(**given)
    return table


def is_left(kind, constraint):
    """Whether our planner leaves the table to TorchRec's."""
    return kind in ("processed", "fused") or (
        kind != "unsharded"
        and constraint.sharding_types == ["table_column_wise"]
    )


def batch_of(parts, step, rank):
    """Ids of a rank's samples, {part: KeyedJaggedTensor}, and dense inputs."""
    rng = torch.Generator().manual_seed(1009 * step + rank)
    features = {"dense": torch.rand([BATCH, 3], generator=rng)}
    for name, (kind, tables) in parts.items():
        lengths = torch.randint(
            0, MAX_IDS + 1, [len(tables), BATCH], generator=rng
        )
        values = [
            torch.randint(0, table["rows"], [int(n.sum())], generator=rng)
            for table, n in zip(tables, lengths)
        ]
        n_ids = int(lengths.sum())
        weights = torch.rand([n_ids], generator=rng)
        features[name] = KeyedJaggedTensor(
            keys=[f"{table['name']}_f" for table in tables],
            values=torch.cat(values),
            lengths=lengths.flatten().int(),
            weights=weights if kind in ("weighted", "processed") else None,
        )
    return features


# --- training ---------------------------------------------------------------


def loss_of(found):
    """A loss with a different gradient for each sample and column."""
    outputs, dense = found
    total = dense.square().sum()
    for vectors in outputs.values():
        factors = torch.arange(vectors.numel()).remainder(11) / 7 - 1
        total = total + (vectors * factors.view_as(vectors)).sum()
    return total


def table_of(parameter_name, tables):
    """Name of the table of a parameter, or ''."""
    return next((t for t in tables if f".{t}." in parameter_name), "")


class Reference:
    """The unsharded model, trained by the optimizer of each table."""

    def __init__(self, model, parts, widths):
        self.model, self._widths = model, widths
        self._tables = {t["name"]: t for _, ts in parts.values() for t in ts}
        self._state = {}

    def step(self, batches):
        """Trains on one batch per rank; gradients are averaged over ranks."""
        self.model.zero_grad()
        sum(loss_of(self.model(b)) / len(batches) for b in batches).backward()
        with torch.no_grad():
            for name, weights in self.model.named_parameters():
                table = self._tables.get(table_of(name, self._tables))
                self._update(weights, table or {"optimizer": "sgd"})

    def _update(self, weights, table):
        if table["optimizer"] == "sgd":
            weights -= RATE * weights.grad
            return
        width = self._widths.get(table["name"], weights.shape[1])
        for begin in range(0, weights.shape[1], width):
            grad = weights.grad[:, begin : begin + width]
            square = grad**2
            if table["optimizer"] == "rowwise":
                square = square.mean(1, keepdim=True)
            key = table["name"], begin
            self._state[key] = self._state.get(key, 0) + square
            weights[:, begin : begin + width] -= (
                RATE * grad / (self._state[key].sqrt() + EPSILON)
            )


def widths_of(plan):
    """Width of the pieces of each table that is cut by columns."""
    return {
        name: parameter.sharding_spec.shards[0].shard_sizes[1]
        for part in plan.plan.values()
        for name, parameter in part.items()
        if parameter.sharding_spec is not None
    }


def planner_arguments(n_ranks, constraints):
    return {
        "topology": Topology(
            world_size=n_ranks,
            local_world_size=n_ranks,
            compute_device="cpu",
            ddr_cap=1 << 30,
        ),
        "batch_size": BATCH,
        "constraints": constraints,
        "stats": [],
        "debug": False,
    }


def check_left(parts, constraints, plan, stock):
    """Raises if a table that is left to TorchRec's planner is elsewhere than
    that puts it. Returns the number of such tables."""
    n = 0
    for name, (kind, tables) in parts.items():
        for table in tables:
            if not is_left(kind, constraints.get(table["name"])):
                continue
            n += 1
            if plan.plan[name][table["name"]] != stock.plan[name][table["name"]]:
                raise RuntimeError(f"{table['name']} is not where stock puts it")
    return n


def planned(model, parts, constraints, n_ranks):
    """Returns the plan and the number of tables left to TorchRec's planner."""
    sharders = [kind() for kind in SHARDERS]
    arguments = planner_arguments(n_ranks, constraints)
    stock = EmbeddingShardingPlanner(**arguments).collective_plan(
        model, sharders
    )
    planner = NeuroShardPlanner(
        **arguments, effort=500, seed=1, fallback=False, no_rivals=True
    )
    left = {
        t["name"]
        for kind, ts in parts.values()
        for t in ts
        if is_left(kind, constraints.get(t["name"]))
    }
    all_left = left == set(constraints)
    plan = stock if all_left else planner.collective_plan(model, sharders)
    return plan, check_left(parts, constraints, plan, stock)


def train(seed, rank, n_ranks):
    """Trains a model. Returns the largest difference of an output and of a
    weight, and the number of tables left to TorchRec's planner."""
    torch.manual_seed(seed)
    parts, constraints = drawn(seed, n_ranks)
    model = Model(parts)
    tables = {t["name"]: t for _, ts in parts.values() for t in ts}
    for name, weights in model.named_parameters():
        table = tables.get(table_of(name, tables))
        if table and table["name"] in constraints:
            optimizer, options = OPTIMIZERS[table["optimizer"]]
            weights._optimizer_classes = [optimizer]
            weights._optimizer_kwargs = [options]
    whole = copy.deepcopy(model)
    plan, n_left = planned(model, parts, constraints, n_ranks)
    reference = Reference(
        Model({n: plain(part) for n, part in parts.items()}),
        *(parts, widths_of(plan)),
    )
    sharded = DistributedModelParallel(
        module=model,
        device=torch.device("cpu"),
        plan=plan,
        sharders=[kind() for kind in SHARDERS],
    )
    copy_weights(sharded, whole)
    reference.model.load_state_dict(renamed(whole, reference.model))
    fused = set(dict(sharded.fused_optimizer.params))
    rest = [p for n, p in sharded.named_parameters() if n not in fused]
    dense = torch.optim.SGD(rest, RATE)
    outputs = [0.0]
    for step in range(STEPS):
        batches = [batch_of(parts, step, r) for r in range(n_ranks)]
        want, _ = reference.model(batches[rank])
        found = sharded(batches[rank])
        outputs += [difference(want[n], found[0][n]) for n in want]
        dense.zero_grad()
        loss_of(found).backward()
        dense.step()
        reference.step(batches)
    last = renamed(reference.model, reference.model)
    weights = [difference(*pair) for pair in pieces(sharded, last)]
    return max(outputs), max(weights + [0.0]), n_left


def plain(part):
    """A module that trains as this one, without an optimizer of its own."""
    kind, tables = part
    return ("bags" if kind == "fused" else kind), tables


def renamed(model, like):
    """Weights of `model` by the names of `like`; the last parts of a name are
    the same in all kinds of modules."""
    found = {short(name): w for name, w in model.state_dict().items()}
    return {name: found[short(name)] for name in like.state_dict()}


def short(name):
    """Part, table and member of a weight, whatever modules are between."""
    words = name.split(".")
    return ".".join([words[0], *words[-2:]])


def pieces(sharded, whole):
    """Yields pairs of a piece on this rank and the same part of the whole."""
    by_name = {short(name): w for name, w in whole.items()}
    for name, here in sharded.state_dict().items():
        there = by_name[short(name)]
        if not hasattr(here, "local_shards"):
            yield here, there
            continue
        for piece in here.local_shards():
            row, col = piece.metadata.shard_offsets
            rows, cols = piece.metadata.shard_sizes
            yield piece.tensor, there[row : row + rows, col : col + cols]


def copy_weights(sharded, whole):
    with torch.no_grad():
        for here, there in pieces(sharded, whole.state_dict()):
            here.detach().copy_(there)


def difference(a, b):
    if a.shape != b.shape:
        raise ValueError(f"shapes {list(a.shape)} and {list(b.shape)}")
    return (a - b).abs().max().item() if a.numel() else 0.0


def run(rank, n_ranks, work, seeds):
    """Body of a rank: writes one line per model to work/results."""
    from ranks import start
    from t_plans import Job

    start(rank, Job(n_ranks, n_ranks), work)
    for seed in seeds:
        results = [None] * n_ranks
        try:
            result = train(seed, rank, n_ranks)
        except Exception as error:
            error.add_note(f"model {seed} on {n_ranks} ranks")
            raise
        dist.all_gather_object(results, result)
        if rank == 0:
            with open(os.path.join(work, "results"), "a", encoding="utf-8") as f:
                worst = [max(r[i] for r in results) for i in range(3)]
                print(seed, *worst, file=f)
    dist.destroy_process_group()
