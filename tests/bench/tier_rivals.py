#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists that do not fit the memory of their GPUs: `plan --tiers` beside the
rules by which users keep tables in host memory (compare(1)), priced by one
cost model. Prints GPU work, and fails if a plan costs more than a rule's.

tier_rivals.py [LIMIT_S [LIST ...]]: LIMIT_S is the time limit of each plan
(default: 8). NEUROSHARD is the program.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

LISTS = Path(__file__).resolve().parents[2] / "data/tables"
HOST = "host=4TiB"
# A list, its number of GPUs, and their memory.
CASES = (
    ("criteo_1tb_torchrec_26", 2, ("24GiB", "16GiB")),
    ("criteo_kaggle_26", 1, ("1500MiB", "1GiB")),
    ("hugectr_200table_100B_hotness20", 8, ("40GiB", "24GiB")),
    ("hugectr_7table_470B_hotness20", 8, ("80GiB", "60GiB")),
    ("mlperf_dlrm_dcnv2_multihot", 2, ("24GiB", "20GiB")),
    ("mlperf_dlrm_dcnv2_multihot", 4, ("16GiB", "12GiB")),
    ("mlperf_dlrm_v1_onehot", 2, ("24GiB", "16GiB")),
    ("nvidia_synthetic_medium_v3", 8, ("20GiB", "16GiB")),
    ("nvidia_synthetic_small_v3", 4, ("6GiB", "5GiB")),
    ("nvidia_synthetic_tiny_v3", 2, ("2500MiB", "2GiB")),
)


def plan(name, gpus, memory, limit_s):
    """Returns the plan with its rivals, or the reason why there is none."""
    line = [os.environ["NEUROSHARD"], "plan", LISTS / f"{name}.csv"]
    line += ["--gpus", gpus, "--memory", memory, "--tiers", HOST]
    line += ["--time-limit", limit_s, "--json"]
    done = subprocess.run(
        list(map(str, line)), capture_output=True, text=True, check=False
    )
    return json.loads(done.stdout) if not done.returncode else done.stderr


def main():
    limit_s, *names = sys.argv[1:] or ["8"]
    n_above = 0
    print(f"{'list':32} GPUs  {'memory':>7}  plan ms  rule ms ratio")
    for name, gpus, memories in CASES:
        for memory in memories if not names or name in names else ():
            found = plan(name, gpus, memory, limit_s)
            if isinstance(found, str):
                sys.exit(f"{name}: {found}")
            best = min(
                (r["total_ms"] for r in found["rivals"] if r["valid"]),
                default=float("nan"),
            )
            ratio = found["total_ms"] / best
            n_above += ratio > 1 + 1e-9
            print(
                f"{name:32} {gpus:4}  {memory:>7} {found['total_ms']:8.3f} "
                f"{best:8.3f} {ratio:5.2f}",
                flush=True,
            )
    print(f"{n_above} plans cost more than the best rule's; goal: 0")
    return n_above > 0


if __name__ == "__main__":
    sys.exit(main())
