# SPDX-License-Identifier: MIT
"""NeuroShardPlanner in place of TorchRec's own planner: the facts that it
reads from a model, and that after any fault the job gets the stock planner's
plan and one line in the log. Speaks TAP; NEUROSHARD is the program,
NEUROSHARD_DATA its data.
"""
import contextlib
import json
import logging
import os
import subprocess
import tempfile
from unittest import mock

import torch
import torchrec.optim
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from torch.distributed.optim import (
    _apply_optimizer_in_backward as apply_optimizer_in_backward,
)
from torchrec import (
    EmbeddingBagCollection,
    EmbeddingCollection,
    EmbeddingConfig,
)
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.fbgemm_qcomm_codec import (
    CommType,
    QCommsConfig,
    get_qcomm_codecs_registry,
)
from torchrec.distributed.model_parallel import DMPCollection
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.stats import EmbeddingStats
from torchrec.distributed.planner.storage_reservations import (
    FixedPercentageStorageReservation,
)
from torchrec.distributed.planner.types import (
    ParameterConstraints,
    PlannerError,
)
from torchrec.modules.embedding_configs import DataType
from torchrec.modules.feature_processor_ import PositionWeightedModule
from torchrec.modules.fp_embedding_modules import (
    FeatureProcessedEmbeddingBagCollection,
)

import neuroshard
from neuroshard import _job, _model, _placing, _shadow, _usage
from neuroshard.torchrec import (
    NeuroShardPlanLoader,
    NeuroShardPlanner,
    dump,
)
from planner_models import (
    GIB,
    JOB,
    Log,
    QUICK,
    SHARDERS,
    bags,
    collection,
    has,
    planned,
    same_ms,
    shipped,
    stock_arguments,
    topology,
)
from tap import finish, ok

# --- Input of the planner ---------------------------------------------------


def check_tables():
    model = collection(
        bags("plain", 1000, 16),
        bags("shared", 2000, 32, "abc", data_type=DataType.FP16),
        bags("pooled", 3000, 64, "ab"),
        bags("kinds", 4000, 64),
        bags("whole", 5000, 64),
    )
    found, _ = planned(
        model,
        constraints={
            "pooled": ParameterConstraints(
                pooling_factors=[3.0, 5.0],
                num_poolings=[1.0, 2.0],
                batch_sizes=[512, 256],
            ),
            "kinds": ParameterConstraints(
                sharding_types=["row_wise", "data_parallel"]
            ),
            "whole": ParameterConstraints(
                min_partition=64, compute_kernels=["fused"]
            ),
        },
    )
    has(
        *(found["plain"], "a table without constraints"),
        num_embeddings=1000,
        dim=16,
        pooling_factor=1,
        num_outputs=1,
        output="pooled",
        precision="fp32",
        optimizer="sgd",
        kinds=None,
    )
    has(
        *(found["shared"], "three features, half precision"),
        pooling_factor=3,
        num_outputs=3,
        precision="fp16",
        comm_precision="fp32",
    )
    has(
        *(found["pooled"], "pooling factors, poolings and batches"),
        pooling_factor=3.0 + 5.0,
        num_outputs=2,
    )
    kinds = sorted(found["kinds"]["kinds"])
    ok(kinds == ["replicate", "row"], "sharding types", str(kinds))
    kinds = sorted(found["whole"]["kinds"])
    want = ["column", "grid", "row", "table"]
    ok(kinds == want and found["whole"]["min_width"] == 64, "min_partition")


def check_optimizers():
    model = collection(bags("a", 100, 16), bags("b", 200, 16))
    apply_optimizer_in_backward(
        torchrec.optim.RowWiseAdagrad,
        model.embedding_bags["a"].parameters(),
        {"lr": 0.1},
    )
    fused = {"optimizer": EmbOptimType.PARTIAL_ROWWISE_ADAM}
    registry = get_qcomm_codecs_registry(
        QCommsConfig(CommType.FP16, CommType.BF16)
    )
    sharder = EmbeddingBagCollectionSharder(
        fused_params=fused, qcomm_codecs_registry=registry
    )
    found, _ = planned(model, [sharder])
    has(
        *(found["a"], "the optimizer of a table, quantised exchanges"),
        optimizer="rowwise_adagrad",
        comm_precision="fp16",
    )
    has(
        *(found["b"], "the optimizer of the sharder"),
        optimizer="partial_rowwise_adam",
    )


