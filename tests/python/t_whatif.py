#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the program says of a plan that would be otherwise is what `cost` says
of that plan, to 1e-9. Speaks TAP; NEUROSHARD is the program.
"""
import json
import os
import tempfile
from pathlib import Path

from tap import finish, neuroshard, ok

ROOT = Path(__file__).resolve().parents[2]
DLRM = ROOT / "data/tables/mlperf_dlrm_dcnv2_multihot.csv"
KAGGLE = ROOT / "data/tables/criteo_kaggle_26.csv"


def answer(*line):
    """The document, which may be an error."""
    return json.loads(neuroshard(*map(str, line), "--json")[1])


def price(plan, *options):
    """What `cost` says of a plan whose shards or problem were edited."""
    edited = {**plan, "total_ms": None}
    edited.pop("devices", None)
    Path("edited.json").write_text(json.dumps(edited), encoding="utf-8")
    return answer("cost", "edited.json", *options)


def is_same(a, b):
    return abs(a / b - 1) < 1e-9


def check_cost(name, plan):
    """Options of `cost` beside the same said by the plan; two hosts of one
    domain are as one."""

    def cluster(**what):
        return {**plan, "cluster": {**plan["cluster"], **what}}

    n_gpus = plan["cluster"]["gpus"]
    half = n_gpus // 2
    cases = [
        (["--batch", 8192], {**plan, "batch": 8192}),
        (["--batch-per-gpu", 512], {**plan, "batch": 512 * n_gpus}),
        (["--gpus-per-host", half], cluster(gpus_per_host=half)),
        (
            ["--gpus-per-host", half, "--hosts-per-domain", 2],
            cluster(gpus_per_host=half, pod_size=2),
        ),
        (
            ["--pipeline", "semisync", "--dense-ms", "1,2"],
            {
                **plan,
                "step": {
                    "pipeline": "semisync",
                    "chunks": 1,
                    "dense_ms": [1, 2],
                },
            },
        ),
    ]
    now = answer("cost", name)["total_ms"]
    for options, edited in cases:
        asked = answer("cost", name, *options)
        ok(
            is_same(asked["total_ms"], price(edited)["total_ms"])
            and (asked["total_ms"] == now)
            == ("--hosts-per-domain" in options),
            f"cost {name} {' '.join(map(str, options))}",
            str(asked.get("error")),
        )
    asked = answer("cost", name, "--gpu", "h200")
    other = answer("cost", name, "--cost", asked["cost_model"]["name"])
    ok(
        "h200" in asked["cost_model"]["name"]
        and is_same(asked["total_ms"], other["total_ms"]),
        f"cost {name} --gpu h200",
    )


def check_refused(name):
    for options, kind in (
        (["--gpus-per-host", 3], "usage"),
        (["--hosts-per-domain", 2], "usage"),
        (["--memory", "1GiB"], "usage"),
        (["--batch", 10**9], "no_plan"),
    ):
        asked = answer("cost", name, *options)
        ok(
            asked["error"]["kind"] == kind,
            f"refused: {' '.join(map(str, options))}",
            str(asked),
        )


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, tables, n_gpus in (("dlrm", DLRM, 8), ("kaggle", KAGGLE, 4)):
            plan = answer(
                *["plan", tables, "--gpus", n_gpus, "--effort", 2000],
                *["-o", f"{name}.json"],
            )
            check_cost(f"{name}.json", plan)
        check_refused("dlrm.json")
        os.chdir(ROOT)
    finish()


main()
