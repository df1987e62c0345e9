#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains TorchRec jobs over links of a known rate, by TorchRec's plan and by
ours.

usage: NEUROSHARD=... PYTHON=... tests/wire/torchrec_jobs.py [--small]
           [--keep DIR]

PYTHON is a Python that has TorchRec. The hosts of tests/wire/lab have ranks of
one thread each, which exchange over gloo. The cost model is trained from
lookups that jobs of TorchRec recorded (neuroshard-record(1)), and from
exchanges that `bench` measured over the same links.

Each cell is a table list, a number of hosts and ranks, and a rate. One job
trains both plans in turns, which gives pairs of times. Prints for each cell
the ratio of our step to TorchRec's, predicted and measured, with the 95 %
interval of the measured one. A cell whose whole interval lies above 1.03 is
measured once more, with three times as many pairs.

--small does two cells. --keep leaves all files in DIR, and what is there is
not measured again.
"""
import glob
import json
import math
import os
import random
import shutil
import sqlite3
import statistics

from common import (LAB, NEUROSHARD, SMALL, neuroshard, once, read_json, run,
                    start, tell, train, up, write_text)

PYTHON = os.environ.get("PYTHON", "python3")
RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                    "torchrec_rank.py")
BATCH = 1024  # samples of a rank
LISTS = [1, 2] if SMALL else [1, 2, 3, 4, 5]
SHAPES = [(2, 1)] if SMALL else [(2, 1), (2, 2), (3, 1), (4, 1)]
RATES = [100, 200, 400]  # Mbit/s
N_RECORDED = 6 if SMALL else 12
FAST = 10000  # Mbit/s while lookups are recorded
N_EXCHANGES = 8 if SMALL else 16
SIZES = ["--min-bytes", "128KiB", "--max-bytes", "8MiB"]
N_STEPS, N_PAIRS, N_MORE_PAIRS = (3, 5, 15)
# Factors of Student's distribution for a 95 % interval of n pairs.
STUDENT = {5: 2.776, 15: 2.145}
WORST_RATIO = 1.03
POINTS = 0.10  # largest difference of predicted and measured ratio
LEAST_SHARE = 0.85  # of cells within it
OPTIONS = {"pipeline": "none", "host_ms": 0, "effort": 50000}


def cells():
    """Returns (list, hosts, ranks, Mbit/s). Each list meets each shape, and
    over the shapes each rate."""
    return [(seed, hosts, ranks, RATES[(seed + i) % len(RATES)])
            for seed in LISTS for i, (hosts, ranks) in enumerate(SHAPES)]


def draw_list(path, seed):
    draw = random.Random(seed)
    rows = ["name,num_embeddings,dim,pooling_factor,zipf_alpha"]
    for table in range(12):
        rows.append(f"t{table},{draw.choice([2000, 20000, 100000])},"
                    f"{draw.choice([16, 32, 64, 128])},"
                    f"{round(30 ** draw.random())},0")
    write_text(path, "\n".join(rows) + "\n")


def train_job(folder, name, ranks, job):
    """Runs a job of TorchRec inside the lab, in a folder of its own. Returns
    the folder."""
    work = f"{folder}/{name}"
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    write_text(f"{work}/job.json", json.dumps(
        {"folder": work, "batch": BATCH, "ranks": ranks, "steps": N_STEPS,
         **job}))
    run(LAB, "run", ranks, PYTHON, "-W", "ignore", RANK, f"{work}/job.json")
    return work


# --- the cost model ---


def measure(folder, hosts):
    """Measures the exchanges of all shapes with this number of hosts, at all
    rates that they meet, and records lookups. Runs inside the lab."""
    for _, n_hosts, ranks, mbit in cells():
        path = f"{folder}/{n_hosts}x{ranks}-{mbit}.db"
        if n_hosts != hosts or os.path.exists(path):
            continue
        tell(f"exchanges, {n_hosts} x {ranks} ranks at {mbit} Mbit/s")
        run(LAB, "rate", mbit)
        once(path, lambda new, ranks=ranks: run(
            LAB, "run", ranks, NEUROSHARD, "bench", "--db", new, "--threads",
            1, "--memory", "128MiB", "--alltoall", hosts * ranks,
            "--samples", N_EXCHANGES, *SIZES))
    if not os.path.exists(f"{folder}/recorded"):
        record_lookups(folder)


def record_lookups(folder):
    """Records the lookups of jobs with the plans of other lists."""
    tell("lookups of TorchRec")
    run(LAB, "rate", FAST)
    lists = [f"{folder}/recorded{i}.csv" for i in range(N_RECORDED)]
    for i, path in enumerate(lists):
        draw_list(path, 100 + i)
    work = train_job(folder, "record", 1, {
        "mode": "record", "lists": lists,
        "options": {**OPTIONS, "effort": 100, "cost": "roofline:cpu"}})
    os.rename(work, f"{folder}/recorded")


def make_model(folder, name):
    """Trains the model of a shape at a rate, from its exchanges and from the
    recorded lookups."""
    def store(path):
        shutil.copy(f"{folder}/{name}.db", path)
        with sqlite3.connect(path) as db:
            device, last = db.execute(
                "SELECT device, max(comm_sample.id) FROM setting "
                "JOIN comm_sample ON setting.id = setting_id").fetchone()
        for i in range(N_RECORDED):
            first, *others = sorted(glob.glob(f"{folder}/recorded/{i}-*.csv"))
            neuroshard("record", f"{folder}/recorded/{i}.plan", *others,
                       "--times", first, "--db", path, "--device", device,
                       "--device-threads", 1)
        # The recorded exchanges had faster links than the cells have.
        with sqlite3.connect(path) as db:
            db.execute("DELETE FROM comm_sample WHERE id > ?", [last])

    def make(path):
        train(path, once(f"{folder}/{name}-both.db", store))

    return once(f"{folder}/{name}.nsm", make)


# --- trainings ---


def train_pairs(folder, hosts):
    """Trains all cells with this number of hosts. Runs inside the lab."""
    for seed, n_hosts, ranks, mbit in cells():
        if n_hosts != hosts:
            continue
        run(LAB, "rate", mbit)
        name = f"{hosts}x{ranks}-{mbit}"

        def make(path, n_pairs=N_PAIRS, seed=seed, ranks=ranks, name=name):
            work = train_job(folder, "pair", ranks, {
                "mode": "pair", "lists": [f"{folder}/list{seed}.csv"],
                "pairs": n_pairs, "options": {
                    **OPTIONS, "cost": f"model:{folder}/{name}.nsm"}})
            shutil.copy(f"{work}/pair.json", path)

        path = f"{folder}/list{seed}-{name}"
        tell(f"list {seed}, {hosts} x {ranks} ranks at {mbit} Mbit/s")
        once(f"{path}.pairs", make)
        if Cell(path, f"{path}.pairs").low > WORST_RATIO:
            tell("  once more")
            once(f"{path}.more", lambda new, make=make: make(
                new, N_MORE_PAIRS))


class Cell:
    """The times of a cell: the ratio of our step to TorchRec's, predicted and
    measured, and the 95 % interval [low, high] of the measured one."""

    def __init__(self, path, pairs):
        answer = read_json(pairs)
        logs = [math.log(ours / stock) for stock, ours in
                zip(answer["stock_ms"], answer["ours_ms"])]
        half = (STUDENT[len(logs)] * statistics.stdev(logs)
                / math.sqrt(len(logs)))
        mean = statistics.mean(logs)
        self.name = os.path.basename(path)
        self.is_same = answer["stock"] == answer["ours"]
        self.stock_ms = statistics.median(answer["stock_ms"])
        self.ours_ms = statistics.median(answer["ours_ms"])
        self.predicted_ms = answer["predicted_ms"]
        self.predicted = self.predicted_ms[1] / self.predicted_ms[0]
        self.measured = math.exp(mean)
        self.low, self.high = math.exp(mean - half), math.exp(mean + half)


def judge(folder):
    found = []
    for seed, hosts, ranks, mbit in cells():
        path = f"{folder}/list{seed}-{hosts}x{ranks}-{mbit}"
        more = f"{path}.more"
        found.append(Cell(path, more if os.path.exists(more)
                          else f"{path}.pairs"))
    print(f"{'cell':<20} {'TorchRec ms':>12} {'predicted':>10} "
          f"{'ours ms':>9} {'predicted':>10} {'ratio':>7} {'95 %':>15} "
          f"{'predicted':>10}")
    for cell in found:
        print(f"{cell.name:<20} {cell.stock_ms:12.1f} "
              f"{cell.predicted_ms[0]:10.1f} {cell.ours_ms:9.1f} "
              f"{cell.predicted_ms[1]:10.1f} {cell.measured:7.3f} "
              f"{cell.low:7.3f}-{cell.high:.3f} {cell.predicted:10.3f}"
              + ("  the same plan" if cell.is_same else ""))
    slower = [cell.name for cell in found if cell.low > WORST_RATIO]
    near = sum(abs(cell.measured - cell.predicted) <= POINTS
               for cell in found)
    mean = math.exp(statistics.mean(math.log(cell.measured)
                                    for cell in found))
    print(f"slower beyond doubt (interval above {WORST_RATIO}): "
          f"{', '.join(slower) or 'none'}; goal: none\n"
          f"geometric mean of the ratios: {mean:.3f}; goal: below 1\n"
          f"ratios within {100 * POINTS:.0f} points of the prediction: {near} "
          f"of {len(found)}; goal: {100 * LEAST_SHARE:.0f} %")


def bench(folder):
    hosts = sorted({n_hosts for _, n_hosts, _, _ in cells()})
    for seed in LISTS:
        draw_list(f"{folder}/list{seed}.csv", seed)
    for n_hosts in hosts:
        up(n_hosts, RATES[0], "measurements", folder)
    for _, n_hosts, ranks, mbit in cells():
        make_model(folder, f"{n_hosts}x{ranks}-{mbit}")
    for n_hosts in hosts:
        up(n_hosts, RATES[0], "trainings", folder)
    judge(folder)


start(bench, {"measurements": measure, "trainings": train_pairs})