class Two(torch.nn.Module):
    """Two collections with tables of one name, and a sequence."""

    def __init__(self):
        super().__init__()
        self.user = collection(bags("a", 100, 16), bags("b", 200, 32))
        self.item = torch.nn.Sequential(collection(bags("a", 300, 64)))
        self.history = EmbeddingCollection(
            [
                EmbeddingConfig(
                    name="h",
                    embedding_dim=16,
                    num_embeddings=400,
                    feature_names=["h"],
                )
            ],
            device=torch.device("meta"),
        )


def check_modules():
    model = Two()
    planner = NeuroShardPlanner(**stock_arguments(), fallback=False, **QUICK)
    plan = planner.plan(model, SHARDERS)
    names = {path: set(module) for path, module in plan.plan.items()}
    want = {"user": {"a", "b"}, "item.0": {"a"}, "history": {"h"}}
    ok(names == want, "a plan of several modules", str(names))
    found = planner.neuroshard_plan.json["tables"]
    names = [table["name"] for table in found]
    want = ["user.a", "user.b", "history.h", "item.0.a"]
    ok(names == want, "tables of one name in two modules", str(names))
    has(found[2], "a sequence", output="sequence", num_embeddings=400)
    planner = NeuroShardPlanner(**stock_arguments())
    nothing = planner.plan(torch.nn.Linear(2, 2), SHARDERS)
    ok(not nothing.plan, "a model without tables has an empty plan")


def check_topology():
    model = collection(bags("a", 4000, 16), bags("b", 5000, 16))
    planner = NeuroShardPlanner(
        topology=topology(8, local_world_size=2, pod_size=2),
        batch_size=128,
        storage_reservation=FixedPercentageStorageReservation(0.25),
        fallback=False,
        **QUICK,
    )
    plan = planner.plan(model, SHARDERS)
    json = planner.neuroshard_plan.json
    has(
        *(json["cluster"], "ranks, hosts, memory and its reserve"),
        gpus=8,
        gpus_per_host=2,
        pod_size=2,
        memory_bytes=[8 * GIB] * 8,
        reserve_bytes=[2 * GIB] * 8,
        intra_gbps=None,
    )
    ok(json["batch"] == 8 * 128, "the batch", str(json["batch"]))
    shape = {**dump(plan, planner._topology), "plan": None}
    want = {"world_size": 8, "local_world_size": 2, "pod_size": 2}
    ok(shape == {**want, "plan": None}, "the dump's shape", str(shape))
    planner = NeuroShardPlanner(
        topology=topology(
            4, local_world_size=2, intra_host_bw=4e8, inter_host_bw=2.5e7
        ),
        fallback=False,
        reserve="1GiB",
        memory="2GiB",
        **QUICK,
    )
    planner.plan(model, SHARDERS)
    has(
        *(planner.neuroshard_plan.json["cluster"], "options win"),
        memory_bytes=[2 * GIB] * 4,
        reserve_bytes=[GIB] * 4,
        intra_gbps=400,
        inter_gbps=25,
    )


def check_usage(work):
    model = collection(bags("a", 4000, 16), bags("b", 5000, 16))
    usage = {"a": {"pooling_factor": 7, "zipf_alpha": 0.9, "dim": 99}}
    found, _ = planned(model, usage=usage)
    want = {"pooling_factor": 7, "zipf_alpha": 0.9, "dim": 16}
    has(found["a"], "usage as a mapping", **want)
    path = f"{work}/usage.csv"
    with open(path, "w", encoding="utf-8") as file:
        file.write("# of a day\nname,num_embeddings,row_order\nb,7,frequency")
    found, _ = planned(model, usage=path)
    want = {"row_order": "frequency", "num_embeddings": 5000}
    has(found["b"], "usage as a list", **want)


