"""Reads the output of 'neuroshard emit --format torchrec'.

    plan = load_plan("plan.json", model, dist.get_world_size())
    model = DistributedModelParallel(module=model, plan=plan)

The keys of the sharded KeyedTensor are ordered by sharding type and rank. Look
outputs up by name, not by their position in values(). The job's dense
optimizer has to update replicas.

A plan of several sharding groups needs DMPCollection in its place:

    groups, pipeline = load_groups("plan.json")
    model = DMPCollection(
        model, device, plan, world_size, global_pg=pg, **groups
    )
    pipeline = TrainPipelineSparseDist(model, optimizer, device, **pipeline)
"""
import json
from typing import Any, Dict, List, Optional, Tuple

from torchrec.distributed import comm
from torchrec.distributed.types import (
    CacheParams,
    EmbeddingModuleShardingPlan,
    EnumerableShardingSpec,
    ParameterSharding,
    ShardingPlan,
    ShardMetadata,
)
from torchrec.modules.embedding_configs import DataType

Json = Dict[str, Any]
CACHE = {"load_factor", "prefetch_pipeline"}  # members of cache_params


def _tables(module: Any) -> Optional[Dict[str, Any]]:
    """Returns {table name: configuration}, or None if module has no tables."""
    for method in ("embedding_bag_configs", "embedding_configs"):
        if hasattr(module, method):
            return {c.name: c for c in getattr(module, method)()}
    return None


def group_size(world_size: int) -> int:
    """Ranks of a host, or of TorchRec's NVLink domain."""
    of_job = getattr(
        comm, "get_topology_group_world_size", comm.get_local_size
    )
    return int(of_job(world_size))


def _check_job(path: str, made_for: Json, world_size: int) -> None:
    """Checks the plan against the hosts that TorchRec assumes for the job."""
    if made_for["world_size"] != world_size:
        raise ValueError(
            f"{path} is for {made_for['world_size']} ranks, "
            f"but this job has {world_size}"
        )
    host, group = comm.get_local_size(world_size), group_size(world_size)
    pod_size = made_for.get("pod_size", 1)
    if made_for["local_world_size"] != host:
        raise ValueError(
            f"{path} is for hosts of {made_for['local_world_size']} "
            f"ranks, but those of this job have {host} "
            "(LOCAL_WORLD_SIZE)"
        )
    if pod_size * host != group:
        raise ValueError(
            f"{path} is for a pod size of {pod_size}, but that of "
            f"this job is {group // host} "
            "(TORCHREC_RESOLVED_POD_SIZE)"
        )


def _check_ranks(name: str, entry: Json, made_for: Json) -> None:
    kind, ranks = entry["sharding_type"], entry["ranks"]
    world_size = made_for["world_size"]
    group = made_for["local_world_size"] * made_for.get("pod_size", 1)
    if "groups" in made_for:  # the ranks are those of one group
        world_size = made_for["groups"]["sharding_group_size"]
        group = made_for["groups"]["node_group_size"]
    if max(ranks) >= world_size:
        raise ValueError(f"{name}: rank {max(ranks)} of {world_size}")
    n = 1
    if kind in ("row_wise", "data_parallel"):
        n = world_size
    elif kind in ("table_row_wise", "grid_shard"):
        n = group
    if len(ranks) % n:
        raise ValueError(
            f"{name}: {kind} over {len(ranks)} ranks, "
            f"but TorchRec takes {n} at a time here"
        )


def _check_shards(name: str, entry: Json) -> None:
    """Refuses different widths on one rank: TorchRec would write into other
    tables."""
    shards, ranks = entry["shards"], entry["ranks"]
    placed = [int(s["placement"].split("/")[0][5:]) for s in shards]
    if placed != ranks:
        text = f"{name}: shards on ranks {placed}, not {ranks}"
        raise ValueError(text)
    widths: Dict[int, int] = {}
    for rank, shard in zip(ranks, shards):
        width = shard["shard_sizes"][1]
        first = widths.setdefault(rank, width)
        if width != first:
            raise ValueError(
                f"{name}: pieces of {first} and of {width} columns "
                f"on rank {rank}, where TorchRec wants one width"
            )


def _placement(shard: Json, device_type: str) -> str:
    rank, device = shard["placement"].split("/")
    if device_type != "cuda":
        device = device_type
    return f"{rank}/{device}"


def _end(shard: Json) -> List[int]:
    offsets, sizes = shard["shard_offsets"], shard["shard_sizes"]
    return [offsets[0] + sizes[0], offsets[1] + sizes[1]]


