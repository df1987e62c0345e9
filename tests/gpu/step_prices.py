# SPDX-License-Identifier: MIT
"""Compares predicted steps with the steps that TorchRec took.

    step_prices.py CSV

CSV is the output of `torchrec_steps.py`. A predicted step is the sum of its
predicted phases, but at least the time that the host takes to queue it. The
host's time is the median step of jobs with short phases. Prints the host's
time, and the median errors by the length of the step: without the host's time,
with it, and with the host's time from the jobs of the other lists. Then the
same for two ways to join GPU work and host, the larger of the two and the root
of the sum of their squares, each list predicted from the others.
"""

import csv
import math
import statistics
import sys

PHASES = ("input", "forward", "backward")
SHORT_MS = 1  # much less than any host's time
LENGTHS = (0, 2, 4, 8, 1e9)
SHORT_STEP_MS = 4


def read_jobs(path):
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            phases = sum(float(row[f"predicted_{phase}_ms"]) for phase in PHASES)
            yield row["list"], phases, float(row["step_ms"])


def host_of(jobs):
    return statistics.median(step for _, phases, step in jobs if phases < SHORT_MS)


def tau(jobs, host):
    pairs = [
        (max(a[1], host) - max(b[1], host)) * (a[2] - b[2])
        for i, a in enumerate(jobs)
        for b in jobs[:i]
    ]
    return sum((pair > 0) - (pair < 0) for pair in pairs) / len(pairs)


def main():
    jobs = list(read_jobs(sys.argv[1]))
    host = host_of(jobs)
    others = {
        name: host_of([job for job in jobs if job[0] != name])
        for name in {job[0] for job in jobs}
    }
    least = {
        "without": lambda _: 0,
        "with": lambda _: host,
        "held out": lambda name: others[name],
    }
    print(f"the host: {host:.3f} ms a step; without a list", end=" ")
    print(f"{min(others.values()):.3f} to {max(others.values()):.3f} ms")
    for low, high in list(zip(LENGTHS, LENGTHS[1:])) + [(0, LENGTHS[-1])]:
        of = [job for job in jobs if low <= job[2] < high]
        for how, least_of in least.items():
            errors = [max(p, least_of(name)) / step - 1 for name, p, step in of]
            print(
                f"{low:g} to {high:g} ms, {len(of)} jobs, {how}: median error "
                f"{100 * statistics.median(map(abs, errors)):.1f} %, mean "
                f"{100 * statistics.mean(map(abs, errors)):.1f} %, of their sign "
                f"{100 * statistics.median(errors):+.1f} %"
            )
    for way, join in (("larger of the two", max), ("root of squares", math.hypot)):
        for most in (SHORT_STEP_MS, LENGTHS[-1]):
            errors = [
                abs(join(p, others[name]) / step - 1)
                for name, p, step in jobs
                if step < most
            ]
            print(
                f"{way}, {len(errors)} steps below {most:g} ms, lists left out: "
                f"median error {100 * statistics.median(errors):.1f} %, mean "
                f"{100 * statistics.mean(errors):.1f} %"
            )
    bound = [job for job in jobs if job[1] > host]
    print(f"Kendall's tau: {tau(jobs, 0):.2f} without, {tau(jobs, host):.2f} with")
    print(f"of {len(bound)} that do not wait for the host: {tau(bound, 0):.2f}")


main()
