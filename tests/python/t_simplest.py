#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plan --simplest-within on every other shipped list (TEST_SIZE=full: on every
one) and on random lists. GPU work stays within the allowed share, and a larger
share never gives a less simple plan; the test prints both measures of each.
From another plan, migration stays within the limit. Speaks TAP; NEUROSHARD is
the program.
"""
import json
import os
import random
import tempfile
from pathlib import Path

from tap import finish, neuroshard, ok

ROOT = Path(__file__).resolve().parents[2]
# The list of DLRM-v4 fits no number of GPUs at the default batch.
LISTS = sorted(
    path
    for path in (ROOT / "data/tables").glob("*.csv")
    if path.stem != "mlperf_dlrm_v4_yambda"
)
# Lists that fit no 16 GPUs. The longest one is only in the full size.
LONGEST = "meta_torchrec_1935"
GPUS = {"hugectr_7table_470B_hotness20": 32, LONGEST: 96}
COSTS = ("roofline:h100", "torchrec", "model:h100.nsm")
PERCENTS = (0, 2, 10)
SIZE = os.environ.get("TEST_SIZE")
N_DRAWN = {"tiny": 2, "full": 200}.get(SIZE, 4)
SOME = LISTS[:: {"tiny": 3, "full": 1}.get(SIZE, 2)]
SEED = 5


def plan(tables, n_gpus, cost, *options):
    line = ["plan", tables, "--gpus", n_gpus, "--cost", cost, "--no-rivals"]
    for name, value in (("--host-ms", 0), ("--effort", 3000)):
        if name not in options:
            line += [name, value]
    status, text, said = neuroshard(*map(str, [*line, *options]), "--json")
    return json.loads(text) if status == 0 else said


def simplicity(found):
    """Number of tables whose training changes, and of pieces. Plans with
    smaller pairs are simpler."""
    changed = {s["table"] for s in found["shards"] if s["changes_training"]}
    return (len(changed), len(found["shards"]))


def check(name, tables, n_gpus, cost, *options):
    """Returns the number of pieces for each of PERCENTS. The first plan is the
    cheapest one. A larger allowance never gives a less simple plan."""
    levels, most = [], 0
    for percent in PERCENTS:
        simple = plan(
            *[tables, n_gpus, cost, "--simplest-within", f"{percent}%"],
            *options,
        )
        most = max(
            most,
            simple["total_ms"] / simple["cheapest_ms"] - 1 - percent / 100,
        )
        levels.append(simplicity(simple))
    ok(
        most <= 1e-9 and levels == sorted(levels, reverse=True),
        f"{name} by {cost}: {levels}",
        f"{most} {levels}",
    )
    return [level[1] for level in levels]


def draw(rng, path):
    lines = ["name,num_embeddings,dim,pooling_factor"]
    for i in range(rng.randrange(3, 40)):
        rows = int(10 ** rng.uniform(2, 7.5))
        dim = rng.choice((16, 32, 64, 128, 256))
        lines.append(f"t{i},{rows},{dim},{rng.choice((1, 3, 20, 100))}")
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def check_from(rng, name, cost):
    """Migration is not larger either if a plan for other GPUs is replaced."""
    n_gpus = rng.choice((2, 4, 6))
    draw(rng, "drawn.csv")
    plan("drawn.csv", n_gpus, cost, "-o", "old.json")
    args = ["drawn.csv", n_gpus + 1, cost, "--from", "old.json"]
    free = plan(*args)
    moved = free["movement"]["bytes"]["moved"]
    wrong, n_pieces = [], []
    for limit in (None, moved * 3 // 2):
        limits = [] if limit is None else ["--move-limit", f"{limit}B"]
        for percent in PERCENTS:
            simple = plan(*args, *limits, "--simplest-within", f"{percent}%")
            n_pieces.append(len(simple["shards"]))
            if (
                simple["movement"]["bytes"]["moved"] > (limit or moved)
                or n_pieces[-1] > len(free["shards"])
                or simple["total_ms"]
                > free["total_ms"] * (1 + percent / 100 + 1e-9)
            ):
                wrong.append((limit, percent, simple["total_ms"]))
    ok(
        not wrong,
        f"{name} from another plan by {cost}: "
        f"{len(free['shards'])}, {n_pieces} pieces",
        f"{wrong} {free['total_ms']} {moved}",
    )
    return n_pieces[-1] < len(free["shards"])


def main():
    rng = random.Random(SEED)
    fewer = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for i, path in enumerate(SOME):
            if path.stem == LONGEST and SIZE != "full":
                continue
            n_pieces = check(
                *[path.stem, path, GPUS.get(path.stem, 16)],
                COSTS[i % len(COSTS)],
            )
            fewer += n_pieces[-1] < n_pieces[0]
        ok(fewer >= len(SOME) // 3, f"{fewer} of {len(SOME)} have fewer")
        for i in range(N_DRAWN):
            draw(rng, "drawn.csv")
            n_gpus = rng.choice((2, 3, 4, 8))
            check(f"drawn {i}", "drawn.csv", n_gpus, COSTS[i % len(COSTS)])
        fewer = sum(
            check_from(rng, f"drawn {i}", COSTS[i % len(COSTS)])
            for i in range(N_DRAWN)
        )
        ok(fewer > 0, f"{fewer} of them have fewer pieces")
        args = [LISTS[0], 16, "model:h100.nsm", "--host-ms", 50]
        free, simple = plan(*args, "--simplest-within", "0%"), plan(*args)
        n_pieces = [len(found["shards"]) for found in (free, simple)]
        ok(
            n_pieces[0] >= n_pieces[1] == len(simple["tables"]),
            f"{LISTS[0].stem}, bound by its host: {n_pieces} pieces",
            str(n_pieces),
        )
        # It would be 130 pieces if the pieces of a table could not decrease
        # one by one, and 65 if the other tables were not settled in between.
        dcnv2 = ROOT / "data/tables/mlperf_dlrm_dcnv2_multihot.csv"
        simple = plan(dcnv2, 16, COSTS[0], "--simplest-within", "10%")
        n_pieces = len(simple["shards"])
        ok(n_pieces <= 60, f"{dcnv2.stem} within 10 %: {n_pieces} pieces")
        check("dcnv2", dcnv2, 8, COSTS[0], "--pipeline", "none")
        check("dcnv2 on two hosts", dcnv2, 8, COSTS[0], "--gpus-per-host", 4)
        # One way to cut rows less would change the training of more tables.
        small = ROOT / "data/tables/nvidia_synthetic_small_v3.csv"
        check(small.stem, small, 16, "torchrec", "--effort", 100000)
        both = [
            plan(
                *["drawn.csv", 4, "model:h100.nsm", "--simplest-within", "5%"],
                *["--threads", threads],
            )
            for threads in (1, 3)
        ]
        ok(both[0] == both[1], "the same plan with 1 and 3 threads")
        for text in ("1", "%", "-1%", "101%", "x%"):
            said = plan("drawn.csv", 4, "torchrec", "--simplest-within", text)
            ok("'--simplest-within' takes" in said, f"not '{text}'", str(said))
        said = plan(
            *["drawn.csv", 4, "torchrec", "--simplest-within", "1%"],
            *["--search", "grid"],
        )
        ok("needs the full search" in said, "only a full search", str(said))
        os.chdir(ROOT)
    finish()


main()
