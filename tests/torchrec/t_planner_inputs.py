# SPDX-License-Identifier: MIT
"""Effect of each argument of TorchRec's planner, each member of a topology and
of constraints, and the usage of tables, in NeuroShardPlanner. Each is
honoured, refused by name, or irrelevant; a table in the manual says which.
Speaks TAP; NEUROSHARD is the program, NEUROSHARD_DATA its data.
"""
import inspect
import json
import logging
import os
import random
import re
import tempfile
from pathlib import Path
from unittest import mock

import torch
import torchrec.optim
from fbgemm_gpu.split_table_batched_embeddings_ops_common import (
    BoundsCheckMode,
)
from torchrec import (
    EmbeddingBagCollection,
    EmbeddingCollection,
    EmbeddingConfig,
)
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.partitioners import GreedyPerfPartitioner
from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.distributed.planner.proposers import UniformProposer
from torchrec.distributed.planner.storage_reservations import (
    FixedPercentageStorageReservation,
)
from torchrec.distributed.planner.types import (
    BasicCommsBandwidths,
    CustomTopologyData,
    ParameterConstraints,
)
from torchrec.distributed.types import CacheParams, DataType, KeyValueParams

import neuroshard
from neuroshard.torchrec import (
    NeuroShardPlanLoader,
    NeuroShardPlanner,
    dump,
)
from planner_models import (
    GIB,
    Log,
    QUICK,
    SHARDERS,
    bags,
    collection,
    has,
    planned,
    same_ms,
    stock_arguments,
    topology,
)
from tap import finish, ok

MANUAL = Path(os.environ["NEUROSHARD_DATA"]) / "../man/neuroshard-torchrec.7"


def one(rows=4000, dim=64, **more):
    return collection(bags("a", rows, dim, **more))


def refused(name, part, model=None, constraints=None, **more):
    try:
        planned(model or one(), constraints=constraints, **more)
        ok(False, f"{name} is refused")
    except neuroshard.Error as error:
        text = str(error)
        is_clean = "<stdin>" not in text and "/tmp" not in text
        ok(part in text and is_clean, f"{name} is refused", text)


def lines(model, **more):
    """Returns the log of a plan, its levels, and the planner."""
    with Log() as log:
        _, planner = planned(model, **more)
    return "\n".join(log.lines), log.levels, planner


# --- The GPU and the line ---------------------------------------------------


def on_gpu(name):
    return mock.patch.multiple(
        torch.cuda,
        is_available=mock.Mock(return_value=name is not None),
        get_device_name=mock.Mock(return_value=name),
    )


def check_gpu():
    model = one()
    for name, device, options, cost, text in (
        ("NVIDIA H200", "cuda", {}, "h200", "NVIDIA H200 (as its driver says"),
        ("A100-SXM4-40GB", "cuda", {}, "a100-40gb", "cuda:A100-SXM4-40GB ("),
        ("Tesla T4", "cuda", {}, "t4", "4 x Tesla T4 (as its driver says)"),
        (
            *("NVIDIA RTX 6000 Ada", "cuda", {}, "h100"),
            "h100 (assumed, as 'NVIDIA RTX 6000 Ada' is not known)",
        ),
        (None, "cuda", {}, "h100", "h100 (assumed, as no GPU is here)"),
        ("NVIDIA H200", "cpu", {}, "cpu", "cpu (a CPU job)"),
        ("NVIDIA H200", "cuda", {"gpu": "b200"}, "b200", "b200 (as asked)"),
        (
            *("NVIDIA H200", "cuda", {"cost": "roofline:a100"}),
            *("roofline:a100", "its GPU (by the cost model)"),
        ),
    ):
        with on_gpu(name):
            line, _, planner = lines(
                model,
                arguments={
                    "topology": topology(compute_device=device),
                    "proposer": None,
                },
                **options,
            )
        model_name = planner.neuroshard_plan.json["cost_model"]["name"]
        ok(
            cost in model_name and text in line and "\n" not in line,
            f"{name}, {device}, {options}: {cost}",
            f"{model_name}; {line}",
        )
    try:
        with on_gpu("NVIDIA H200"):
            planned(model, gpu="h2oo")
        ok(False, "a GPU that is asked for is not assumed")
    except neuroshard.Error as error:
        ok("'h2oo'" in str(error), "a GPU that is asked for is not assumed")


