# SPDX-License-Identifier: MIT
"""Tables that stay where TorchRec's own planner puts them: their memory, time
and kinds of sharding on each rank."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Set, Tuple

from . import Error, Plan
from ._model import Found, Kept

# Phases of a cluster file and the members of TorchRec's Perf.
PHASES = (
    ("input", "input_dist_comms"),
    ("cache", "prefetch_compute"),
    ("forward", "fwd_compute"),
    ("output", "fwd_comms"),
    ("gradient", "bwd_comms"),
    ("backward", "bwd_compute"),
)
UNLIMITED = 1 << 60
OF_SEARCH = (
    *("search", "effort", "time_limit", "beam", "depth", "trace", "wire"),
    *("from", "from_", "move_limit", "simplest_within", "reserve"),
)


class Stock(NamedTuple):
    """Plan of TorchRec's own planner.

    sharding -- the ShardingPlan of all tables
    rest     -- its options for tables that the program does not place
    ordinary -- its options for all other tables
    """

    sharding: Any
    rest: List[Any]
    ordinary: List[Any]

    def memory(self, n_ranks: int, device: str) -> List[int]:
        """Bytes of `rest` on each rank, by the planner's own estimator."""
        return memory(self.rest, n_ranks, device)

    def busy(self, n_ranks: int, ratio: float) -> Dict[str, List[float]]:
        """Time of `rest` on each rank by phase, in ms of our cost model."""
        times = {phase: [0.0] * n_ranks for phase, _ in PHASES}
        for shard in _shards(self.rest):
            for phase, member in PHASES:
                ms = float(getattr(shard.perf, member, 0.0) or 0.0)
                times[phase][shard.rank] += ms * ratio
        return times

    def n_kinds(self) -> int:
        """Kinds of sharding of `rest`: each has operations of its own."""
        kinds = {
            (option.sharding_type, option.compute_kernel, option.is_pooled)
            for option in self.rest
        }
        return len(kinds)


def split(sharding: Any, options: List[Any], found: List[Found]) -> Stock:
    """Returns the stock plan, whose sharding options are `options`."""
    ours: Set[Tuple[str, str]] = {(table.path, table.name) for table in found}
    rest = [o for o in options if (o.path, o.name) not in ours]
    ordinary = [o for o in options if (o.path, o.name) in ours]
    return Stock(sharding, rest, ordinary)


def memory(options: List[Any], n_ranks: int, device: str) -> List[int]:
    """Bytes of options on each rank, by the planner's own estimator."""
    taken = [0] * n_ranks
    for shard in _shards(options):
        storage = shard.storage
        size = storage.ddr if device == "cpu" else storage.hbm
        taken[shard.rank] += int(size)
    return taken


def _shards(options: List[Any]) -> List[Any]:
    return [shard for option in options for shard in option.shards]


def ratio(stock: Stock, priced: Plan) -> float:
    """Returns ms of our cost model per ms of TorchRec's estimator, from the
    tables that both price, without the exchange of ids, which is not in
    TorchRec's total. priced: the stock plan of these tables."""
    theirs = sum(shard.perf.total for shard in _shards(stock.ordinary))
    ours = sum(
        sum(ms for p, ms in device["phases_ms"].items() if ms and p != "input")
        if device.get("phases_ms")
        else device["total_ms"]
        for device in priced.json["devices"]
    )
    return float(ours / theirs) if theirs > 0 and ours > 0 else 1.0


def beside(
    options: Mapping[str, Any], stock: Stock, device: str, ratio: float
) -> Dict[str, Any]:
    """Returns the options of the program for a job whose ranks already hold
    `rest` of the stock plan. ratio: ms of our cost model per ms of
    TorchRec's estimator."""
    cluster = options["cluster"]
    n = cluster["hosts"][0]["gpus"]
    n_ranks = n * len(cluster["hosts"])
    taken, times = stock.memory(n_ranks, device), stock.busy(n_ranks, ratio)
    hosts = []
    for i, host in enumerate(cluster["hosts"]):
        part = slice(i * n, (i + 1) * n)
        used = [a + b for a, b in zip(host["used"], taken[part])]
        over = [a - b for a, b in zip(used, host["memory"]) if a > b]
        if over:
            raise Error(
                "no plan fits: tables that stay where TorchRec's planner puts "
                f"them exceed the memory of a GPU by {max(over)} bytes",
                3,
            )
        busy = {phase: list(ms[part]) for phase, ms in times.items()}
        hosts.append({**host, "used": used, "busy_ms": busy})
    return {
        **options,
        "cluster": {**cluster, "hosts": hosts, "other_kinds": stock.n_kinds()},
    }


def on_hosts(
    cluster: Mapping[str, Any],
    change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> Dict[str, Any]:
    """Returns the cluster with the members that `change` gives each host."""
    hosts = [{**host, **change(host)} for host in cluster["hosts"]]
    return {**cluster, "hosts": hosts}


def unlimited(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the options with unlimited memory, for a first plan whose prices
    and not whose shards are needed."""
    free = {"memory": UNLIMITED, "used": 0}
    return {
        **{key: v for key, v in options.items() if key not in OF_SEARCH},
        "cluster": on_hosts(options["cluster"], lambda _: free),
        **{"effort": 0, "no_rivals": True, "reserve": 0},
    }


def described(kept: List[Kept]) -> str:
    """Names the tables, and why they are kept."""
    shown = [f"{table.name} {table.why}" for table in kept[:3]]
    return ", ".join(shown + ["..."] * (len(kept) > 3))
