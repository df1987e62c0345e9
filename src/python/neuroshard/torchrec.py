# SPDX-License-Identifier: MIT
"""NeuroShard's plans in TorchRec.

    from neuroshard.torchrec import NeuroShardPlanner

    planner = NeuroShardPlanner(topology=topology, constraints=constraints)
    plan = planner.collective_plan(model, sharders, pg)
    model = DistributedModelParallel(model, plan=plan, sharders=sharders)

`NeuroShardPlanner` stands where `EmbeddingShardingPlanner` stood, and takes
what that takes. Whatever fails, the stock planner plans, and one line of the
logger "neuroshard" says why. neuroshard-torchrec(7) is the manual.
"""
from __future__ import annotations

import json
import logging
import os
from typing import Any, Dict, List, Optional

from torchrec.distributed.planner import EmbeddingShardingPlanner

from torchrec.distributed.planner.types import (
    Partitioner,
    PerfModel,
    PlannerError,
    Proposer,
)

try:
    from torchrec.distributed.planner.types import PlanLoader
except ImportError:  # as in TorchRec 1.2
    PlanLoader = object

from . import Error, Plan

__all__ = ["NeuroShardPlanLoader", "NeuroShardPlanner", "dump"]
LOG = logging.getLogger("neuroshard")
STOCK = (
    *("enumerator", "storage_reservation", "proposer", "partitioner"),
    *("performance_model", "stats", "constraints", "debug", "callbacks"),
    *("timeout_seconds", "plan_loader", "topology", "batch_size"),
)
OF_JOB = (
    "gpus",
    "gpus_per_host",
    "hosts_per_domain",
    "batch",
    "batch_per_gpu",
)


class NeuroShardPlanner(EmbeddingShardingPlanner):  # type: ignore[misc]
    """A ShardingPlanner whose plans are those of `neuroshard plan`.

    topology, batch_size, constraints, storage_reservation, enumerator,
    stats, debug, callbacks, plan_loader
             -- as EmbeddingShardingPlanner has them
    proposer, partitioner, performance_model, timeout_seconds
             -- its own search; count where that plans
    mode     -- "plan"; or "shadow": TorchRec's own plan is returned, and a
                warning of the logger has it beside ours
    fallback -- whether the stock planner plans where this one fails; else
                the failure is raised
    usage    -- what the model does not know of its tables: {table: {column:
                value}} or a table list's path, with pooling_factor, bins,
                zipf_alpha, row_order and dedup of neuroshard-tables(5)
    options  -- of neuroshard-plan(1), by their names: gpu="h200",
                pipeline="semisync", dense_ms=[1.5, 3], min_width=32, seed=1;
                timeout_s: seconds after which the program is ended

    neuroshard_plan is the last `neuroshard.Plan`, None where there is none;
    shadow what was found of the two, with `torchrec_ms`, `neuroshard_ms` ...
    """

    # Members of TorchRec's planner.
    _proposers: Any
    _partitioner: Any
    _perf_model: Any

    def __init__(
        self,
        *args: Any,
        mode: str = "plan",
        fallback: bool = True,
        usage: Any = None,
        **options: Any,
    ) -> None:
        stock = {name: options.pop(name) for name in STOCK if name in options}
        if mode not in ("plan", "shadow"):
            raise ValueError(f"mode is 'plan' or 'shadow', not '{mode}'")
        for name in OF_JOB:
            if name in options:
                raise TypeError(f"{name} follows from the topology")
        super().__init__(*args, **stock)
        self._mode, self._fallback = mode, fallback
        self._usage, self._options = usage or {}, options
        self.neuroshard_plan: Optional[Plan] = None
        self.shadow: Any = None

    def plan(self, module: Any, sharders: List[Any]) -> Any:
        """The ShardingPlan of module."""
        self.neuroshard_plan = self.shadow = None
        self._best_plan = self._search_space = None
        if self._mode == "shadow":
            return self._plan_beside(module, sharders)
        searches = self._proposers, self._partitioner, self._perf_model
        ours = _Ours(self, module, sharders)
        self._proposers = [ours]
        self._partitioner = self._perf_model = ours
        try:
            plan = super().plan(module, sharders)
            self.neuroshard_plan = ours.plan
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
        """TorchRec's plan; ours is made beside it."""
        from . import _shadow

        stock = super().plan(module, sharders)
        try:
            placing = self._place(module, sharders)
            plans = [stock, self._sharding(placing, module)]
            self.shadow = _shadow.compare(
                self, module, sharders, plans, placing
            )
            self.neuroshard_plan = placing.plan
            LOG.warning("%s", self.shadow)
        except Exception as error:
            LOG.warning("%s; TorchRec's own planner plans", _why(error))
        return stock

    def _sharding(self, placing: Any, module: Any) -> Any:
        return placing.sharding_plan(
            module, self._topology, self._constraints or {}
        )

    def _place(self, module: Any, sharders: List[Any]) -> Any:
        from . import _model, _placing

        topology, constraints = self._topology, self._constraints or {}
        found = _model.tables(
            module,
            sharders,
            constraints,
            topology.compute_device,
            self._batch_size,
            self._options.get("cost") == "torchrec",
        )
        left = _reserved(self, module, sharders)
        asked = _model.job(topology, left, self._batch_size, self._options)
        return _placing.place(found, asked, self._usage)


