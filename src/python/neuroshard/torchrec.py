# SPDX-License-Identifier: MIT
"""NeuroShard's plans in TorchRec.

    from neuroshard.torchrec import NeuroShardPlanner

    planner = NeuroShardPlanner(topology=topology, constraints=constraints)
    plan = planner.collective_plan(model, sharders, pg)
    model = DistributedModelParallel(model, plan=plan, sharders=sharders)

`NeuroShardPlanner` replaces `EmbeddingShardingPlanner` and takes the same
arguments. If it fails, the stock planner plans instead, and the logger
"neuroshard" gets one line with the reason. neuroshard-torchrec(7) is the
manual.
"""
from __future__ import annotations

import copy
import inspect
import json
import logging
import os
from typing import Any, Callable, Dict, List, Optional, Tuple

from torchrec.distributed.planner import EmbeddingShardingPlanner
from torchrec.distributed.planner.proposers import (
    EmbeddingOffloadScaleupProposer as OffloadProposer,
)

from torchrec.distributed.planner.types import (
    Partitioner,
    PerfModel,
    PlannerError,
    Proposer,
)

try:
    from torchrec.distributed.planner.types import PlanLoader
except ImportError:  # TorchRec 1.2
    PlanLoader = object

from . import Error, Plan, price

__all__ = ["NeuroShardPlanLoader", "NeuroShardPlanner", "dump", "watch"]
LOG = logging.getLogger("neuroshard")
UNKNOWN_GPU = "no figures for a GPU"  # message of the program
STOCK = (
    *("enumerator", "storage_reservation", "proposer", "partitioner"),
    *("performance_model", "stats", "constraints", "debug", "callbacks"),
    *("timeout_seconds", "plan_loader", "topology", "batch_size"),
)
SEARCH = ("proposer", "partitioner", "performance_model")
OF_JOB = (
    "gpus",
    "gpus_per_host",
    "hosts_per_domain",
    "batch",
    "batch_per_gpu",
)


