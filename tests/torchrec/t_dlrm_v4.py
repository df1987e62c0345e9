# SPDX-License-Identifier: MIT
"""Plans of MLPerf's DLRM-v4 for 8 and 16 H100 in the real TorchRec, on as many
CPU processes. The plans are made for the whole tables. They are loaded with
few rows in each table, cut into as many blocks on the same ranks. ranks.py
describes the comparisons. Speaks TAP; NEUROSHARD is the program and
NEUROSHARD_DATA its data.
"""
import os
import tempfile
import time

import torch
from t_plans import (
    Job,
    emitted,
    neuroshard,
    path_of,
    plan_of,
    read_json,
    run_job,
    write_json,
)
from tap import finish, ok

LIST = "tables/mlperf_dlrm_v4_yambda.csv"
MAX_ROWS = 500
# Job, and options with which all memory of a step fits 80 GB. MLPerf's 1,024
# samples per GPU fit neither 8 nor 16 of these GPUs.
PLANS = (
    (Job(8, 8), ("--batch-per-gpu", "64", "--reserve", "3%")),
    (Job(16, 8), ("--batch-per-gpu", "256")),
)


def capped(rows, n_rows, n_blocks):
    """Maps a row, where one of n_blocks equal blocks of n_rows rows begins or
    ends, to the same place of a table of MAX_ROWS rows at most."""
    few = min(n_rows, MAX_ROWS)
    if rows == n_rows:
        return few
    return min(few, rows // -(-n_rows // n_blocks) * -(-few // n_blocks))


def capped_plan(plan, job):
    tables = [
        {**table, "num_embeddings": min(table["num_embeddings"], MAX_ROWS)}
        for table in plan["tables"]
    ]
    pieces = []
    for shard in plan["shards"]:
        t = shard["table"]
        n_rows = plan["tables"][t]["num_embeddings"]
        blocks = {s["row_begin"] for s in plan["shards"] if s["table"] == t}
        rows = [
            capped(shard[key], n_rows, len(blocks))
            for key in ("row_begin", "row_end")
        ]
        columns = (shard["col_begin"], shard["col_end"])
        pieces.append((t, rows, columns, shard["device"]))
    return plan_of(job, tables, pieces)


def planned(work, job, options):
    """Plans the whole list; returns the plan, or None after a failure."""
    path = path_of(work, "whole", job)
    began = time.monotonic()
    status, _, why = neuroshard(
        *("plan", f"{os.environ['NEUROSHARD_DATA']}/{LIST}", "-o", path),
        *("--gpus", str(job.n_ranks), "--gpus-per-host", str(job.n_local)),
        *("--gpu", "h100", "--time-limit", "5", *options),
    )
    ok(not status, f"DLRM-v4 is planned for {job.n_ranks} H100", why)
    print(f"# in {time.monotonic() - began:.1f} s")
    return None if status else read_json(path)


def check_dedup():
    """TorchRec fails to de-duplicate ids on CPUs (use_index_dedup), so the
    plans are loaded without it."""
    operator = "fbgemm::jagged_unique_indices"
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    ok(not has_kernel(operator, "CPU"), f"{operator} has no CPU kernel")


def check(work):
    for job, options in PLANS:
        plan = planned(work, job, options)
        if not plan:
            continue
        cut = {s["table"] for s in plan["shards"] if s["kind"] == "row"}
        ok(len(cut) >= 8, "... with its large tables cut by rows", str(cut))
        path = path_of(work, "few", job)
        write_json(path, capped_plan(plan, job))
        neuroshard(
            *("emit", path, "--format", "torchrec-loader"),
            *("-o", work + "/loader.py"),
        )
        case = emitted(
            path,
            f"... and loaded by TorchRec on {job.n_ranks} CPU ranks",
            "rowwise_adagrad",
        )
        if case:
            run_job(work, job, [case])


def main():
    with tempfile.TemporaryDirectory() as work:
        check(work)
    check_dedup()
    finish()


if __name__ == "__main__":
    main()
