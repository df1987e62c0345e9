# SPDX-License-Identifier: MIT
"""Log line of a plan."""
from __future__ import annotations

import re
from typing import Any, Dict, List

from ._job import Gpu
from ._placing import Placing

# Optimizers that keep one value per row or take a norm over a row. For a
# column-wise shard the row is that of the shard.
BY_ROW = {
    "rowwise_adagrad": "row-wise Adagrad",
    "partial_rowwise_adam": "partial row-wise Adam",
    "partial_rowwise_lamb": "partial row-wise LAMB",
    "lamb": "LAMB",
}


def line(placing: Placing, gpu: Gpu, notes: List[str], beside: bool) -> str:
    """Describes how the plan was made, its gain, and how it changes training.
    beside: leave the gain out, because a table shows it."""
    plan = placing.plan
    model, n_ranks = plan.json["cost_model"], plan.json["cluster"]["gpus"]
    host_ms = plan.json.get("host_ms", 0)
    parts = [
        f"planned by {model['name']} for {n_ranks} x "
        f"{gpu.option or 'its GPU'} ({gpu.why})",
        f"a step of {plan.step_ms:.4g} ms"
        + (
            f" (GPU work {plan.gpu_ms:.4g} ms, host {host_ms:.4g} ms)"
            if host_ms
            else ""
        ),
        *([] if beside else _gain(plan.report)),
        *changes(placing),
        *notes,
    ]
    return "; ".join(parts)


def _gain(report: str) -> List[str]:
    """Gain over TorchRec's own planner, from the report."""
    found = re.search(r"^(.* TorchRec's planner.*)$", report, re.M)
    return [" ".join(found[1].split())] if found else []


def changes(placing: Placing) -> List[str]:
    """Describes how training differs from training with whole tables."""
    tables = placing.plan.json["tables"]
    cut: Dict[str, List[str]] = {}
    copied = []
    seen = set()
    for shard in placing.plan.json["shards"]:
        index = shard["table"]
        table = tables[index]
        width = shard["col_end"] - shard["col_begin"]
        optimizer = BY_ROW.get(table["optimizer"])
        if index in seen:
            continue
        seen.add(index)
        if shard["kind"] == "replicate":
            copied.append(table["name"])
        elif width < table["dim"] and optimizer:
            cut.setdefault(optimizer, []).append(table["name"])
    parts = [
        f"{optimizer} goes by pieces of rows, not by rows, in {_names(names)}"
        for optimizer, names in cut.items()
    ]
    if copied:
        parts.append(f"the job's dense optimizer updates {_names(copied)}")
    return [f"training changes: {', '.join(parts)}"] if parts else []


def _names(names: List[str]) -> str:
    shown = ", ".join(names[:3]) + ", ..." * (len(names) > 3)
    return f"{len(names)} table{'s' * (len(names) > 1)} ({shown})"


def is_warning(placing: Placing, gpu: Gpu, notes: List[Any]) -> bool:
    """Whether the line is a warning: something was assumed or training
    changes."""
    return bool(gpu.why.startswith("assumed") or notes or changes(placing))