def check_constraints():
    """Properties of a TorchRec plan that constraints determine."""
    model = collection(
        bags("a", 4000, 128), bags("b", 5000, 16), bags("c", 6000, 16)
    )
    _, planner = planned(
        model,
        constraints={
            "c": ParameterConstraints(sharding_types=["table_row_wise"]),
            "a": ParameterConstraints(sharding_types=["column_wise"]),
            "b": ParameterConstraints(
                sharding_types=["table_wise"], stochastic_rounding=True
            ),
        },
    )
    plan = planner.plan(model, SHARDERS).plan[""]
    kinds = [plan[name].sharding_type for name in "abc"]
    want = ["column_wise", "table_wise", "table_row_wise"]
    ok(kinds == want, "only sharding types that they allow", f"{kinds}")
    ok(plan["b"].stochastic_rounding is True, "their kernel settings")


# --- Shadow -----------------------------------------------------------------


def estimated_ms(options):
    """Time of the slowest rank, as estimated by TorchRec's planner itself."""
    ranks = {}
    for shard in (shard for option in options for shard in option.shards):
        ranks[shard.rank] = ranks.get(shard.rank, 0.0) + shard.perf.total
    return max(ranks.values())


def check_rows_over():
    """Rows over all ranks, or over those of a host, if only that is
    allowed."""
    model = collection(*(bags(f"t{i}", 10**6, 64) for i in range(8)))
    allowed = ("row_wise", "table_row_wise")
    arguments = stock_arguments(
        {
            f"t{i}": ParameterConstraints(
                sharding_types=[allowed[i % 2]], pooling_factors=[10.0]
            )
            for i in range(8)
        },
        topology=topology(8, local_world_size=4),
    )
    planner = NeuroShardPlanner(**arguments, fallback=False, **QUICK)
    found = planner.plan(model, SHARDERS).plan[""]
    ok(
        all(found[f"t{i}"].sharding_type == allowed[i % 2] for i in range(8)),
        "row_wise or table_row_wise alone on two hosts",
        f"{found}",
    )


def check_two_dimensions():
    """The plan of one group, as DMPCollection assigns it to the other
    group."""
    model = collection(bags("a", 4000, 64), bags("b", 10**6, 64))
    planner = NeuroShardPlanner(
        **stock_arguments(topology=topology(4, local_world_size=2)),
        **{**QUICK, "shard": ["table", "row"], "fallback": False},
    )
    plan = planner.plan(model, SHARDERS)
    wanted = [
        [2 * rank + 1 for rank in entry.ranks]
        for entry in plan.plan[""].values()
    ]
    with mock.patch(
        "torchrec.distributed.model_parallel.get_local_size", lambda: 4
    ):
        DMPCollection._remap_sharding_plan(
            mock.Mock(_device=torch.device("cuda")), plan, 3, 2, 4
        )
    found = list(plan.plan[""].values())
    placed = [
        [shard.placement.rank() for shard in entry.sharding_spec.shards]
        for entry in found
    ]
    ok(
        wanted == [entry.ranks for entry in found] == placed,
        "a group of DMPCollection",
        f"{placed}, not {wanted}",
    )


def check_shadow(name, **more):
    model, constraints = shipped(name)
    arguments = stock_arguments(constraints, **more)
    plans = []
    stock = EmbeddingShardingPlanner(
        **arguments, callbacks=[lambda plan: plans.append(plan) or plan]
    )
    want = str(stock.plan(model, SHARDERS))
    # A host time would hide the difference between plans.
    planner = NeuroShardPlanner(**arguments, **QUICK, mode="shadow", host_ms=0)
    state = torch.get_rng_state()
    with Log() as log:
        plan = planner.plan(model, SHARDERS)
    print("# " + "\n".join(log.lines).replace("\n", "\n# "))
    shadow, ours = planner.shadow, planner.neuroshard_plan
    ok(
        str(plan) == want and plan is shadow.stock,
        f"shadow, {name}: the plan is the stock one",
    )
    ok(str(shadow.ours) != want, "our plan is another one")
    ok(
        torch.equal(state, torch.get_rng_state()),
        "no random numbers were drawn",
    )
    cost = _job.torchrec_cost(planner._topology)
    by_torchrec = neuroshard.price(ours, cost=cost)
    same_ms(
        *(shadow.torchrec_ms, (estimated_ms(plans[0]), by_torchrec.step_ms)),
        "by TorchRec's estimator: its own figure, and that of --cost torchrec",
    )
    same_ms(shadow.neuroshard_ms[1:], [ours.step_ms], "ours by our model")
    error = shadow.diff["step_error_frac"]
    is_known = "inter_gbps" not in str(ours.json)
    ok(
        (error is not None) == is_known and (error or 1) > 0,
        f"the error of the ratio, {error}",
    )
    line = "".join(log.lines)
    ok(
        len(log.lines) == 1
        and all(
            f"{ms:.4f}" in line
            for ms in shadow.torchrec_ms + shadow.neuroshard_ms
        ),
        "one record has all prices",
        line,
    )
    ok(shadow.diff["verdict"] in line, "and a verdict")
    check_dump(planner, model, constraints)
    check_twice(planner, model, constraints, ours)