def check_line():
    """One line in every mode; a warning if something is assumed or training
    changes."""
    whole = {"arguments": {"proposer": None}, "shard": "table"}
    with on_gpu("NVIDIA H200"):
        assumed, levels, _ = lines(one(), **whole)
        ok(
            "assumed: 1 lookup per sample" in assumed and "WARNING" in levels,
            "lookups are assumed without pooling factors",
            assumed,
        )
        whole["usage"] = {
            config.name: {"pooling_factor": 2}
            for config in one().embedding_bag_configs()
        }
        line, levels, planner = lines(one(), **whole)
        host, _, _ = lines(one(), gpu="h100", **whole)
        wide = collection(bags("a", 4000, 64), bags("c", 90, 16))
        for parameter in wide.parameters():
            parameter._optimizer_classes = [torchrec.optim.RowWiseAdagrad]
        cut, cut_levels, _ = lines(
            wide,
            arguments={"proposer": None},
            constraints={
                "a": ParameterConstraints(
                    sharding_types=["column_wise"], min_partition=32
                ),
                "c": ParameterConstraints(sharding_types=["data_parallel"]),
            },
            shard="column,replicate",
        )
        shadow, _, _ = lines(one(), mode="shadow", **whole)
    step = f"a step of {planner.neuroshard_plan.step_ms:.4g} ms"
    ok(
        levels == ["INFO"] and step in line and "TorchRec's planner" in line,
        "the line of a plan that does not change training",
        f"{levels} {line}",
    )
    ok("GPU work 0." in host and ", host 2 ms)" in host, "and its host", host)
    ok(
        cut_levels == ["WARNING"]
        and "training changes: 1 by columns (a), a state per piece, "
        "1 replicated (c), the dense optimizer" in cut,
        "training changes",
        f"{cut_levels} {cut}",
    )
    ok(
        "\n    planned by" in shadow and "TorchRec's planner (" not in shadow,
        "the line of a shadow, without the gain",
        shadow,
    )


# --- Constraints ------------------------------------------------------------


def widths(plan, name):
    entry = plan.plan[""][name]
    return [s.shard_sizes[1] for s in entry.sharding_spec.shards]


def check_min_partition():
    rng = random.Random(1)
    n_cut = n_narrow = 0
    for _ in range(12):
        dims = {f"t{i}": 4 * rng.randint(1, 96) for i in range(6)}
        least = {name: rng.choice((4, 17, 32, 64, 128)) for name in dims}
        model = collection(*(bags(n, 10**5, dims[n]) for n in dims))
        constraints = {
            name: ParameterConstraints(
                sharding_types=["column_wise"],
                min_partition=least[name],
                pooling_factors=[30.0],
            )
            for name in dims
        }
        _, planner = planned(
            model,
            constraints=constraints,
            arguments={"topology": topology(8)},
            host_ms=0,
        )
        plan = planner.plan(model, SHARDERS)
        for name, dim in dims.items():
            pieces = widths(plan, name)
            n_cut += len(pieces) > 1
            n_narrow += any(w < min(least[name], dim) for w in pieces)
    ok(n_cut > 5 and not n_narrow, f"{n_cut} tables cut, none too narrow")
    for dim, least in ((256, 128), (512, 256)):
        model = one(10**6, dim)
        pinned = ParameterConstraints(
            sharding_types=["column_wise"],
            min_partition=least,
            pooling_factors=[50.0],
        )
        _, planner = planned(
            model,
            constraints={"a": pinned},
            arguments={"topology": topology(8)},
            host_ms=0,
        )
        got = widths(planner.plan(model, SHARDERS), "a")
        ok(got == [least, least], f"{dim} columns, {least} at least", str(got))


def check_by_feature():
    model = one(features="xyz")
    for member, values in (
        ("pooling_factors", [1.0, 2.0]),
        ("num_poolings", [1.0] * 4),
        ("batch_sizes", [512, 512]),
    ):
        # TorchRec itself requires the same number of each.
        same = {"pooling_factors": [1.0] * len(values), member: values}
        refused(
            f"{len(values)} {member}",
            f"table 'a' has 3 features, but {len(values)} ",
            *(model, {"a": ParameterConstraints(**same)}),
        )
    found, _ = planned(
        model,
        constraints={
            "a": ParameterConstraints(
                pooling_factors=[1.0, 2.0, 3.0],
                num_poolings=[1.0, 2.0, 1.0],
                batch_sizes=[512, 512, 256],
            )
        },
    )
    has(found["a"], "by feature", pooling_factor=6.5, num_outputs=3.5)
    found, _ = planned(
        model, constraints={"a": ParameterConstraints(pooling_factors=[4.0])}
    )
    has(found["a"], "one for all features", pooling_factor=12)


def check_kinds():
    for member, value in (
        ("sharding_types", "table_column_wise"),
        ("compute_kernels", "fused_uvm_caching"),
    ):
        refused(
            f"a job with only {member} {value}",
            f"no table is left to the program: a may only have {member} {value}",
            constraints={"a": ParameterConstraints(**{member: [value]})},
        )
    for kinds in (["row_wise"], ["table_wise", "row_wise"]):
        model = one()
        constraint = ParameterConstraints(
            sharding_types=kinds, compute_kernels=["fused"]
        )
        _, planner = planned(model, constraints={"a": constraint})
        entry = planner.plan(model, SHARDERS).plan[""]["a"]
        ok(
            entry.sharding_type in kinds and entry.compute_kernel == "fused",
            f"{kinds}",
        )
    for group in ("cpu", "cuda"):
        given = {"a": ParameterConstraints(device_group=group)}
        if group == "cuda":
            planned(one(), constraints=given)
        else:
            two = collection(bags("a", 4000, 64), bags("b", 4000, 64))
            given["b"] = given["a"]
            planner = NeuroShardPlanner(**stock_arguments(given), **QUICK)
            plan = planner.plan(two, SHARDERS).plan
            ok(not plan, "no table is for this device group", f"{plan}")
    refused(
        "a virtual table",
        "a is a virtual one",
        constraints={"a": ParameterConstraints(use_virtual_table=True)},
    )


