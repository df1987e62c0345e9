# SPDX-License-Identifier: MIT
"""Times of a running job, from which its next plan learns."""
from __future__ import annotations

import json
import logging
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional

import torch
import torch.distributed as dist
from torch.profiler import ProfilerAction, ProfilerActivity

from . import Plan, _arguments, _program

LOG = logging.getLogger("neuroshard")
WARM_UP, PROFILED = 5, 6  # steps at the beginning of each period


class Watch:
    """Profiles some steps of each period of a job; see `watch`.

    report -- last report of `neuroshard record`; "" on ranks other than 0
    """

    def __init__(
        self, model: Any, path: Any, every: int, db: Any, insist: bool
    ) -> None:
        if every <= WARM_UP + PROFILED:
            raise ValueError(f"every is {every}, not > {WARM_UP + PROFILED}")
        self.report = ""
        self._model, self._every = model, every
        file = Path(path)
        self._options = {"output": file, "db": db, "insist": insist}
        self._options["output_cluster"] = file.with_suffix(".json")
        self._json = getattr(model.plan, "neuroshard_plan", None)
        self._cuda = torch.cuda.is_available()
        activities = [ProfilerActivity.CPU]
        if self._cuda:
            activities.append(ProfilerActivity.CUDA)
        if db is not None and self._cuda:  # named as in the shipped models
            major, minor = torch.cuda.get_device_capability()
            name = torch.cuda.get_device_name()
            self._options["device"] = f"fbgemm:{name}"
            self._options["isa"] = f"sm_{major}{minor}"
        elif db is not None:
            self._options["device_threads"] = torch.get_num_threads()
        self._profiler = torch.profiler.profile(
            activities=activities,
            schedule=self._action,
            on_trace_ready=self._trace,
        )

    def __enter__(self) -> Watch:
        if self._json is None:
            LOG.warning("watch: the job's plan is not by NeuroShardPlanner")
            return self
        self._group = dist.new_group(backend="gloo")
        self._hook = self._model.register_forward_pre_hook(self._step)
        self._profiler.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._json is not None:
            self._hook.remove()
            self._profiler.on_trace_ready = None  # an unfinished period
            self._profiler.stop()

    def _step(self, *_: Any) -> None:
        if torch.is_grad_enabled():
            self._profiler.step()

    def _action(self, step: int) -> ProfilerAction:
        at = step % self._every - WARM_UP
        if at < 0 or at > PROFILED:
            return ProfilerAction.NONE
        if at == 0:
            return ProfilerAction.WARMUP
        last = at == PROFILED
        return (
            ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD
        )

    def _trace(self, profiler: Any) -> None:
        """Takes the traces of all ranks to rank 0, which records them."""
        own = self._own(profiler)
        n, is_first = dist.get_world_size(), dist.get_rank() == 0
        all_ranks: List[Any] = [None] * n
        dist.gather_object(
            own, all_ranks if is_first else None, group=self._group
        )
        if not is_first:
            return
        try:
            self.report = self._record(all_ranks)
            LOG.info("watch: %s", self.report)
        except Exception as error:  # the job goes on
            LOG.warning("watch: %s", error)

    def _own(self, profiler: Any) -> Optional[Dict[str, Any]]:
        """Returns the trace and the peak memory of this rank."""
        try:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "trace.json.gz"
                profiler.export_chrome_trace(str(file))
                found: Dict[str, Any] = {"trace": file.read_bytes()}
        except Exception as error:  # other ranks wait for this one
            LOG.warning("watch: %s", error)
            return None
        if self._cuda:
            free, size = torch.cuda.mem_get_info()
            found["memory"] = {
                "rank": dist.get_rank(),
                "allocated_bytes": torch.cuda.max_memory_allocated(),
                "reserved_bytes": torch.cuda.max_memory_reserved(),
                "used_bytes": size - free,
            }
        return found

    def _record(self, ranks: List[Any]) -> str:
        if None in ranks:
            raise RuntimeError(f"rank {ranks.index(None)} has no trace")
        with _program.folder() as folder:
            files = [folder / "plan.json"]
            Plan(self._json or {}).save(files[0])
            for i, rank in enumerate(ranks):
                files.append(folder / f"trace_{i}.json.gz")
                files[-1].write_bytes(rank["trace"])
            options = {**self._options, "times": files.pop(), "warm_up": 1}
            if self._cuda:
                memory = folder / "memory.json"
                rows = [rank["memory"] for rank in ranks]
                memory.write_text(json.dumps(rows), "ascii")
                options["memory"] = memory
            args = ["record", *map(str, files), *_arguments(options, folder)]
            return _program.run(args).decode()