def check_shadow_beside():
    """A table that stays where the stock planner puts it is there in both
    plans."""
    model = collection(*[bags(name, 40000, 64) for name in "abcdef"])
    constraints = {"a": ParameterConstraints(compute_kernels=["fused_uvm"])}
    arguments = stock_arguments(constraints)
    planner = NeuroShardPlanner(**arguments, **QUICK, mode="shadow")
    with Log() as log:
        planner.plan(model, SHARDERS)
    shadow, text = planner.shadow, "\n".join(log.lines)
    print("# " + text.replace("\n", "\n# "))
    stock, ours = (plan.plan[""]["a"] for plan in (shadow.stock, shadow.ours))
    ok(str(stock) == str(ours), "shadow: a table that stays is in both plans")
    ok(
        "host alone" in text and shadow.diff["verdict"] in text,
        "the host is shown, and a verdict",
        text,
    )


def check_dump(planner, model, constraints):
    """The program reads TorchRec's plan with its table list and batch."""
    hosts, shadow = planner._topology, planner.shadow
    found, _ = _model.tables(model, SHARDERS, constraints, JOB)
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/tables.csv", "wb") as file:
            file.write(neuroshard._tables(_usage.rows(found, {}, [], ())).stdin)
        with open(f"{work}/plan.json", "w", encoding="utf-8") as file:
            json.dump(dump(shadow.stock, hosts), file)
        prices = [
            neuroshard.price(
                f"{work}/plan.json",
                tables=f"{work}/tables.csv",
                batch_per_gpu=512,
                memory="1TiB",
                cost=cost,
                host_ms=0,
                **_job._bandwidths(hosts),
            ).step_ms
            for cost in (
                _job.torchrec_cost(hosts),
                shadow.diff["after"]["cost_model"],
            )
        ]
    want = [shadow.torchrec_ms[0], shadow.neuroshard_ms[0]]
    same_ms(prices, want, "its dump as neuroshard cost prices it")


def check_twice(planner, model, constraints, ours):
    """Compares our plan with itself, passed as TorchRec's plan."""
    found, _ = _model.tables(model, SHARDERS, constraints, JOB)
    both = _shadow.compare(
        *(planner, model, SHARDERS, [planner.shadow.ours] * 2),
        _placing.Placing(found, ours),
    )
    same_ms(both.neuroshard_ms, [ours.step_ms] * 2, "ours, read back")
    ok(both.diff["bytes"]["moved"] == 0, "and nothing moves")
    ok(not both.diff["pays"] and "keep" in str(both), "which does not pay")
    with tempfile.TemporaryDirectory() as work:
        both.save(f"{work}/shadow.html")
        with open(f"{work}/shadow.html", encoding="utf-8") as file:
            ok("<html" in file.read(), "the page is written")


def check_estimate():
    """The step by cost="torchrec" equals TorchRec's estimate, for any
    precision of the weights and of the exchange."""
    qcomms = QCommsConfig(CommType.BF16, CommType.BF16)
    codecs = get_qcomm_codecs_registry(qcomms)
    for name, sharder in (
        ("half precision", EmbeddingBagCollectionSharder()),
        (
            "and quantised exchanges",
            EmbeddingBagCollectionSharder(qcomm_codecs_registry=codecs),
        ),
    ):
        model = collection(
            bags("a", 40000, 64, data_type=DataType.FP16),
            bags("b", 20000, 128, "fg", data_type=DataType.FP16),
            bags("c", 30000, 32),
        )
        constraints = {
            "a": ParameterConstraints(output_dtype=DataType.FP32),
            "b": ParameterConstraints(pooling_factors=[3.0, 4.0]),
        }
        _, planner = planned(
            *(model, [sharder], constraints),
            mode="shadow",
            cost="torchrec",
        )
        want = planner.neuroshard_plan.step_ms
        same_ms(planner.shadow.torchrec_ms[1:], [want], name)


