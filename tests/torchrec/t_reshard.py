# SPDX-License-Identifier: MIT
"""diff --format reshard on pairs of drawn plans: its list equals what
TorchRec's output_sharding_plans_delta finds, its volume is TorchRec's, and its
bytes are those of the columns that change their rank."""
import json
import random
import tempfile
from pathlib import Path

from tap import finish, neuroshard, ok
from torch.distributed._shard.sharding_spec import (
    EnumerableShardingSpec,
    ShardMetadata,
)
from torchrec.distributed.sharding.dynamic_sharding import (
    output_sharding_plans_delta,
)
from torchrec.distributed.types import (
    EmbeddingModuleShardingPlan,
    ParameterSharding,
)

N_PAIRS = 50
MODULE = "model.ebc"


def draw_pieces(rng, dim, n_ranks, whole):
    """Column pieces of a table on distinct ranks, as (rank, begin, end)."""
    n = 1 if whole else rng.choice((1, 2, 2, 3))
    n = min(n, n_ranks, dim // 4)
    cuts = sorted(rng.sample(range(1, dim // 4), n - 1))
    bounds = [0, *(4 * c for c in cuts), dim]
    ranks = rng.sample(range(n_ranks), n)
    return list(zip(ranks, bounds, bounds[1:]))


def entry_of(rows, pieces, kind):
    return {
        "sharding_type": kind,
        "compute_kernel": "fused",
        "ranks": [rank for rank, _, _ in pieces],
        "shards": [
            {
                "shard_offsets": [0, begin],
                "shard_sizes": [rows, end - begin],
                "placement": f"rank:{rank}/cuda:{rank}",
            }
            for rank, begin, end in pieces
        ],
    }


def parameter_of(entry):
    shards = [
        ShardMetadata(s["shard_offsets"], s["shard_sizes"], s["placement"])
        for s in entry["shards"]
    ]
    return ParameterSharding(
        sharding_type=entry["sharding_type"],
        compute_kernel=entry["compute_kernel"],
        ranks=entry["ranks"],
        sharding_spec=EnumerableShardingSpec(shards),
    )


def moved_columns(old, new):
    """Columns that are on another rank after the change."""
    owner = {c: rank for rank, a, b in old for c in range(a, b)}
    return sum(owner[c] != rank for rank, a, b in new for c in range(a, b))


def draw_pair(rng):
    n_ranks = rng.choice((2, 4, 8))
    whole = rng.random() < 0.3
    tables, plans = {}, ({}, {})
    for i in range(rng.randrange(2, 12)):
        rows, dim = rng.randrange(1, 5000), rng.choice((16, 64, 128))
        name = f"t{i}"
        old = draw_pieces(rng, dim, n_ranks, whole)
        # plans that cut no table by columns are of another sharding type
        if i == 0 and not whole:
            old = [(0, 0, 8), (1, 8, dim)]
        new = old
        if i and rng.random() < 0.6:
            new = draw_pieces(rng, dim, n_ranks, whole)
        tables[name] = (rows, dim, old, new)
        kind = "table_wise" if whole else "column_wise"
        for plan, pieces in zip(plans, (old, new)):
            plan[name] = entry_of(rows, pieces, kind)
    return n_ranks, tables, plans


def delta_of(plans):
    old, new = [
        {
            MODULE: EmbeddingModuleShardingPlan(
                {name: parameter_of(entry) for name, entry in plan.items()}
            )
        }
        for plan in plans
    ]
    volume, delta = output_sharding_plans_delta(old, new, True)[MODULE]
    return volume * 2**20, set(delta)


def run_diff(folder, n_ranks, tables, plans):
    (folder / "tables.csv").write_text(
        "name,num_embeddings,dim,pooling_factor,optimizer\n"
        + "".join(
            f"{name},{rows},{dim},1,sgd\n"
            for name, (rows, dim, _, _) in tables.items()
        ),
        encoding="utf-8",
    )
    for name, plan in zip(("old.json", "new.json"), plans):
        whole = {"world_size": n_ranks, "local_world_size": n_ranks}
        whole["plan"] = {MODULE: plan}
        (folder / name).write_text(json.dumps(whole), encoding="utf-8")
    status, text, said = neuroshard(
        *["diff", str(folder / "old.json"), str(folder / "new.json")],
        *["--tables", str(folder / "tables.csv"), "--batch", "1024"],
        *["--format", "reshard", "--json"],
    )
    assert status == 0, said
    return json.loads(text)


def main():
    rng, faults = random.Random(3), []
    n_moved = n_unseen = 0
    with tempfile.TemporaryDirectory() as scratch:
        for i in range(N_PAIRS):
            n_ranks, tables, plans = draw_pair(rng)
            volume, delta = delta_of(plans)
            found = run_diff(Path(scratch), n_ranks, tables, plans)
            names = {t["name"].split(".")[-1] for t in found["reshard"]}
            kept = {t["name"].split(".")[-1] for t in found["checkpoint"]}
            unseen = {
                name
                for name, (_, _, old, new) in tables.items()
                if old != new and name not in delta
            }
            n_moved += len(names)
            n_unseen += len(unseen)
            if names != delta or kept != unseen:
                faults.append((i, names, delta, kept, unseen))
            if abs(found["torchrec_bytes"] - volume) > 1:
                faults.append((i, found["torchrec_bytes"], volume))
            for table in found["reshard"]:
                rows, _, old, new = tables[table["name"].split(".")[-1]]
                if table["moved_bytes"] != 4 * rows * moved_columns(old, new):
                    faults.append((i, table))
    ok(
        not faults and n_moved > N_PAIRS,
        f"{n_moved} tables of {N_PAIRS} pairs, {n_unseen} unseen by reshard",
        str(faults[:3]),
    )


main()
finish()
