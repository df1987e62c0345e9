# SPDX-License-Identifier: MIT
"""Trains random models whose tables are placed in part by our planner and in
part by TorchRec's (mixed_models.py). Speaks TAP; NEUROSHARD is the program, and
TEST_SIZE=full trains 60 models.
"""
import os
import tempfile

import torch.multiprocessing as mp

import mixed_models
from tap import finish, ok

TOLERANCE = 1e-5


def check(n_ranks, seeds):
    with tempfile.TemporaryDirectory() as work:
        why = ""
        try:
            mp.start_processes(
                mixed_models.run,
                (n_ranks, work, seeds),
                nprocs=n_ranks,
                start_method="fork",
            )
        except (mp.ProcessRaisedException, mp.ProcessExitedException) as error:
            why = str(error)
        lines = []
        if os.path.exists(f"{work}/results"):
            with open(f"{work}/results", encoding="utf-8") as file:
                lines = [line.split() for line in file]
    n_left = 0
    for seed, output, weight, left in lines:
        n_left += int(left)
        ok(
            max(float(output), float(weight)) <= TOLERANCE,
            f"model {seed} on {n_ranks} ranks: outputs to {float(output):.1e}, "
            f"weights to {float(weight):.1e}, {left} tables as stock",
        )
    ok(len(lines) == len(seeds), f"{len(seeds)} models", why)
    ok(n_left > 0, f"{n_left} tables are where TorchRec's planner puts them")


def main():
    n = 30 if os.environ.get("TEST_SIZE") == "full" else 3
    for n_ranks in (2, 4):
        check(n_ranks, list(range(n)))
    finish()


if __name__ == "__main__":
    main()
