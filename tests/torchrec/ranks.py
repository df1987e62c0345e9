# SPDX-License-Identifier: MIT
"""Body of each rank of a job with an emitted plan, or with a plan that
NeuroShardPlanner makes in the job. The rank loads the plan with the emitted
loader and trains two steps in TorchRec's DistributedModelParallel. All outputs
and updated weights are compared with an unsharded collection that gets the
samples of all ranks."""
import importlib.util
import json
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from fbgemm_gpu.split_embedding_configs import EmbOptimType
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
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.types import ParameterConstraints

from neuroshard.torchrec import (
    NeuroShardPlanLoader,
    NeuroShardPlanner,
    dump,
)

BATCH = 6  # samples per rank
STEPS = 2
LEARNING_RATE = 0.5
EPSILON = 1e-8  # TorchRec's default for row-wise Adagrad
OPTIMIZERS = {
    "sgd": EmbOptimType.EXACT_SGD,
    "rowwise_adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD,
    "adagrad": EmbOptimType.EXACT_ADAGRAD,
}


def _names(table):
    """Names of a table's features, one per output of a sample."""
    n = round(table.get("num_outputs", 1))
    return [f"{table['name']}_{i}" for i in range(n)]


def _config(kind, table):
    return kind(
        name=table["name"],
        embedding_dim=table["dim"],
        num_embeddings=table["num_embeddings"],
        feature_names=_names(table),
    )


class Model(torch.nn.Module):
    """The tables of a plan: pooled ones in ebc, sequences in ec."""

    def __init__(self, tables):
        super().__init__()
        pooled = [t for t in tables if t["output"] == "pooled"]
        sequences = [t for t in tables if t["output"] == "sequence"]
        if pooled:
            self.ebc = EmbeddingBagCollection(
                [_config(EmbeddingBagConfig, t) for t in pooled]
            )
        if sequences:
            self.ec = EmbeddingCollection(
                [_config(EmbeddingConfig, t) for t in sequences]
            )

    def forward(self, features):
        """Returns {feature: its vectors}; the plan determines the order of the
        keys."""
        found = {}
        if hasattr(self, "ebc"):
            found.update(self.ebc(features).to_dict())
        if hasattr(self, "ec"):
            for name, jagged in self.ec(features).items():
                found[name] = jagged.values()
        return found


def _table(name):
    """Table of a parameter named ....TABLE.weight."""
    return name.split(".")[-2]


def _weights(model):
    """Returns {table: a tensor, or a sharded one}."""
    return {_table(name): w for name, w in model.state_dict().items()}


def _features(tables, step, rank):
    """Lookups of the rank's samples: 0 to 3 for each feature."""
    rng = torch.Generator().manual_seed(1009 * step + rank)
    keys = {name: t["num_embeddings"] for t in tables for name in _names(t)}
    lengths = torch.randint(0, 4, [len(keys), BATCH], generator=rng)
    values = [
        torch.randint(0, n_rows, [int(n.sum())], generator=rng)
        for n_rows, n in zip(keys.values(), lengths)
    ]
    return KeyedJaggedTensor(
        keys=list(keys),
        values=torch.cat(values),
        lengths=lengths.flatten().int(),
    )


def _loss(found):
    """A loss with a different gradient for each sample and column."""
    total = torch.zeros(())
    for vectors in found.values():
        factors = torch.arange(vectors.numel()).remainder(11) / 7 - 1
        total = total + (vectors * factors.view_as(vectors)).sum()
    return total


class Reference:
    """The unsharded tables, trained by the rules for TorchRec in
    neuroshard-emit(1). Row-wise Adagrad has a mean for each column shard; the
    dense optimizer, here SGD, updates replicas."""

    def __init__(self, tables, entries, optimizer):
        self.model = Model(tables)
        self._entries = entries
        self._optimizer = optimizer
        self._moments = {}  # (table, first column): [rows]

    def step(self, batches):
        """Trains on one batch per rank; gradients are averaged over ranks."""
        self.model.zero_grad()
        for batch in batches:
            (_loss(self.model(batch)) / len(batches)).backward()
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                self._update(_table(name), parameter)

    def _update(self, table, parameter):
        shards = self._entries[table].get("shards")
        if self._optimizer == "sgd" or not shards:
            parameter -= LEARNING_RATE * parameter.grad
            return
        for begin, width in {
            (s["shard_offsets"][1], s["shard_sizes"][1]) for s in shards
        }:
            grad = parameter.grad[:, begin : begin + width]
            moment = self._moments.get((table, begin), 0) + (grad**2).mean(1)
            self._moments[table, begin] = moment
            step = LEARNING_RATE / (moment.sqrt() + EPSILON)
            parameter[:, begin : begin + width] -= step[:, None] * grad


def _pieces(weights, reference):
    """Yields pairs of a shard on this rank and the same part of the
    reference."""
    for name, here in weights.items():
        whole = reference[name]
        if not hasattr(here, "local_shards"):
            yield here, whole
            continue
        for piece in here.local_shards():
            row, col = piece.metadata.shard_offsets
            rows, cols = piece.metadata.shard_sizes
            yield piece.tensor, whole[row : row + rows, col : col + cols]


def _check_parameters(model, weights):
    """Checks that a table's parameter holds exactly its shards on this
    rank."""
    for name, parameter in model.named_parameters():
        here = weights[_table(name)]
        if hasattr(here, "local_shards"):
            n = sum(s.tensor.numel() for s in here.local_shards())
        else:
            n = here.numel()
        if parameter.numel() != n:
            raise ValueError(f"{name}: {parameter.numel()} weights, not {n}")