class _NoPlanError(Exception):
    """There is no plan of ours."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class _Ours(Proposer, Partitioner, PerfModel):  # type: ignore[misc]
    """The program in the place of TorchRec's search: proposes one plan, with
    its ranks. All around the search stays TorchRec's: plan_loader, which comes
    first, callbacks, stats, and the options that were selected."""

    def __init__(self, planner: Any, module: Any, sharders: List[Any]) -> None:
        self._planner, self._module = planner, module
        self._sharders = sharders
        self._proposals: List[Any] = []
        self.plan: Optional[Plan] = None

    def load(self, search_space: List[Any], enumerator: Any = None) -> None:
        from . import _shadow

        planner = self._planner
        try:
            placing = planner._place(self._module, self._sharders)
            sharding = planner._sharding(placing, self._module)
            options = _shadow.chosen(planner, search_space, sharding)
        except Exception as error:
            raise _NoPlanError(error) from error
        self._proposals, self.plan = [options], placing.plan

    def propose(self) -> Any:
        return self._proposals.pop() if self._proposals else None

    def feedback(self, *_: Any, **__: Any) -> None:
        pass

    def partition(self, proposal: Any, storage_constraint: Any) -> Any:
        return proposal

    def rate(self, plan: Any) -> float:
        return 0.0


class NeuroShardPlanLoader(PlanLoader):  # type: ignore[misc]
    """A plan for the planner that the job has.

        planner.plan_loader = NeuroShardPlanLoader(
            planner, model, sharders, "torchrec.json"
        )
        plan = planner.collective_plan(model, sharders, pg)

    planner -- an EmbeddingShardingPlanner
    plan    -- a ShardingPlan, what `dump` returns, or the path of what
               `emit --format torchrec` wrote
    plan_id -- what get_plan_id returns

    Only options that the planner's enumerator offers can be loaded: ValueError
    names the tables that have others. The planner refuses a loader that was
    made for other inputs: topology, batch size, constraints ...
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
            plan = plan._serialize()
        options = planner._enumerator.enumerate(module, sharders)
        _reserved(planner, module, sharders)
        self._hash = planner.hash_planner_context_inputs_str()
        self._options = _placing.offered(options, plan)
        self._id = plan_id

    def load(self) -> Dict[int, Any]:
        return self._options

    def plan_context_hash(self) -> str:
        return str(self._hash)

    def get_plan_id(self) -> str:
        return self._id


def _reserved(planner: Any, module: Any, sharders: List[Any]) -> Any:
    """The topology with the memory that is left."""
    return planner._storage_reservation.reserve(
        topology=planner._topology,
        batch_size=planner._batch_size,
        module=module,
        sharders=sharders,
        constraints=planner._constraints,
    )


def _why(error: Exception) -> str:
    """In one line. What is no Error is most likely a TorchRec that has changed
    where this module reaches into it."""
    text = " ".join(str(error).split())
    if isinstance(error, (Error, OSError, ValueError, PlannerError)):
        return text
    return f"TorchRec is not as it was, {type(error).__name__}: {text}"


def dump(plan: Any, topology: Any = None) -> Dict[str, Any]:
    """A ShardingPlan, of whatever planner, as the JSON that
    `emit --format torchrec` writes and `cost` reads. Ranks and hosts are those
    of the topology, else of the job."""
    from . import _placing

    return {**_placing.shape(topology), **plan._serialize()}
