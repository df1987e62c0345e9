#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures, predicts and executes over links of a known rate.

usage: NEUROSHARD=... BENCH_WIRE=... tests/wire/bench.py [--small] [--keep DIR]

The hosts and links are those of tests/wire/lab. Prints three tables:

  exchanges  all-to-alls of 2, 3 and 4 hosts with 1 and 2 ranks each, at three
             rates. They are compared with the formulas, which know the rate
             and a latency that was measured with small exchanges, and with a
             model that was trained on other exchanges of the same links.
  plans      exchange phases of executed plans on 4 hosts, and the order of
             pairs of plans
  regret     plans made for a rate and executed at a quarter of the rate

--small does a little of everything, in a few minutes. --keep keeps databases,
models, plans and answers in DIR, and makes or measures no file again that is
there.
"""
import json
import os
import random
import shutil
import statistics

from common import (LAB, NEUROSHARD, SMALL, gbps, neuroshard, once, read_json,
                    run, start, tell, train, up, write_text)

BENCH_WIRE = os.environ.get("BENCH_WIRE", "bench_wire")

# Rates in Mbit/s. Two cores move the bytes of all hosts several times as fast,
# so the links decide. An exchange has at least 4 MiB and takes at least 20 ms
# at 400 Mbit/s, because busy processors wake a rank some milliseconds late.
RATES = [100, 400] if SMALL else [100, 200, 400]
SIZES = ["--min-bytes", "4MiB", "--max-bytes", "8MiB"]
HOSTS = [2, 4] if SMALL else [2, 3, 4]
N_SEEN, N_UNSEEN = (20, 3) if SMALL else (20, 4)

PLANS_HOSTS, PLANS_RANKS, PLANS_MBIT, PLANS_BATCH = 4, 2, 100, 2048
N_LISTS, N_SHUFFLED = (2, 1) if SMALL else (5, 3)
BEYOND = 1.15  # pairs of plans count from this ratio of predicted times on

# Plans for NOMINAL differ from plans for a quarter of it only if the lookups
# take a similar time as the exchanges at NOMINAL. Lists with many lookups per
# table do so from 800 Mbit/s on.
NOMINAL, REGRET_BATCH = 800, 1024
N_REGRETS = 2 if SMALL else 6
LEAST_REGRET = 0.05


# --- exchanges ---


def measure(path, ranks, n_ranks, n, seed, sizes):
    """Adds n exchanges to a database."""
    run(LAB, "run", ranks, NEUROSHARD, "bench", "--db", path, "--threads", 2,
        "--memory", "64MiB", "--alltoall", n_ranks, "--samples", n, "--seed",
        seed, *sizes)


def measure_exchanges(folder, hosts):
    """Measures all settings of a number of hosts. Runs inside the lab."""
    for mbit in RATES:
        run(LAB, "rate", mbit)
        for ranks in (1, 2):
            name = f"{folder}/{hosts}x{ranks}-{mbit}"
            n_ranks = hosts * ranks

            def seen(path):
                shutil.copy(f"{folder}/lookups.db", path)
                measure(path, ranks, n_ranks, N_SEEN, 0, SIZES)

            tell(f"{hosts} hosts x {ranks}, {mbit} Mbit/s")
            once(f"{name}-latency.db", lambda path: measure(
                path, ranks, n_ranks, 8, 0,
                ["--min-bytes", "256B", "--max-bytes", "4KiB"]))
            once(f"{name}-seen.db", seen)
            once(f"{name}-unseen.db", lambda path: measure(
                path, ranks, n_ranks, N_UNSEEN, 1, SIZES))


def judge_exchanges(folder):
    lines = []
    for hosts in HOSTS:
        for ranks in (1, 2):
            for mbit in RATES:
                name = f"{folder}/{hosts}x{ranks}-{mbit}"
                model = once(f"{name}.nsm",
                             lambda path: train(path, f"{name}-seen.db"))
                lines.append(f"{mbit} {gbps(mbit)} {name}-latency.db "
                             f"{name}-seen.db {name}-unseen.db {model}\n")
    write_text(f"{folder}/list", "".join(lines))
    print(run(BENCH_WIRE, f"{folder}/list"))


# --- executed plans ---


def draw_list(path, seed):
    """Writes a list of tables whose outputs have about 4 KiB a sample."""
    draw = random.Random(seed)
    rows = ["name,num_embeddings,dim,pooling_factor,zipf_alpha"]
    for table in range(draw.randint(10, 24)):
        rows.append(f"t{table},{draw.choice([1000, 10000, 50000])},"
                    f"{draw.choice([16, 32, 64, 128])},"
                    f"{draw.choice([1, 2, 5, 10, 20])},0.5")
    write_text(path, "\n".join(rows) + "\n")


def plan_options(ranks, mbit):
    return ["--inter-gbps", gbps(mbit) / ranks, "--host-ms", 0]


def make_plan(path, tables, hosts, ranks, mbit, batch, *options):
    neuroshard("plan", tables, "--gpu", "cpu", "--gpus", hosts * ranks,
               "--gpus-per-host", ranks, "--memory", "4GiB", "--batch", batch,
               "--pipeline", "none", "--no-rivals", "-o", path,
               *plan_options(ranks, mbit), *options)


def unpriced(source):
    """Reads a plan without its price."""
    plan = read_json(source)
    for member in ("devices", "total_ms", "bound_ms"):
        plan.pop(member, None)
    return plan


def shuffle_plan(path, source, seed):
    """Writes a plan in which each whole table is on a random GPU."""
    draw = random.Random(seed)
    plan = unpriced(source)
    for shard in plan["shards"]:
        shard["device"] = draw.randrange(plan["cluster"]["gpus"])
    write_text(path, json.dumps(plan))


def price_plan(path, plan, mbit, cost, ranks):
    neuroshard("cost", plan, "--cost", cost, "-o", path,
               *plan_options(ranks, mbit))


def price_by_model(path, source, model):
    """Prices a plan by the measured exchanges of a model. Removes the plan's
    bandwidth, which would replace them."""
    plan = unpriced(source)
    del plan["cluster"]["inter_gbps"]
    write_text(f"{path}.json", json.dumps(plan))
    neuroshard("cost", f"{path}.json", "--cost", f"model:{model}", "-o", path)


def execute(path, plan, ranks):
    write_text(path, run(LAB, "run", ranks, NEUROSHARD, "run", plan, "--json",
                         "--no-check", "-n", 12, "--threads", 2))


def make_plans(folder):
    """Makes the plans to execute, each priced by the formulas."""
    names = []
    for number in range(N_LISTS):
        base = f"{folder}/list{number}"
        whole = f"{base}-whole.plan"
        draw_list(f"{base}.csv", number)
        for name, options in (("best", []), ("whole", ["--shard", "table"])):
            once(f"{base}-{name}.plan", lambda path: make_plan(
                path, f"{base}.csv", PLANS_HOSTS, PLANS_RANKS, PLANS_MBIT,
                PLANS_BATCH, "--cost", "roofline:cpu", *options))
        names += [f"{base}-best"] + ([whole[:-5]] if SMALL else [])
        for seed in range(N_SHUFFLED):
            name = f"{base}-shuffled{seed}"
            shuffle_plan(f"{name}.json", whole, f"{number} {seed}")
            once(f"{name}.plan", lambda path: price_plan(
                path, f"{name}.json", PLANS_MBIT, "roofline:cpu", PLANS_RANKS))
            names.append(name)
    return names


def exchange_times(path):
    """Returns the times in ms of the phases in which ranks exchange data:
    predicted times of a plan, or measured times of an answer of `run`."""
    devices = read_json(path)["devices"]
    return {phase: max(device["phases_ms"][phase] for device in devices)
            for phase in ("input", "output", "gradient")}


def judge_plans(names, kind):
    """Prints the errors of exchange phases, and the order of the plans."""
    errors, sums = [], []
    for name in names:
        predicted = exchange_times(f"{name}.{kind}")
        measured = exchange_times(f"{name}.run")
        errors += [abs(predicted[phase] / measured[phase] - 1)
                   for phase in measured]
        sums.append((sum(predicted.values()), sum(measured.values())))
    pairs = [(a, b) for i, a in enumerate(sums) for b in sums[:i]
             if max(a[0] / b[0], b[0] / a[0]) > BEYOND]
    right = sum((a[0] < b[0]) == (a[1] < b[1]) for a, b in pairs)
    print(f"{'formulas' if kind == 'plan' else kind:<10} {len(names):5} "
          f"{len(errors):7} {100 * statistics.median(errors):9.1f} "
          f"{100 * sorted(errors)[int(0.9 * len(errors))]:7.1f} "
          f"{len(pairs):7} {100 * right / max(len(pairs), 1):11.1f}")


# --- regret ---


def draw_heavy_list(path, seed):
    """Writes a list in which one or two tables need most of the lookups."""
    draw = random.Random(seed)
    rows = ["name,num_embeddings,dim,pooling_factor,zipf_alpha"]
    for table in range(draw.randint(1, 2)):
        rows.append(f"heavy{table},{draw.choice([20000, 40000])},"
                    f"{draw.choice([256, 512])},"
                    f"{draw.choice([200, 300, 400, 600])},0.1")
    for table in range(draw.randint(5, 9)):
        rows.append(f"t{table},{draw.choice([1000, 10000, 50000])},"
                    f"{draw.choice([64, 128, 256])},"
                    f"{draw.choice([1, 2, 5, 10])},0.5")
    write_text(path, "\n".join(rows) + "\n")


def total_ms(plan):
    return read_json(plan)["total_ms"]


def make_regrets(folder):
    """Draws lists until N_REGRETS of them have a predicted regret of at
    least LEAST_REGRET. Returns the names and regrets of these lists, and the
    number of lists that were drawn."""
    found = []
    cost = f"model:{folder}/lookups.nsm"
    for seed in range(400):
        base = f"{folder}/regret{seed}"
        draw_heavy_list(f"{base}.csv", seed)
        for name, mbit in (("nominal", NOMINAL), ("true", NOMINAL // 4)):
            once(f"{base}-{name}.made", lambda path: make_plan(
                path, f"{base}.csv", 4, 1, mbit, REGRET_BATCH, "--shard",
                "table,row", "--effort", 100000, "--cost", cost))
            once(f"{base}-{name}.plan", lambda path: price_plan(
                path, f"{base}-{name}.made", NOMINAL // 4, cost, 1))
        predicted = regret([total_ms(f"{base}-{name}.plan")
                            for name in ("nominal", "true")])
        if predicted >= LEAST_REGRET:
            found.append((base, predicted))
            if len(found) == N_REGRETS:
                return found, seed + 1
    return found, seed + 1


def wire_step(name):
    """Returns the predicted time of a step, but with the measured times of the
    exchanges of outputs and gradients."""
    measured, predicted = exchange_times(f"{name}.run"), f"{name}.plan"
    return total_ms(predicted) + sum(
        measured[phase] - exchange_times(predicted)[phase]
        for phase in ("output", "gradient"))


def regret(steps):
    return steps[0] / steps[1] - 1


def judge_regrets(found, n_drawn):
    """Prints two measured regrets of each list: by whole measured steps, and
    by wire_step. Other load on the machine changes the first more."""
    whole, exchanges = [], []
    print(f"{'list':>5} {'predicted %':>12} {'measured %':>11} {'miss':>6} "
          f"{'by exchanges %':>17} {'miss':>6}")
    for base, predicted in found:
        names = [f"{base}-{name}" for name in ("nominal", "true")]
        measured = regret([total_ms(f"{name}.run") for name in names])
        wire = regret([wire_step(name) for name in names])
        whole.append(abs(measured / predicted - 1))
        exchanges.append(abs(wire / predicted - 1))
        print(f"{base[base.rindex('regret') + 6:]:>5} {100 * predicted:12.1f} "
              f"{100 * measured:11.1f} {whole[-1]:6.2f} {100 * wire:17.1f} "
              f"{exchanges[-1]:6.2f}")
    print(f"regret of plans for {NOMINAL} Mbit/s at {NOMINAL // 4} Mbit/s, on "
          f"{len(found)} of {n_drawn} lists, whose predicted regret is at "
          f"least {100 * LEAST_REGRET:.0f} %")
    print(f"miss, median: {statistics.median(whole):.2f} of the predicted "
          f"regret, {statistics.median(exchanges):.2f} by exchanges; "
          f"goal: 0.20")


# --- all of it ---


def inside_plans(folder, _hosts):
    """Executes all plans. Runs inside the lab."""
    work = read_json(f"{folder}/work.json")
    for mbit, ranks, plans in work:
        run(LAB, "rate", mbit)
        for plan, answer in plans:
            tell(os.path.basename(answer))
            once(answer, lambda path: execute(path, plan, ranks))


def execute_plans(folder):
    """Makes plans, executes them and prints the tables of plans and regret."""
    once(f"{folder}/lookups.nsm",
         lambda path: train(path, f"{folder}/lookups.db"))
    names = make_plans(folder)
    model = f"{folder}/{PLANS_HOSTS}x{PLANS_RANKS}-{PLANS_MBIT}.nsm"
    found, n_drawn = make_regrets(folder)
    for name in names:
        once(f"{name}.model",
             lambda path: price_by_model(path, f"{name}.plan", model))
    plans = [(f"{name}.plan", f"{name}.run") for name in names]
    regrets = [(f"{base}-{name}.plan", f"{base}-{name}.run")
               for base, _ in found for name in ("nominal", "true")]
    write_text(f"{folder}/work.json", json.dumps(
        [(PLANS_MBIT, PLANS_RANKS, plans), (NOMINAL // 4, 1, regrets)]))
    up(4, RATES[0], "plans", folder)
    print(f"{'':10} {'plans':>5} {'phases':>7} {'median %':>9} {'p90 %':>7} "
          f"{'pairs':>7} {'in order %':>11}")
    for kind in ("plan", "model"):
        judge_plans(names, kind)
    print(f"exchange phases of {PLANS_HOSTS} hosts x {PLANS_RANKS} ranks at "
          f"{PLANS_MBIT} Mbit/s; pairs that differ by more than "
          f"{100 * (BEYOND - 1):.0f} %; goal: 15 %, 95 % in order\n")
    judge_regrets(found, n_drawn)


def bench(folder):
    up(2, RATES[0], "nothing", folder)
    once(f"{folder}/lookups.db", lambda path: neuroshard(
        "bench", "--db", path, "--threads", 2, "--time-limit",
        20 if SMALL else 60, "--batch", 256, "--memory", "512MiB",
        "--max-tables", 6))
    for hosts in HOSTS:
        up(hosts, RATES[0], "exchanges", folder)
    judge_exchanges(folder)
    execute_plans(folder)


start(bench, {"exchanges": measure_exchanges, "plans": inside_plans})
