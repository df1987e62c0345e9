# SPDX-License-Identifier: MIT
"""Compares the memory of plans with the tensors of FBGEMM's training operator,
for each optimizer and precision, for whole tables, columns and rows. The
operator is built as for a GPU, but on the meta device, so no GPU is needed.
Speaks TAP; NEUROSHARD is the program, NEUROSHARD_DATA its data.
"""
import json
import os
import tempfile

import torch
from fbgemm_gpu.split_embedding_configs import EmbOptimType, SparseType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import (
    EmbeddingLocation,
)
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    ComputeDevice,
    SplitTableBatchedEmbeddingBagsCodegen,
)
from torchrec.modules.embedding_configs import (
    DataType,
    EmbeddingBagConfig,
    data_type_to_sparse_type,
)
from torchrec.modules.embedding_modules import EmbeddingBagCollection

from neuroshard import _loader
from tap import finish, neuroshard, ok

OPTIMIZERS = {
    "sgd": EmbOptimType.EXACT_SGD,
    "rowwise_adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD,
    "adagrad": EmbOptimType.EXACT_ADAGRAD,
    "adam": EmbOptimType.ADAM,
    "lamb": EmbOptimType.LAMB,
    "partial_rowwise_adam": EmbOptimType.PARTIAL_ROWWISE_ADAM,
    "partial_rowwise_lamb": EmbOptimType.PARTIAL_ROWWISE_LAMB,
}
PRECISIONS = {
    "fp32": SparseType.FP32,
    "fp16": SparseType.FP16,
    "bf16": SparseType.BF16,
    "int8": SparseType.INT8,
}
NEEDS_CACHE = ("bf16", "int8")
KINDS = ("table", "column", "row")
ROWS, DIM = 1003, 72


def operator(shapes, optimizer, precision, cache=None):
    return SplitTableBatchedEmbeddingBagsCodegen(
        [
            (rows, dim, EmbeddingLocation.DEVICE, ComputeDevice.CUDA)
            for rows, dim in shapes
        ],
        optimizer=optimizer,
        weights_precision=precision,
        cache_precision=cache,
        device=torch.device("meta"),
    )


def n_bytes(tensor):
    return tensor.numel() * tensor.element_size()


def allocated(shapes, optimizer, precision):
    """Bytes of weights and of optimizer state that FBGEMM allocates."""
    cache = SparseType.FP32 if precision in NEEDS_CACHE else None
    made = operator(
        shapes, OPTIMIZERS[optimizer], PRECISIONS[precision], cache
    )
    # A state that the optimizer lacks is a placeholder without placements.
    states = [
        getattr(made, f"{name}_dev")
        for name in ("momentum1", "momentum2")
        if hasattr(made, f"{name}_physical_placements")
    ]
    return n_bytes(made.weights_dev), sum(map(n_bytes, states))


def planned(optimizer, precision, kind, work, columns=""):
    """Returns the plan of one table on two GPUs."""
    path = f"{work}/list.csv"
    names, cells = "", ""
    for column in filter(None, columns.split(",")):
        name, cell = column.split("=")
        names, cells = f"{names},{name}", f"{cells},{cell}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            "name,num_embeddings,dim,pooling_factor,precision,optimizer"
            f"{names}\nt,{ROWS},{DIM},20,{precision},{optimizer}{cells}\n"
        )
    options = ("--gpus", "2", "--shard", kind, "--cost", "roofline:h100")
    rc, _, said = neuroshard("plan", path, *options, "-o", f"{work}/p.json")
    if rc:
        ok(False, f"a plan of {precision}, {optimizer}, {kind}", said)
        return None
    with open(f"{work}/p.json", encoding="utf-8") as file:
        return json.load(file)


def shapes_on(plan, device):
    return [
        (
            shard["row_end"] - shard["row_begin"],
            shard["col_end"] - shard["col_begin"],
        )
        for shard in plan["shards"]
        if shard["device"] == device
    ]


