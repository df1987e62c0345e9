# SPDX-License-Identifier: MIT
"""Compares the memory of a dense part with PyTorch and DDP: weights,
gradients, DDP's buckets and optimizer state in bytes, and activations with the
tensors that autograd keeps for the backward pass. The models are TorchRec's DLRM and
DLRM-DCN, and layers of the same kind for the interactions that TorchRec does
not have. Speaks TAP; NEUROSHARD is the program, NEUROSHARD_DATA its data.
"""
import json
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torchrec.models.dlrm import DLRM, DLRM_DCN
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection

from tap import finish, neuroshard, ok

# No layer has as many values as BATCH, which tells activations from weights.
N_TABLES, DIM, BATCH = 26, 128, 500
TYPES = {"fp32": None, "bf16": torch.bfloat16}
OPTIMIZERS = {
    "sgd": lambda weights: torch.optim.SGD(weights, lr=0.01),
    "adagrad": lambda weights: torch.optim.Adagrad(weights, lr=0.01),
    "adam": lambda weights: torch.optim.Adam(weights, lr=0.01),
}


class TorchRecDense(nn.Module):
    """The dense part of one of TorchRec's models."""

    def __init__(self, of, bottom, top, **rest):
        super().__init__()
        tables = EmbeddingBagCollection(
            tables=[
                EmbeddingBagConfig(
                    name=f"t{i}",
                    embedding_dim=DIM,
                    num_embeddings=1,
                    feature_names=[f"f{i}"],
                )
                for i in range(N_TABLES)
            ],
            device=torch.device("meta"),
        )
        whole = of(
            embedding_bag_collection=tables,
            dense_in_features=bottom[0],
            dense_arch_layer_sizes=bottom[1:],
            over_arch_layer_sizes=top,
            **rest,
        )
        self.dense_arch = whole.dense_arch
        self.inter_arch = whole.inter_arch
        self.over_arch = whole.over_arch

    def forward(self, features, pooled):
        dense = self.dense_arch(features)
        return self.over_arch(self.inter_arch(dense, pooled))


