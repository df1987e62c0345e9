# SPDX-License-Identifier: MIT
"""What TorchRec knows of a job, in the words of the program: tables of
modules, sharders and constraints; GPUs of a topology."""
from __future__ import annotations

import csv
import os
from typing import (
    Any,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    NoReturn,
    Tuple,
    Union,
)

from torchrec.distributed.planner import constants
from torchrec.modules.embedding_modules import (
    EmbeddingBagCollection,
    EmbeddingCollection,
)

from . import Error

KINDS = {
    "table_wise": "table",
    "column_wise": "column",
    "row_wise": "row",
    "table_row_wise": "row",
    "grid_shard": "grid",
    "data_parallel": "replicate",
}
ROWS_OVER = {"row_wise": "all", "table_row_wise": "host"}
KERNELS = ("fused", "dense")
PRECISIONS = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int8": "int8",
    "uint8": "int8",
}
OPTIMIZERS = {
    name.replace("_", ""): name
    for name in (
        *("sgd", "rowwise_adagrad", "adagrad", "adam", "lamb"),
        *("partial_rowwise_adam", "partial_rowwise_lamb"),
    )
}
Columns = Dict[str, Any]
Usage = Union[str, "os.PathLike[str]", Mapping[str, Mapping[str, Any]]]


class Found(NamedTuple):
    """A table of the model: where it is, the sharding types that it may have,
    and what the program is told of it."""

    path: str
    name: str
    types: List[str]
    columns: Columns


class Source(NamedTuple):
    """All that TorchRec has of a table."""

    path: str
    config: Any
    output: str
    parameter: Any
    sharder: Any
    constraint: Any  # None where there is none

    def refuse(self, why: str) -> NoReturn:
        raise Error(f"table '{self.config.name}' {why}", 1)


def tables(
    model: Any,
    sharders: Any,
    constraints: Mapping[str, Any],
    device: str,
    batch_size: int,
    by_torchrec: bool = False,
) -> List[Found]:
    """Of all modules that have a sharder; Error where the program does not
    place one, and where there is none. by_torchrec: as its estimator takes
    them."""
    found = [
        _found(source, device, batch_size, by_torchrec)
        for source in _sources(model, sharders, constraints)
    ]
    if not found:
        raise Error("the model has no tables", 1)
    return found


def _sources(
    model: Any, sharders: Any, constraints: Mapping[str, Any]
) -> Iterator[Source]:
    for path, module, sharder in _modules(model, sharders):
        if isinstance(module, EmbeddingBagCollection):
            output, configs = "pooled", module.embedding_bag_configs()
        elif isinstance(module, EmbeddingCollection):
            output, configs = "sequence", module.embedding_configs()
        else:
            kind = type(module).__name__
            raise Error(f"module '{path}' is a {kind}, which is not placed", 1)
        parameters = sharder.shardable_parameters(module)
        for config in configs:
            parameter = parameters.get(config.name)
            constraint = constraints.get(config.name)
            yield Source(path, config, output, parameter, sharder, constraint)


def _modules(model: Any, sharders: Any) -> Iterator[Tuple[str, Any, Any]]:
    """Path, module and sharder of all that is to be sharded."""
    by_type = {sharder.module_type: sharder for sharder in sharders}
    waiting = [("", model)]
    while waiting:
        path, module = waiting.pop(0)
        sharder = by_type.get(type(module))
        if sharder and sharder.shardable_parameters(module):
            yield path, module, sharder
            continue
        waiting += [
            (f"{path}.{name}" if path else name, child)
            for name, child in module.named_children()
        ]


def _found(
    source: Source, device: str, batch_size: int, by_torchrec: bool
) -> Found:
    config = source.config
    group = getattr(source.constraint, "device_group", None)
    if source.parameter is None:
        source.refuse("is not sharded with its module")
    if group and group != device:
        source.refuse(f"is for device group {group}")
    if getattr(config, "use_virtual_table", False):
        source.refuse("is a virtual one")
    types = _types(source, device)
    over = [ROWS_OVER[kind] for kind in types if kind in ROWS_OVER]
    columns = {
        "num_embeddings": config.num_embeddings,
        "dim": config.embedding_dim,
        "output": source.output,
        **_use(source, batch_size),
        "precision": _precision(source, source.parameter.dtype),
        "comm_precision": _comm_precision(source, by_torchrec),
        "optimizer": _optimizer(source),
        "sharding": _kinds(source, types),
        "rows_over": over[0] if len(over) == 1 else "any",
    }
    return Found(source.path, config.name, types, columns)


def _types(source: Source, device: str) -> List[str]:
    """Sharding types whose kernel the program prices."""
    wanted = getattr(source.constraint, "sharding_types", None) or KINDS
    kernels = getattr(source.constraint, "compute_kernels", None) or KERNELS
    types = []
    for kind in source.sharder.sharding_types(device):
        kernel = "dense" if kind == "data_parallel" else "fused"
        offered = source.sharder.compute_kernels(kind, device)
        is_priced = kernel in offered and kernel in kernels
        if is_priced and kind in KINDS and kind in wanted:
            types.append(kind)
    if not types:
        source.refuse(
            "may have no sharding type and compute kernel that is planned, "
            f"which are {', '.join(KINDS)} with fused, or dense"
        )
    return types


def _kinds(source: Source, types: List[str]) -> List[str]:
    """A table in one piece is one column piece as well."""
    kinds = {KINDS[kind] for kind in types}
    if "column" in kinds:
        kinds.add("table")
    least = getattr(source.constraint, "min_partition", None) or 0
    if source.config.embedding_dim < 2 * least:
        kinds -= {"column", "grid"}
    return sorted(kinds)


