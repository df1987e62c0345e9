# SPDX-License-Identifier: MIT
"""Plans that stay the same from restart to restart, if no other plan is better
by more than the error of their comparison."""
from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, List, NamedTuple, Set, Tuple

from . import Error, _loader, _placing, _stock, diff

STATELESS = ("sgd",)
# Optimizers that keep one value per row or take a norm over a row. For a
# column-wise shard the row is that of the shard.
BY_ROW = (
    *("rowwise_adagrad", "partial_rowwise_adam"),
    *("partial_rowwise_lamb", "lamb"),
)
Run = Callable[[Dict[str, Any]], _placing.Placing]


class Cut(NamedTuple):
    """What the state of a table's optimizer depends on."""

    is_replica: bool
    n_columns: int  # column pieces


def place(
    run: Run, options: Dict[str, Any], previous: Any, model: Any, device: str
) -> Tuple[_placing.Placing, str]:
    """Returns the plan of a job that ran by the plan `previous`, and a note or
    "". It is `previous` unless that does not fit any more, or another plan
    gains more than the error of the comparison. `previous` is a ShardingPlan,
    the result of dump(), or a path."""
    first = run(_stock.unlimited(options))
    try:
        before = _placing.stock_shards(
            first, _sharding(previous, first.found, model, device)
        )
    except (KeyError, ValueError) as error:
        return run(options), f"previous is the plan of another job: {error}"
    cuts = _cuts(before)
    for row, table, cut in zip(first.rows, before["tables"], cuts):
        _keep_state(row, table, cut)
    kept = _fitting(run, options, before)
    fresh = run({**options, "from_": before})
    lost = [
        table["name"]
        for table, cut, now in zip(
            before["tables"], cuts, _cuts(fresh.plan.json)
        )
        if not _loads(table["optimizer"], cut, now)
    ]
    if kept is not None and (lost or not diff(kept, fresh.plan)["pays"]):
        return fresh._replace(plan=kept), ""
    if lost:
        return fresh, (
            "previous does not fit any more, and a checkpoint's optimizer "
            f"state cannot be loaded for {', '.join(lost[:3])}"
        )
    return fresh, ""


def _sharding(previous: Any, found: List[Any], model: Any, device: str) -> Any:
    """Returns the ShardingPlan of the program's tables."""
    if isinstance(previous, (str, os.PathLike)):
        with open(previous, encoding="utf-8") as file:
            previous = json.load(file)
    if not isinstance(previous, dict):
        return previous
    names: Dict[str, Set[str]] = {}
    for table in found:
        names.setdefault(table.path, set()).add(table.name)
    plan = {
        path: {name: previous["plan"][path][name] for name in some}
        for path, some in names.items()
    }
    made_for = {"world_size": 1 << 30, **previous, "plan": plan}
    return _loader.build_plan(made_for, _placing.Part(model, names), device)


def _cuts(plan: Dict[str, Any]) -> List[Cut]:
    """Returns the cut of each table of a plan of the program."""
    columns: List[Set[int]] = [set() for _ in plan["tables"]]
    wholes = [0] * len(plan["tables"])
    for shard in plan["shards"]:
        table = plan["tables"][shard["table"]]
        columns[shard["table"]].add(shard["col_begin"])
        wholes[shard["table"]] += (
            shard["row_end"] - shard["row_begin"] == table["num_embeddings"]
            and shard["col_end"] - shard["col_begin"] == table["dim"]
        )
    return [Cut(n > 1, len(some)) for n, some in zip(wholes, columns)]


def _loads(optimizer: str, before: Cut, now: Cut) -> bool:
    """Whether the optimizer's state in a checkpoint of one plan can be loaded
    by a job of the other."""
    if optimizer in STATELESS:
        return True
    if optimizer in BY_ROW:
        return before == now
    return before.is_replica == now.is_replica


def _keep_state(row: Dict[str, Any], table: Dict[str, Any], cut: Cut) -> None:
    """Leaves a table only such kinds of shards that load the state."""
    kinds = set(row.get("sharding") or ())
    if table["optimizer"] in STATELESS or not kinds:
        return
    fit = kinds & {"replicate"} if cut.is_replica else kinds - {"replicate"}
    if table["optimizer"] in BY_ROW and cut.n_columns == 1:
        fit -= {"column", "grid"}
    if fit:
        row["sharding"] = sorted(fit)


def _fitting(
    run: Run, options: Dict[str, Any], before: Dict[str, Any]
) -> Any:
    """Returns the plan with its price on the job's GPUs; None if it does not
    fit."""
    try:
        return run({**options, "from_": before, "move_limit": 0}).plan
    except Error as error:
        if error.status in (1, 3):
            return None
        raise
