# SPDX-License-Identifier: MIT
"""Compares the predicted parts of a step with FBGEMM's measured times.

    part_prices.py [--program FILE] PART CSV COST

CSV is the output of `fbgemm_parts.py PART`. Each of its sets becomes a table
list that is priced by COST, without exchanges. Prints the errors by optimizer.

replicas  sets with lookups, completely replicated; the measured time is that
          of the dense forward and backward, the copy into the bucket and the
          optimizer.
updates   whole tables on one GPU: the backward with each fused optimizer.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import tempfile

HEADER = "name,num_embeddings,dim,pooling_factor,zipf_alpha,optimizer\n"
PHASES = ("dense_forward", "dense_backward", "bucket")
UPDATES = ["sgd", "rowwise_adagrad", "adagrad", "adam", "lamb"]
UPDATES += ["partial_rowwise_adam", "partial_rowwise_lamb"]


def predicted_device(options, work, case, optimizer):
    tables, plan = f"{work}/tables.csv", f"{work}/plan.json"
    is_replica = options.part == "replicas"
    ranks = int(case["ranks"])
    with open(tables, "w", encoding="utf-8") as file:
        file.write(HEADER)
        for i, table in enumerate(case["tables"].split()):
            cells = [f"t{i}", *table.split("x"), case["zipf"]]
            cells.append("rowwise_adagrad" if is_replica else optimizer)
            file.write(",".join(cells) + "\n")
    shards = ["replicate", "--dense-optimizer", optimizer]
    subprocess.run(
        [options.program, "plan", tables, "--gpus", str(ranks)]
        + ["--batch", str(int(case["batch"]) * ranks), "--effort", "0"]
        + ["--cost", options.cost, "--memory", "1TiB", "-o", plan]
        + ["--shard", *(shards if is_replica else ["table"])],
        check=True,
        capture_output=True,
    )
    with open(plan, encoding="utf-8") as file:
        return json.load(file)["devices"][0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=("replicas", "updates"))
    parser.add_argument("csv")
    parser.add_argument("cost")
    parser.add_argument("--program", default="./neuroshard")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    is_replica = options.part == "replicas"
    with open(options.csv, encoding="utf-8") as file:
        cases = [case for case in csv.DictReader(file) if int(case["n_ids"])]
    for optimizer in ("sgd", "adagrad") if is_replica else UPDATES:
        errors = []
        with tempfile.TemporaryDirectory() as work:
            for case in cases:
                device = predicted_device(options, work, case, optimizer)
                if is_replica:
                    ms = device["compute_ms"]
                    measured = sum(float(case[p]) for p in (*PHASES, optimizer))
                else:
                    ms = device["phases_ms"]["backward"]
                    measured = float(case[optimizer])
                errors.append(ms / measured - 1)
        sizes = [abs(error) for error in errors]
        print(
            f"{options.cost}, {optimizer}: {len(errors)} sets of {options.part}, "
            f"median error {100 * statistics.median(sizes):.1f} %, "
            f"mean {100 * statistics.mean(sizes):.1f} %, "
            f"of their sign {100 * statistics.median(errors):+.1f} %"
        )


main()
