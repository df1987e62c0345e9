# SPDX-License-Identifier: MIT
"""Plans of neuroshard in the real TorchRec, on CPU processes of this machine;
ranks.py describes the comparisons. Speaks TAP; NEUROSHARD is the program,
NEUROSHARD_DATA its data, and TEST_SIZE=full runs more random plans.
"""
import csv
import json
import os
import random
import tempfile
from typing import NamedTuple

import torch.multiprocessing as mp

import ranks
from tap import finish, neuroshard, ok


class Job(NamedTuple):
    n_ranks: int
    n_local: int  # ranks of a host
    pod_size: int = 1  # hosts of an NVLink domain


JOBS = (Job(2, 2), Job(4, 4), Job(4, 2), Job(4, 1, 2))
LISTS = (
    "criteo_kaggle_26",
    "nvidia_synthetic_tiny_v3",
    "mlperf_dlrm_dcnv2_multihot",
)
ALL_KINDS = ("table", "column", "row", "grid", "replicate")
KINDS = (
    ",".join(ALL_KINDS),
    "column",
    "column,row",
    "row",
    "grid",
)
MAX_ROWS = 1500
TOLERANCE = 2e-5
SEQUENCE_PIECE = 8
MODULES = ("--module", "ebc", "--sequence-module", "ec")


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def path_of(work, name, job):
    return f"{work}/{name}-{'-'.join(map(str, job))}.json"


# --- Plans ------------------------------------------------------------------


def capped_list(work, name, optimizer):
    """Writes the list with few rows; returns its path and the bytes of its
    weights."""
    path = f"{work}/{name}.csv"
    source = f"{os.environ['NEUROSHARD_DATA']}/tables/{name}.csv"
    with open(source, encoding="utf-8") as file:
        rows = list(csv.DictReader(r for r in file if r[0] != "#"))
    for row in rows:
        row["num_embeddings"] = min(int(row["num_embeddings"]), MAX_ROWS)
        row["optimizer"] = optimizer
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path, sum(4 * r["num_embeddings"] * int(r["dim"]) for r in rows)


def emitted(plan_path, name, optimizer):
    """Returns the plan as a case for the ranks; None if NEUROSHARD refused
    it."""
    path = plan_path + ".torchrec"
    status, _, why = neuroshard(
        "emit", plan_path, "--format", "torchrec", *MODULES, "-o", path
    )
    if status:
        ok(False, name, why)
        return None
    plan = read_json(plan_path)
    return {
        "name": name,
        "emitted": path,
        "tables": plan["tables"],
        "kinds": {shard.get("kind") for shard in plan["shards"]},
        "optimizer": optimizer,
    }


def planned_cases(work, job):
    """Plans with memory for 1.4 times the weights, so that tables are not
    replicated."""
    for name in LISTS:
        for kinds in KINDS:
            optimizer = "rowwise_adagrad" if "column" in kinds else "sgd"
            path, n_bytes = capped_list(work, name, optimizer)
            what = f"{name}, {kinds}"
            plan_path = path_of(work, f"{name}-{kinds}", job)
            status, _, why = neuroshard(
                *("plan", path, "--shard", kinds, "-o", plan_path),
                *("--gpus", str(job.n_ranks)),
                *("--gpus-per-host", str(job.n_local)),
                *("--hosts-per-domain", str(job.pod_size)),
                *("--memory-model", "weights", "--reserve", "0"),
                *("--memory", f"{14 * n_bytes // 10 // job.n_ranks}B"),
                *("--effort", "20000", "--simplest-within", "0%"),
            )
            if status:
                ok(False, what, why)
                continue
            yield emitted(plan_path, what, optimizer)