def check_shadow_fault():
    model, constraints = shipped("criteo_kaggle_26")
    check_fault(
        *(model, constraints, "shadow, a program that is killed"),
        *(lambda _: program("VERSION\nkill -9 $$"), "SIGKILL"),
        mode="shadow",
        fallback=False,
    )
    check_fault(
        *(model, constraints, "shadow, one that cannot compare"),
        lambda _: program(
            'VERSION\n[ "$1" = diff ] && echo neuroshard: no >&2 && exit 1\n'
            "exec REAL"
        ),
        "no; TorchRec's own",
        mode="shadow",
    )


# --- For the stock planner ---------------------------------------------------


def check_plan_loader(work):
    """A plan of whole tables, rows and replicas is one that the stock planner
    could have made itself."""
    model, constraints = shipped("nvidia_synthetic_tiny_v3")
    kinds = ("table_wise", "row_wise", "data_parallel", None)
    for i, constraint in enumerate(constraints.values()):
        kind = kinds[i % len(kinds)]
        constraint.sharding_types = [kind] if kind else None
    hosts = topology()
    arguments = stock_arguments(constraints, topology=hosts)
    planner = NeuroShardPlanner(
        **arguments, **QUICK, fallback=False, shard="table,row,replicate"
    )
    want = dump(planner.plan(model, SHARDERS), hosts)
    path = f"{work}/torchrec.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(want, file)
    kinds = {entry["sharding_type"] for entry in want["plan"][""].values()}
    stock = EmbeddingShardingPlanner(**arguments)
    loader = NeuroShardPlanLoader(stock, model, SHARDERS, path, "monday")
    stock.plan_loader = loader
    got = dump(stock.plan(model, SHARDERS), hosts)
    ok(
        got == want and len(kinds) >= 3,
        f"the stock planner loads {', '.join(sorted(kinds))}",
    )
    ok(loader.get_plan_id() == "monday", "the plan has a name")
    other = EmbeddingShardingPlanner(
        **{**arguments, "batch_size": 7, "plan_loader": loader}
    )
    try:
        other.plan(model, SHARDERS)
        ok(False, "another batch: the plan is refused")
    except PlannerError as error:
        ok("input context mismatch" in str(error), "with another batch not")
    planner = NeuroShardPlanner(
        **stock_arguments(), **QUICK, fallback=False, shard="column"
    )
    columns = planner.plan(model, SHARDERS)
    try:
        NeuroShardPlanLoader(stock, model, SHARDERS, columns)
        ok(False, "narrow columns are refused")
    except ValueError as error:
        ok(str(error).count("is column_wise (fused) in") > 5, str(error)[:200])


# --- TorchRec's own parts around the search ----------------------------------


class Lines:
    """A Stats that keeps the arguments of its calls."""

    def __init__(self):
        self.calls = []

    def log(self, **arguments):
        self.calls.append(arguments)


def check_around():
    """Callbacks, stats and the selected options get our plan."""
    model, constraints = shipped("criteo_kaggle_26")
    seen, stats = [], Lines()
    planner = NeuroShardPlanner(
        **stock_arguments(
            constraints,
            stats=[stats, EmbeddingStats()],
            callbacks=[lambda options: seen.append(options) or options],
        ),
        **QUICK,
        fallback=False,
    )
    ok(planner.get_search_space() is None, "no search space before a plan")
    plan = planner.plan(model, SHARDERS)
    options = planner.get_selected_options()
    ours = {
        option.name: (
            option.sharding_type,
            [shard.rank for shard in option.shards],
            [shard.size for shard in option.shards],
        )
        for option in options
    }
    want = {
        name: (
            entry.sharding_type,
            entry.ranks,
            [
                list(size)
                for _, size, _ in _placing.pieces(
                    entry, model.embedding_bags[name].weight.shape, 4
                )
            ],
        )
        for name, entry in plan.plan[""].items()
    }
    ok(ours == want, "the selected options are our plan", f"{ours}")
    ok(
        all(s.perf and s.storage for o in options for s in o.shards),
        "which have estimates",
    )
    ok(len(planner.get_search_space()) > 26, "the search space")
    ok(seen == [options], "a callback gets them once", str(seen))
    calls = stats.calls
    ok(
        len(calls) == 1
        and calls[0]["sharding_plan"] is plan
        and calls[0]["best_plan"] is options,
        "stats are called with our plan",
    )
    ok(planner._stats[1]._stats_table, "TorchRec's own stats print it")
    planner = NeuroShardPlanner(
        **stock_arguments(constraints, callbacks=[lambda _: 1 / 0]), **QUICK
    )
    try:
        planner.plan(model, SHARDERS)
        ok(False, "a callback that fails is no reason to fall back")
    except ZeroDivisionError:
        ok(True, "a callback that fails is no reason to fall back")


