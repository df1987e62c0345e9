#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One interrupt ends plan, a sweep, compare and explain within two seconds, at
any moment. The files written until then are complete. Moments are spread
evenly over the run time of each command; with TEST_SIZE=full on 200,000
tables. Speaks TAP; NEUROSHARD is the program.
"""
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tap import finish, ok

IS_FULL = os.environ.get("TEST_SIZE") == "full"
N_TABLES, N_MOMENTS = (200000, 10) if IS_FULL else (150, 4)
N_GPUS = "64" if IS_FULL else "16"
SWEEP = "64..72" if IS_FULL else "8..10"  # all tables must fit
# Limit in seconds of wall time or CPU time, whichever is less, because other
# processes may use the cores, too. Sanitizers make the program slower.
MOST_S = 10 if os.environ.get("TEST_SIZE") == "tiny" else 2
TICKS = os.sysconf("SC_CLK_TCK")


def write_list(path):
    draw = random.Random(1)
    with open(path, "w", encoding="ascii") as file:
        print("name,num_embeddings,dim,pooling_factor", file=file)
        for i in range(N_TABLES):
            rows = draw.randrange(1, 100000)
            dim = draw.choice([4, 8, 16, 64])
            print(f"t{i},{rows},{dim},{draw.randrange(1, 20)}", file=file)


def write_plan(path):
    """Writes a plan with each table whole, on a GPU that may hold it."""
    with open("list.csv", encoding="ascii") as file:
        rows = [line.split(",") for line in file.read().split()[1:]]
    tables = [
        {
            "name": name,
            "num_embeddings": int(n),
            "dim": int(dim),
            "pooling_factor": float(pooling),
        }
        for name, n, dim, pooling in rows
    ]
    shards = [
        {
            "table": i,
            "row_begin": 0,
            "row_end": table["num_embeddings"],
            "col_begin": 0,
            "col_end": table["dim"],
            "device": i % 64,
        }
        for i, table in enumerate(tables)
    ]
    plan = {
        "neuroshard_plan": 1,
        "batch": 1024,
        "step": {
            "pipeline": "sdd",
            "chunks": 1,
            "dense_ms": [0, 0],
            "host_ms": 0,
        },
        "cluster": {
            "gpus": 64,
            "gpus_per_host": 8,
            "memory_bytes": [80 << 30] * 64,
        },
        "tables": tables,
        "shards": shards,
    }
    Path(path).write_text(json.dumps(plan), encoding="ascii")


def start(args):
    return subprocess.Popen(
        [os.environ["NEUROSHARD"], *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=open("messages", "wb"),
    )


def heeds(pid):
    """Whether the process runs the program by now and handles interrupts."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return True
    caught = [s for s in status.split("\n") if s.startswith("SigCgt")]
    return bool(int(caught[0].split()[1], 16) & 2) if caught else True


def used_s(pid):
    """CPU seconds of the process so far."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().split(") ")[1].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / TICKS


def wait(process):
    """Waits; returns the status and the total CPU seconds."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def interrupt(args, at_s):
    """Interrupts a command after at_s seconds; returns the status, the time
    until its end, and its last message."""
    process = start(args)
    while process.poll() is None and not heeds(process.pid):
        time.sleep(0.001)
    time.sleep(at_s)
    if process.poll() is not None:
        return process.returncode, 0, ""
    used = used_s(process.pid)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    status, in_all = wait(process)
    took = min(time.monotonic() - begin, in_all - used)
    said = Path("messages").read_text(encoding="utf-8").strip().split("\n")[-1]
    return status, took, said


def is_whole(path):
    """Whether there is no plan, or a complete one."""
    if not Path(path).exists():
        return True
    plan = json.loads(Path(path).read_text(encoding="utf-8"))
    return len(plan["tables"]) == N_TABLES and len(plan["shards"]) >= N_TABLES


def check(name, args):
    """Checks a command; returns how often the interrupt came before it ended
    on its own."""
    begin = time.monotonic()
    process = start(args)
    try:
        process.wait(timeout=600 if IS_FULL else 60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    whole_s = time.monotonic() - begin
    worst, wrong, n_met = 0.0, [], 0
    for i in range(N_MOMENTS):
        Path("plan.json").unlink(missing_ok=True)
        at_s = whole_s * (i + 0.5) / N_MOMENTS
        status, took, said = interrupt(args, at_s)
        n_met += bool(said)
        worst = max(worst, took)
        if (
            took > MOST_S
            or status not in ((130,) if said else (0,))
            or (said and "interrupted" not in said)
            or not is_whole("plan.json")
        ):
            wrong.append(f"at {at_s:.2f} s: {took:.2f} s, {status}: {said}")
    for line in wrong:
        print(f"# {name} {line}")
    ok(not wrong, f"{name} ends at each of {N_MOMENTS} moments")
    print(
        f"# {name}: {whole_s:.1f} s, interrupted {n_met} times, the slowest "
        f"end took {worst:.2f} s"
    )
    return n_met


def main():
    gpus = ["--gpus-per-host", "8", "--batch", "1024"]
    limit = ["--time-limit", "20"] if IS_FULL else ["--effort", "8000"]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_list("list.csv")
        write_plan("old.json")
        plan = ["plan", "list.csv", *gpus, *limit, "-o", "plan.json"]
        n_met = check("plan", [*plan, "--gpus", N_GPUS])
        n_met += check("a sweep", [*plan, "--gpus", SWEEP])
        n_met += check(
            "compare", ["compare", "list.csv", "--gpus", N_GPUS, *gpus, *limit]
        )
        n_met += check("explain", ["explain", "old.json"])
        ok(n_met >= N_MOMENTS, "most interrupts came before the end")
        os.chdir("/")
    finish()


if __name__ == "__main__":
    main()
