# SPDX-License-Identifier: MIT
"""The ranks of sharding groups, against TorchRec's own code: 100 plans are
emitted, loaded and remapped by DMPCollection for every rank of the job. It
needs no process group, only a mesh of numbers. Speaks TAP; NEUROSHARD is the
program.
"""
import json
import os
import random
import subprocess
import tempfile
from unittest import mock

import torch
from torchrec.distributed import model_parallel
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection

import planner_models
from neuroshard import _loader
from tap import finish, ok

N_PLANS = 100
# GPUs, GPUs of a host, groups, layout
SHAPES = [
    (16, 8, 2, "contiguous"),
    (16, 8, 4, "contiguous"),
    (16, 8, 2, "strided"),
    (16, 8, 4, "strided"),
    (8, 2, 2, "contiguous"),
    (8, 4, 8, "contiguous"),
    (24, 8, 3, "contiguous"),
]


class Mesh:
    """A DeviceMesh of numbers without process groups."""

    def __init__(self, mesh, **_):
        self.mesh = mesh

    def get_group(self, mesh_dim):
        return mesh_dim

    def __getitem__(self, name):
        return name


class Model(torch.nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.ebc = EmbeddingBagCollection(
            device=torch.device("meta"),
            tables=[
                EmbeddingBagConfig(
                    name=name,
                    num_embeddings=n,
                    embedding_dim=dim,
                    feature_names=[f"f_{name}"],
                )
                for name, n, dim, _ in rows
            ],
        )


def run(*args):
    return subprocess.run(
        [os.environ["NEUROSHARD"], *map(str, args)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def make_plan(rng, folder, shape):
    """Returns the path of an emitted plan, the plan and its tables."""
    gpus, per_host, groups, layout = shape
    rows = [
        *((f"t{i}", int(10 ** rng.uniform(3, 6.5)), rng.choice([32, 128]),
           rng.randrange(1, 60)) for i in range(rng.randrange(2, 9))),
    ]
    path = f"{folder}/list.csv"
    with open(path, "w", encoding="utf-8") as file:
        file.write("name,num_embeddings,dim,pooling_factor\n")
        file.writelines(f"{','.join(map(str, row))}\n" for row in rows)
    plan, emitted = f"{folder}/plan.json", f"{folder}/torchrec.json"
    run(
        *("plan", path, "--gpus", gpus, "--gpus-per-host", per_host),
        *("--groups", groups, "--groups-layout", layout, "--sync-every", 50),
        *("--cost", "roofline:h100", "--effort", 300, "--no-rivals"),
        *("--batch", 48 * 1024, "--simplest-within", "0%", "-o", plan),
    )
    run("emit", plan, "--format", "torchrec", "--module", "ebc", "-o", emitted)
    with open(plan, encoding="utf-8") as file:
        return emitted, json.load(file), rows


def our_rank(plan, group, device):
    n, count = plan["cluster"]["gpus"], plan["groups"]["count"]
    if plan["groups"]["layout"] == "contiguous":
        return group * n + device
    return device * count + group


def our_ranks(plan, group):
    """Ranks of the shards of each table in a group, by name."""
    ranks = {}
    for shard in plan["shards"]:
        name = plan["tables"][shard["table"]]["name"]
        rank = our_rank(plan, group, shard["device"])
        ranks.setdefault(name, set()).add(rank)
    return ranks


def check_rank(plan, emitted, model, rank, arguments):
    """Remaps the plan for a rank as DMPCollection does. Returns the first
    difference to our ranks, or None."""
    n, count = plan["cluster"]["gpus"], plan["groups"]["count"]
    per_host = plan["groups"]["gpus_per_host"]
    collection = model_parallel.DMPCollection.__new__(
        model_parallel.DMPCollection
    )
    torch.nn.Module.__init__(collection)
    collection._device = torch.device("cuda")
    inter = arguments["use_inter_host_allreduce"]
    with (
        mock.patch.object(model_parallel, "DeviceMesh", Mesh),
        mock.patch.object(
            model_parallel, "get_local_size", lambda *_: per_host
        ),
        mock.patch.object(model_parallel.logger, "warning"),
    ):
        mesh, _, _ = collection._create_process_groups(
            rank, n * count, arguments["sharding_group_size"], inter
        )
        sharding = _loader.build_plan(emitted, model)
        collection._remap_sharding_plan(
            sharding, rank, count, arguments["sharding_group_size"], inter
        )
    groups = [[our_rank(plan, g, r) for r in range(n)] for g in range(count)]
    if mesh.mesh != groups:
        return f"groups {mesh.mesh}, ours {groups}"
    group = next(g for g, ranks in enumerate(groups) if rank in ranks)
    ours = our_ranks(plan, group)
    for name, parameter in sharding.plan["ebc"].items():
        spec = parameter.sharding_spec
        held = {
            s.placement.rank()
            for s in (spec.shards if spec else [])
            if s.shard_sizes[0]
        }
        if spec is None:
            held = set(parameter.ranks)
        elif any(
            s.placement.device().index != s.placement.rank() % per_host
            for s in spec.shards
        ):
            return f"{name}: a GPU that is not its rank's"
        if held != ours[name]:
            return f"{name}: ranks {held}, ours {ours[name]}"
    return None


def check(rng, folder, shape):
    path, plan, rows = make_plan(rng, folder, shape)
    with open(path, encoding="utf-8") as file:
        emitted = json.load(file)
    arguments, pipeline = _loader.load_groups(path)
    model = Model(rows)
    groups = plan["groups"]
    size = plan["cluster"]["gpus"]
    wrong = None
    if arguments["sharding_group_size"] != size:
        wrong = "sharding_group_size"
    host = groups["gpus_per_host"]
    nodes = min(host, size)
    if groups["layout"] == "strided":
        nodes = host // groups["count"]
    if arguments["node_group_size"] != nodes:
        wrong = f"node_group_size {arguments['node_group_size']}, not {nodes}"
    if pipeline != {"dmp_collection_sync_interval_batches": 50}:
        wrong = f"interval {pipeline}"
    for rank in range(size * groups["count"]):
        wrong = wrong or check_rank(plan, emitted, model, rank, arguments)
    return wrong


def check_planner():
    """NeuroShardPlanner with the topology of one group."""
    for layout, hosts in (("contiguous", 2), ("strided", 4)):
        model, constraints = planner_models.shipped("criteo_kaggle_26")
        _, planner = planner_models.planned(
            torch.nn.ModuleDict({"ebc": model}),
            constraints=constraints,
            arguments={
                "topology": planner_models.topology(4, local_world_size=2)
            },
            groups=2,
            groups_layout=layout,
            sync_every=100,
        )
        plan = planner.neuroshard_plan.json
        groups, cluster = plan["groups"], plan["cluster"]
        ok(
            groups["count"] == 2
            and groups["layout"] == layout
            and groups["gpus_per_host"] == hosts
            and groups["node_group_size"] == 2
            and groups["sync_every"] == 100,
            f"planner: two {layout} groups",
            str(groups),
        )
        ok(
            cluster["gpus"] == 4
            and cluster["gpus_per_host"] == 2
            and plan["batch"] == 4 * 512,
            "planner: the plan is that of one group",
            str(cluster),
        )


def main():
    rng = random.Random(48)
    kinds = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(N_PLANS):
            shape = SHAPES[number % len(SHAPES)]
            why = check(rng, folder, shape)
            kinds += 1
            if why:
                ok(False, f"plan {number}, {shape}: {why}")
    check_planner()
    ok(kinds == N_PLANS, f"{N_PLANS} plans were remapped for all ranks")
    finish()


if __name__ == "__main__":
    main()