class NeuroShardPlanner(EmbeddingShardingPlanner):  # type: ignore[misc]
    """A ShardingPlanner that returns the plans of `neuroshard plan`.

    topology, batch_size, constraints, storage_reservation, enumerator,
    stats, debug, callbacks, plan_loader
             -- as in EmbeddingShardingPlanner
    timeout_seconds
             -- time limit of the search in seconds; same as option time_limit
    proposer, partitioner, performance_model
             -- TorchRec's own search; only used if TorchRec's planner plans
    mode     -- "plan"; or "shadow": TorchRec's own plan is returned, and a
                warning of the logger compares it with ours
    fallback -- whether the stock planner plans if this one fails; otherwise
                the failure is raised
    usage    -- facts about the tables that the model does not know: {table or
                feature: {column: value}}, a list of rows with `name`, or the
                path of a table list; takes the columns pooling_factor, bins,
                zipf_alpha, row_order, dedup, group, device and
                row_overhead_bytes of neuroshard-tables(5)
    previous -- plan by which the job ran before: a ShardingPlan, the result of
                `dump`, or its path; it stays unless it does not fit or another
                one gains more than the error of their comparison
    measured -- path of the file that `watch` writes: the plan is priced by
                its measured times, and by those of slow ranks and of exchanges
                in the .json file beside it; ignored while there is none
    options  -- options of neuroshard-plan(1) by their names: gpu="h200",
                pipeline="semisync", dense_ms=[1.5, 3], min_width=32, seed=1;
                timeout_s: seconds until the program is killed

    The member neuroshard_plan is the last `neuroshard.Plan`, or None. The
    member shadow is the comparison of the two plans, with `diff`, `save` ...
    """

    # Members of the base class, TorchRec's planner.
    _proposers: Any
    _partitioner: Any
    _perf_model: Any

    def __init__(
        self,
        *args: Any,
        mode: str = "plan",
        fallback: bool = True,
        usage: Any = None,
        previous: Any = None,
        measured: Any = None,
        **options: Any,
    ) -> None:
        stock = {name: options.pop(name) for name in STOCK if name in options}
        if mode not in ("plan", "shadow"):
            raise ValueError(f"mode is 'plan' or 'shadow', not '{mode}'")
        for name in OF_JOB:
            if name in options:
                raise TypeError(f"{name} follows from the topology")
        super().__init__(*args, **stock)
        given = inspect.signature(super().__init__).bind(*args, **stock)
        self._of_job = self._proposers
        self._replaced = [
            name for name in SEARCH if given.arguments.get(name) is not None
        ]
        if self._timeout_seconds:
            options.setdefault("time_limit", self._timeout_seconds)
        self._mode, self._fallback = mode, fallback
        self._usage, self._options = usage or {}, options
        self._previous, self._measured = previous, measured
        self._notes: List[str] = []
        self._gpu: Any = None
        self.neuroshard_plan: Optional[Plan] = None
        self.shadow: Any = None

    def plan(self, module: Any, sharders: List[Any]) -> Any:
        """Returns the ShardingPlan of module."""
        self.neuroshard_plan = self.shadow = None
        self._best_plan = self._search_space = None
        if self._mode == "shadow":
            return self._plan_beside(module, sharders)
        searches = self._proposers, self._partitioner, self._perf_model
        ours = _Ours(self, module, sharders, searches)
        self._proposers = [ours]
        self._partitioner = self._perf_model = ours
        try:
            plan = super().plan(module, sharders)
            if ours.placing is not None:
                plan.neuroshard_plan = ours.placing.plan.json  # for watch()
            self._log(ours.placing)
            return plan
        except _NoPlanError as failure:
            error = failure.error
            if not self._fallback:
                raise error from None
            LOG.warning("%s; TorchRec's own planner plans", _why(error))
        finally:
            self._proposers, self._partitioner, self._perf_model = searches
        return super().plan(module, sharders)

    def _plan_beside(self, module: Any, sharders: List[Any]) -> Any:
        """Returns TorchRec's plan; also makes ours and compares the two."""
        from . import _shadow

        stock = super().plan(module, sharders)
        options = self.get_selected_options()
        try:
            placing = self._place(module, sharders, lambda: (stock, options))
            plans = [stock, self._sharding(placing, module)]
            self.shadow = _shadow.compare(
                self, module, sharders, plans, placing
            )
            stock.neuroshard_plan = self.shadow.priced[0].json  # for watch()
            self._log(placing)
        except Exception as error:
            LOG.warning("%s; TorchRec's own planner plans", _why(error))
        return stock

    def _sharding(self, placing: Any, module: Any) -> Any:
        return placing.sharding_plan(
            module, self._topology, self._constraints or {}
        )

    def _log(self, placing: Any) -> None:
        """Logs one line about the plan; the mode "shadow" logs both prices,
        too."""
        from . import _summary

        if placing is None:
            if self.plan_loader is not None and self._best_plan:
                name = self.plan_loader.get_plan_id()
                LOG.info("the plan is that of plan_loader, '%s'", name)
            return
        self.neuroshard_plan = placing.plan
        beside = self.shadow is not None
        line = _summary.line(placing, self._gpu, self._notes, beside)
        if beside:
            LOG.warning("%s\n    %s", self.shadow, line)
        elif _summary.is_warning(placing, self._gpu, self._notes):
            LOG.warning("%s", line)
        else:
            LOG.info("%s", line)

    def _plan_stock(
        self, module: Any, sharders: List[Any], searches: Tuple[Any, ...]
    ) -> Tuple[Any, List[Any]]:
        """Returns the plan of TorchRec's own search, and its options, without
        a trace in callbacks, statistics or members."""
        members = (
            *("_proposers", "_partitioner", "_perf_model", "_callbacks"),
            *("_stats", "plan_loader", "_best_plan", "_search_space"),
        )
        before = {name: getattr(self, name) for name in members}
        stock = dict(zip(members, (*searches, [], [], None, None, None)))
        try:
            self.__dict__.update(stock)
            plan = super().plan(module, sharders)
            return plan, copy.deepcopy(self.get_selected_options())
        finally:
            self.__dict__.update(before)

    def _found(self, module: Any, sharders: List[Any]) -> Any:
        """Returns the tables that the program places, and those that stay
        where TorchRec's own planner puts them."""
        from . import _model

        topology = self._topology
        job = _model.Job(
            *(topology.compute_device, topology.world_size),
            *(self._batch_size, self._options.get("cost") == "torchrec"),
            any(isinstance(p, OffloadProposer) for p in self._of_job),
            self._options.get("tiers") is not None,
        )
        return _model.tables(module, sharders, self._constraints or {}, job)

    def _place(
        self, module: Any, sharders: List[Any], plan_stock: Callable[[], Any]
    ) -> Any:
        """Runs the program. plan_stock returns TorchRec's own plan and its
        options; it is called if some tables stay where that puts them."""
        from . import _job, _stock

        topology, options = self._topology, dict(self._options)
        self._notes = []
        found, kept = self._found(module, sharders)
        if not found:
            why = _stock.described(kept)
            raise Error(f"no table is left to the program: {why}", 1)
        rows = self._rows(module, found)
        if any(table.dedups_ids for table in found):
            options.setdefault("dedup", "ids")
        left = _reserved(self, module, sharders)
        self._gpu = _job.gpu(topology, options)
        asked = _job.job(topology, left, self._batch_size, options)
        if self._measured is not None:
            _job.add_measured(asked, self._measured)
        stock = None
        if kept:
            sharding, chosen = plan_stock()
            stock = _stock.split(sharding, chosen, found)
            n = len(kept)
            self._notes.append(
                f"{n} table{'s' * (n > 1)} stay{'s' * (n == 1)} where "
                f"TorchRec's planner puts {'them' if n > 1 else 'it'}: "
                f"{_stock.described(kept)}"
            )
        try:
            return self._run(module, found, rows, asked, stock)
        except Error as error:
            if not self._gpu.is_told or UNKNOWN_GPU not in str(error):
                raise
        self._gpu = self._gpu.assumed()
        return self._run(module, found, rows, asked, stock)

    def _run(
        self,
        module: Any,
        found: List[Any],
        rows: Any,
        asked: Dict[str, Any],
        stock: Any,
    ) -> Any:
        """Runs the program for the GPU type self._gpu, beside the tables that
        stay where TorchRec's own planner puts them."""
        from . import _estimate, _placing, _stable, _stock

        def run(options: Dict[str, Any]) -> Any:
            return _placing.place(found, rows, options)

        topology, ratio = self._topology, 1.0
        asked = {**asked, "gpu": self._gpu.option}
        if stock:
            if self._options.get("cost") != "torchrec":
                whole = _placing.stock_shards(
                    run(_stock.unlimited(asked)), stock.sharding
                )
                ratio = _stock.ratio(stock, price(whole))
            asked = _stock.beside(asked, stock, topology.compute_device, ratio)

        def stable(options: Dict[str, Any]) -> Any:
            placing, note = _stable.place(
                *(run, options, self._previous, module),
                topology.compute_device,
            )
            self._notes += [note] if note else []
            return placing

        try:
            placing, note = _estimate.place(
                *(self, module),
                *(run if self._previous is None else stable, asked),
            )
        except Error as error:
            if not stock or error.status != _estimate.NO_PLAN:
                raise
            n = len(stock.rest)
            raise Error(
                f"{error}, beside {n} table{'s' * (n > 1)} that TorchRec's "
                f"planner places",
                error.status,
            ) from error
        self._notes += [note] if note else []
        return placing._replace(stock=stock)

    def _rows(self, module: Any, found: List[Any]) -> Any:
        """Returns the tables for the program, and checks the names in usage
        and constraints against the model."""
        from . import _model, _usage

        notes, constraints = self._notes, self._constraints or {}
        if self._replaced:
            notes.append(
                f"unused: {', '.join(self._replaced)} (of TorchRec's own "
                "search)"
            )
        known = _model.names(module)
        _usage.check_names("constraints", constraints, known, (), notes)
        for table in found:
            of_table = constraints.get(table.name)
            _usage.check_names(
                f"feature_names in the constraints of table '{table.name}'",
                getattr(of_table, "feature_names", None) or (),
                *(table.features, (), notes),
            )
        weighted = [table.name for table in found if table.is_weighted]
        if weighted:
            notes.append(
                f"{len(weighted)} weighted tables are priced without their "
                "weights"
            )
        rows = _usage.rows(found, self._usage, notes, known)
        if self._measured is not None:
            _usage.add_factors(rows, self._measured)
        if any(t.dedups_ids and "dedup" not in r for t, r in zip(found, rows)):
            notes.append(
                "the sharder de-duplicates ids, but no dedup in usage says "
                "how many are left, so all are"
            )
        return rows


