# SPDX-License-Identifier: MIT
"""Plans that fit the memory by TorchRec's own estimate, but not by ours."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from . import Error, _placing, _shadow, _stock

NO_PLAN = 3  # exit status of the program
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
    """Plans by the weights alone, and keeps free what the estimate counts in
    addition, until a plan fits by the estimate."""
    topology = planner._topology
    hosts = options["cluster"]["hosts"]
    memory = _flat(hosts, "memory")
    used = _flat(hosts, "used")
    more = 0
    for _ in range(TRIES):
        try:
            placing = run(
                {**options, "memory_model": "weights"}
                | {"cluster": _with_more(options["cluster"], more)}
            )
        except Error as error:
            if error.status != NO_PLAN:
                raise
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
