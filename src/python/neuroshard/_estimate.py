# SPDX-License-Identifier: MIT
"""Plans that fit the memory by TorchRec's own estimate, but not by ours."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from . import Error, _placing, _shadow, _stock

NO_PLAN = 3  # exit status of the program
FACTORS = (1.02, 1.1, 1.3)  # of the memory of a GPU
TRIES = 5


def place(
    planner: Any,
    model: Any,
    run: Callable[[Dict[str, Any]], _placing.Placing],
    options: Dict[str, Any],
) -> Tuple[_placing.Placing, str]:
    """Runs the program with the options. If nothing fits by its count of
    memory, returns a plan that fits by the estimate of the planner's
    enumerator, and a note that says so. Raises the program's error if there is
    no such plan, either."""
    try:
        return run(options), ""
    except Error as error:
        if error.status != NO_PLAN or "memory_model" in options:
            raise
        placing = _by_estimate(planner, model, run, options)
        if placing is None:
            raise
        return placing, (
            "the plan fits the memory by TorchRec's estimate, but not by "
            f"ours: {error}"
        )


def _by_estimate(
    planner: Any,
    model: Any,
    run: Callable[[Dict[str, Any]], _placing.Placing],
    options: Dict[str, Any],
) -> Optional[_placing.Placing]:
    """Plans for GPUs of somewhat more memory, and then by the weights alone,
    where it keeps free what the estimate counts in addition, until a plan fits
    by the estimate."""
    cluster, topology, more = options["cluster"], planner._topology, 0
    for n in range(len(FACTORS) + TRIES):
        is_larger = n < len(FACTORS)
        if is_larger:
            asked = {"cluster": _larger(cluster, FACTORS[n])}
        else:
            asked = {"cluster": _fuller(cluster, more)}
            asked["memory_model"] = "weights"
        try:
            placing = run({**options, **asked})
        except Error as error:
            if error.status != NO_PLAN:
                raise
            if is_larger:
                continue
            return None
        sharding = placing.sharding_plan(
            model, topology, planner._constraints or {}
        )
        chosen = _shadow.chosen(planner, planner._search_space, sharding)
        taken = _stock.memory(
            chosen, topology.world_size, topology.compute_device
        )
        free = [
            memory - used
            for host in cluster["hosts"]
            for memory, used in zip(host["memory"], host["used"])
        ]
        if all(a <= b for a, b in zip(taken, free)):
            return placing
        if not is_larger:
            devices = placing.plan.json["devices"]
            weights = [one["memory_bytes"]["weights"] for one in devices]
            more = max(more, *(a - b for a, b in zip(taken, weights)))
    return None


def _larger(cluster: Dict[str, Any], factor: float) -> Any:
    """Returns the cluster with `factor` times the memory of each GPU."""
    return _stock.on_hosts(
        cluster,
        lambda host: {"memory": [round(m * factor) for m in host["memory"]]},
    )


def _fuller(cluster: Dict[str, Any], more: int) -> Any:
    """Returns the cluster with `more` bytes of each GPU in use."""
    return _stock.on_hosts(
        cluster,
        lambda host: {
            "used": [
                min(used + more, memory)
                for used, memory in zip(host["used"], host["memory"])
            ]
        },
    )