def _use(source: Source, batch_size: int) -> Columns:
    """Look-ups and outputs a sample, over all features."""
    n = len(source.config.feature_names)
    constraint = source.constraint
    lengths = list(getattr(constraint, "pooling_factors", None) or [1.0])
    if len(lengths) == 1:
        lengths *= n
    poolings = getattr(constraint, "num_poolings", None) or [1.0] * n
    batches = getattr(constraint, "batch_sizes", None) or [batch_size] * n
    outputs = [p * b / batch_size for p, b in zip(poolings, batches)]
    return {
        "pooling_factor": sum(x * y for x, y in zip(lengths, outputs)),
        "num_outputs": sum(outputs),
    }


def _precision(source: Source, dtype: Any) -> str:
    precision = PRECISIONS.get(str(dtype).rsplit(".", maxsplit=1)[-1])
    return precision or source.refuse(f"has numbers of {dtype}")


def _comm_precision(source: Source, by_torchrec: bool) -> str:
    """FBGEMM's outputs are fp32 unless asked for others; TorchRec's estimator
    takes them to be as the weights."""
    codecs = getattr(source.sharder, "qcomm_codecs_registry", None) or {}
    asked = getattr(source.constraint, "output_dtype", None)
    exchange = f"{source.output.upper()}_EMBEDDINGS_ALL_TO_ALL"
    if exchange in codecs:
        return _precision(source, codecs[exchange].forward.quantized_dtype)
    if by_torchrec:
        return _precision(source, source.parameter.dtype)
    return "fp32" if asked is None else str(asked.value).lower()


def _optimizer(source: Source) -> str:
    """That of apply_optimizer_in_backward, else the sharder's, else FBGEMM's
    default."""
    classes = getattr(source.parameter, "_optimizer_classes", None)
    fused = getattr(source.sharder, "fused_params", None) or {}
    named = fused.get("optimizer", "sgd")
    named = classes[0].__name__ if classes else getattr(named, "name", named)
    key = named.lower().replace("_", "").replace("exact", "", 1)
    return OPTIMIZERS.get(key) or source.refuse(f"has the optimizer {named}")


def rows(found: List[Found], usage: Usage) -> List[Columns]:
    """For the program; usage adds columns that the model does not know. Two
    modules may have tables of one name: all are called by their paths then."""
    if isinstance(usage, (str, os.PathLike)):
        with open(usage, encoding="utf-8", newline="") as file:
            lines = (line for line in file if line.strip("\n")[:1] != "#")
            usage = {row.pop("name", ""): row for row in csv.DictReader(lines)}
        if "" in usage:
            raise Error("the list of usage has lines without a name", 1)
    names = [table.name for table in found]
    if len(set(names)) < len(names):
        names = [f"{table.path}.{table.name}" for table in found]
    return [
        {"name": name, **table.columns, **_asked(usage.get(table.name))}
        for name, table in zip(names, found)
    ]


def _asked(row: Any) -> Columns:
    """Of a row of usage what is about look-ups."""
    kept = ("pooling_factor", "zipf_alpha", "bins", "row_order", "dedup")
    return {
        key: value
        for key, value in (row or {}).items()
        if (key in kept or key.startswith("bin_")) and value not in (None, "")
    }


def job(
    topology: Any, left: Any, batch_size: int, asked: Mapping[str, Any]
) -> Dict[str, Any]:
    """All options for the topology, of which a storage reservation has left
    some memory; those that are asked for win."""
    options: Dict[str, Any] = {
        "batch_per_gpu": batch_size,
        **_bandwidths(topology),
        **asked,
    }
    if options.get("cost") == "torchrec":
        options["cost"] = _torchrec_cost(topology)
    memory = [_memory(topology, device) for device in topology.devices]
    free = [_memory(topology, device) for device in left.devices]
    used = [max(0, had - has) for had, has in zip(memory, free)]
    if "memory" in options:
        memory = [options.pop("memory")] * len(memory)
    if "reserve" in options:
        used = [0] * len(memory)
    n = topology.local_world_size
    hosts = [
        {"gpus": n, "memory": memory[i : i + n], "used": used[i : i + n]}
        for i in range(0, len(memory), n)
    ]
    cluster = {"hosts": hosts, "pod_size": topology.intra_group_size // n}
    return {"cluster": cluster, "reserve": 0, **options}


def _bandwidths(topology: Any) -> Dict[str, Any]:
    """In GB/s; what TorchRec assumes of all GPUs says nothing of these."""
    found = {}
    for option, bandwidth, assumed in (
        ("intra_gbps", topology.intra_host_bw, "INTRA_NODE_BANDWIDTH"),
        ("inter_gbps", topology.inter_host_bw, "CROSS_NODE_BANDWIDTH"),
    ):
        if bandwidth != getattr(constants, assumed, None):
            found[option] = bandwidth / 1e6
    return found


def _memory(topology: Any, device: Any) -> int:
    storage = device.storage
    return int(
        storage.ddr if topology.compute_device == "cpu" else storage.hbm
    )


def _torchrec_cost(topology: Any) -> str:
    """TorchRec's cost model with the topology's bandwidths, in GiB/s."""
    gib = 2**30 / 1000
    return (
        f"torchrec:hbm={topology.hbm_mem_bw / gib!r},"
        f"intra={topology.intra_host_bw / gib!r},"
        f"inter={topology.inter_host_bw / gib!r}"
    )
