#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Predicts and executes sharding groups over links of a known rate.

usage: NEUROSHARD=... tests/wire/groups.py [--small] [--keep DIR]

Two hosts of tests/wire/lab have two ranks each. A model is trained in one
group of all ranks and in two groups, one on each host, by plans for links of
this rate. The two trainings run in turns. Prints for each rate

  gain   the step of one group less the step of two groups, in ms
  sync   the time in which the two groups average their copies, in ms

as predicted and as measured. The gain is a difference, so it does not contain
the work of the processors, which is equal in both trainings. Measured times
are medians over the repeats. The bytes that a sync sends must be those of the
plan.

--small does one repeat of few steps. --keep keeps lists, plans and answers in
DIR, and runs no plan again whose answer is there.
"""
import json
import os
import statistics
import sys

from common import (LAB, NEUROSHARD, SMALL, gbps, neuroshard, once, read_json,
                    run, start, tell, up, write_text)

RATES = [100, 200, 400]  # Mbit/s
HOSTS, RANKS = 2, 2
BATCH = 4096
DENSE = "bottom:4-8;interaction:cat;top:8-1"
N_TABLES, N_ROWS, DIM, POOLING = 8, 20000, 64, 4
N_REPEATS, N_STEPS, SYNC_EVERY = (1, 6, 3) if SMALL else (5, 12, 4)
GROUPS = (1, 2)
GOAL = 0.2


def write_list(path):
    rows = ["name,num_embeddings,dim,pooling_factor,optimizer"]
    rows += [f"t{table},{N_ROWS},{DIM},{POOLING},rowwise_adagrad"
             for table in range(N_TABLES)]
    write_text(path, "\n".join(rows) + "\n")


def make_plan(path, folder, mbit, groups):
    """Makes the plan of some groups. All ranks of a host share its link."""
    neuroshard("plan", f"{folder}/list.csv", "--cost", "roofline:cpu",
               "--gpus", HOSTS * RANKS, "--gpus-per-host", RANKS,
               "--inter-gbps", gbps(mbit) / RANKS, "--memory", "4GiB",
               "--batch", BATCH, "--pipeline", "none", "--host-ms", 0,
               "--dense", DENSE, "--dense-optimizer",
               "sgd", "--effort", 2000, "--no-rivals", "--groups", groups,
               "--groups-layout", "contiguous", "--sync-every", SYNC_EVERY,
               "-o", path)


def execute(path, plan):
    """Trains once. Adds the load average of the machine to the answer."""
    answer = json.loads(run(LAB, "run", RANKS, NEUROSHARD, "run", plan,
                            "--json", "--threads", 1, "--steps", N_STEPS,
                            "--no-check"))
    answer["load"] = os.getloadavg()[0]
    write_text(path, json.dumps(answer))


def execute_all(folder, _hosts):
    """Executes all plans of a rate. Runs inside the lab."""
    mbit = read_json(f"{folder}/rate")
    for repeat in range(N_REPEATS):
        tell(f"{mbit} Mbit/s, repeat {repeat + 1} of {N_REPEATS}")
        for groups in GROUPS:
            base = f"{folder}/{mbit}-{groups}"
            once(f"{base}-{repeat}.run",
                 lambda path, plan=f"{base}.plan": execute(path, plan))


def step_of(answer, what):
    return next(row[what] for row in answer["times"] if row["phase"] == "step")


def judge_rate(folder, mbit):
    """Returns the predicted and the measured gain and sync, and the load."""
    one, two = ([read_json(f"{folder}/{mbit}-{groups}-{repeat}.run")
                 for repeat in range(N_REPEATS)] for groups in GROUPS)
    syncs = [answer["groups"] for answer in two]
    for sync in syncs:
        if sync["sent_bytes"] != sync["planned_bytes"]:
            sys.exit(f"{sync['sent_bytes']} bytes were sent in a sync, not "
                     f"{sync['planned_bytes']}")
    gains = [step_of(a, "median_ms") - step_of(b, "median_ms")
             for a, b in zip(one, two)]
    return ((step_of(one[0], "predicted_ms") - step_of(two[0], "predicted_ms"),
             statistics.median(gains)),
            (syncs[0]["predicted_ms"],
             statistics.median(sync["median_ms"] for sync in syncs)),
            statistics.median(answer["load"] for answer in one + two))


def judge(folder):
    print(f"{HOSTS} hosts of {RANKS} ranks, batch {BATCH}, {N_REPEATS} x "
          f"{N_STEPS} steps: one group and two\n"
          f"{'Mbit/s':>6} {'gain: predicted':>16} {'measured ms':>12} "
          f"{'error %':>8} {'sync: predicted':>16} {'measured ms':>12} "
          f"{'error %':>8} {'load':>6}")
    n_within = 0
    for mbit in RATES:
        *pairs, load = judge_rate(folder, mbit)
        line = f"{mbit:>6}"
        for predicted, measured in pairs:
            error = predicted / measured - 1
            n_within += abs(error) <= GOAL
            line += f" {predicted:16.1f} {measured:12.1f} {100 * error:8.1f}"
        print(f"{line} {load:6.1f}")
    print(f"{n_within} of {2 * len(RATES)} within {100 * GOAL:.0f} %, which "
          f"is the goal; every sync sent the bytes of the plan")


def bench(folder):
    write_list(f"{folder}/list.csv")
    for mbit in RATES:
        for groups in GROUPS:
            once(f"{folder}/{mbit}-{groups}.plan",
                 lambda path, n=groups: make_plan(path, folder, mbit, n))
        write_text(f"{folder}/rate", str(mbit))
        up(HOSTS, mbit, "groups", folder)
    judge(folder)


start(bench, {"groups": execute_all})