class _NoPlanError(Exception):
    """The program gave no plan."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class _Ours(Proposer, Partitioner, PerfModel):  # type: ignore[misc]
    """The program in the place of TorchRec's search: proposes one plan with
    its ranks. Everything around the search stays TorchRec's: plan_loader,
    which comes first, callbacks, stats, and the selected options."""

    def __init__(
        self,
        planner: Any,
        module: Any,
        sharders: List[Any],
        searches: Tuple[Any, ...],
    ) -> None:
        self._planner, self._module = planner, module
        self._sharders, self._searches = sharders, searches
        self._proposals: List[Any] = []
        self.placing: Any = None

    def load(self, search_space: List[Any], enumerator: Any = None) -> None:
        from . import _shadow

        planner, module = self._planner, self._module
        planner._search_space = search_space  # older versions do not set it
        loader = planner.plan_loader
        if isinstance(loader, NeuroShardPlanLoader) and loader.is_due:
            sharding = loader.sharding_plan(module)
            self._proposals = [_shadow.chosen(planner, search_space, sharding)]
            return
        try:
            placing = planner._place(module, self._sharders, self._plan_stock)
            sharding = planner._sharding(placing, module)
            options = _shadow.chosen(planner, search_space, sharding)
        except Exception as error:
            raise _NoPlanError(error) from error
        self._proposals, self.placing = [options], placing

    def _plan_stock(self) -> Tuple[Any, List[Any]]:
        plan, options = self._planner._plan_stock(
            self._module, self._sharders, self._searches
        )
        return plan, options

    def propose(self) -> Any:
        return self._proposals.pop() if self._proposals else None

    def feedback(self, *_: Any, **__: Any) -> None:
        pass

    def partition(self, proposal: Any, storage_constraint: Any) -> Any:
        return proposal

    def rate(self, plan: Any) -> float:
        return 0.0


class NeuroShardPlanLoader(PlanLoader):  # type: ignore[misc]
    """A plan loader for the planner of the job.

        planner.plan_loader = NeuroShardPlanLoader(
            planner, model, sharders, "torchrec.json"
        )
        plan = planner.collective_plan(model, sharders, pg)

    planner -- an EmbeddingShardingPlanner
    plan    -- a ShardingPlan, the result of `dump`, or the path of the output
               of `emit --format torchrec`
    plan_id -- result of get_plan_id

    TorchRec's own planner, and ours in the mode "shadow", can only load
    options that the planner's enumerator offers; ValueError names the tables
    with other options. A NeuroShardPlanner loads every plan that it could make
    itself. The planner refuses a loader that was made for other inputs:
    topology, batch size, constraints ...
    """

    def __init__(
        self,
        planner: EmbeddingShardingPlanner,
        module: Any,
        sharders: List[Any],
        plan: Any,
        plan_id: str = "neuroshard",
    ) -> None:
        from . import _placing

        if isinstance(plan, (str, os.PathLike)):
            with open(plan, encoding="utf-8") as file:
                plan = json.load(file)
        elif not isinstance(plan, dict):
            plan = _placing.dumped(plan)
        options = planner._enumerator.enumerate(module, sharders)
        _reserved(planner, module, sharders)
        self._hash = planner.hash_planner_context_inputs_str()
        self._id = plan_id
        self._planner, self._plan = planner, plan
        self._options: Optional[Dict[int, Any]] = None
        # the planner asked for a plan with shards that its enumerator lacks
        self.is_due = False
        try:
            self._options = _placing.offered(options, plan)
        except ValueError:
            if getattr(planner, "_mode", "") != "plan":
                raise
            found, _ = planner._found(module, sharders)
            _placing.check(found, plan, planner._topology)
            self.sharding_plan(module)

    def load(self) -> Optional[Dict[int, Any]]:
        """Returns the options; None: the planner is ours and calls
        sharding_plan()."""
        self.is_due = self._options is None
        return self._options

    def sharding_plan(self, module: Any) -> Any:
        """Returns the ShardingPlan with the shards of the loaded plan, even if
        the planner's enumerator does not offer them."""
        from . import _loader, _placing

        topology, self.is_due = self._planner._topology, False
        made_for = {**self._plan, **_placing.shape(topology)}
        device = topology.compute_device
        names = {path: set(part) for path, part in self._plan["plan"].items()}
        return _loader.build_plan(
            made_for, _placing.Part(module, names), device
        )

    def plan_context_hash(self) -> str:
        return str(self._hash)

    def get_plan_id(self) -> str:
        return self._id