def check_bytes(work):
    for precision in PRECISIONS:
        for optimizer in OPTIMIZERS:
            for kind in KINDS:
                plan = planned(optimizer, precision, kind, work)
                if plan is None:
                    continue
                ours, theirs = [], []
                for device, entry in enumerate(plan["devices"]):
                    memory = entry["memory_bytes"]
                    shapes = shapes_on(plan, device)
                    ours.append((memory["weights"], memory["optimizer"]))
                    theirs.append(
                        allocated(shapes, optimizer, precision)
                        if shapes
                        else (0, 0)
                    )
                ok(
                    ours == theirs and len(plan["shards"]) > (kind != "table"),
                    f"{precision}, {optimizer}, {kind}: FBGEMM's bytes",
                    f"{ours} are not {theirs}",
                )


def check_adama(work):
    """AdamA (arXiv:2305.19982) accumulates gradients in Adam's two states.
    FBGEMM has no such operator; the states are two fp32 values per element."""
    for precision in PRECISIONS:
        adam, adama = (
            planned(name, precision, "table", work) for name in ("adam", "adama")
        )
        of = [
            sorted(d["memory_bytes"]["optimizer"] for d in plan["devices"])
            for plan in (adam, adama)
        ]
        ok(
            of[0] == of[1] == [0, 2 * 4 * ROWS * DIM],
            f"{precision}, adama: two states of full size",
            str(of),
        )


def check_overhead(work):
    """The overhead counts for each row of each shard."""
    for kind in KINDS:
        plain = planned("adam", "fp16", kind, work)
        more = planned("adam", "fp16", kind, work, "row_overhead_bytes=24")
        rows = sum(s["row_end"] - s["row_begin"] for s in more["shards"])
        weights = [
            sum(d["memory_bytes"]["weights"] for d in plan["devices"])
            for plan in (plain, more)
        ]
        pieces = [len(plan["shards"]) for plan in (plain, more)]
        ok(
            pieces[0] == pieces[1] and weights[1] - weights[0] == 24 * rows,
            f"{kind}: 24 bytes more a row of a piece",
            f"{weights}, {rows} rows, {pieces}",
        )


def check_cache(work):
    """The cache parameters that the loader gives FBGEMM make the operator
    work."""
    for precision in PRECISIONS:
        plan = planned("adam", precision, "table", work)
        if plan is None:
            continue
        _, emitted, _ = neuroshard(
            "emit", f"{work}/p.json", "--format", "torchrec"
        )
        collection = EmbeddingBagCollection(
            tables=[
                EmbeddingBagConfig(
                    name="t",
                    num_embeddings=ROWS,
                    embedding_dim=DIM,
                    feature_names=["t"],
                    data_type=DataType[precision.upper()],
                )
            ],
            device=torch.device("meta"),
        )
        made_for = json.loads(emitted)
        made_for["plan"] = {"ebc": next(iter(made_for["plan"].values()))}
        model = torch.nn.ModuleDict({"ebc": collection})
        sharding = _loader.build_plan(made_for, model).plan["ebc"]["t"]
        given = sharding.cache_params and sharding.cache_params.precision
        shape, adam = [(ROWS, DIM)], OPTIMIZERS["adam"]
        try:
            operator(shape, adam, PRECISIONS[precision])
            is_needed = False
        except AssertionError:
            is_needed = True
        ok(
            is_needed == (precision in NEEDS_CACHE) == (given is not None),
            f"{precision}: cache_precision is set where FBGEMM needs it",
            f"given {given}, needed {is_needed}",
        )
        cache = data_type_to_sparse_type(given) if given else None
        operator(shape, adam, PRECISIONS[precision], cache)


def main():
    with tempfile.TemporaryDirectory() as work:
        check_bytes(work)
        check_adama(work)
        check_overhead(work)
        check_cache(work)
    finish()


if __name__ == "__main__":
    os.environ.setdefault("LOCAL_WORLD_SIZE", "2")
    main()
