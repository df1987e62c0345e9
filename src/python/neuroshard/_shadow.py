# SPDX-License-Identifier: MIT
"""Compares TorchRec's plan and ours for one job; each is priced by both
planners."""
from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any, Dict, List, Tuple

from torchrec.distributed.planner.enumerators import get_partition_by_type
from torchrec.distributed.planner.types import Shard

from . import Plan, diff, price, report
from ._placing import Placing, pieces, stock_shards


@dataclasses.dataclass
class Shadow:
    """Gain of our plan over TorchRec's.

    stock, ours -- the ShardingPlans
    priced      -- both as plans of the program, priced by its cost model
    torchrec_ms -- slowest rank's time of both, by TorchRec's estimator
    diff        -- result of `neuroshard.diff`, with steps, host, GPU work,
                   errors, bytes to move, training_changes and verdict
    outside     -- tables that TorchRec's plan keeps in other memory than the
                   rank's own; priced as if they were in the rank's own
    """

    stock: Any
    ours: Any
    priced: List[Plan]
    torchrec_ms: Tuple[float, float]
    diff: Dict[str, Any]
    outside: List[str]

    @property
    def neuroshard_ms(self) -> Tuple[float, float]:
        """Steps of both plans, with the host, by our cost model."""
        return self.diff["before"]["step_ms"], self.diff["after"]["step_ms"]

    def save(self, path: Any) -> None:
        """Writes the page of both plans, side by side."""
        Path(path).write_text(report(*self.priced), "utf-8")

    def __str__(self) -> str:
        sides, gib = [self.diff[s] for s in ("before", "after")], 2**30
        rows = [
            ("TorchRec's estimator", self.torchrec_ms, ""),
            ("step", self.neuroshard_ms, "step"),
            ("GPU work alone", [side["total_ms"] for side in sides], "work"),
            ("host alone", [side["host_ms"] for side in sides], ""),
        ]
        changed = self.diff["training_changes"]
        lines = [
            "shadow: TorchRec's plan is in place, beside it ours",
            f"{'ms':22}{'TorchRec':>11}{'ours':>11}{'ratio':>9}",
            *(self._line(*row) for row in rows if row[1][1]),
            f"priced by {sides[1]['cost_model']}; to change plans moves "
            f"{self.diff['bytes']['moved'] / gib:.3f} GiB; training changes "
            f"in {', '.join(changed) or 'no table'}",
            self.diff["verdict"],
        ]
        if self.outside:
            names = ", ".join(self.outside[:5])
            lines.append(
                f"priced as if in GPU memory: {len(self.outside)} tables of "
                f"TorchRec's plan ({names} ...)"
            )
        return "\n    ".join(lines)

    def _line(self, name: str, ms: Any, kind: str) -> str:
        error = self.diff.get(f"{kind}_error_frac")
        text = "" if error is None else f" +-{100 * error:.1f} %"
        return f"{name:22}{ms[0]:11.4f}{ms[1]:11.4f}{ms[0] / ms[1]:9.3f}{text}"


def compare(
    planner: Any, model: Any, sharders: Any, plans: List[Any], ours: Placing
) -> Shadow:
    """Prices TorchRec's plan and ours (plans, in this order)."""
    options = planner._enumerator.enumerate(model, sharders)
    cost = ours.plan.json["cost_model"]["name"]
    priced = [price(stock_shards(ours, plans[0]), cost=cost), ours.plan]
    before, after = (estimated_ms(planner, options, plan) for plan in plans)
    outside = [
        table.name
        for table in ours.found
        if plans[0].plan[table.path][table.name].compute_kernel
        not in ("fused", "dense")
    ]
    gain = diff(*priced)
    return Shadow(
        plans[0], plans[1], priced, (before, after), gain, outside
    )


def estimated_ms(planner: Any, options: List[Any], plan: Any) -> float:
    """Returns the time of the slowest rank by the planner's own estimator.
    `options` come from its enumerator, with at least one per table."""
    ranks = [0.0] * planner._topology.world_size
    placed = chosen(planner, options, plan)
    for shard in (shard for option in placed for shard in option.shards):
        ranks[shard.rank] += shard.perf.total
    return max(ranks)


def chosen(planner: Any, options: List[Any], plan: Any) -> List[Any]:
    """Returns the plan as sharding options with ranks and estimates. The
    options are copies of the enumerator's."""
    n_ranks = planner._topology.world_size
    by_table = {(option.path, option.name): option for option in options}
    placed = []
    for path, module in plan.plan.items():
        for name, parameter in module.items():
            option = copy.deepcopy(by_table[path, name])
            option.sharding_type = parameter.sharding_type
            option.compute_kernel = parameter.compute_kernel
            if parameter.cache_params is not None:
                option.cache_params = parameter.cache_params
            option.partition_by = get_partition_by_type(option.sharding_type)
            option.shards = [
                Shard(size=size, offset=offset, rank=rank)
                for offset, size, rank in pieces(
                    parameter, option.tensor.shape, n_ranks
                )
            ]
            placed.append(option)
    planner._enumerator.populate_estimates(placed)
    return placed
