# SPDX-License-Identifier: MIT
"""Translates plans of the program to plans of TorchRec, and back."""
from __future__ import annotations

import copy
import dataclasses
import json
from typing import (
    Any,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

import torch.distributed as dist
from torchrec.distributed import comm
from torchrec.distributed.planner.planners import to_sharding_plan

import neuroshard

from . import Error, Plan, _job, _loader
from ._model import KERNELS, KINDS, Columns, Found
from ._stock import UNLIMITED, Stock

KEPT = (
    *("cache_params", "enforce_hbm", "stochastic_rounding"),
    *("bounds_check_mode", "output_dtype", "key_value_params"),
)
WHOLE = ("table_wise", "column_wise")
ROWS = ("row_wise", "table_row_wise")
OF_JOB = (
    *("neuroshard_plan", "batch", "step", "memory_model"),
    *("dense_optimizer", "layout", "buffers"),
)


class Part:
    """Some tables of a model: {path of the module: names}. All other tables
    are left to the job or to TorchRec's own planner."""

    def __init__(self, model: Any, tables: Mapping[str, Set[str]]) -> None:
        self._model, self._tables = model, tables

    def named_modules(self) -> Iterator[Tuple[str, Any]]:
        for path, module in self._model.named_modules():
            if path in self._tables:
                yield path, _Some(module, self._tables[path])


class _Some:
    """Some tables of a module."""

    def __init__(self, module: Any, names: Set[str]) -> None:
        for method in ("embedding_bag_configs", "embedding_configs"):
            if hasattr(module, method):
                configs = getattr(module, method)()
                some = [c for c in configs if c.name in names]
                setattr(self, method, lambda: some)


class Placing(NamedTuple):
    """A plan of the program and its tables, in the order of the plan. rows:
    the tables as the program read them. stock: TorchRec's plan, if some of its
    tables stay where it puts them."""

    found: List[Found]
    plan: Plan
    rows: Sequence[Columns] = ()
    stock: Optional[Stock] = None

    def sharding_plan(
        self, model: Any, topology: Any, constraints: Dict[str, Any]
    ) -> Any:
        """Returns TorchRec's ShardingPlan of all tables, with the kernel
        settings of the constraints."""
        names: Dict[str, Set[str]] = {}
        for table in self.found:
            names.setdefault(table.path, set()).add(table.name)
        sharding = _loader.build_plan(
            self.emitted(), Part(model, names), topology.compute_device
        )
        for table in self.found:
            parameter = sharding.plan[table.path][table.name]
            _keep(parameter, constraints.get(table.name))
        if self.stock:
            rest = to_sharding_plan(self.stock.rest, topology)
            for path, module in rest.plan.items():
                if path in sharding.plan:
                    sharding.plan[path].update(module)
                else:
                    sharding.plan[path] = module
        return sharding

    def emitted(self) -> Dict[str, Any]:
        """Returns the output of `emit --format torchrec` for all modules."""
        tables, shards = self.plan.json["tables"], self.plan.json["shards"]
        named = {
            **self.bare(),
            "tables": [
                {**row, "name": f"{table.path}.{table.name}".lstrip(".")}
                for row, table in zip(tables, self.found)
            ],
            "shards": [{**shard, "alone_ms": None} for shard in shards],
        }
        whole: Dict[str, Any] = json.loads(
            neuroshard.emit(named, "torchrec")
        )
        if not self.found[0].path:  # the model itself has the tables
            whole["plan"] = {"": next(iter(whole["plan"].values()))}
        n_ranks = whole["world_size"]
        ranks = whole["local_world_size"] * whole.get("pod_size", 1)
        alike: List[Tuple[str, ...]] = [WHOLE]
        if ranks == n_ranks:
            alike.append(ROWS)
        if n_ranks == 1:
            alike = [tuple(KINDS)]
        for table in self.found:
            entry = whole["plan"][table.path][table.name]
            _settle(table, entry, alike)
        return whole

    def bare(self) -> Dict[str, Any]:
        """The plan without shards: the job and its tables."""
        whole = self.plan.json
        return {
            **{name: whole[name] for name in OF_JOB if name in whole},
            "cluster": {**whole["cluster"], "reserve_bytes": None},
            "tables": [{**table, "kinds": None} for table in whole["tables"]],
            "shards": [],
        }


def _keep(parameter: Any, constraint: Any) -> None:
    """Copies the kernel settings of a constraint, as TorchRec's planner
    does."""
    planned = getattr(parameter, "cache_params", None)
    for member in KEPT:
        given = getattr(constraint, member, None)
        if hasattr(parameter, member) and given is not None:
            setattr(parameter, member, given)
    cache = getattr(parameter, "cache_params", None)
    if planned and cache:  # the load factor is that of the plan
        of_plan = {
            member: value
            for member, value in vars(planned).items()
            if getattr(cache, member) is None
            or (member in _loader.CACHE and value is not None)
        }
        parameter.cache_params = dataclasses.replace(cache, **of_plan)


def place(
    found: List[Found], rows: List[Columns], options: Dict[str, Any]
) -> Placing:
    """Runs the program and returns its plan."""
    plan = neuroshard.plan(rows, None, **options)
    if len(plan.json["tables"]) != len(found):
        raise Error("the plan is of other tables", neuroshard.BAD_ANSWER)
    return Placing(found, plan, rows)


def _settle(
    table: Found, entry: Dict[str, Any], alike: List[Tuple[str, ...]]
) -> None:
    """Chooses a sharding type that the table's constraints allow. A whole
    table has several equivalent types, and so has a row-wise table if all
    ranks are on one host."""
    kind = entry["sharding_type"]
    same = next((kinds for kinds in alike if kind in kinds), ())
    if same is WHOLE and len(entry["ranks"]) > 1:
        same = ()
    fit = [other for other in (kind, *same) if other in table.types]
    if not fit:
        may = " or ".join(table.types)
        raise Error(f"table '{table.name}' became {kind}, but may be {may}", 1)
    entry["sharding_type"] = fit[0]
    if fit[0] == "data_parallel" != kind:
        entry["compute_kernel"] = "dense"
        del entry["shards"]


def shape(topology: Any) -> Dict[str, int]:
    """Ranks of the job, ranks of a host, and hosts of an NVLink domain."""
    if topology is None:
        world_size = dist.get_world_size()
        local, group = comm.get_local_size(), _loader.group_size(world_size)
    else:
        world_size = topology.world_size
        local, group = topology.local_world_size, _job.group(topology)
    made_for = {"world_size": world_size, "local_world_size": local}
    if group > local:
        made_for["pod_size"] = group // local
    return made_for


def stock_shards(placing: Placing, sharding: Any) -> Dict[str, Any]:
    """Returns a ShardingPlan's shards of the program's tables as a plan of the
    program, on ranks with unlimited memory."""
    plan = placing.bare()
    n_ranks = plan["cluster"]["gpus"]
    plan["cluster"]["memory_bytes"] = [UNLIMITED] * n_ranks
    for index, table in enumerate(placing.found):
        columns = table.columns
        shape = [columns["num_embeddings"], columns["dim"]]
        parameter = sharding.plan[table.path][table.name]
        for offset, size, rank in pieces(parameter, shape, n_ranks):
            if size[0]:
                plan["shards"].append(
                    {
                        "table": index,
                        "row_begin": offset[0],
                        "row_end": offset[0] + size[0],
                        "col_begin": offset[1],
                        "col_end": offset[1] + size[1],
                        "device": rank,
                    }
                )
    return plan


def pieces(parameter: Any, shape: Any, n_ranks: int) -> List[Any]:
    """Offsets, sizes and rank of each shard; a replica has one entry per
    rank."""
    spec = parameter.sharding_spec
    if spec is None:
        return [([0, 0], list(shape), rank) for rank in range(n_ranks)]
    return [
        (s.shard_offsets, s.shard_sizes, s.placement.rank())
        for s in spec.shards
    ]


def check(found: List[Found], plan: Dict[str, Any], topology: Any) -> None:
    """Raises ValueError if the plan does not fit the job; the message names
    the mismatch."""
    for name, ranks in shape(topology).items():
        if plan.get(name, ranks) != ranks:
            raise ValueError(
                f"the plan is for a {name} of {plan[name]}, not of {ranks}"
            )
    for table in found:
        entry = plan["plan"].get(table.path, {}).get(table.name)
        if entry is None:
            raise ValueError(
                f"table '{table.name}' of module '{table.path}' is not in the "
                "plan"
            )
        kind = entry["sharding_type"]
        kernels = [KERNELS[tier] for tier in table.tiers]
        if kind == "data_parallel":
            kernels = ["dense"]
        if kind not in table.types or entry["compute_kernel"] not in kernels:
            raise ValueError(
                f"table '{table.name}' {_described(entry)}, but may be "
                f"{' or '.join(table.types)}"
            )


def dumped(sharding: Any) -> Dict[str, Any]:
    """The plan as JSON, with the cache_params of cached tables, which TorchRec
    leaves out."""
    whole: Dict[str, Any] = sharding._serialize()
    for path, module in sharding.plan.items():
        for name, parameter in module.items():
            cache = getattr(parameter, "cache_params", None)
            if cache and parameter.compute_kernel == KERNELS["cached"]:
                whole["plan"][path][name]["cache_params"] = {
                    member: getattr(value, "name", value)
                    for member, value in vars(cache).items()
                    if value is not None and member != "stats"
                }
    return whole


def offered(options: List[Any], plan: Dict[str, Any]) -> Dict[int, Any]:
    """Returns the planner's options that match the plan, with the plan's
    ranks, keyed by storage hash. Raises ValueError with the tables that have
    no matching option."""
    chosen, refused = {}, []
    wanted = {
        (path, name): entry
        for path, module in plan["plan"].items()
        for name, entry in module.items()
    }
    by_table: Dict[Any, List[Any]] = {key: [] for key in wanted}
    for option in options:
        by_table.setdefault((option.path, option.name), []).append(option)
    for (path, name), some in by_table.items():
        entry = wanted.get((path, name))
        fit = [o for o in some if entry and _is_offer(o, entry)]
        if entry is None or not fit:
            what = _described(entry) if entry else "is not in it"
            refused.append(f"table '{name}' of module '{path}' {what}")
            continue
        kind = entry["sharding_type"]
        fit.sort(key=lambda option: bool(option.sharding_type != kind))
        option = copy.deepcopy(fit[0])
        for shard, rank in zip(option.shards, entry["ranks"]):
            shard.rank = rank
        chosen[option.storage_hash()] = option
    if refused:
        raise ValueError(
            "TorchRec's planner does not offer what the plan has: "
            + "; ".join(refused)
        )
    return chosen


def _is_offer(option: Any, entry: Dict[str, Any]) -> bool:
    kind, shards = entry["sharding_type"], entry.get("shards")
    kinds = WHOLE if kind in WHOLE and len(entry["ranks"]) == 1 else (kind,)
    return (
        option.sharding_type in kinds
        and option.compute_kernel == entry["compute_kernel"]
        and len(option.shards) == len(entry["ranks"])
        and all(
            list(offer.offset) == shard["shard_offsets"]
            and list(offer.size) == shard["shard_sizes"]
            for offer, shard in zip(option.shards, shards or [])
        )
    )


def _described(entry: Dict[str, Any]) -> str:
    sizes = [str(shard["shard_sizes"]) for shard in entry.get("shards", [])]
    return (
        f"is {entry['sharding_type']} ({entry['compute_kernel']})"
        + (" in " if sizes else "")
        + ", ".join(sizes[:4] + ["..."] * (len(sizes) > 4))
    )
