# SPDX-License-Identifier: MIT
"""Translates TorchRec's modules, sharders and constraints to tables of the
program."""
from __future__ import annotations

from typing import (
    Any,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    NoReturn,
    Set,
    Tuple,
)

from torchrec.distributed import embedding
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
# Tiers of the program and TorchRec's kernels.
KERNELS = {
    "hbm": "fused",
    "cached": "fused_uvm_caching",
    "host": "fused_uvm",
}
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
COLUMN_STEP, MOST_COLUMNS = 4, 1 << 20  # widths that the program plans
PLANNED = (EmbeddingBagCollection, EmbeddingCollection)
Columns = Dict[str, Any]


class _KeptError(Exception):
    """A table that the program cannot place or price."""


class Kept(NamedTuple):
    """A table that stays where TorchRec's own planner puts it, and the reason:
    the end of a sentence that begins with the table's name."""

    path: str
    name: str
    why: str


class Job(NamedTuple):
    """The job that the tables are read for.

    by_torchrec -- count bytes as TorchRec's estimator does
    offloads    -- TorchRec's own search moves tables with cache_params to the
                   memory of the host
    has_tiers   -- the program may put tables into the memory of the host
    """

    device: str
    n_ranks: int
    batch_size: int
    by_torchrec: bool
    offloads: bool = False
    has_tiers: bool = False


class Found(NamedTuple):
    """A table of the model: its path, the sharding types it may have, its
    columns for the program, and facts that the columns leave out."""

    path: str
    name: str
    types: List[str]
    columns: Columns
    features: List[str]
    is_weighted: bool
    dedups_ids: bool
    assumes_lookups: bool  # the pooling factors are TorchRec's default
    tiers: List[str]  # tiers of the program that the kernels allow


class Source(NamedTuple):
    """Everything that TorchRec knows about a table."""

    path: str
    config: Any
    output: str
    parameter: Any
    sharder: Any
    constraint: Any  # None: no constraint
    is_weighted: bool

    def refuse(self, why: str) -> NoReturn:
        raise Error(f"table '{self.config.name}' {why}", 1)

    @staticmethod
    def keep(why: str) -> NoReturn:
        raise _KeptError(why)


def tables(
    model: Any, sharders: Any, constraints: Mapping[str, Any], job: Job
) -> Tuple[List[Found], List[Kept]]:
    """Returns the tables of all modules that have a sharder: those that the
    program places, and those that it cannot place or price. Raises Error for
    constraints that contradict the model, or if there are no tables."""
    found: List[Found] = []
    kept: List[Kept] = []
    for path, module, sharder in _modules(model, sharders):
        parameters = sharder.shardable_parameters(module)
        if not isinstance(module, PLANNED):
            why = f"is in a {type(module).__name__}"
            kept += [Kept(path, name, why) for name in parameters]
            continue
        for source in _sources(path, module, sharder, constraints):
            try:
                found.append(_found(source, job))
            except _KeptError as error:
                kept.append(Kept(path, source.config.name, str(error)))
    if not found and not kept:
        raise Error("the model has no tables", 1)
    return found, kept


def names(model: Any) -> Set[str]:
    """Names of all tables of the model, planned or not, and of their
    features."""
    known: Set[str] = set()
    for _, module in model.named_modules():
        for method in ("embedding_bag_configs", "embedding_configs"):
            if hasattr(module, method):
                for config in getattr(module, method)():
                    known |= {config.name, *config.feature_names}
    return known


def _sources(
    path: str, module: Any, sharder: Any, constraints: Mapping[str, Any]
) -> Iterator[Source]:
    """Yields the tables of a collection that its sharder takes. The job trains
    the others, as with TorchRec's own planner."""
    if isinstance(module, EmbeddingBagCollection):
        output, configs = "pooled", module.embedding_bag_configs()
    else:
        output, configs = "sequence", module.embedding_configs()
    parameters = sharder.shardable_parameters(module)
    for config in configs:
        if config.name not in parameters:
            continue
        parameter = parameters[config.name]
        constraint = constraints.get(config.name)
        weighted = getattr(module, "is_weighted", bool)() or getattr(
            constraint, "is_weighted", False
        )
        yield Source(
            *(path, config, output, parameter, sharder, constraint),
            bool(weighted),
        )


def _modules(model: Any, sharders: Any) -> Iterator[Tuple[str, Any, Any]]:
    """Yields path, module and sharder of each module to be sharded."""
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


def _found(source: Source, job: Job) -> Found:
    _check(source, job)
    config, constraint = source.config, source.constraint
    types, tiers = _types(source, job)
    over = [ROWS_OVER[kind] for kind in types if kind in ROWS_OVER]
    columns = {
        "num_embeddings": config.num_embeddings,
        "dim": config.embedding_dim,
        "output": source.output,
        **_use(source, job.batch_size),
        "precision": _precision(source, source.parameter.dtype),
        "comm_precision": _comm_precision(source, job.by_torchrec),
        "optimizer": _optimizer(source),
        "sharding": _kinds(types, job.n_ranks),
        "rows_over": over[0] if len(over) == 1 else "any",
        "min_width": getattr(constraint, "min_partition", None),
        **({"tier": "|".join(tiers)} if tiers != ["hbm"] else {}),
    }
    return Found(
        *(source.path, config.name, types, columns),
        *(list(config.feature_names), source.is_weighted),
        _dedups_ids(source),
        set(getattr(constraint, "pooling_factors", None) or [1]) == {1},
        tiers,
    )