def check_resumed():
    """Our planner uses its plan_loader, and refuses a stale one."""
    model, constraints = shipped("criteo_kaggle_26")
    arguments = stock_arguments(constraints)
    want = EmbeddingShardingPlanner(**arguments).plan(model, SHARDERS)
    planner = NeuroShardPlanner(**arguments, **QUICK, fallback=False)
    free = str(planner.plan(model, SHARDERS))
    planner.plan_loader = NeuroShardPlanLoader(planner, model, SHARDERS, want)
    got = planner.plan(model, SHARDERS)
    ok(str(got) == str(want) != free, "our planner loads a plan")
    ok(planner.neuroshard_plan is None, "the plan is not the program's")
    other = NeuroShardPlanner(
        **{
            **arguments,
            "batch_size": 7,
            "plan_loader": planner.plan_loader,
        },
        **QUICK,
    )
    try:
        other.plan(model, SHARDERS)
        ok(False, "another batch: the plan is refused")
    except PlannerError as error:
        ok("input context mismatch" in str(error), "with another batch not")


def check_left_to_job():
    """A module without a sharder is not planned; the rest is."""
    planner = NeuroShardPlanner(**stock_arguments(), **QUICK, fallback=False)
    plan = planner.plan(Two(), [EmbeddingBagCollectionSharder()])
    ok(set(plan.plan) == {"user", "item.0"}, "a module without a sharder")


def check_whole_sentence():
    """A reason is complete, however wide the terminal is."""
    model = collection(bags("a", 10**6, 64), bags("b", 10**6, 64))
    arguments = stock_arguments(topology=topology(2, hbm_cap=1 << 20))
    lines = []
    for columns in ("40", "400"):
        planner = NeuroShardPlanner(**arguments, **QUICK, fallback=False)
        try:
            with mock.patch.dict(os.environ, COLUMNS=columns):
                planner.plan(model, SHARDERS)
        except neuroshard.Error as error:
            lines.append(str(error))
    ok(
        len(lines) == 2 and lines[0] == lines[1] and len(lines[0]) > 80,
        "a reason does not depend on COLUMNS",
        str(lines),
    )


def check_no_memory_left():
    """A PlannerError of TorchRec counts as an answer; the stock planner gives
    the same."""

    class Nothing(FixedPercentageStorageReservation):
        def reserve(self, *_, **__):
            raise PlannerError("nothing is left")

    model = collection(bags("a", 100, 16))
    arguments = {
        **stock_arguments(),
        "storage_reservation": Nothing(0.1),
    }
    with Log() as log:
        planner = NeuroShardPlanner(**arguments, **QUICK)
        try:
            planner.plan(model, SHARDERS)
            ok(False, "a reservation that leaves nothing is TorchRec's error")
        except PlannerError as error:
            ok(
                "nothing is left" in str(error),
                "a reservation that leaves nothing is TorchRec's error",
            )
    ok("as it was" not in "".join(log.lines), "no line blames TorchRec")
    with mock.patch.object(
        NeuroShardPlanner, "_place", side_effect=PlannerError("too large")
    ), Log() as log:
        planner = NeuroShardPlanner(**stock_arguments(), **QUICK)
        planner.plan(model, SHARDERS)
    line = "".join(log.lines)
    ok(
        "too large; TorchRec's own" in line and "as it was" not in line,
        "a PlannerError does not blame TorchRec",
        line,
    )


