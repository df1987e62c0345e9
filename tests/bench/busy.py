#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains on the shipped samples of an H100 with 1, 2 and 4 threads, trains for
5 seconds, and measures for 60 seconds beside two busy loops. Exits with 1 if
a limit is missed: models that differ, more than 60 % of the CPU time in the
busier of two threads, more than 8 seconds, or fewer than 20 samples. The
machine should have no other load."""
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = os.environ["NEUROSHARD"]
SAMPLES = (
    Path(os.environ["NEUROSHARD_DATA"])
    / "measurements"
    / "fbgemm-nvidia-h100.db"
)
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(stat):
    """CPU time in the text of a stat file in /proc."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def train(model, *options):
    """Trains; returns seconds, CPU seconds, and those of the main thread."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [PROGRAM, "train", "--db", SAMPLES, "-o", model, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stat = Path(f"/proc/{process.pid}/task/{process.pid}/stat")
    main_s = 0
    while not os.waitid(
        os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
    ):
        main_s = cpu_seconds(stat.read_text())
        time.sleep(0.05)
    wall_s = time.perf_counter() - start
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit("the training failed")
    return wall_s, usage.ru_utime + usage.ru_stime, main_s


def test_threads(folder):
    """One pool of threads follows the other, so at two threads all that is not
    the main thread is one other thread at a time."""
    print("threads  seconds  ratio  CPU seconds  busier thread %  model")
    models, alone_s, is_right = [], 0, True
    for n_threads in (1, 2, 4):
        model = Path(folder) / f"{n_threads}.nsm"
        wall_s, cpu_s, main_s = train(model, "--threads", str(n_threads))
        models.append(model.read_bytes())
        alone_s = alone_s or wall_s
        busier = max(main_s, cpu_s - main_s) / cpu_s
        is_same = models[-1] == models[0]
        print(
            f"{n_threads:7} {wall_s:8.1f} {alone_s / wall_s:6.2f}",
            f"{cpu_s:12.1f}",
            f"{100 * busier:16.1f}" if n_threads < 3 else f"{'-':>16}",
            " same" if is_same else " DIFFERS",
        )
        is_right &= is_same and (n_threads != 2 or busier <= 0.6)
    wall_s, _, _ = train(Path(folder) / "short.nsm", "--time-limit", "5")
    print(f"train --time-limit 5: {wall_s:.1f} s")
    return is_right and wall_s <= 8


def test_bench(folder):
    command = [PROGRAM, "bench", "--db", Path(folder) / "busy.db"]
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2)
    ]
    start = time.perf_counter()
    try:
        answer = subprocess.run(
            [*command, "--time-limit", "60", "--json"],
            stdout=subprocess.PIPE,
            check=True,
        )
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    wall_s = time.perf_counter() - start
    answer = json.loads(answer.stdout)
    print(
        f"bench --time-limit 60 beside two busy loops: {wall_s:.1f} s,",
        f"{answer['measured']} samples, {answer['flagged']} marked",
    )
    return answer["measured"] >= 20


def main():
    with tempfile.TemporaryDirectory() as folder:
        is_right = test_threads(folder)
        is_right &= test_bench(folder)
    return 0 if is_right else 1


sys.exit(main())