def _spec(
    name: str, size: List[int], shards: List[Json], device_type: str
) -> Any:
    ends = [max(end) for end in zip(*map(_end, shards))]
    if ends != size:
        raise ValueError(f"{name}: planned as {ends}, but is {size}")
    return EnumerableShardingSpec(
        [
            ShardMetadata(
                shard_offsets=shard["shard_offsets"],
                shard_sizes=shard["shard_sizes"],
                placement=_placement(shard, device_type),
            )
            for shard in shards
        ]
    )


def _cache(name: str, config: Any, entry: Json) -> Optional[CacheParams]:
    """FBGEMM's CUDA operator takes the precision of its cache from the
    weights. It refuses any precision but fp32 and fp16, even if no table is
    cached."""
    types = (DataType.FP32, DataType.FP16)
    if "cache_params" in entry:
        odd = set(entry["cache_params"]) - CACHE
        if odd:
            raise ValueError(f"{name}: cache_params with {sorted(odd)}")
        return CacheParams(**entry["cache_params"])
    if entry["compute_kernel"] == "dense" or config.data_type in types:
        return None
    return CacheParams(precision=DataType.FP32)


def _sharding(
    name: str, config: Any, entry: Json, made_for: Json, device_type: str
) -> Any:
    size = [config.num_embeddings, config.embedding_dim]
    _check_ranks(name, entry, made_for)
    spec = None
    if "shards" in entry:
        _check_shards(name, entry)
        spec = _spec(name, size, entry["shards"], device_type)
    return ParameterSharding(
        sharding_type=entry["sharding_type"],
        compute_kernel=entry["compute_kernel"],
        ranks=entry["ranks"],
        sharding_spec=spec,
        cache_params=_cache(name, config, entry),
    )


def build_plan(made_for: Json, model: Any, device_type: str = "cuda") -> Any:
    """Returns the ShardingPlan of the parsed file for model. Does not check
    the job."""
    modules = made_for["plan"]
    found = {name: _tables(part) for name, part in model.named_modules()}
    for name, tables in found.items():
        named = any(f"{name}.".startswith(f"{m}.") for m in modules)
        if tables is not None and not named and "" not in modules:
            raise ValueError(f"module {name} is not in the plan")
    plan = {}
    for module, entries in modules.items():
        tables = found.get(module)
        if tables is None:
            raise ValueError(f"the model has no tables in {module}")
        if set(tables) != set(entries):
            odd = sorted(set(tables) ^ set(entries))
            raise ValueError(f"{module}: tables of one side: {odd}")
        plan[module] = EmbeddingModuleShardingPlan(
            {
                name: _sharding(
                    name, tables[name], entry, made_for, device_type
                )
                for name, entry in entries.items()
            }
        )
    return ShardingPlan(plan)


def load_constraints(path: str) -> Dict[str, Any]:
    """Returns the ParameterConstraints of each table in the output of
    'neuroshard emit --format torchrec-constraints'."""
    from torch import tensor
    from torchrec.distributed.planner import shard_estimators, types

    with open(path, encoding="utf-8") as file:
        tables: Dict[str, Json] = json.load(file)
    for members in tables.values():
        cache = members.get("cache_params", {})
        if "stats" in cache:
            stats = cache["stats"]
            stats["mrc_hist_counts"] = tensor(stats["mrc_hist_counts"])
            cache["stats"] = shard_estimators.EmbeddingOffloadStats(**stats)
        if cache:
            members["cache_params"] = CacheParams(**cache)
    return {
        name: types.ParameterConstraints(**members)
        for name, members in tables.items()
    }


def load_groups(path: str) -> Tuple[Json, Json]:
    """Returns arguments of DMPCollection, and of the training pipeline.

    Raises ValueError if the plan at path has one group, so that it needs
    DistributedModelParallel.
    """
    with open(path, encoding="utf-8") as file:
        groups = dict(json.load(file).get("groups", {}))
    if not groups:
        raise ValueError(f"{path} is a plan of one group")
    interval = "dmp_collection_sync_interval_batches"
    pipeline = {interval: groups.pop(interval)}
    return groups, pipeline


def load_plan(
    path: str, model: Any, world_size: int, device_type: str = "cuda"
) -> Any:
    """Returns the ShardingPlan at path for model, which is not sharded yet.

    Raises ValueError if the plan does not match the job or the model, because
    DistributedModelParallel ignores tables that the plan lacks.
    """
    with open(path, encoding="utf-8") as file:
        made_for = json.load(file)
    _check_job(path, made_for, world_size)
    return build_plan(made_for, model, device_type)