# --- Faults -----------------------------------------------------------------


@contextlib.contextmanager
def program(text):
    """Replaces the program, except for its version, by a script; PROGRAM is
    the real one."""
    with tempfile.TemporaryDirectory() as work:
        path = f"{work}/neuroshard"
        with open(path, "w", encoding="utf-8") as file:
            real = os.environ["NEUROSHARD"]
            text = text.replace("VERSION", '[ "$1" = --version ] && exec REAL')
            file.write(
                "#!/bin/sh\n" + text.replace("REAL", f"'{real}' \"$@\"")
            )
        os.chmod(path, 0o755)
        with mock.patch.dict(os.environ, NEUROSHARD=path):
            yield


@contextlib.contextmanager
def moved(planner):
    """Simulates a TorchRec that renamed a property."""

    class Moved(Topology):
        def __getattribute__(self, name):
            if name == "intra_host_bw":
                raise AttributeError("no attribute 'intra_host_bw'")
            return super().__getattribute__(name)

    planner._topology.__class__ = Moved
    yield


def refusing_loader():
    return mock.patch(
        "neuroshard._loader._check_shards",
        side_effect=ValueError("a: pieces of 12 and of 4 columns"),
    )


def least_kib():
    """Smallest memory limit in KiB with which the program starts; planning
    needs more."""
    for kib in range(2000, 1000000, 1000):
        done = subprocess.run(
            f"ulimit -v {kib}; exec '{os.environ['NEUROSHARD']}' --version",
            shell=True,
            capture_output=True,
            check=False,
        )
        if done.returncode == 0:
            return kib
    raise RuntimeError("the program does not start")


FAULTS = (
    (
        "missing",
        lambda: mock.patch.dict(os.environ, NEUROSHARD="/none/neuroshard"),
        "cannot run '/none/neuroshard': No such file or directory",
    ),
    (
        "killed",
        lambda: program("VERSION\nkill -9 $$"),
        "'neuroshard plan' was killed by SIGKILL",
    ),
    (
        "out of memory",
        lambda: program(f"VERSION\nulimit -v {least_kib()}; exec REAL"),
        "memory",
    ),
    (
        "of another version",
        lambda: program("echo neuroshard 7.8"),
        "it says 'neuroshard 7.8'",
    ),
    (
        "of malformed answers",
        lambda: program(
            "VERSION\nfor last; do true; done; echo '{]' >${last#*=}"
        ),
        "the answer of 'neuroshard plan' cannot be read",
    ),
    (
        "of answers that end early",
        lambda: program(
            "VERSION\nREAL; for last; do true; done; last=${last#*=}\n"
            "head -c 300 $last >$last.cut; mv $last.cut $last"
        ),
        "the answer of 'neuroshard plan' cannot be read",
    ),
    (
        "too slow",
        lambda: program("VERSION\nexec sleep 60"),
        "took longer than 5 s and was killed",
    ),
    ("overruled by the loader", refusing_loader, "pieces of 12 and of 4"),
)


def stock_plan(model, constraints):
    planner = EmbeddingShardingPlanner(**stock_arguments(constraints))
    return str(planner.plan(model, SHARDERS))


def check_fault(model, constraints, name, fault, part, **options):
    """A fault gives the stock planner's plan, and one line in the log."""
    options = {**QUICK, "timeout_s": 5, **options}
    arguments = stock_arguments(constraints)
    planner = NeuroShardPlanner(**arguments, **options)
    with Log() as log, fault(planner):
        plan = str(planner.plan(model, SHARDERS))
    print("# " + "\n# ".join(log.lines))
    ok(plan == stock_plan(model, constraints), f"{name}: the stock plan")
    line = "".join(log.lines)
    ok(
        len(log.lines) == 1 and part in line and "\n" not in line,
        f"{name}: one line says why",
        str(log.lines),
    )
    ok(planner.neuroshard_plan is None, f"{name}: there is no other plan")


