# SPDX-License-Identifier: MIT
"""Plans that fit the memory by TorchRec's own estimate, but not by ours."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

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
    cluster = options["cluster"]
    memory = _flat(cluster["hosts"], "memory")
    used = _flat(cluster["hosts"], "used")
    topology, more = planner._topology, 0
    clusters = [_with_memory(cluster, factor) for factor in FACTORS]
    for n in range(len(FACTORS) + TRIES):
        asked: Dict[str, Any] = {**options}
        if n < len(FACTORS):
            asked["cluster"] = clusters[n]
        else:
            asked["cluster"] = _with_more(cluster, more)
            asked["memory_model"] = "weights"
        try:
            placing = run(asked)
        except Error as error:
            if error.status != NO_PLAN:
                raise
            if n < len(FACTORS):
                continue
            return None
        sharding = placing.sharding_plan(
            model, topology, planner._constraints or {}
        )
        chosen = _shadow.chosen(planner, planner._search_space, sharding)
        taken = _stock.memory(
            chosen, topology.world_size, topology.compute_device
        )
        if all(a + b <= c for a, b, c in zip(taken, used, memory)):
            return placing
        if n >= len(FACTORS):
            weights = [
                device["memory_bytes"]["weights"]
                for device in placing.plan.json["devices"]
            ]
            more = max(more, *(a - b for a, b in zip(taken, weights)))
    return None


def _flat(hosts: List[Dict[str, Any]], member: str) -> List[int]:
    return [size for host in hosts for size in host[member]]


def _with_more(cluster: Dict[str, Any], more: int) -> Dict[str, Any]:
    """Returns the cluster with `more` bytes of each GPU in use."""
    hosts = [
        {
            **host,
            "used": [
                min(used + more, memory)
                for used, memory in zip(host["used"], host["memory"])
            ],
        }
        for host in cluster["hosts"]
    ]
    return {**cluster, "hosts": hosts}


def _with_memory(cluster: Dict[str, Any], factor: float) -> Dict[str, Any]:
    """Returns the cluster with `factor` times the memory of each GPU."""
    hosts = [
        {**host, "memory": [round(size * factor) for size in host["memory"]]}
        for host in cluster["hosts"]
    ]
    return {**cluster, "hosts": hosts}