def _reserved(planner: Any, module: Any, sharders: List[Any]) -> Any:
    """Returns the topology with the memory that the reservation leaves."""
    return planner._storage_reservation.reserve(
        topology=planner._topology,
        batch_size=planner._batch_size,
        module=module,
        sharders=sharders,
        constraints=planner._constraints,
    )


def _why(error: Exception) -> str:
    """Describes the error in one line. An exception of any other type most
    likely means that the internals of TorchRec changed that this module
    uses."""
    text = " ".join(str(error).split())
    if isinstance(error, (Error, OSError, ValueError, PlannerError)):
        return text
    return f"TorchRec is not as it was, {type(error).__name__}: {text}"


def dump(plan: Any, topology: Any = None) -> Dict[str, Any]:
    """Returns a ShardingPlan of any planner as JSON, in the format that `emit
    --format torchrec` writes and `cost` reads. Ranks and hosts are those of
    the topology, by default of the job."""
    from . import _placing

    return {**_placing.shape(topology), **_placing.dumped(plan)}


def watch(
    model: Any,
    path: Any,
    every: int = 1000,
    db: Any = None,
    insist: bool = False,
) -> Any:
    """Returns a context manager, in which a job trains:

        with watch(model, "measured.csv"):
            train(model)

    In every 1000 steps of the model some are profiled. `neuroshard record`
    compares their times, and the peak memory of each GPU, with the plan, and
    writes how the tables differ from it to `path`, and slow ranks and the
    bandwidth to a .json file beside it, for the argument `measured` of the
    job's next NeuroShardPlanner.

    model  -- the DistributedModelParallel with a plan of NeuroShardPlanner;
              each of its forward passes with gradients is a step
    db     -- cost database that the times are also stored in
    insist -- takes times that are far from those of the plan's GPU
    """
    from ._watch import Watch

    return Watch(model, path, every, db, insist)
