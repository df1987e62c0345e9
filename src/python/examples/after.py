# SPDX-License-Identifier: MIT
"""Trains a small DLRM on synthetic clicks. TorchRec places the tables:

    torchrun --nproc_per_node 2 before.py

after.py is this script with one line changed."""
import itertools
import os
from functools import partial

import torch
import torch.distributed as dist
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.model_parallel import get_default_sharders
from neuroshard.torchrec import NeuroShardPlanner as Planner
from torchrec.distributed.planner import ParameterConstraints, Topology
from torchrec.models.dlrm import DLRM, DLRMTrain
from torchrec.optim import RowWiseAdagrad, apply_optimizer_in_backward
from torchrec.optim.keyed import KeyedOptimizerWrapper
from torchrec.optim.optimizers import in_backward_optimizer_filter

from synthetic import N_NUMBERS, TABLES, Clicks

DIM, BATCH, STEPS, LEARNING_RATE = 32, 512, 40, 0.05


def build(device):
    """Returns the model with sharded tables, and the optimizer of its dense
    part."""
    configs = [
        EmbeddingBagConfig(n_rows, DIM, name, feature_names=[name])
        for name, (n_rows, _) in TABLES.items()
    ]
    tables = EmbeddingBagCollection(configs, device=torch.device("meta"))
    model = DLRMTrain(DLRM(tables, N_NUMBERS, [64, DIM], [64, 1], device))
    sparse = model.model.sparse_arch.parameters()
    apply_optimizer_in_backward(RowWiseAdagrad, sparse, {"lr": LEARNING_RATE})
    n_local = int(os.environ["LOCAL_WORLD_SIZE"])
    planner = Planner(
        topology=Topology(
            dist.get_world_size(), device.type, local_world_size=n_local
        ),
        batch_size=BATCH,
        constraints={
            name: ParameterConstraints(pooling_factors=[float(n_lookups)])
            for name, (_, n_lookups) in TABLES.items()
        },
    )
    plan = planner.collective_plan(model, get_default_sharders())
    model = DistributedModelParallel(model, device=device, plan=plan)
    dense = dict(in_backward_optimizer_filter(model.named_parameters()))
    sgd = partial(torch.optim.SGD, lr=LEARNING_RATE)
    return model, KeyedOptimizerWrapper(dense, sgd)


def train(model, optimizer, batches, device):
    losses = []
    for batch in itertools.islice(batches, STEPS):
        loss, _ = model(batch.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss := loss.detach())
        losses.append(loss.item() / dist.get_world_size())
    if dist.get_rank() == 0:
        print("loss", *(f"{loss:.4f}" for loss in losses[9::10]))
    return losses


def main():
    has_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if has_gpu else "gloo")
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device(f"cuda:{local}" if has_gpu else "cpu")
    train(*build(device), Clicks(BATCH, dist.get_rank()), device)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
