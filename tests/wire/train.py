#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Predicts and executes trainings over links of a known rate.

usage: NEUROSHARD=... tests/wire/train.py [--small] [--keep DIR]

Two hosts of tests/wire/lab have one rank each, and a rank has one thread.
`bench` measures lookups, exchanges and matrix products there, and a model is
trained from them. Each seed draws a table list and makes a plan by this model.
The dense part takes 0.3 to 3 times as long as the exchanges, as predicted.
The pipelines execute the plan in turns. Prints three tables:

  steps   predicted and measured steps, and their errors
  gains   the step without pipeline over the step of `sdd`, less 1: the median
          over the repeats, because the machine's speed changes between them
  phases  errors of the phases, in the median over the seeds

--small does two seeds, in a few minutes. --keep keeps databases, model, plans
and answers in DIR, and makes or measures no file again that is there.
"""
import json
import os
import random
import shutil
import statistics
import tempfile

from common import (LAB, NEUROSHARD, SMALL, beside, neuroshard, once,
                    read_json, run, start, tell, train, up, write_text)

# At this rate, an exchange of some MiB takes some 100 ms, and the processor
# moves its bytes in a few ms. BATCH is the global batch of both ranks.
MBIT, BATCH = 200, 8192
SIZES = ["--min-bytes", "1MiB", "--max-bytes", "32MiB"]
N_EXCHANGES = 12 if SMALL else 30
N_LOOKUPS = 24 if SMALL else 120
N_PRODUCTS = ["--samples", 150] if SMALL else []

SEEDS = [1, 10] if SMALL else list(range(1, 11))
RATIOS = (0.3, 3)  # dense part / exchanges, of the first and the last seed
WIDTHS = range(16, 2049, 16)
N_REPEATS, N_STEPS = (1, 6) if SMALL else (5, 10)
N_CHECKED_STEPS = 2
PIPELINES = ("none", "sdd")
LEAST_GAIN = 0.10  # gains count from this prediction on
DENSE = ("dense", "dense update")
EXCHANGES = ("input", "output", "gradient")


# --- measurements and plans ---


def measure(folder, _hosts):
    """Measures exchanges. Runs inside the lab."""
    def exchanges(path):
        shutil.copy(f"{folder}/lookups.db", path)
        run(LAB, "run", 1, NEUROSHARD, "bench", "--db", path, "--threads", 1,
            "--memory", "128MiB", "--alltoall", 2, "--samples", N_EXCHANGES,
            *SIZES)

    tell(f"exchanges at {MBIT} Mbit/s")
    once(f"{folder}/all.db", exchanges)


def measure_lookups(path):
    """Measures products and lookups of one thread. The other rank will be as
    busy, so its processor does the same meanwhile."""
    tell("products and lookups")
    bench = ["bench", "--threads", 1, "--db"]
    with tempfile.TemporaryDirectory() as other:
        for options in (["--dense", "grid", *N_PRODUCTS],
                        ["--samples", N_LOOKUPS, "--batch", BATCH, "--memory",
                         "256MiB", "--max-tables", 8]):
            with beside(NEUROSHARD, *bench, f"{other}/x.db", *options):
                neuroshard(*bench, path, *options)


def draw_list(path, seed):
    """Writes a list of tables. The more ids, the more `sdd` can gain."""
    draw = random.Random(seed)
    rows = ["name,num_embeddings,dim,pooling_factor,zipf_alpha"]
    n_tables = draw.randint(8, 16)
    n_ids = 40 * 15 ** draw.random()  # of a sample
    shares = [draw.uniform(0.3, 1) for _ in range(n_tables)]
    for table, share in enumerate(shares):
        rows.append(f"t{table},{draw.choice([1000, 10000, 50000])},"
                    f"{draw.choice([16, 32, 64])},"
                    f"{max(1, round(n_ids * share / sum(shares)))},0.5")
    write_text(path, "\n".join(rows) + "\n")


def spec_of(width):
    return (f"bottom:13-{width}-64;interaction:cat;"
            f"top:{width}-{width // 2}-1")


def make_plan(path, folder, tables, *options):
    neuroshard("plan", tables, "--gpu", "cpu", "--gpus", 2, "--gpus-per-host",
               1, "--memory", "4GiB", "--batch", BATCH, "--pipeline", "none",
               "--host-ms", 0, "--no-rivals", "--effort", 100000,
               "--dense-optimizer", "sgd", "--cost", f"model:{folder}/all.nsm",
               "-o", path, *options)


def predicted_ratio(folder, plan, width):
    """Returns the predicted time of the dense part with layers of this width,
    divided by the predicted time of the exchanges of a plan."""
    priced = f"{folder}/priced.plan"
    neuroshard("cost", plan, "--cost", f"model:{folder}/all.nsm", "--dense",
               spec_of(width), "-o", priced)
    answer = read_json(priced)
    cost = answer["step"]["dense_cost"]
    return sum(cost[f"{part}_ms"] for part in ("forward", "backward",
                                               "update")) / sum(
        max(device["phases_ms"][phase] for device in answer["devices"])
        for phase in EXCHANGES)


def find_width(folder, plan, ratio):
    """Returns the least width with at least this predicted ratio."""
    low, high = 0, len(WIDTHS) - 1
    while low < high:
        middle = (low + high) // 2
        if predicted_ratio(folder, plan, WIDTHS[middle]) < ratio:
            low = middle + 1
        else:
            high = middle
    return WIDTHS[low]


def plan_seed(folder, seed):
    """Makes the plan of a seed. RATIOS are interpolated geometrically."""
    base = f"{folder}/seed{seed}"
    ratio = RATIOS[0] * (RATIOS[1] / RATIOS[0]) ** ((seed - 1) / 9)
    draw_list(f"{base}.csv", seed)

    def make(path):
        make_plan(path, folder, f"{base}.csv")
        width = find_width(folder, path, ratio)
        make_plan(path, folder, f"{base}.csv", "--dense", spec_of(width))

    once(f"{base}.plan", make)


# --- executions ---


def execute(path, plan, pipeline, *options):
    """Trains once. Adds the load average of the machine to the answer."""
    answer = json.loads(run(LAB, "run", 1, NEUROSHARD, "run", plan, "--json",
                            "--threads", 1, "--pipeline", pipeline, *options))
    answer["load"] = os.getloadavg()[0]
    write_text(path, json.dumps(answer))


def train_all(folder, _hosts):
    """Executes all plans. Runs inside the lab."""
    for repeat in range(N_REPEATS):
        for seed in SEEDS:
            base = f"{folder}/seed{seed}"
            tell(f"seed {seed}, repeat {repeat + 1} of {N_REPEATS}")
            for pipeline in PIPELINES:
                once(f"{base}-{pipeline}-{repeat}.run",
                     lambda path: execute(path, f"{base}.plan", pipeline,
                                          "--steps", N_STEPS, "--no-check"))


def check_all(folder, _hosts):
    """Compares trainings with the unsharded reference. Ends the program if one
    differs. Runs inside the lab."""
    for seed in SEEDS:
        tell(f"seed {seed}, checked")
        once(f"{folder}/seed{seed}-checked.run",
             lambda path: execute(path, f"{folder}/seed{seed}.plan", "sdd",
                                  "--steps", N_CHECKED_STEPS))


class Training:
    """Executions of a plan in a pipeline: predicted and measured times of each
    phase in ms. Measured times are medians over the repeats. `steps` holds the
    measured step of each repeat."""

    def __init__(self, folder, seed, pipeline):
        answers = [read_json(f"{folder}/seed{seed}-{pipeline}-{repeat}.run")
                   for repeat in range(N_REPEATS)]
        times = [{row["phase"]: row for row in answer["times"]}
                 for answer in answers]
        self.load = statistics.median(answer["load"] for answer in answers)
        self.steps = [row["step"]["median_ms"] for row in times]
        self.predicted = {phase: row["predicted_ms"]
                          for phase, row in times[0].items()}
        self.measured = {phase: statistics.median(row[phase]["median_ms"]
                                                  for row in times)
                         for phase in times[0]}

    def error(self, phase="step"):
        return self.predicted[phase] / self.measured[phase] - 1

    def ratio(self):
        """Returns the predicted dense part / exchanges."""
        return (sum(self.predicted[phase] for phase in DENSE) /
                sum(self.predicted[phase] for phase in EXCHANGES))


def judge_steps(trainings):
    print(f"{'seed':>5} {'dense/exch.':>12} {'pipeline':>9} "
          f"{'predicted ms':>13} {'measured ms':>12} {'error %':>8} "
          f"{'load':>6}")
    for seed, of_seed in trainings.items():
        for name, training in of_seed.items():
            print(f"{seed:>5} {training.ratio():12.2f} {name:>9} "
                  f"{training.predicted['step']:13.1f} "
                  f"{training.measured['step']:12.1f} "
                  f"{100 * training.error():8.1f} {training.load:6.1f}")
    for name in PIPELINES:
        errors = [abs(seed[name].error()) for seed in trainings.values()]
        print(f"error of steps, {name}: {100 * statistics.median(errors):.1f} "
              f"% in the median, {100 * max(errors):.1f} % at most; goal: "
              f"20 % in the median")


def judge_gains(trainings):
    misses = []
    print(f"\n{'seed':>5} {'predicted %':>12} {'measured %':>11} "
          f"{'factor':>7}")
    for seed, of_seed in trainings.items():
        none, sdd = (of_seed[name] for name in PIPELINES)
        predicted = none.predicted["step"] / sdd.predicted["step"] - 1
        measured = statistics.median(
            a / b for a, b in zip(none.steps, sdd.steps)) - 1
        factor = "-"
        if predicted >= LEAST_GAIN:
            misses.append(max(predicted / measured, measured / predicted)
                          if measured > 0 else float("inf"))
            factor = f"{misses[-1]:.2f}"
        print(f"{seed:>5} {100 * predicted:12.1f} {100 * measured:11.1f} "
              f"{factor:>7}")
    median = f"{statistics.median(misses):.2f}" if misses else "-"
    print(f"gain of sdd, {len(misses)} of {len(trainings)} predicted to be at "
          f"least {100 * LEAST_GAIN:.0f} %: {median} times off in the median, "
          f"{sum(miss <= 1.3 for miss in misses)} within a factor of 1.3, "
          f"which is the goal")


def median_of(values, width):
    return f"{statistics.median(values):{width}.1f}" if values else (
        f"{'-':>{width}}")


def judge_phases(trainings):
    """Prints the times of phases, and their errors if a phase takes at least
    0.1 ms."""
    print(f"\n{'phase':<13}" + "".join(
        f" {name + ': predicted':>16} {'measured ms':>12} {'error %':>8}"
        for name in PIPELINES))
    phases = next(iter(trainings.values()))["none"].predicted
    for phase in phases:
        line = f"{phase:<13}"
        for name in PIPELINES:
            of_phase = [of_seed[name] for of_seed in trainings.values()]
            predicted = [t.predicted[phase] for t in of_phase
                         if t.predicted[phase] is not None]
            measured = [t.measured[phase] for t in of_phase]
            errors = [100 * t.error(phase) for t in of_phase
                      if t.predicted[phase] and t.measured[phase] >= 0.1]
            line += " ".join(["", median_of(predicted, 16),
                              median_of(measured, 12), median_of(errors, 8)])
        print(line)


def judge(folder):
    trainings = {seed: {name: Training(folder, seed, name)
                        for name in PIPELINES} for seed in SEEDS}
    print(f"2 hosts of one rank and one thread at {MBIT} Mbit/s, "
          f"batch {BATCH}, {N_REPEATS} x {N_STEPS} steps")
    judge_steps(trainings)
    judge_gains(trainings)
    judge_phases(trainings)


def bench(folder):
    up(2, MBIT, "nothing", folder)
    once(f"{folder}/lookups.db", measure_lookups)
    up(2, MBIT, "exchanges", folder)
    once(f"{folder}/all.nsm", lambda path: train(path, f"{folder}/all.db"))
    for seed in SEEDS:
        tell(f"plan of seed {seed}")
        plan_seed(folder, seed)
    up(2, MBIT, "trainings", folder)
    judge(folder)
    up(2, MBIT, "checks", folder)
    print(f"\nall {len(SEEDS)} equal to the unsharded reference within its "
          f"limits")


start(bench, {"exchanges": measure, "trainings": train_all,
              "checks": check_all})
