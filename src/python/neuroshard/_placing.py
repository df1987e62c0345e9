# SPDX-License-Identifier: MIT
"""From plans of the program to those of TorchRec, and back."""
from __future__ import annotations

import copy
import json
from typing import Any, Dict, Iterator, List, NamedTuple, Set, Tuple

import torch.distributed as dist
from torchrec.distributed import comm

import neuroshard

from . import Error, Plan, _loader
from ._model import Found, Usage, rows

KEPT = (
    *("cache_params", "enforce_hbm", "stochastic_rounding"),
    *("bounds_check_mode", "output_dtype", "key_value_params"),
)
WHOLE = ("table_wise", "column_wise")
ROWS = ("row_wise", "table_row_wise")
OF_JOB = (
    *("neuroshard_plan", "batch", "step", "memory_model"),
    *("dense_optimizer", "layout"),
)


class _Part:
    """The modules of a model at some paths. A module without a sharder is
    left to the job, as TorchRec's own planner leaves it."""

    def __init__(self, model: Any, paths: Set[str]) -> None:
        self._model, self._paths = model, paths

    def named_modules(self) -> Iterator[Tuple[str, Any]]:
        return (
            (path, module)
            for path, module in self._model.named_modules()
            if path in self._paths
        )


class Placing(NamedTuple):
    """A plan of the program, and the tables that it is of, in its order."""

    found: List[Found]
    plan: Plan

    def sharding_plan(
        self, model: Any, topology: Any, constraints: Dict[str, Any]
    ) -> Any:
        """TorchRec's, with what the constraints say of kernels."""
        paths = {table.path for table in self.found}
        sharding = _loader.build_plan(
            self.emitted(), _Part(model, paths), topology.compute_device
        )
        for table in self.found:
            parameter = sharding.plan[table.path][table.name]
            constraint = constraints.get(table.name)
            for member in KEPT:
                given = getattr(constraint, member, None)
                if hasattr(parameter, member) and given is not None:
                    setattr(parameter, member, given)
        return sharding

    def emitted(self) -> Dict[str, Any]:
        """As `emit --format torchrec` writes it, of all modules."""
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
        if not self.found[0].path:  # the model is the one that has tables
            whole["plan"] = {"": next(iter(whole["plan"].values()))}
        ranks = whole["local_world_size"] * whole.get("pod_size", 1)
        rows = ROWS if ranks == whole["world_size"] else ()
        for table in self.found:
            _settle(table, whole["plan"][table.path][table.name], rows)
        return whole

    def bare(self) -> Dict[str, Any]:
        """The job, its tables, and nothing of where they are."""
        whole = self.plan.json
        return {
            **{name: whole[name] for name in OF_JOB if name in whole},
            "cluster": {**whole["cluster"], "reserve_bytes": None},
            "tables": [{**table, "kinds": None} for table in whole["tables"]],
            "shards": [],
        }


def place(
    found: List[Found], options: Dict[str, Any], usage: Usage
) -> Placing:
    """Runs the program."""
    plan = neuroshard.plan(rows(found, usage), None, **options)
    if len(plan.json["tables"]) != len(found):
        raise Error("the plan is of other tables", neuroshard.BAD_ANSWER)
    return Placing(found, plan)


def _settle(
    table: Found, entry: Dict[str, Any], rows: Tuple[str, ...]
) -> None:
    """Takes from its constraints what a table in one piece is called, and one
    in rows, where all ranks are one host's."""
    kind = entry["sharding_type"]
    whole = WHOLE if len(entry["ranks"]) == 1 else ()
    alike = next((a for a in (whole, rows) if kind in a), ())
    fit = [other for other in (kind, *alike) if other in table.types]
    if not fit:
        may = " or ".join(table.types)
        raise Error(f"table '{table.name}' became {kind}, but may be {may}", 1)
    entry["sharding_type"] = fit[0]


def shape(topology: Any) -> Dict[str, int]:
    """Ranks of the job, of a host, and hosts of an NVLink domain."""
    if topology is None:
        world_size = dist.get_world_size()
        local, group = comm.get_local_size(), _loader.group_size(world_size)
    else:
        world_size = topology.world_size
        local, group = topology.local_world_size, topology.intra_group_size
    made_for = {"world_size": world_size, "local_world_size": local}
    if group > local:
        made_for["pod_size"] = group // local
    return made_for


def offered(options: List[Any], plan: Dict[str, Any]) -> Dict[int, Any]:
    """Of a planner's options those that the plan takes, with its ranks, by
    their storage hash. ValueError names the tables that have none."""
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