def _difference(a, b):
    if a.shape != b.shape:
        raise ValueError(f"shapes {list(a.shape)} and {list(b.shape)}")
    return (a - b).abs().max().item() if a.numel() else 0.0


def sharders(optimizer):
    fused = {
        "optimizer": OPTIMIZERS[optimizer],
        "learning_rate": LEARNING_RATE,
    }
    return [
        EmbeddingBagCollectionSharder(fused_params=fused),
        EmbeddingCollectionSharder(fused_params=fused),
    ]


def shard(model, plan, optimizer):
    return DistributedModelParallel(
        module=model,
        device=torch.device("cpu"),
        plan=plan,
        sharders=sharders(optimizer),
    )


def _train(case, model, plan, entries, rank, n_ranks):
    """Returns the largest differences of an output and of a weight."""
    tables, optimizer = case["tables"], case["optimizer"]
    reference = Reference(tables, entries, optimizer)
    sharded = shard(model, plan, optimizer)
    weights = _weights(sharded)
    replicas = [
        p
        for name, p in sharded.named_parameters()
        if "shards" not in entries[_table(name)]
    ]
    dense = torch.optim.SGD(replicas, LEARNING_RATE) if replicas else None
    for here, there in _pieces(weights, _weights(reference.model)):
        here.detach().copy_(there)
    _check_parameters(sharded, weights)
    outputs = [0.0]
    for step in range(STEPS):
        batches = [_features(tables, step, r) for r in range(n_ranks)]
        want, found = reference.model(batches[rank]), sharded(batches[rank])
        outputs += [_difference(want[name], found[name]) for name in want]
        sharded.zero_grad()
        _loss(found).backward()
        if dense:
            dense.step()
        reference.step(batches)
    sharded.fused_optimizer.state_dict()
    pieces = _pieces(weights, _weights(reference.model))
    return max(outputs), max([_difference(*pair) for pair in pieces] + [0.0])


def _loader(path):
    spec = importlib.util.spec_from_file_location("loader", path)
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    return loader


def _inputs(case, n_ranks):
    return {
        "topology": Topology(
            world_size=n_ranks,
            local_world_size=int(os.environ["LOCAL_WORLD_SIZE"]),
            compute_device="cpu",
            ddr_cap=1 << 30,
        ),
        "batch_size": BATCH,
        "constraints": {
            name: ParameterConstraints(**constraint)
            for name, constraint in case.get("constraints", {}).items()
        },
        "stats": [],
        "debug": False,
    }


def _planned(case, model, n_ranks):
    """Returns the plan that the job makes itself."""
    os.environ["NEUROSHARD"] = case.get("program", os.environ["NEUROSHARD"])
    planner = NeuroShardPlanner(**_inputs(case, n_ranks), **case["planner"])
    plan = planner.collective_plan(model, sharders(case["optimizer"]))
    is_own = planner.neuroshard_plan is not None
    if dist.get_rank() == 0 and is_own != ("program" not in case):
        raise RuntimeError("this is the plan of the other planner")
    return plan


def _offered(case, model, n_ranks):
    """Loads the case's plan into the stock planner, which must return the same
    plan."""
    some = sharders(case["optimizer"])
    planner = EmbeddingShardingPlanner(**_inputs(case, n_ranks))
    planner.plan_loader = NeuroShardPlanLoader(
        planner, model, some, case["offered"]
    )
    plan = planner.collective_plan(model, some)
    if dump(plan)["plan"] != case["offered"]["plan"]:
        raise RuntimeError("the stock planner has another plan")
    return plan


def _plan(case, loader, model, n_ranks):
    if "offered" in case:
        return _offered(case, model, n_ranks)
    if "planner" in case:
        return _planned(case, model, n_ranks)
    return loader.load_plan(case["emitted"], model, n_ranks, "cpu")


def _run_case(case, loader, rank, n_ranks):
    torch.manual_seed(1)
    model = Model(case["tables"])
    try:
        plan = _plan(case, loader, model, n_ranks)
        if "refusal" in case:
            return "not refused"
    except ValueError as error:
        if "refusal" not in case:
            raise
        return str(error)
    modules = dump(plan)["plan"].values()
    entries = {t: e for part in modules for t, e in part.items()}
    return _train(case, model, plan, entries, rank, n_ranks)


def meet(rank, n_ranks, n_local, work):
    """Joins the other ranks, n_local on each host."""
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(n_ranks),
        LOCAL_RANK=str(rank % n_local),
        LOCAL_WORLD_SIZE=str(n_local),
        GLOO_SOCKET_IFNAME="lo",
    )
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{work}/meeting",
        rank=rank,
        world_size=n_ranks,
        timeout=timedelta(seconds=60),
    )


def start(rank, job, work):
    """Joins the other ranks; the output of the rank goes to a file."""
    os.environ["TORCHREC_RESOLVED_POD_SIZE"] = str(job.pod_size)
    log = os.open(f"{work}/log-{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)
    meet(rank, job.n_ranks, job.n_local, work)


def run(rank, job, work, cases):
    """Writes one line of JSON per case to work/results: the result of each
    rank, or one error. After an error the next exchange of the other ranks
    fails."""
    start(rank, job, work)
    path = f"{work}/loader.py"
    loader = _loader(path) if os.path.exists(path) else None
    for case in cases:
        results = [None] * job.n_ranks
        result = _run_case(case, loader, rank, job.n_ranks)
        dist.all_gather_object(results, result)
        if rank == 0:
            with open(f"{work}/results", "a", encoding="utf-8") as file:
                print(json.dumps(results), file=file)
    dist.destroy_process_group()
