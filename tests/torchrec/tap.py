# SPDX-License-Identifier: MIT
"""Functions shared by the tests in Python: TAP, and calls of the program
NEUROSHARD."""
import os
import subprocess
import sys

n_tests = n_failed = 0


def ok(is_well, name, why=""):
    global n_tests, n_failed
    n_tests += 1
    n_failed += not is_well
    print(f"{'' if is_well else 'not '}ok {n_tests} - {name}")
    if not is_well and why:
        print("# " + why.strip().replace("\n", "\n# "))
    sys.stdout.flush()


def finish():
    print(f"1..{n_tests}")
    sys.exit(n_failed > 0)


def neuroshard(*args):
    """Runs the program; returns its status, stdout and stderr."""
    done = subprocess.run(
        [os.environ["NEUROSHARD"], *args],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr
