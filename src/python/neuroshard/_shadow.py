# SPDX-License-Identifier: MIT
"""Compares TorchRec's plan and ours for one job; each is priced by both
planners."""
from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any, List, Optional, Tuple

from torchrec.distributed.planner.enumerators import get_partition_by_type
from torchrec.distributed.planner.types import Shard

from . import Plan, _program
from ._placing import Placing, pieces, stock_shards


@dataclasses.dataclass
class Shadow:
    """Gain of our plan over TorchRec's.

    stock, ours     -- the ShardingPlans
    torchrec_ms     -- slowest rank's time of both, by TorchRec's estimator
    neuroshard_ms   -- step time of both, by our cost model
    gain_error_frac -- error of the ratio of these step times: the true ratio
                       is within it nine times in ten; None if not known
    cost_model      -- name of our cost model
    moved_bytes     -- weights and optimizer state that change their rank
    outside         -- tables that TorchRec's plan keeps in other memory than
                       the rank's own; priced as if they were in the rank's own
    """

    stock: Any
    ours: Any
    torchrec_ms: Tuple[float, float]
    neuroshard_ms: Tuple[float, float]
    gain_error_frac: Optional[float]
    cost_model: str
    moved_bytes: int
    outside: List[str]

    def __str__(self) -> str:
        error = self.gain_error_frac
        lines = [
            "shadow: TorchRec's plan is in place, beside it ours",
            f"{'ms':32}{'TorchRec':>11}{'ours':>11}{'ratio':>9}",
            _line("TorchRec's estimator", self.torchrec_ms, ""),
            _line(
                self.cost_model,
                self.neuroshard_ms,
                ", error not known" if error is None else f" +-{error:.3f}",
            ),
            f"to change plans moves {self.moved_bytes / 2**30:.3f} GiB",
        ]
        if self.outside:
            names = ", ".join(self.outside[:5])
            lines.append(
                f"priced as if in GPU memory: {len(self.outside)} tables of "
                f"TorchRec's plan ({names} ...)"
            )
        return "\n    ".join(lines)


def _line(name: str, ms: Tuple[float, float], error: str) -> str:
    ratio = ms[0] / ms[1] if ms[1] else float("nan")
    return f"{name:32}{ms[0]:11.4f}{ms[1]:11.4f}{ratio:9.3f}{error}"


def compare(
    planner: Any, model: Any, sharders: Any, plans: List[Any], ours: Placing
) -> Shadow:
    """Prices TorchRec's plan and ours (plans, in this order)."""
    options = planner._enumerator.enumerate(model, sharders)
    torchrec_ms = [estimated_ms(planner, options, plan) for plan in plans]
    stock = stock_shards(ours, plans[0])
    with _program.folder() as folder:
        paths = [str(folder / name) for name in ("stock.json", "ours.json")]
        for path, plan in zip(paths, (stock, ours.plan.json)):
            Plan(plan).save(path)
        diff = json.loads(_program.run(["diff", *paths, "--json"]))
    before, after = diff["before"], diff["after"]
    return Shadow(
        stock=plans[0],
        ours=plans[1],
        torchrec_ms=(torchrec_ms[0], torchrec_ms[1]),
        neuroshard_ms=(before["total_ms"], after["total_ms"]),
        gain_error_frac=diff["gain_error_frac"],
        cost_model=after["cost_model"],
        moved_bytes=diff["bytes"]["moved"],
        outside=[
            table.name
            for table in ours.found
            if plans[0].plan[table.path][table.name].compute_kernel
            not in ("fused", "dense")
        ],
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