def check_faults():
    model, constraints = shipped("criteo_kaggle_26")
    for name, fault, part in FAULTS:
        check_fault(
            *(model, constraints, f"a program that is {name}"),
            *(lambda _, fault=fault: fault(), part),
        )
    check_fault(
        *(model, constraints, "a program that refuses"),
        *(lambda _: contextlib.nullcontext(), "no plan fits"),
        memory="4MiB",
        reserve=0,
    )
    check_fault(
        *(model, constraints, "an option that there is not"),
        *(lambda _: contextlib.nullcontext(), "no-such-thing"),
        no_such_thing=1,
    )
    check_fault(
        *(model, constraints, "a TorchRec that has changed"),
        *(moved, "TorchRec is not as it was, AttributeError: no attribute"),
    )
    for path, part in (
        ("/none/used.csv", "'/none/used.csv'"),
        (__file__, "without a name"),
    ):
        planner = NeuroShardPlanner(**stock_arguments(constraints), usage=path)
        with Log() as log:
            planner.plan(model, SHARDERS)
        line = "".join(log.lines)
        ok(
            part in line and "as it was" not in line,
            "a bad list of usage does not blame TorchRec",
            line,
        )
    planner = NeuroShardPlanner(
        **stock_arguments(constraints),
        fallback=False,
        memory="4MiB",
        reserve=0,
    )
    try:
        planner.plan(model, SHARDERS)
        ok(False, "without fallback the failure is raised")
    except neuroshard.Error as error:
        ok(error.status == 3, "without fallback the failure is raised")


def check_unknown():
    """Tables that the program cannot place."""
    tables = [bags("a", 100, 16)]
    bag = EmbeddingBagCollection(
        tables, device=torch.device("meta"), is_weighted=True
    )
    processed = FeatureProcessedEmbeddingBagCollection(
        bag, {"a_f": PositionWeightedModule(5)}
    )
    model = torch.nn.Sequential(processed)
    from torchrec.distributed.sharding_plan import get_default_sharders

    with Log() as log:
        planner = NeuroShardPlanner(**stock_arguments(), **QUICK)
        plan = planner.plan(model, get_default_sharders())
    ok("0" in plan.plan, "a module of another type has the stock plan")
    want = (
        "no table is left to the program: a is in a FeatureProcessedEmbedding"
        "BagCollection; TorchRec's own planner plans"
    )
    ok(log.lines == [want], "and a line says so", str(log.lines))
    for name, constraint, part in (
        (
            "a table in host memory",
            ParameterConstraints(compute_kernels=["fused_uvm"]),
            "a may only have compute_kernels fused_uvm;",
        ),
        (
            "a type that the program lacks",
            ParameterConstraints(sharding_types=["table_column_wise"]),
            "a may only have sharding_types table_column_wise;",
        ),
    ):
        model = collection(bags("a", 128, 16))
        model.embedding_bags["a"].weight._optimizer_classes = [
            torchrec.optim.SGD
        ]
        check_fault(
            *(model, {"a": constraint}, name),
            *(lambda _: contextlib.nullcontext(), part),
        )


def check_arguments():
    for arguments in ({"gpus": 8}, {"batch": 8}, {"hosts_per_domain": 2}):
        try:
            NeuroShardPlanner(**stock_arguments(), **arguments)
            ok(False, f"{arguments} are refused")
        except TypeError as error:
            ok("follows from the topology" in str(error), f"{error}")


def main():
    logging.getLogger().setLevel(logging.CRITICAL)
    logging.getLogger("neuroshard").setLevel(logging.INFO)
    logging.getLogger("neuroshard").propagate = False
    check_tables()
    check_optimizers()
    check_modules()
    check_topology()
    with tempfile.TemporaryDirectory() as work:
        check_usage(work)
        check_plan_loader(work)
    check_constraints()
    check_rows_over()
    check_two_dimensions()
    check_around()
    check_resumed()
    check_left_to_job()
    check_whole_sentence()
    check_no_memory_left()
    check_shadow("criteo_kaggle_26")
    check_shadow("nvidia_synthetic_tiny_v3")
    check_shadow("mlperf_dlrm_dcnv2_multihot")
    check_shadow(
        "mlperf_dlrm_dcnv2_multihot",
        topology=topology(
            8, local_world_size=4, hbm_mem_bw=2e9, inter_host_bw=3e7
        ),
    )
    check_estimate()
    check_shadow_fault()
    check_shadow_beside()
    check_faults()
    check_unknown()
    check_arguments()
    finish()


main()
