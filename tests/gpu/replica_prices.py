# SPDX-License-Identifier: MIT
"""What plans say that replicas take beside what FBGEMM took.

    replica_prices.py [--program FILE] CSV COST

CSV is of `fbgemm_parts.py replicas`. Each set of replicas with look-ups becomes
a table list that is replicated as a whole and priced by COST; measured are the
dense forward and backward, the copy into the bucket and the optimizer, without
the all-reduce. Prints the errors by optimizer.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import tempfile

HEADER = "name,num_embeddings,dim,pooling_factor,zipf_alpha\n"
PHASES = ("dense_forward", "dense_backward", "bucket")


def predicted_ms(program, work, case, optimizer, cost):
    tables, plan = f"{work}/tables.csv", f"{work}/plan.json"
    ranks = int(case["ranks"])
    with open(tables, "w", encoding="utf-8") as file:
        file.write(HEADER)
        for i, table in enumerate(case["tables"].split()):
            cells = table.split("x")
            file.write(f"t{i},{','.join(cells)},{case['zipf']}\n")
    subprocess.run(
        [program, "plan", tables, "--gpus", str(ranks), "--cost", cost]
        + ["--batch", str(int(case["batch"]) * ranks), "--effort", "0"]
        + ["--shard", "replicate", "--dense-optimizer", optimizer]
        + ["--memory", "1TiB", "-o", plan],
        check=True,
        capture_output=True,
    )
    with open(plan, encoding="utf-8") as file:
        return json.load(file)["devices"][0]["compute_ms"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("csv")
    parser.add_argument("cost")
    parser.add_argument("--program", default="./neuroshard")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    with open(options.csv, encoding="utf-8") as file:
        cases = [case for case in csv.DictReader(file) if int(case["n_ids"])]
    for optimizer in ("sgd", "adagrad"):
        errors = []
        with tempfile.TemporaryDirectory() as work:
            for case in cases:
                measured = sum(float(case[p]) for p in (*PHASES, optimizer))
                ms = predicted_ms(program, work, case, optimizer, options.cost)
                errors.append(abs(ms / measured - 1))
        print(
            f"{options.cost}, {optimizer}: {len(errors)} sets of replicas, "
            f"median error {100 * statistics.median(errors):.1f} %, "
            f"mean {100 * statistics.mean(errors):.1f} %"
        )


main()