def _check(source: Source, job: Job) -> None:
    """Keeps a table that the program cannot place or price."""
    config, constraint = source.config, source.constraint
    group = getattr(constraint, "device_group", None)
    if group and group != job.device:
        source.keep(f"is for device group {group}")
    if getattr(config, "use_virtual_table", False) or getattr(
        constraint, "use_virtual_table", False
    ):
        source.keep("is a virtual one")
    cache = getattr(constraint, "cache_params", None)
    if job.has_tiers and getattr(cache, "load_factor", None) is not None:
        source.keep("has a load factor of its own")
    if job.offloads and cache:
        source.keep("may be cached by EmbeddingOffloadScaleupProposer")
    if config.embedding_dim % COLUMN_STEP:
        source.keep(f"has {config.embedding_dim} columns, not a multiple of 4")
    if config.embedding_dim > MOST_COLUMNS:
        source.keep(f"has {config.embedding_dim} columns")
    if source.is_weighted and job.by_torchrec:
        source.keep(
            "is weighted: TorchRec's estimator counts its ids twice, which "
            "cost 'torchrec' does not"
        )


def _types(source: Source, job: Job) -> Tuple[List[str], List[str]]:
    """Sharding types that are allowed and whose kernel the program can
    price, and the tiers of these kernels."""
    wanted = getattr(source.constraint, "sharding_types", None)
    kernels = getattr(source.constraint, "compute_kernels", None)
    offered = source.sharder.sharding_types(job.device)
    types: List[str] = []
    tiers: List[str] = []
    for kind in offered:
        is_replica = kind == "data_parallel"
        may = KERNELS if job.has_tiers else {"hbm": "fused"}
        fit = [
            tier
            for tier, kernel in ({"": "dense"} if is_replica else may).items()
            if kind in KINDS
            and kind in (wanted or KINDS)
            and kernel in (kernels or (kernel,))
            and kernel in source.sharder.compute_kernels(kind, job.device)
        ]
        types += [kind] if fit else []
        tiers += [tier for tier in fit if tier and tier not in tiers]
    if tiers and "hbm" not in tiers:
        types = [kind for kind in types if kind != "data_parallel"]
    if types:
        return types, tiers or ["hbm"]
    asked = [
        f"{member} {', '.join(values)}"
        for member, values in (
            ("sharding_types", wanted),
            ("compute_kernels", kernels),
        )
        if values
    ]
    if not asked:
        offers = [
            f"{kind} ({', '.join(of)})"
            for kind in offered
            for of in [source.sharder.compute_kernels(kind, job.device)]
        ]
        sharder = type(source.sharder).__name__
        asked = [f"{' or '.join(offers) or 'nothing'} by its {sharder}"]
    source.keep(f"may only have {' and '.join(asked)}")


def _kinds(types: List[str], n_ranks: int) -> List[str]:
    """Shard kinds of the program for these sharding types. A whole table
    counts as one column shard, so "column" includes "table". With one rank
    only "table" is possible."""
    if n_ranks == 1:
        return ["table"]
    kinds = {KINDS[kind] for kind in types}
    if "column" in kinds:
        kinds.add("table")
    return sorted(kinds)


def _dedups_ids(source: Source) -> bool:
    """Whether TorchRec sends and looks up each id of a sequence once."""
    return source.output == "sequence" and bool(
        getattr(source.sharder, "_use_index_dedup", False)
        or getattr(embedding, "get_ec_index_dedup", bool)()
    )


def _use(source: Source, batch_size: int) -> Columns:
    """Lookups and outputs per sample, summed over all features."""
    lengths = _by_feature(source, "pooling_factors", 1.0)
    poolings = _by_feature(source, "num_poolings", 1.0)
    batches = _by_feature(source, "batch_sizes", batch_size)
    outputs = [p * b / batch_size for p, b in zip(poolings, batches)]
    return {
        "pooling_factor": sum(x * y for x, y in zip(lengths, outputs)),
        "num_outputs": sum(outputs),
    }


def _by_feature(source: Source, member: str, default: float) -> List[float]:
    """Values of a member of the constraints, one per feature. The member has
    one value per feature or one for all."""
    n = len(source.config.feature_names)
    given = list(getattr(source.constraint, member, None) or [default] * n)
    if len(given) == 1:
        given *= n
    if len(given) != n:
        source.refuse(
            f"has {n} feature{'s' * (n != 1)}, but {len(given)} {member} in "
            "its constraints"
        )
    return given


def _precision(source: Source, dtype: Any) -> str:
    precision = PRECISIONS.get(str(dtype).rsplit(".", maxsplit=1)[-1])
    return precision or source.keep(f"has numbers of {dtype}")


def _comm_precision(source: Source, by_torchrec: bool) -> str:
    """Precision of the exchanged outputs. FBGEMM's outputs are fp32 by
    default; TorchRec's estimator assumes the precision of the weights."""
    codecs = getattr(source.sharder, "qcomm_codecs_registry", None) or {}
    asked = getattr(source.constraint, "output_dtype", None)
    exchange = f"{source.output.upper()}_EMBEDDINGS_ALL_TO_ALL"
    if exchange in codecs:
        return _precision(source, codecs[exchange].forward.quantized_dtype)
    if by_torchrec:
        return _precision(source, source.parameter.dtype)
    return "fp32" if asked is None else str(asked.value).lower()


def _optimizer(source: Source) -> str:
    """Optimizer given to apply_optimizer_in_backward; by default the
    sharder's, or else FBGEMM's default."""
    classes = getattr(source.parameter, "_optimizer_classes", None)
    fused = getattr(source.sharder, "fused_params", None) or {}
    named = fused.get("optimizer", "sgd")
    named = classes[0].__name__ if classes else getattr(named, "name", named)
    key = named.lower().replace("_", "").replace("exact", "", 1)
    return OPTIMIZERS.get(key) or source.keep(f"has the optimizer {named}")
