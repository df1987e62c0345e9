#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plans of few tables a GPU at the default effort, in the mean of seeds:
within 1 % of what ten times the effort found (--effort 24000000, the same
seeds). Chains that evenness of devices leads to the end miss that by 1.5 and
14 %. Speaks TAP; NEUROSHARD is the program.
"""
import json
import os
from pathlib import Path

from tap import finish, neuroshard, ok

TABLES = Path(__file__).resolve().parents[2] / "data/tables"
PLANS = [("hugectr_7table_470B_hotness20", 32, 1, 1.6989)]
if os.environ.get("TEST_SIZE") != "tiny":
    PLANS.append(("mlperf_dlrm_dcnv2_multihot", 8, 3, 2.1668))


def total_ms(name, n_gpus, seed):
    job = "--cost roofline:h100 --host-ms 0 --no-rivals --json"
    line = ["plan", TABLES / f"{name}.csv", "--gpus", n_gpus, "--seed", seed]
    status, text, said = neuroshard(*map(str, [*line, *job.split()]))
    return json.loads(text)["total_ms"] if status == 0 else said


for name, n_gpus, n_seeds, least_ms in PLANS:
    found = [total_ms(name, n_gpus, seed) for seed in range(n_seeds)]
    mean = sum(found) / n_seeds
    ok(mean <= 1.01 * least_ms, f"{name}: {found} ms, {least_ms} is found")
finish()
