#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Predictions for changed plans equal the answer of `cost` for these plans, to
1e-9. Speaks TAP; NEUROSHARD is the program.
"""
import json
import os
import re
import tempfile
from pathlib import Path

from tap import finish, neuroshard, ok

ROOT = Path(__file__).resolve().parents[2]
DLRM = ROOT / "data/tables/mlperf_dlrm_dcnv2_multihot.csv"
TINY = ROOT / "data/tables/nvidia_synthetic_tiny_v3.csv"
KAGGLE = ROOT / "data/tables/criteo_kaggle_26.csv"


def answer(*line):
    """Returns the document, which may be an error."""
    return json.loads(neuroshard(*map(str, line), "--json")[1])


def price(plan, *options):
    """Returns the answer of `cost` for a plan with edited shards or
    problem."""
    edited = {**plan, "total_ms": None}
    edited.pop("devices", None)
    Path("edited.json").write_text(json.dumps(edited), encoding="utf-8")
    return answer("cost", "edited.json", *options)


def is_same(a, b):
    return abs(a / b - 1) < 1e-9


def check_cost(name, plan):
    """Options of `cost` equal the same settings in the plan. Two hosts of one
    domain are equivalent to one host."""

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
                    "host_ms": 0,
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


def shifted(plan, shift):
    """Returns the plan after a suggested move or swap of pieces."""
    shards = [dict(shard) for shard in plan["shards"]]
    if shift["other"] is not None:
        shards[shift["other"]]["device"] = shards[shift["shard"]]["device"]
    shards[shift["shard"]]["device"] = shift["gpu"]
    return {**plan, "shards": shards}


def replaced(plan, way):
    """Returns the plan with a table placed as an alternative has it."""
    tables = {shard["table"] for shard in way["shards"]}
    kept = [shard for shard in plan["shards"] if shard["table"] not in tables]
    return {**plan, "shards": kept + way["shards"]}


def is_kept(now, edited, promised):
    """Whether `cost` confirms a prediction, including a refusal."""
    said = price(edited)
    if promised.get("why_not"):
        return "error" in said
    return "error" not in said and is_same(
        said["total_ms"], promised["total_ms"]
    )


def check_suggestions(name, plan, counts):
    """Applies each move, swap and alternative of each GPU's pieces."""
    n_gpus = plan["cluster"]["gpus"]
    now = answer("cost", name)["total_ms"]
    for gpu in range(0, n_gpus, max(1, n_gpus // 4)):
        asked = answer("explain", name, "--device", gpu)
        gains = asked["gains"]
        wrong = [
            shift
            for shift in asked["places"] + gains
            if not is_kept(now, shifted(plan, shift), shift)
            or not is_same(now - shift["gain_ms"], shift["total_ms"])
        ]
        counts["places"] += len(asked["places"])
        counts["gains"] += len(gains)
        counts["exchanges"] += sum(g["other"] is not None for g in gains)
        ok(
            not wrong
            and asked["gpu"] == gpu
            and all(gain["gain_ms"] > 0 for gain in gains)
            and gains == sorted(gains, key=lambda gain: gain["total_ms"]),
            f"explain {name} --device {gpu}",
            str(wrong[:3]),
        )
        _, text, _ = neuroshard("explain", name, "--device", str(gpu))
        listed = sum(g["gain_ms"] >= asked["least_gain_ms"] for g in gains)
        ok(
            ("these gain" in text) == (listed > 0)
            and all(len(line) <= 80 for line in text.splitlines()),
            "and what gains less than the error is not listed",
            text,
        )
    for table in plan["tables"][:4]:
        ways = answer("explain", name, table["name"])["ways"]
        wrong = [
            way
            for way in ways
            if way["total_ms"] is not None
            and not is_kept(now, replaced(plan, way), way)
        ]
        counts["ways"] += len(ways)
        kinds = "whole|column|row|replicated"
        kind = next(
            shard["kind"]
            for shard in plan["shards"]
            if plan["tables"][shard["table"]]["name"] == table["name"]
        )
        named = " ".join(way["way"] for way in ways) + f" {kind} whole"
        ok(
            not wrong and all(word in named for word in kinds.split("|")),
            f"explain {name} {table['name']}",
            f"{wrong[:3]} {named}",
        )


def check_best(name, plan, gpu):
    """No move or swap of a GPU's pieces beats the first suggestion."""
    shards = plan["shards"]
    gains = answer("explain", name, "--device", gpu)["gains"]
    best = answer("cost", name)["total_ms"]
    for i, shard in enumerate(shards):
        others = [None] + [
            j for j, other in enumerate(shards) if other["device"] != gpu
        ]
        for j in others if shard["device"] == gpu else []:
            targets = (
                set(range(plan["cluster"]["gpus"])) - {gpu}
                if j is None
                else {shards[j]["device"]}
            )
            for target in targets:
                shift = {"shard": i, "other": j, "gpu": target}
                said = price(shifted(plan, shift))
                best = min(best, said.get("total_ms", best))
    found = gains[0]["total_ms"] if gains else answer("cost", name)["total_ms"]
    ok(
        is_same(found, best),
        f"explain {name} --device {gpu}: no other move or exchange is better",
        f"{found} {best}",
    )


def check_anew(name):
    """A search gains nothing on a plan that it has found itself, and its plan
    never costs more with half the weights. Gains are over the plan, or over
    the fresh plan if that is significantly faster."""
    asked = answer("explain", name, "--anew")
    now, more, half = asked["anew"]
    over = now if now["significant"] else asked
    ok(
        now["total_ms"] <= asked["total_ms"] * (1 + 1e-9)
        and half["total_ms"] < now["total_ms"]
        and is_same(now["gain_ms"], asked["total_ms"] - now["total_ms"])
        and is_same(more["gain_ms"], over["total_ms"] - more["total_ms"])
        and is_same(more["ratio"], over["total_ms"] / more["total_ms"]),
        f"explain {name} --anew",
        str(asked["anew"]),
    )


def check_settings(name):
    """Another batch and another reserve cost as much as `cost` says, and a
    plan that does not fit is refused by both."""
    said = []
    for batch, reserve in (
        (16384, "15%"),
        (131072, "40%"),
        (300000, "0"),
        (65536, "95%"),
    ):
        setting = f"batch={batch},reserve={reserve}"
        asked = answer("explain", name, "--what-if", setting)["what_if"][1]
        options = ["--batch", batch, "--reserve", reserve]
        priced = answer("cost", name, *options)
        if asked["fits"]:
            fullest = priced["devices"][asked["fullest_gpu"]]["memory_bytes"]
            said.append(
                is_same(asked["total_ms"], priced["total_ms"])
                and is_same(asked["step_ms"], priced["step_ms"])
                and asked["used_bytes"] == fullest["total"]
            )
        else:
            said.append(
                priced["error"]["kind"] == "no_plan"
                and asked["why_not"] in priced["error"]["message"]
            )
    ok(said == [True] * 4, f"explain {name} --what-if", str(said))


def check_rivals(name, *options):
    """The rivals' plans in a report of a plan equal those of `compare` for its
    list. TorchRec's planner may be cut short."""
    neuroshard("report", name, "-o", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json".*?>(.*)</script>', page)
    found = json.loads(data[1])["documents"][0]["found"]["rivals"]
    options = [*options, "--effort", 1, "--host-ms", 0]
    said = answer("compare", *options)["planners"]
    same = [
        a["planner"]
        for a, b in zip(found, said)
        if a["planner"] == b["planner"] and a["total_ms"] == b["total_ms"]
    ]
    ok(
        len(same) == len(found) == len(said) - 2,
        f"report {name}: rivals are those of compare",
        f"{same} of {[a['planner'] for a in found]}",
    )


def check_emitted(name, tables, plan):
    """A plan written for TorchRec and read back costs the same, except for
    facts that TorchRec's format lacks: the optimizer of replicas."""
    neuroshard("emit", name, "--format", "torchrec", "-o", "torchrec.json")
    options = ["--cost", "roofline:h100"]
    now = answer("cost", name, *options)
    again = answer(
        *["cost", "torchrec.json", "--tables", tables, "--batch"],
        *[plan["batch"], *options],
    )
    kinds = {shard["kind"] for shard in plan["shards"]}
    ok(
        {"replicate", "row"} <= kinds
        and again.get("total_ms") == now["total_ms"]
        and again["devices"] == now["devices"],
        f"emit {name} --format torchrec: priced and counted the same",
        f"{kinds} {now['total_ms']} {again}"[:400],
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
                *["--host-ms", 0],
                *["-o", f"{name}.json"],
            )
            check_cost(f"{name}.json", plan)
        plan = answer(
            *["plan", TINY, "--gpus", 4, "--cost", "torchrec", "--effort"],
            *[2000, "-o", "tiny.json"],
        )
        check_emitted("tiny.json", TINY, plan)
        check_refused("dlrm.json")
        check_rivals("dlrm.json", DLRM, "--gpus", 8)
        check_rivals("kaggle.json", KAGGLE, "--gpus", 4)
        counts = dict.fromkeys(("places", "gains", "exchanges", "ways"), 0)
        for name, *options in (
            ("dlrm", "--effort", 2000),
            ("grid", "--search", "grid", "--cost", "roofline:h100"),
            ("worse", "--effort", 0, "--shard", "table,column"),
            ("tight", "--effort", 0, "--memory", "32GiB"),
        ):
            plan = answer(
                *["plan", DLRM, "--gpus", 8, "--host-ms", 0],
                *[*options, "-o", f"{name}.json"],
            )
            check_suggestions(f"{name}.json", plan, counts)
        plan = answer(
            *["plan", KAGGLE, "--gpus", 3, "--search", "grid", "--cost"],
            *["roofline:h100", "-o", "few.json"],
        )
        for shard in plan["shards"][:5]:
            shard["device"] = 0
        Path("few.json").write_text(
            json.dumps({**price(plan)}), encoding="utf-8"
        )
        check_best("few.json", price(plan), 0)
        check_anew("grid.json")
        check_settings("dlrm.json")
        ok(
            sum(counts.values()) >= 200 and min(counts.values()) > 4,
            f"tried: {counts}",
            str(counts),
        )
        os.chdir(ROOT)
    finish()


main()
