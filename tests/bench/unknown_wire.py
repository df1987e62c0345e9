#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plans for several hosts if the bandwidth between the hosts is an assumption:
plan --wire on twelve lists, beside plans made at ten fixed bandwidths. All of
them are priced at the assumed bandwidth, a half and a quarter of it. A regret
is relative to the best of all these plans.

unknown_wire.py [EFFORT [LIST ...]]: EFFORT is that of each search (default:
that of plan). NEUROSHARD is the program.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GPUS = {
    "criteo_1tb_torchrec_26": 16,
    "criteo_kaggle_26": 16,
    "deeprecsys_dlrm_rm1": 16,
    "deeprecsys_dlrm_rm2": 16,
    "deeprecsys_dlrm_rm3": 16,
    "hugectr_200table_100B_hotness20": 32,
    "meta_tbe_eeg_example_5": 16,
    "mlperf_dlrm_dcnv2_multihot": 16,
    "mlperf_dlrm_v1_onehot": 16,
    "nvidia_synthetic_medium_v3": 16,
    "nvidia_synthetic_small_v3": 16,
    "nvidia_synthetic_tiny_v3": 16,
}
SHARES = (1, 1 / 2, 1 / 4)
N_FIXED = 10  # from the smallest share to 1, in equal ratios


def neuroshard(*args):
    line = [os.environ["NEUROSHARD"], *map(str, args)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(line)}: {done.stderr}")
    return json.loads(done.stdout)


class Job:
    """A list of tables, and its plans priced at each bandwidth."""

    def __init__(self, name, effort, folder):
        self.tables = ROOT / "data/tables" / f"{name}.csv"
        self.options = ["--gpus", GPUS[name], "--gpus-per-host", 8]
        self.options += ["--no-rivals"]
        self.options += ["--effort", effort] if effort else []
        self.folder = folder
        self.gbps = None
        self.totals = {}

    def plan(self, name, *options):
        """Makes a plan, and prices it at SHARES of the assumed bandwidth."""
        file = f"{self.folder}/{name}.json"
        found = neuroshard(
            *["plan", self.tables, *self.options, "-o", file, "--json"],
            *options,
        )
        self.gbps = self.gbps or found["wire"]["assumed_gbps"]
        self.totals[name] = [
            neuroshard("cost", file, "--inter-gbps", s * self.gbps, "--json")[
                "total_ms"
            ]
            for s in SHARES
        ]

    def worst(self, name):
        """Worst regret of a plan."""
        best = [min(at) for at in zip(*self.totals.values())]
        return max(t / b - 1 for t, b in zip(self.totals[name], best))


def run(name, effort):
    """Prints the line of a list; returns whether it keeps both limits."""
    with tempfile.TemporaryDirectory() as folder:
        job = Job(name, effort, folder)
        job.plan("limited")
        job.plan("nominal", "--wire", "nominal")
        job.plan("robust", "--wire", "robust")
        fixed = []
        for i in range(N_FIXED):
            share = SHARES[-1] ** (i / (N_FIXED - 1))
            fixed.append(f"fixed {i}")
            job.plan(fixed[-1], "--inter-gbps", share * job.gbps)
    dearer = job.totals["limited"][0] / job.totals["nominal"][0] - 1
    least = min(map(job.worst, fixed))
    print(
        f"{name:32}{GPUS[name]:5}{100 * dearer:9.2f}"
        f"{100 * job.worst('nominal'):9.2f}{100 * job.worst('limited'):9.2f}"
        f"{100 * job.worst('robust'):9.2f}{100 * least:9.2f}",
        flush=True,
    )
    return dearer <= 0.01 + 1e-9, job.worst("robust") <= least + 1e-9


def main():
    effort = int(sys.argv[1]) if sys.argv[1:] else 0
    names = sys.argv[2:] or list(GPUS)
    print(f"{'%':32}{'GPUs':>5}{'dearer':>9}{'worst regret of':>18}")
    print(
        f"{'':46}{'nominal':>9}{'limited':>9}{'robust':>9}{'10 fixed':>9}",
        flush=True,
    )
    kept = [run(name, effort) for name in names]
    print(
        f"at most 1 % dearer: {sum(k[0] for k in kept)} of {len(kept)}; "
        f"robust no worse than plans at fixed bandwidths: "
        f"{sum(k[1] for k in kept)} of {len(kept)}"
    )


if __name__ == "__main__":
    main()