class Joined(nn.Module):
    """Joins the vectors, or their means over `stride` values, and the dense
    features."""

    def __init__(self, n_features, top, stride=1):
        super().__init__()
        self.pool = nn.Identity()
        if stride > 1:
            self.pool = nn.AvgPool1d(stride, ceil_mode=True)
        widths = [n_features + -(-N_TABLES * DIM // stride), *top]
        layers = []
        for width, after in zip(widths, top):
            layers += [nn.Linear(width, after), nn.ReLU()]
        self.top = nn.Sequential(*layers[:-1])

    def forward(self, features, pooled):
        joined = self.pool(pooled.reshape(len(pooled), -1))
        return self.top(torch.cat((features, joined), 1))


# Number of dense features, and a function that makes the model.
MODELS = {
    "dlrm": (
        13,
        lambda: TorchRecDense(
            DLRM, [13, 512, 256, 128], [1024, 1024, 512, 256, 1]
        ),
    ),
    "dcnv2": (
        13,
        lambda: TorchRecDense(
            DLRM_DCN,
            [13, 512, 256, 128],
            [1024, 1024, 512, 256, 1],
            dcn_num_layers=3,
            dcn_low_rank_dim=512,
        ),
    ),
    "bottom:13-64-128;interaction:dcn:2x32;top:4096-1": (
        13,
        lambda: TorchRecDense(
            DLRM_DCN,
            [13, 64, 128],
            [4096, 1],
            dcn_num_layers=2,
            dcn_low_rank_dim=32,
        ),
    ),
    "bottom:10;interaction:cat;top:512-256-128-1": (
        10,
        lambda: Joined(10, [512, 256, 128, 1]),
    ),
    "bottom:25;interaction:pool:7;top:1024-512-256-128-1": (
        25,
        lambda: Joined(25, [1024, 512, 256, 128, 1], 7),
    ),
}


def n_bytes(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def planned(spec, optimizer):
    """Bytes of the dense part by item, as a plan for BATCH samples a GPU has
    them."""
    with tempfile.TemporaryDirectory() as folder:
        tables = os.path.join(folder, "tables.csv")
        with open(tables, "w", encoding="ascii") as file:
            file.write("name,num_embeddings,dim,pooling_factor\n")
            for i in range(N_TABLES):
                file.write(f"t{i},1000,{DIM},1\n")
        status, out, err = neuroshard(
            "plan", tables, "--gpus=2", f"--batch-per-gpu={BATCH}",
            f"--dense={spec}", f"--dense-optimizer={optimizer}",
            "--cost=roofline:h100", "--effort=10", "--output=-",
        )  # fmt: skip
        if status:
            raise RuntimeError(err)
        return json.loads(out)["step"]["dense_bytes"]


def kept(model, features, pooled, labels, dtype):
    """Bytes of the tensors that autograd keeps, without the weights, their
    copies and the inputs of the dense part."""
    shared = {t.untyped_storage().data_ptr() for t in model.parameters()}
    shapes = {tuple(t.shape) for t in model.parameters()}
    shapes |= {shape[::-1] for shape in shapes}
    storages = {}

    def pack(tensor):
        key = tensor.untyped_storage().data_ptr()
        is_copy = tuple(tensor.shape) in shapes and len(tensor) != BATCH
        if key not in shared and not is_copy and tensor.is_floating_point():
            storages[key] = tensor  # kept alive, so that no address is reused
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            logits = model(features, pooled).squeeze(-1)
        loss = nn.functional.binary_cross_entropy_with_logits(
            logits.float(), labels
        )
    loss.backward()
    return sum(t.untyped_storage().nbytes() for t in storages.values())


def test_bytes(spec, optimizer):
    n_features, build = MODELS[spec]
    torch.manual_seed(0)
    model = build()
    ddp = DistributedDataParallel(
        model, gradient_as_bucket_view=True, static_graph=True
    )
    update = OPTIMIZERS[optimizer](model.parameters())
    for _ in range(3):  # DDP makes its final buckets in the second step
        pooled = torch.randn(8, N_TABLES, DIM, requires_grad=True)
        ddp(torch.randn(8, n_features), pooled).sum().backward()
        update.step()
        update.zero_grad(set_to_none=False)
    want = planned(spec, optimizer)
    weights = n_bytes(model.parameters())
    gradients = n_bytes(p.grad for p in model.parameters())
    buckets = [
        n_bytes([bucket.buffer()])
        for bucket in ddp.reducer._get_zeros_like_grad_buckets()
    ]
    state = n_bytes(
        value
        for states in update.state.values()
        for name, value in states.items()
        if name != "step" and value is not None
    )
    have = {
        "weights": weights,
        "masters": 0,
        "gradients": gradients,
        "buckets": buckets,
        "optimizer": state,
    }
    for item, value in have.items():
        ok(
            want[item] == value,
            f"{spec}, {optimizer}: {item} {value}",
            f"a plan has {want[item]}",
        )


def test_activations(spec, dtype):
    n_features, build = MODELS[spec]
    torch.manual_seed(0)
    model = build()
    have = kept(
        model,
        torch.randn(BATCH, n_features),
        torch.randn(BATCH, N_TABLES, DIM, requires_grad=True),
        torch.ones(BATCH),
        TYPES[dtype],
    )
    want = planned(f"{spec};dtype:{dtype}", "adam")
    more = want["activations"] / have - 1
    ok(
        abs(more) <= 0.1,
        f"{spec}, {dtype}: activations {have}, {100 * more:+.1f} %",
        f"a plan has {want['activations']}",
    )
    if dtype != "fp32":
        weights = n_bytes(model.parameters())
        ok(
            want["masters"] == weights and want["weights"] == weights // 2,
            "fp32 masters, and copies of half their size",
        )


with tempfile.TemporaryDirectory() as place:
    dist.init_process_group(
        "gloo", init_method=f"file://{place}/store", rank=0, world_size=1
    )
    for text in MODELS:
        for rule in OPTIMIZERS:
            test_bytes(text, rule)
        for kind in TYPES:
            test_activations(text, kind)
    dist.destroy_process_group()
finish()