def random_widths(rng, way, table, n_places):
    """Draws column ranges as [(place, width)]. All ranges of one place have
    the same width, and so have all shards of sequences. The dim of a pooled
    table is the sum of its widths."""
    if way not in ("column", "grid"):
        return [(rng.randrange(n_places), table["dim"])]
    if table["output"] == "sequence":
        width_at = [SEQUENCE_PIECE] * n_places
        n = table["dim"] // SEQUENCE_PIECE
    else:
        width_at = [4 * rng.randint(1, 4) for _ in range(n_places)]
        n = rng.randint(2, 5)
    places = [rng.randrange(n_places) for _ in range(n)]
    pieces = [(place, width_at[place]) for place in places]
    table["dim"] = sum(width for _, width in pieces)
    return pieces


def random_shards(rng, table, job):
    """Cuts the table in one of the ways that TorchRec knows."""
    ways = ["table", "column", "row"]
    if table["output"] == "pooled":
        ways += ["host", "replicate"]
        if job.pod_size == 1 or table["optimizer"] == "sgd":
            ways += ["grid"]
    way = rng.choice(ways)
    rows = table["num_embeddings"]
    if way == "replicate":
        for rank in range(job.n_ranks):
            yield (0, rows), (0, table["dim"]), rank
        return
    n_group = job.n_local * job.pod_size
    n = {"row": job.n_ranks, "host": n_group, "grid": n_group}.get(way, 1)
    block = -(-rows // n)
    begin = 0
    for place, width in random_widths(rng, way, table, job.n_ranks // n):
        for i in range(n):
            end = min(rows, (i + 1) * block)
            yield (i * block, end), (begin, begin + width), place * n + i
        begin += width


def plan_of(job, tables, pieces):
    """Returns a plan as written by hand; pieces are (table, rows, columns,
    rank)."""
    return {
        "neuroshard_plan": 1,
        "batch": 64,
        "cluster": {
            "gpus": job.n_ranks,
            "gpus_per_host": job.n_local,
            "pod_size": job.pod_size,
            "memory_bytes": [1 << 30] * job.n_ranks,
        },
        "tables": tables,
        "shards": [
            {
                "table": table,
                "row_begin": rows[0],
                "row_end": rows[1],
                "col_begin": columns[0],
                "col_end": columns[1],
                "device": rank,
            }
            for table, rows, columns, rank in pieces
        ],
    }


def random_plan(rng, job, optimizer):
    """Draws a plan of pooled tables and of sequences of one width, each cut in
    its own way. It has no replicated sequences and no rank without rows of a
    cut table: on a CPU FBGEMM pools the former and fails with the latter."""
    tables, pieces = [], []
    for i in range(rng.randint(1, 12)):
        is_sequence = rng.random() < 0.3
        table = {
            "name": f"t{i}",
            "num_embeddings": rng.randint(job.n_ranks**2, 60),
            "dim": 3 * SEQUENCE_PIECE
            if is_sequence
            else 4 * rng.randint(1, 9),
            "pooling_factor": 1,
            "num_outputs": rng.choice((1, 1, 2)),
            "output": "sequence" if is_sequence else "pooled",
            "optimizer": optimizer,
        }
        pieces += [(i, *piece) for piece in random_shards(rng, table, job)]
        tables.append(table)
    return plan_of(job, tables, pieces)


def random_cases(work, job):
    n = 200 if os.environ.get("TEST_SIZE") == "full" else 10
    for seed in range(n):
        rng = random.Random(f"{seed} {job}")
        path = path_of(work, f"random-{seed}", job)
        optimizer = rng.choice(["sgd", "rowwise_adagrad"])
        write_json(path, random_plan(rng, job, optimizer))
        yield emitted(path, f"random plan {seed}, {optimizer}", optimizer)


# --- Plans that must be refused --------------------------------------------


def cut_plan(work, job, widths):
    """Writes a plan of two tables, the first cut in two on rank 0."""
    path = path_of(work, f"cut-{widths[0]}", job)
    tables = [
        {
            "name": name,
            "num_embeddings": 97,
            "dim": sum(widths),
            "pooling_factor": 1,
            "output": "pooled",
        }
        for name in ("cut", "behind")
    ]
    pieces = [
        (0, (0, 97), (0, widths[0]), 0),
        (0, (0, 97), (widths[0], sum(widths)), 0),
        (1, (0, 97), (0, sum(widths)), 0),
    ]
    write_json(path, plan_of(job, tables, pieces))
    return path


def check_unequal_plan(work):
    """Two shards of one table on one rank with different widths."""
    status, _, why = neuroshard(
        *("emit", cut_plan(work, Job(2, 2), (12, 4)), "--format", "torchrec")
    )
    want = "table 'cut' has pieces of 12 and of 4 columns on rank 0, "
    ok(status == 1 and want in why, "emit refuses unequal pieces", why)


def refused_case(work, job, name, refusal):
    path = cut_plan(work, job, (8, 8))
    return {**emitted(path, name, "sgd"), "refusal": refusal}


def unequal_case(work):
    """The same unequal shards in an edited file."""
    case = refused_case(
        *(work, Job(2, 2), "the loader refuses unequal pieces"),
        "cut: pieces of 12 and of 4 columns on rank 0, where TorchRec wants "
        "one width",
    )
    root = read_json(case["emitted"])
    first, second = root["plan"]["ebc"]["cut"]["shards"]
    first["shard_sizes"][1] = 12
    second.update(shard_offsets=[0, 12], shard_sizes=[97, 4])
    write_json(case["emitted"], root)
    return case


# --- Jobs -------------------------------------------------------------------


def judge(case, results):
    if "refusal" in case:
        want = case["refusal"].replace("FILE", case.get("emitted", ""))
        ok(set(results) == {want}, case["name"], str(results))
        return
    output, weight = (max(r[i] for r in results) for i in (0, 1))
    ok(
        max(output, weight) <= TOLERANCE,
        f"{case['name']}: outputs to {output:.1e}, weights to {weight:.1e}",
    )


def run_job(work, job, cases):
    """Runs the cases. A case that ends the job is the first one without
    results; the remaining cases get another job."""
    while cases:
        results, why = [], ""
        for name in ("results", "meeting"):
            if os.path.exists(f"{work}/{name}"):
                os.remove(f"{work}/{name}")
        try:
            mp.start_processes(
                ranks.run,
                (job, work, cases),
                nprocs=job.n_ranks,
                start_method="fork",
            )
        except (mp.ProcessRaisedException, mp.ProcessExitedException) as error:
            why = str(error)
        if os.path.exists(f"{work}/results"):
            with open(f"{work}/results", encoding="utf-8") as file:
                results = [json.loads(line) for line in file]
        for case, result in zip(cases, results):
            judge(case, result)
        cases = cases[len(results) :]
        if cases:
            ok(False, cases[0]["name"], why or "the job ended early")
            cases = cases[1:]


def check(work):
    neuroshard(
        *("emit", cut_plan(work, Job(2, 2), (8, 8))),
        *("--format", "torchrec-loader", "-o", work + "/loader.py"),
    )
    for job in JOBS:
        print(f"# {job}")
        planned = [case for case in planned_cases(work, job) if case]
        kinds = set().union(*(case["kinds"] for case in planned))
        ok(kinds == set(ALL_KINDS), "plans hold all kinds", str(kinds))
        cases = [case for case in random_cases(work, job) if case]
        run_job(work, job, planned + cases)
    print("# refused")
    check_unequal_plan(work)
    run_job(work, Job(2, 2), [unequal_case(work)])
    for planned_for, job, name, refusal in (
        (
            *(Job(4, 2), Job(4, 4), "2 hosts of 2 in a job of one host"),
            "FILE is for hosts of 2 ranks, but those of this job have 4 "
            "(LOCAL_WORLD_SIZE)",
        ),
        (
            *(Job(4, 4), Job(8, 8), "4 ranks in a job of 8"),
            "FILE is for 4 ranks, but this job has 8",
        ),
    ):
        run_job(work, job, [refused_case(work, planned_for, name, refusal)])


def main():
    with tempfile.TemporaryDirectory() as work:
        check(work)
    finish()


if __name__ == "__main__":
    main()
