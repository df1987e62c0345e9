#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares a plan through the Python package with the command alone. The
program is a stub that returns a stored answer of the real one, so the
difference is the cost of the package. Prints medians."""
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import neuroshard

N_RUNS = 15
STAND_IN = """#!/bin/sh
[ "$1" != --version ] || { echo "neuroshard %s"; exit; }
cat >/dev/null
for arg; do
    [ "${arg#--output=}" = "$arg" ] || cp '%s' "${arg#--output=}"
done
cat '%s'
"""


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def import_s(statement):
    return statistics.median(
        seconds(lambda: subprocess.run([sys.executable, "-c", statement]))
        for _ in range(N_RUNS)
    )


def print_line(folder, n_tables):
    tables = [
        neuroshard.Table(
            name=f"table_{i}",
            rows=1000 * (i + 1),
            dim=64,
            pooling_factor=5 + i % 7,
            bins=[1 / 17] * 17,
        )
        for i in range(n_tables)
    ]
    plan = neuroshard.plan(tables, 64, effort=2000, cost="roofline:h100")
    file, report = folder / "plan.json", folder / "report"
    plan.save(file)
    report.write_text(plan.report, encoding="utf-8")
    program = folder / f"program-{n_tables}"
    text = STAND_IN % (neuroshard.__version__, file, report)
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    real, os.environ["NEUROSHARD"] = os.environ["NEUROSHARD"], str(program)
    walls, own = [], []
    for _ in range(N_RUNS):
        before = time.process_time()
        walls.append(seconds(lambda: neuroshard.plan(tables, 64)))
        own.append(time.process_time() - before)
    os.environ["NEUROSHARD"] = real
    print(
        f"{n_tables:8}{len(plan.json['shards']):9}"
        f"{file.stat().st_size / 1e6:9.2f}"
        f"{1e3 * statistics.median(walls):11.0f}"
        f"{1e3 * statistics.median(own):11.0f}"
    )


def main():
    took_s = import_s("import neuroshard") - import_s("pass")
    print(f"import neuroshard: {1e3 * took_s:.0f} ms")
    print("  tables   shards  file MB  beside ms  Python ms")
    with tempfile.TemporaryDirectory() as folder:
        for n_tables in (10, 100, 1000):
            print_line(Path(folder), n_tables)


main()