STAY = {
    "b": ParameterConstraints(
        compute_kernels=["fused_uvm_caching"], pooling_factors=[20.0]
    ),
    "c": ParameterConstraints(
        sharding_types=["table_column_wise"], min_partition=32
    ),
    "d": ParameterConstraints(device_group="cpu"),
}


def four():
    return collection(*[bags(name, 40000, 64) for name in "abcd"])


def check_stay():
    """Tables that the program does not place stay where TorchRec's planner
    puts them; their memory and time count."""
    stock_planner = EmbeddingShardingPlanner(**stock_arguments(STAY))
    stock = stock_planner.plan(four(), SHARDERS).plan[""]
    line, levels, planner = lines(four(), constraints=STAY)
    plan = planner.plan(four(), SHARDERS).plan[""]
    ok(
        plan["b"] == stock["b"] and plan["c"] == stock["c"] and "a" in plan,
        "two of four tables stay, and one is ours",
        f"{plan}",
    )
    ok("d" not in plan and "d" not in stock, "another device group has none")
    ok(
        levels == ["WARNING"]
        and "3 tables stay where TorchRec's planner puts them: b may only have "
        "compute_kernels fused_uvm_caching, c may only have sharding_types "
        "table_column_wise, d is for device group cpu" in line,
        "the log names them",
        line,
    )
    kept = [o for o in stock_planner.get_selected_options() if o.name in "bc"]
    memory = [0] * 4
    for shard in (shard for option in kept for shard in option.shards):
        memory[shard.rank] += shard.storage.hbm
    _, alone = planned(one(40000), constraints=STAY)
    cluster = planner.neuroshard_plan.json["cluster"]
    free = alone.neuroshard_plan.json["cluster"]["reserve_bytes"]
    more = [a - b for a, b in zip(cluster["reserve_bytes"], free)]
    ok(more == memory, "their memory counts as used", f"{more}, not {memory}")
    ok(cluster["other_kinds"] == 2, "a kind of sharding each")
    by_rank = zip(*cluster["busy_ms"].values())
    busy = [sum(times) for times in by_rank]
    ok(min(busy) > 0, "their time counts as busy", f"{busy}")
    options = planner.get_selected_options()
    ok({o.name for o in options} == set("abc"), "selected options have all")


