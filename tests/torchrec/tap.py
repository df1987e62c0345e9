# SPDX-License-Identifier: MIT
"""What the tests in Python share: TAP, and the program that NEUROSHARD names."""
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
    """Returns its status, what it prints, and what it says on stderr."""
    done = subprocess.run(
        [os.environ["NEUROSHARD"], *args],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr
