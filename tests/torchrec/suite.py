# SPDX-License-Identifier: MIT
"""Runs TorchRec's planner tests with NeuroShardPlanner in place of the stock
planner: suite.py CHECKOUT ours|stock. Each file runs in its own process."""
import collections
import glob
import json
import logging
import os
import subprocess
import sys
import unittest

import torchrec.distributed

from planner_models import Log

# Calls of plan(), those that the program planned, and those that failed, as
# the test wants or because no plan exists; reasons of all others.
PLANS = {"asked": 0, "ours": 0, "failed": 0}
REASONS = []


def replace_planner():
    """Replaces the class that tests import. NeuroShardPlanner keeps the stock
    class as its base."""
    from neuroshard.torchrec import NeuroShardPlanner
    from torchrec.distributed import planner
    from torchrec.distributed.planner import planners

    class Counted(NeuroShardPlanner):
        def plan(self, module, sharders):
            PLANS["asked"] += 1
            with Log() as log:
                try:
                    plan = super().plan(module, sharders)
                except Exception as error:
                    PLANS["failed"] += 1
                    REASONS.append(f"failed: {error}"[:100])
                    raise
            if self.neuroshard_plan is None:
                REASONS.append("; ".join(log.lines)[-600:])
            else:
                PLANS["ours"] += 1
            return plan

    Counted.__name__ = "EmbeddingShardingPlanner"
    planner.EmbeddingShardingPlanner = Counted
    planners.EmbeddingShardingPlanner = Counted


def add_tests(checkout):
    """Adds the packages `tests`, which wheels lack, after the installed
    ones."""
    import torchrec.distributed.planner as planner

    for package in (torchrec.distributed, planner):
        path = package.__name__.replace(".", "/")
        package.__path__.append(f"{checkout}/{path}")


def run_file(path):
    """Prints the number of tests, and the failures with their last line."""
    logging.disable(logging.INFO)
    name = os.path.splitext(os.path.basename(path))[0]
    suite = unittest.defaultTestLoader.loadTestsFromName(
        f"torchrec.distributed.planner.tests.{name}"
    )
    with open(os.devnull, "w", encoding="utf-8") as nothing:
        result = unittest.TextTestRunner(nothing).run(suite)
    bad = {
        case.id(): text.strip().split("\n")[-1]
        for case, text in result.failures + result.errors
    }
    print("\n" + json.dumps([result.testsRun, bad, PLANS, REASONS]))


def main():
    checkout = sys.argv[1]
    if len(sys.argv) > 3:
        run_file(sys.argv[3])
        return
    folder = f"{checkout}/torchrec/distributed/planner/tests"
    n_tests = n_bad = 0
    all_plans = collections.Counter()
    for path in sorted(glob.glob(f"{folder}/test_*.py")):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, *sys.argv[1:], path],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        try:
            n, bad, plans, reasons = json.loads(
                done.stdout.strip().split("\n")[-1]
            )
        except ValueError:
            n, bad = 1, {path: f"status {done.returncode}"}
            plans, reasons = {}, []
        n_tests, n_bad = n_tests + n, n_bad + len(bad)
        all_plans.update(plans)
        print(f"# {os.path.basename(path)}: {n}", flush=True)
        for name, why in bad.items():
            print(f"# {name}: {why}", flush=True)
        for why in reasons:
            print(f"#   not ours: {why}", flush=True)
    print(f"# calls of plan(): {dict(all_plans)}")
    print(f"{n_tests - n_bad} of {n_tests}")


# A test starts processes, which import this file with the same arguments.
if len(sys.argv) > 3:
    add_tests(sys.argv[1])
    if sys.argv[2] == "ours":
        replace_planner()
if __name__ == "__main__":
    main()
