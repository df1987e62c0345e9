# SPDX-License-Identifier: MIT
"""Trains a small DLRM on drawn clicks, the tables placed by TorchRec:

    torchrun --nproc_per_node 2 before.py

after.py is this script with one line changed."""
import os

import torch
import torch.distributed as dist
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.model_parallel import get_default_sharders
from torchrec.distributed.planner import EmbeddingShardingPlanner as Planner
from torchrec.distributed.planner import ParameterConstraints, Topology
from torchrec.models.dlrm import DLRM, DLRMTrain
from torchrec.optim import RowWiseAdagrad, apply_optimizer_in_backward
from torchrec.optim.keyed import KeyedOptimizerWrapper
from torchrec.optim.optimizers import in_backward_optimizer_filter

from synthetic import N_NUMBERS, TABLES, Clicks

DIM, BATCH, STEPS, LEARNING_RATE = 32, 512, 40, 0.05


def build(device):
    """The model, its tables sharded, and the optimizer of its dense part."""
    configs = [
        EmbeddingBagConfig(
            name=name,
            embedding_dim=DIM,
            num_embeddings=n_rows,
            feature_names=[name],
        )
        for name, (n_rows, _) in TABLES.items()
    ]
    tables = EmbeddingBagCollection(configs, device=torch.device("meta"))
    model = DLRMTrain(DLRM(tables, N_NUMBERS, [64, DIM], [64, 1], device))
    apply_optimizer_in_backward(
        RowWiseAdagrad,
        model.model.sparse_arch.parameters(),
        {"lr": LEARNING_RATE},
    )
    planner = Planner(
        topology=Topology(
            world_size=dist.get_world_size(),
            local_world_size=int(os.environ["LOCAL_WORLD_SIZE"]),
            compute_device=device.type,
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
    return model, KeyedOptimizerWrapper(
        dense, lambda parts: torch.optim.SGD(parts, lr=LEARNING_RATE)
    )


def train(model, optimizer, batches, device):
    losses = []
    for step, batch in zip(range(STEPS), batches):
        loss, _ = model(batch.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss := loss.detach(), dist.ReduceOp.SUM)
        losses.append(loss.item() / dist.get_world_size())
        if step % 10 == 9 and dist.get_rank() == 0:
            print(f"step {step + 1}: loss {losses[-1]:.4f}")
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
