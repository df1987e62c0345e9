# SPDX-License-Identifier: MIT
"""Log line of a plan."""
from __future__ import annotations

import re
from typing import Any, List

from ._job import Gpu
from ._placing import Placing

# Texts of the report's lines about the gain over TorchRec's own planner and
# about training.
GAIN, CHANGES = " TorchRec's planner", "training changes: "


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
        *([] if beside else _said(plan.report, GAIN)),
        *_said(plan.report, CHANGES),
        *notes,
    ]
    return "; ".join(parts)


def _said(report: str, about: str) -> List[str]:
    """Returns the report's line that contains the text, with its further
    lines, which are indented."""
    found = re.search(rf"^.*{about}.*(\n    .*)*", report, re.M)
    return [" ".join(found[0].split())] if found else []


def is_warning(placing: Placing, gpu: Gpu, notes: List[Any]) -> bool:
    """Whether the line is a warning: something was assumed or training
    changes."""
    changes = _said(placing.plan.report, CHANGES)
    return bool(gpu.why.startswith("assumed") or notes or changes)