def check_measured():
    """Slow ranks and the bandwidth that a job has measured."""
    model = collection(*(bags(f"t{i}", 4000, 64) for i in range(12)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "measured.csv"
        path.write_text("name,forward_factor\nt0,2\n", "ascii")
        _, before = planned(model, measured=path)
        slow = [1.0, 1.0, 3.0, 1.0]
        found = {"intra_gbps": 55.5, "hosts": [{"slowdown": slow}]}
        path.with_suffix(".json").write_text(json.dumps(found), "ascii")
        _, planner = planned(model, measured=path)
        found["hosts"] *= 2
        path.with_suffix(".json").write_text(json.dumps(found), "ascii")
        _, other = planned(model, measured=path)
    plan = planner.neuroshard_plan.json
    ok(
        plan["cluster"]["slowdown"] == slow
        and plan["cluster"]["intra_gbps"] == 55.5,
        "a slow rank and the bandwidth of the last job count",
        f"{plan['cluster']}",
    )
    ok(plan["tables"][0]["forward_factor"] == 2, "and a factor of a table")
    ok(
        not any(
            "slowdown" in one.neuroshard_plan.json["cluster"]
            for one in (before, other)
        ),
        "not without the file, nor those of another number of hosts",
    )
    before = planner.plan(model, SHARDERS)
    _, again = planned(model, previous=before)
    ok(
        "slowdown" not in again.neuroshard_plan.json["cluster"],
        "a previous plan is judged by the ranks of this job",
    )


def check_stay_by_estimate():
    """TorchRec's estimator and its ratio of 1: the price is that of the whole
    plan by this estimator."""
    _, planner = planned(four(), constraints=STAY, cost="torchrec")
    ranks = [0.0] * 4
    for option in planner.get_selected_options():
        for shard in option.shards:
            ranks[shard.rank] += shard.perf.total
    same_ms(
        [planner.neuroshard_plan.json["total_ms"]],
        *([max(ranks)], "the estimate of a plan with tables that stay"),
    )


def check_stay_tight():
    """No memory is left beside a table that stays."""
    model = collection(bags("a", 400000, 64), bags("b", 400000, 64))
    given = {"b": ParameterConstraints(compute_kernels=["fused_uvm_caching"])}
    arguments = stock_arguments(given, topology=topology(1, hbm_cap=GIB // 8))
    with Log() as log:
        planner = NeuroShardPlanner(**arguments, **QUICK)
        plan = planner.plan(model, SHARDERS)
    ok(
        planner.neuroshard_plan is None
        and "no plan fits" in log.lines[0]
        and "beside 1 table that TorchRec's planner places" in log.lines[0]
        and plan.plan[""]["a"].compute_kernel != "fused",
        "if the rest does not fit beside them, TorchRec's plan is taken",
        str(log.lines),
    )


def check_fits_by_estimate():
    """A plan that fits by TorchRec's estimate alone is made with a note."""
    given = {"a": ParameterConstraints(sharding_types=["table_wise"])}
    arguments = {
        "topology": topology(2, hbm_cap=11 << 18),
        "storage_reservation": FixedPercentageStorageReservation(0),
    }
    line, levels, _ = lines(
        one(10000), constraints=given, arguments=arguments
    )
    ok(
        levels == ["WARNING"]
        and "the plan fits the memory by TorchRec's estimate, but not by ours: "
        "no plan fits" in line,
        "a plan that fits by TorchRec's estimate",
        line,
    )


def check_memory_option():
    for text, want in (
        ("1GiB", 1 << 30),
        ("1.5 gib", 3 << 29),
        ("2g", 2 << 30),
        ("1 GB", 10**9),
        ("1234567890", 1234567890),
        (1 << 30, 1 << 30),
    ):
        _, planner = planned(one(), memory=text)
        got = planner.neuroshard_plan.json["cluster"]["memory_bytes"]
        ok(got == [want] * 4, f"memory {text}", f"{got}")
    refused("memory lots", "memory is 'lots', not a size", memory="lots")


def check_kept():
    """Kernel settings of constraints go to the plan, as in TorchRec's own
    planner."""
    for member, value in (
        ("cache_params", CacheParams(load_factor=0.5)),
        ("enforce_hbm", True),
        ("stochastic_rounding", False),
        ("bounds_check_mode", BoundsCheckMode.NONE),
        ("output_dtype", DataType.FP16),
        ("key_value_params", KeyValueParams(gather_ssd_cache_stats=True)),
    ):
        model = one()
        constraints = {"a": ParameterConstraints(**{member: value})}
        entries = []
        for planner in (
            NeuroShardPlanner(
                **stock_arguments(constraints), **QUICK, fallback=False
            ),
            EmbeddingShardingPlanner(**stock_arguments(constraints)),
        ):
            entries.append(planner.plan(model, SHARDERS).plan[""]["a"])
        ours, stock = (getattr(entry, member) for entry in entries)
        ok(ours == stock == value, f"{member} goes to the plan", f"{ours}")
    model = one(data_type=DataType.BF16)
    given = {"a": ParameterConstraints(cache_params=CacheParams())}
    _, planner = planned(model, constraints=given, shard="table")
    cache = planner.plan(model, SHARDERS).plan[""]["a"].cache_params
    ok(cache.precision == DataType.FP32, "with the precision FBGEMM needs")
    found, _ = planned(
        one(),
        constraints={"a": ParameterConstraints(output_dtype=DataType.FP16)},
    )
    has(found["a"], "output_dtype sets comm_precision", **FP16)


WHOLE = {"a": ParameterConstraints(sharding_types=["table_wise"])}
FP16 = {"comm_precision": "fp16"}


def check_weighted():
    weighted = EmbeddingBagCollection(
        [bags("a", 4000, 64)], device=torch.device("meta"), is_weighted=True
    )
    given = {"a": ParameterConstraints(is_weighted=True)}
    for model, constraints in ((weighted, None), (one(), given)):
        refused(
            "a weighted table by TorchRec's estimator",
            "a is weighted",
            *(model, constraints),
            cost="torchrec",
        )
        line, _, _ = lines(model, constraints=constraints)
        ok("1 weighted tables are priced without" in line, "a note")


def check_constraint_names():
    given = {"user_ids": ParameterConstraints(pooling_factors=[9.0])}
    model = collection(bags("user_id", 4000, 64), bags("item_id", 900, 64))
    refused(
        "constraints of a table that the model has not",
        "constraints has 'user_ids', which the model has not; did you mean "
        "'user_id'?",
        *(model, given),
    )
    given = {"else": ParameterConstraints(pooling_factors=[9.0])}
    line, _, _ = lines(model, constraints=given)
    text = "constraints has a name that the model has not (else)"
    ok(text in line, "constraints of an unknown table", line)
    given = {"user_id": ParameterConstraints(feature_names=["user_id_g"])}
    refused("another feature", "did you mean 'user_id_f'?", model, given)
    given = {"user_id": ParameterConstraints(feature_names=["user_id_f"])}
    line, _, _ = lines(model, constraints=given)
    ok("has not" not in line, "its own feature", line)


# --- Usage ------------------------------------------------------------------


def check_usage_names():
    model = collection(
        bags("user_id", 4000, 64, "fg"), bags("t1", 5000, 64), bags("x", 9, 4)
    )
    for usage, part in (
        ({"user_ids": {}}, "usage has 'user_ids', which the model has not"),
        ({"user_idf": {}}, "did you mean 'user_id"),
        ({"user_id_f": {}, "user_id_h": {}}, "did you mean 'user_id_g'?"),
        ({"t1": {"pooling_fator": 3}}, "did you mean 'pooling_factor'?"),
        ({"t1": {"weird": 3}}, "usage of 't1' has no column 'weird'"),
        ({"t1": {"bin_17": 3}}, "has no column 'bin_17'"),
        ({"t1": {"bins": [1.0]}}, "has 1 bins, not 17"),
        ({"t1": {"optimizer": "adam"}}, "which the model says"),
        ({"t1": {"sharding": "row"}}, "which sharding_types of the constra"),
        ({"t1": {"min_width": 8}}, "which min_partition of the constraints"),
        ([{"name": "t1"}, {"name": "t1"}], "usage has 't1' twice"),
        ([{"pooling_factor": 1}], "has lines without a name"),
        ({"user_id_f": {}}, "but not its feature 'user_id_g'"),
        (
            {"user_id_f": {"dedup": 0.5}, "user_id_g": {"dedup": 0.2}},
            "differs in dedup",
        ),
    ):
        refused(f"usage {usage}", part, model, usage=usage)
    for usage, want in (
        ({"elsewhere": {}}, "usage has a name that the model has not (elsewh"),
        ({"t2": {}, "t10": {}, "t1": {}}, "usage has 2 names that"),
        ({"user_ids": {}, "user_id": {}}, "usage has a name that"),
    ):
        line, _, _ = lines(model, usage=usage)
        ok(want in line, f"{list(usage)}: a superset", line)
    line, _, _ = lines(model, usage={"t1": {"hotness": 3}, "user_id": {}})
    ok("usage" not in line, "names that the model has", line)


def check_usage_rows():
    model = collection(bags("a", 4000, 64, "fg"), bags("b", 5000, 64))
    found, _ = planned(
        model,
        usage=[
            {"name": "a_f", "pooling_factor": "2", "zipf_alpha": "0.5"},
            {"name": "a_g", "pooling_factor": "3", "zipf_alpha": "0.5"},
            {"name": "b", "hotness": 9, "row_overhead_bytes": 24},
        ],
    )
    want = {"pooling_factor": 5, "zipf_alpha": 0.5}
    has(found["a"], "features of a table add up", **want)
    want = {"pooling_factor": 9, "row_overhead_bytes": 24}
    has(found["b"], "a list of rows", **want)
    together = collection(*(bags(name, 4000, 64) for name in "abcd"))
    _, planner = planned(
        together, usage={name: {"group": "g"} for name in "abc"}
    )
    plan = planner.plan(together, SHARDERS).plan[""]
    ranks = {rank for name in "abc" for rank in plan[name].ranks}
    ok(len(ranks) == 1, "a group stays together", f"{ranks}")
    _, planner = planned(together, usage={"d": {"device": 2}})
    plan = planner.plan(together, SHARDERS).plan[""]
    ok(set(plan["d"].ranks) == {2}, "a table that is pinned")


def sequences():
    return EmbeddingCollection(
        [
            EmbeddingConfig(
                name="h",
                embedding_dim=128,
                num_embeddings=10**6,
                feature_names=["h"],
            )
        ],
        device=torch.device("meta"),
    )


def check_dedup():
    jobs = []
    model = torch.nn.ModuleDict({"s": sequences(), "p": one()})
    for uses in (False, True):
        sharder = EmbeddingCollectionSharder(use_index_dedup=uses)
        for usage in ({}, {"h": {"dedup": 0.4}}):
            line, _, planner = lines(
                model, sharders=[SHARDERS[0], sharder], usage=usage
            )
            step = planner.neuroshard_plan.json["step"]
            jobs.append((step.get("dedup"), "no dedup in usage says" in line))
    want = [(None, False)] * 2 + [("ids", True), ("ids", False)]
    ok(jobs == want, "use_index_dedup of the sharder", f"{jobs}")
    _, planner = planned(
        *(model, [SHARDERS[0], sharder]),
        dedup="none",
    )
    step = planner.neuroshard_plan.json["step"]
    ok("dedup" not in step, "an option wins")


# --- Topology ---------------------------------------------------------------


def check_shape():
    for options, part in (
        (
            {"n_ranks": 6, "local_world_size": 4},
            "world_size 6 is no whole number of hosts with a local_world_size "
            "of 4",
        ),
        (
            {"n_ranks": 12, "local_world_size": 2, "pod_size": 4},
            "world_size 12 is no whole number of NVLink domains with 8 ranks",
        ),
        ({"compute_device": "mtia"}, "compute_device is mtia, but cuda and"),
    ):
        refused(
            f"a topology of {options}",
            part,
            arguments={"topology": topology(**options)},
        )
    for kind in (
        *("table_wise", "column_wise", "row_wise", "table_row_wise"),
        *("grid_shard", "data_parallel"),
    ):
        model = one()
        _, planner = planned(
            model,
            arguments={"topology": topology(1)},
            constraints={"a": ParameterConstraints(sharding_types=[kind])},
        )
        entry = planner.plan(model, SHARDERS).plan[""]["a"]
        ok(
            entry.sharding_type == kind and entry.ranks == [0],
            f"{kind} on one rank",
            f"{entry}",
        )
    _, planner = planned(
        one(),
        arguments={
            "topology": topology(8, local_world_size=2, pod_size=2),
        },
    )
    want = {"gpus": 8, "gpus_per_host": 2, "pod_size": 2}
    has(planner.neuroshard_plan.json["cluster"], "ranks and hosts", **want)


def check_memory():
    for device, member in (("cuda", "hbm_cap"), ("cpu", "ddr_cap")):
        given = {"compute_device": device, member: 3 * GIB}
        _, planner = planned(one(), arguments={"topology": topology(**given)})
        cluster = planner.neuroshard_plan.json["cluster"]
        has(cluster, f"{member} of {device}", memory_bytes=[3 * GIB] * 4)
        sizes = [GIB, 2 * GIB, 3 * GIB, 4 * GIB]
        data = CustomTopologyData({member: sizes}, 4)
        given = {"compute_device": device, "custom_topology_data": data}
        _, planner = planned(one(), arguments={"topology": topology(**given)})
        cluster = planner.neuroshard_plan.json["cluster"]
        has(cluster, f"of each {device}", memory_bytes=sizes)


class Measured(BasicCommsBandwidths):
    pass


def check_bandwidths():
    for member, value in (
        ("intra_host_bw", 450e9),
        ("inter_host_bw", 12.5e9),
        ("intra_host_bw", 450),
        ("inter_host_bw", 0),
        ("hbm_mem_bw", 3.35e12),
    ):
        cost = {"cost": "torchrec"} if member == "hbm_mem_bw" else {}
        refused(
            f"{member} {value}",
            f"{member} of the topology is {value:g} bytes a millisecond",
            arguments={"topology": topology(**{member: value})},
            **cost,
        )
    both = {"intra_host_bw": 4e8, "inter_host_bw": 2.5e7}
    for given in (both, {"generalized_comms_bandwidths": Measured(**both)}):
        _, planner = planned(
            one(), arguments={"topology": topology(4, **given)}
        )
        cluster = planner.neuroshard_plan.json["cluster"]
        has(cluster, f"{list(given)}", intra_gbps=400, inter_gbps=25)
    refused(
        "another model of exchanges than TorchRec's",
        "generalized_comms_bandwidths of the topology is a Measured",
        arguments={"topology": topology(**given)},
        cost="torchrec",
    )


def check_estimate():
    """cost="torchrec" equals TorchRec's estimate, for any topology."""
    model = collection(bags("a", 40000, 64), bags("b", 20000, 128, "fg"))
    constraints = {"b": ParameterConstraints(pooling_factors=[3.0, 4.0])}
    for given in (
        {"bwd_compute_multiplier": 6},
        {"bwd_compute_multiplier": 0.5, "hbm_mem_bw": 2e9},
        {"compute_device": "cpu", "ddr_mem_bw": 2e8},
        {"intra_host_bw": 3e8, "inter_host_bw": 4e7, "local_world_size": 2},
        {
            "uneven_sharding_perf_multiplier": 3.0,
            "weighted_feature_bwd_compute_multiplier": 5,
        },
    ):
        _, planner = planned(
            *(model, None, constraints),
            arguments={"topology": topology(4, **given)},
            mode="shadow",
            cost="torchrec",
        )
        want = planner.neuroshard_plan.step_ms
        same_ms(planner.shadow.torchrec_ms[1:], [want], f"{given}")


def check_irrelevant():
    """Arguments about unplanned parts and about TorchRec's own search have no
    effect."""
    model = one()
    _, planner = planned(model)
    want = str(planner.plan(model, SHARDERS))
    for arguments in (
        {"topology": topology(**given)}
        for given in (
            *({"ssd_cap": 5}, {"ssd_mem_bw": 1.0}, {"ddr_mem_bw": 1e9}),
            *({"hbm_to_ddr_mem_bw": 9.0}, {"created_by_factory": True}),
            {"uneven_sharding_perf_multiplier": 9.0},
            {"weighted_feature_bwd_compute_multiplier": 9.0},
        )
    ):
        _, planner = planned(model, arguments=arguments)
        ok(str(planner.plan(model, SHARDERS)) == want, "the same plan")
    for arguments in (
        {"proposer": UniformProposer()},
        {"partitioner": GreedyPerfPartitioner()},
        {"performance_model": NoopPerfModel(topology())},
    ):
        line, _, planner = lines(
            model, arguments={"proposer": None, **arguments}
        )
        name = next(iter(arguments))
        ok(
            str(planner.plan(model, SHARDERS)) == want
            and f"unused: {name} (of TorchRec's own search)" in line,
            f"{name} changes nothing, and the line says so",
            line,
        )


# --- Arguments --------------------------------------------------------------


class Counted(EmbeddingEnumerator):
    n = 0

    def enumerate(self, *args, **more):
        self.n += 1
        return super().enumerate(*args, **more)


def check_arguments():
    seen = []

    class Stats:
        def log(self, **arguments):
            seen.append(arguments)

    hosts = topology(2)
    enumerator = Counted(hosts, 64)
    for debug in (True, False):
        arguments = stock_arguments(
            topology=hosts,
            batch_size=64,
            enumerator=enumerator,
            stats=Stats(),
            debug=debug,
            storage_reservation=FixedPercentageStorageReservation(0.5),
            callbacks=[lambda options: seen.append("called") or options],
            timeout_seconds=60,
        )
        planner = NeuroShardPlanner(**arguments, **QUICK, fallback=False)
        planner.plan(one(), SHARDERS)
        ok(
            seen[0] == "called" and seen[1]["debug"] is debug,
            "callbacks, stats and debug",
        )
        del seen[:]
    plan = planner.neuroshard_plan.json
    ok(plan["batch"] == 2 * 64 and enumerator.n > 0, "batch and enumerator")
    has(plan["cluster"], "the reservation", reserve_bytes=[4 * GIB] * 2)
    planner = NeuroShardPlanner(
        *(hosts, 64, enumerator), timeout_seconds=60, **QUICK
    )
    ok(planner._options["time_limit"] == 60, "the time limit of the search")
    planner = NeuroShardPlanner(hosts, timeout_seconds=60, time_limit=3)
    ok(planner._options["time_limit"] == 3, "an option takes precedence")


def check_loader():
    """A plan of ours can be loaded with any shards."""
    model = collection(bags("a", 4000, 96), bags("b", 9000, 64, "fg"))
    given = {
        "a": ParameterConstraints(sharding_types=["column_wise"]),
        "b": ParameterConstraints(sharding_types=["grid_shard"]),
    }
    arguments = stock_arguments(
        given, topology=topology(8, local_world_size=4)
    )
    planner = NeuroShardPlanner(
        **arguments, **QUICK, fallback=False, host_ms=0, min_width=32
    )
    want = planner.plan(model, SHARDERS)
    ok(len(set(widths(want, "a"))) >= 1 < len(widths(want, "a")), "narrow")
    saved = dump(want, planner._topology)
    resumed = NeuroShardPlanner(**arguments, **{**QUICK, "seed": 9})
    resumed.plan_loader = NeuroShardPlanLoader(
        resumed, model, SHARDERS, saved, "monday"
    )
    with Log() as log:
        got = resumed.plan(model, SHARDERS)
    ok(dump(got, planner._topology) == saved, "the plan of a checkpoint")
    ok(
        resumed.neuroshard_plan is None
        and log.lines == ["the plan is that of plan_loader, 'monday'"],
        "and the line says so",
        f"{log.lines}",
    )
    selected = {option.name for option in resumed.get_selected_options()}
    ok(selected == {"a", "b"}, "its options are selected")
    again = resumed.plan(model, SHARDERS)
    ok(str(again) == str(got), "and so again")
    stale = NeuroShardPlanner(
        **{**arguments, "batch_size": 7}, plan_loader=resumed.plan_loader
    )
    try:
        stale.plan(model, SHARDERS)
        ok(False, "another batch is refused")
    except Exception as error:  # pylint: disable=broad-except
        ok("input context mismatch" in str(error), "another batch is refused")
    for planner, change, part in (
        (EmbeddingShardingPlanner(**arguments), {}, "does not offer"),
        (
            NeuroShardPlanner(**arguments, mode="shadow"),
            *({}, "does not offer"),
        ),
        (resumed, {"world_size": 4}, "a world_size of 4, not of 8"),
        (resumed, {"plan": {"": {"a": saved["plan"][""]["a"]}}}, "not in the"),
    ):
        try:
            NeuroShardPlanLoader(
                planner, model, SHARDERS, {**saved, **change}
            )
            ok(False, f"{part}: refused")
        except ValueError as error:
            ok(part in str(error), f"{part}: refused", str(error))
    other = {
        **given,
        "b": ParameterConstraints(sharding_types=["table_wise"]),
    }
    try:
        NeuroShardPlanLoader(
            NeuroShardPlanner(**{**arguments, "constraints": other}),
            *(model, SHARDERS, saved),
        )
        ok(False, "what the constraints exclude is refused")
    except ValueError as error:
        part = "table 'b' is grid_shard (fused) in"
        ok(part in str(error) and "but may be table_wise" in str(error), part)


def check_sentences():
    """Messages name no temporary file and no line of standard input."""
    refused(
        "too many lookups",
        "table 'a': pooling_factor",
        constraints={"a": ParameterConstraints(pooling_factors=[1e12])},
    )
    sharder = EmbeddingBagCollectionSharder()
    with mock.patch.object(
        sharder, "sharding_types", lambda _: ["table_column_wise"]
    ):
        refused(
            "a sharder that offers no other sharding",
            "a may only have table_column_wise (fused",
            sharders=[sharder],
        )


# --- The table --------------------------------------------------------------

HONOURED, IRRELEVANT = "honoured", "irrelevant"
PLANNER = {
    "topology": (HONOURED, check_shape),
    "batch_size": (HONOURED, check_arguments),
    "enumerator": (HONOURED, check_arguments),
    "storage_reservation": (HONOURED, check_arguments),
    "proposer": (IRRELEVANT, check_irrelevant),
    "partitioner": (IRRELEVANT, check_irrelevant),
    "performance_model": (IRRELEVANT, check_irrelevant),
    "stats": (HONOURED, check_arguments),
    "constraints": (HONOURED, check_constraint_names),
    "debug": (HONOURED, check_arguments),
    "callbacks": (HONOURED, check_arguments),
    "timeout_seconds": (HONOURED, check_arguments),
    "plan_loader": (HONOURED, check_loader),
}
CONSTRAINTS = {
    "sharding_types": (HONOURED, check_kinds),
    "compute_kernels": (HONOURED, check_kinds),
    "min_partition": (HONOURED, check_min_partition),
    "pooling_factors": (HONOURED, check_by_feature),
    "num_poolings": (HONOURED, check_by_feature),
    "batch_sizes": (HONOURED, check_by_feature),
    "is_weighted": (HONOURED, check_weighted),
    "cache_params": (HONOURED, check_kept),
    "enforce_hbm": (HONOURED, check_kept),
    "stochastic_rounding": (HONOURED, check_kept),
    "bounds_check_mode": (HONOURED, check_kept),
    "feature_names": (HONOURED, check_constraint_names),
    "output_dtype": (HONOURED, check_kept),
    "device_group": (HONOURED, check_kinds),
    "key_value_params": (HONOURED, check_kept),
    "use_virtual_table": (HONOURED, check_kinds),
}
TOPOLOGY = {
    "world_size": (HONOURED, check_shape),
    "compute_device": (HONOURED, check_shape),
    "hbm_cap": (HONOURED, check_memory),
    "ddr_cap": (HONOURED, check_memory),
    "ssd_cap": (IRRELEVANT, check_irrelevant),
    "local_world_size": (HONOURED, check_shape),
    "pod_size": (HONOURED, check_shape),
    "hbm_mem_bw": (HONOURED, check_estimate),
    "ddr_mem_bw": (HONOURED, check_estimate),
    "ssd_mem_bw": (IRRELEVANT, check_irrelevant),
    "hbm_to_ddr_mem_bw": (IRRELEVANT, check_irrelevant),
    "intra_host_bw": (HONOURED, check_bandwidths),
    "inter_host_bw": (HONOURED, check_bandwidths),
    "bwd_compute_multiplier": (HONOURED, check_estimate),
    "custom_topology_data": (HONOURED, check_memory),
    "weighted_feature_bwd_compute_multiplier": (IRRELEVANT, check_irrelevant),
    "uneven_sharding_perf_multiplier": (IRRELEVANT, check_irrelevant),
    "generalized_comms_bandwidths": (HONOURED, check_bandwidths),
    "created_by_factory": (IRRELEVANT, check_irrelevant),
}


def check_table():
    """The table has all arguments of the installed TorchRec, and the manual
    has the same table."""
    text = MANUAL.read_text(encoding="utf-8")
    section = text.split('.Ss "Arguments, one by one"')[-1].split("\n.Ss ")[0]
    shown = dict(re.findall(r"^\.It Li (\w+) Ta (\w+)", section, re.M))
    for of, table in (
        (EmbeddingShardingPlanner, PLANNER),
        (ParameterConstraints, CONSTRAINTS),
        (Topology, TOPOLOGY),
    ):
        taken = set(inspect.signature(of.__init__).parameters) - {"self"}
        ok(
            taken == set(table),
            f"{len(table)} of {of.__name__} are in the table",
            f"{taken ^ set(table)}",
        )
        wrong = {
            name: shown.get(name)
            for name, (verdict, _) in table.items()
            if shown.pop(name, None) != verdict
        }
        ok(not wrong, "the manual's table agrees", f"{wrong}")
    ok(not shown, "the manual has no other rows", f"{shown}")


def main():
    logging.getLogger().setLevel(logging.CRITICAL)
    logging.getLogger("neuroshard").setLevel(logging.INFO)
    logging.getLogger("neuroshard").propagate = False
    ran = [check_table, check_gpu, check_line, check_usage_names]
    ran += [check_usage_rows, check_dedup, check_sentences]
    ran += [check_stay, check_stay_by_estimate, check_stay_tight, check_measured]
    ran += [check_fits_by_estimate, check_memory_option]
    for table in (PLANNER, CONSTRAINTS, TOPOLOGY):
        ran += [check for _, check in table.values()]
    for check in dict.fromkeys(ran):
        print(f"# {check.__name__}")
        check()
    finish()


main()
