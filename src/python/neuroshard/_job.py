# SPDX-License-Identifier: MIT
"""Translates a TorchRec topology to options of the program."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

import torch
from torchrec.distributed.planner import constants
from torchrec.distributed.planner.types import BasicCommsBandwidths

from . import Error

DEVICES = ("cuda", "cpu")
ASSUMED = "h100"
# Plausible range of each bandwidth in GB/s. TorchRec's bandwidths are in bytes
# per millisecond; a value outside its range was most likely given in another
# unit.
PLAUSIBLE_GBPS = {
    "intra_host_bw": (1, 20_000),
    "inter_host_bw": (0.05, 4_000),
    "hbm_mem_bw": (1, 100_000),
    "ddr_mem_bw": (1, 10_000),
}


class Gpu(NamedTuple):
    """The GPU type that is planned for.

    option  -- option of the program; None if the cost model sets the GPU
    why     -- where the type comes from, for the log
    is_told -- the driver reported the name, so the program may not know it
    """

    option: Optional[str]
    why: str
    is_told: bool = False

    def assumed(self) -> Gpu:
        """Replaces a GPU that the program does not know by an H100."""
        return Gpu(ASSUMED, f"assumed, as '{self.option}' is not known")


def gpu(topology: Any, asked: Mapping[str, Any]) -> Gpu:
    """The GPU of the options; by default the GPU of this machine, or else an
    H100."""
    if asked.get("gpu") is not None:
        return Gpu(asked["gpu"], "as asked")
    if asked.get("cost") is not None:
        return Gpu(None, "by the cost model")
    if topology.compute_device == "cpu":
        return Gpu("cpu", "a CPU job")
    if torch.cuda.is_available():
        name = torch.cuda.get_device_name()
        option = name if " " in name else f"cuda:{name}"
        return Gpu(option, "as its driver says", is_told=True)
    return Gpu(ASSUMED, "assumed, as no GPU is here")


def group(topology: Any) -> int:
    """Ranks of an NVLink domain. Older versions know only hosts."""
    n = getattr(topology, "intra_group_size", topology.local_world_size)
    return int(n)


def job(
    topology: Any, left: Any, batch_size: int, asked: Mapping[str, Any]
) -> Dict[str, Any]:
    """Returns all options for the topology. `left` is the topology with the
    memory that a storage reservation has left. Options that the user asked for
    take precedence."""
    _check(topology)
    options: Dict[str, Any] = {
        "batch_per_gpu": batch_size,
        **_bandwidths(topology),
        **asked,
    }
    if options.get("cost") == "torchrec":
        options["cost"] = torchrec_cost(topology)
    memory = [_memory(topology, device) for device in topology.devices]
    free = [_memory(topology, device) for device in left.devices]
    used = [max(0, had - has) for had, has in zip(memory, free)]
    if "memory" in options:
        memory = [_size(options.pop("memory"))] * len(memory)
    if "reserve" in options:
        used = [0] * len(memory)
    n = topology.local_world_size
    hosts = [
        {"gpus": n, "memory": memory[i : i + n], "used": used[i : i + n]}
        for i in range(0, len(memory), n)
    ]
    hosts = _of_groups(hosts, options)
    cluster = {"hosts": hosts, "pod_size": group(topology) // n}
    return {"cluster": cluster, "reserve": 0, **options}


def add_measured(options: Dict[str, Any], path: Any) -> None:
    """Adds the slow ranks and the bandwidth of the cluster file that `watch`
    writes beside the table list `path`, if it has hosts like the job."""
    file = Path(path).with_suffix(".json")
    if options.get("groups", 1) != 1 or not file.exists():
        return
    measured, cluster = json.loads(file.read_bytes()), options["cluster"]
    slow = [host["slowdown"] for host in measured["hosts"]]
    hosts = cluster["hosts"]
    if [len(each) for each in slow] != [host["gpus"] for host in hosts]:
        return
    if any(x > 1 for each in slow for x in each):
        cluster["hosts"] = [
            {**host, "slowdown": each} for host, each in zip(hosts, slow)
        ]
    for name in ("intra_gbps", "inter_gbps"):
        options.update({name: measured[name]} if name in measured else {})


def _of_groups(
    hosts: List[Dict[str, Any]], options: Dict[str, Any]
) -> List[Dict[str, Any]]:
    """Hosts of the whole job, if it has several sharding groups. The topology
    is that of one group. Contiguous groups follow each other; strided groups
    share each host."""
    count = options.get("groups", 1)
    if not isinstance(count, int):
        raise Error(
            f"groups is {count!r}, but the topology is that of one group of a "
            "known number",
            2,
        )
    if count == 1:
        return hosts
    if options.setdefault("groups_layout", "contiguous") != "strided":
        return hosts * count
    return [
        {
            "gpus": host["gpus"] * count,
            **{
                key: [size for size in host[key] for _ in range(count)]
                for key in ("memory", "used")
            },
        }
        for host in hosts
    ]


def _size(asked: Any) -> int:
    """Bytes of an option of the program, such as "80GiB" or "80 GB"."""
    text = str(asked).lower()
    found = re.fullmatch(r"([0-9]+\.?[0-9]*) ?([kmgt]?)(i?)b?", text)
    if found is None:
        raise Error(f"memory is '{asked}', not a size such as 80GiB", 2)
    number, letter, binary = found.groups()
    base = 1000 if letter and text.endswith("b") and not binary else 1024
    power = "kmgt".index(letter) + 1 if letter else 0
    return round(float(number) * float(base) ** power)


def _check(topology: Any) -> None:
    """Checks the device type, and that hosts and NVLink domains are whole."""
    if topology.compute_device not in DEVICES:
        raise Error(
            f"the topology's compute_device is {topology.compute_device}, but "
            f"{' and '.join(DEVICES)} are planned for",
            1,
        )
    n_ranks, n_local = topology.world_size, topology.local_world_size
    n_group = group(topology)
    if n_ranks % n_local:
        raise Error(
            f"world_size {n_ranks} is no whole number of hosts with a "
            f"local_world_size of {n_local}",
            1,
        )
    if n_group % n_local or n_ranks % n_group:
        raise Error(
            f"world_size {n_ranks} is no whole number of NVLink domains with "
            f"{n_group} ranks on hosts of {n_local}",
            1,
        )


def _gbps(topology: Any, member: str) -> float:
    value = float(getattr(topology, member))
    least, most = PLAUSIBLE_GBPS[member]
    if not least <= value / 1e6 <= most:
        raise Error(
            f"{member} of the topology is {value:g} bytes a millisecond, "
            f"{value / 1e6:g} GB/s: it is most likely in another unit (450 "
            "GB/s are 4.5e8)",
            1,
        )
    return value / 1e6


def _bandwidths(topology: Any) -> Dict[str, float]:
    """Bandwidths in GB/s. Left out if they are TorchRec's defaults, which are
    the same for all GPUs."""
    return {
        option: _gbps(topology, member)
        for option, member, assumed in (
            ("intra_gbps", "intra_host_bw", "INTRA_NODE_BANDWIDTH"),
            ("inter_gbps", "inter_host_bw", "CROSS_NODE_BANDWIDTH"),
        )
        if getattr(topology, member) != getattr(constants, assumed, None)
    }


def _memory(topology: Any, device: Any) -> int:
    storage = device.storage
    return int(
        storage.ddr if topology.compute_device == "cpu" else storage.hbm
    )


def torchrec_cost(topology: Any) -> str:
    """TorchRec's cost model with the bandwidths (GiB/s) and the multiplier of
    the topology."""
    if type(topology.comms_bandwidths) is not BasicCommsBandwidths:
        raise Error(
            "generalized_comms_bandwidths of the topology is a "
            f"{type(topology.comms_bandwidths).__name__}, whose formulas cost "
            "'torchrec' does not have",
            1,
        )
    of_memory = "ddr" if topology.compute_device == "cpu" else "hbm"
    settings = {}
    for name, member in (
        ("hbm", f"{of_memory}_mem_bw"),
        ("intra", "intra_host_bw"),
        ("inter", "inter_host_bw"),
    ):
        _gbps(topology, member)
        settings[name] = getattr(topology, member) / (2**30 / 1000)
    backward = float(topology.bwd_compute_multiplier)
    if backward != constants.BWD_COMPUTE_MULTIPLIER:
        settings["backward"] = backward
    return "torchrec:" + ",".join(f"{k}={x!r}" for k, x in settings.items())
