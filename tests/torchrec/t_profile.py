# SPDX-License-Identifier: MIT
"""Compares the figures of `neuroshard.data.profile`, for batches of
KeyedJaggedTensors of the real TorchRec, with counting in Python. Speaks TAP;
NEUROSHARD is the program.
"""
import collections
import dataclasses
import os
import random
import stat
import tempfile
import time

import torch
from torchrec import EmbeddingBagConfig, EmbeddingConfig, KeyedJaggedTensor
from torchrec.modules.embedding_configs import DataType

import neuroshard
from neuroshard import Error
from neuroshard.data import profile
from tap import finish, ok

STRIDE = 6
GPUS = 2
CONFIGS = [
    EmbeddingBagConfig(
        name="user",
        feature_names=["clicked", "seen"],
        num_embeddings=50,
        embedding_dim=16,
    ),
    EmbeddingBagConfig(
        name="item",
        feature_names=["item"],
        num_embeddings=1000,
        embedding_dim=8,
    ),
]
FEATURES = ["clicked", "item", "seen"]


@dataclasses.dataclass
class Batch:
    sparse_features: KeyedJaggedTensor


def draw(rng, stride=STRIDE, dtype=torch.int64):
    """Returns a batch, and the ids of each table in it."""
    ids, lengths = {}, []
    for feature in FEATURES:
        own = [rng.randrange(4) for _ in range(stride)]
        lengths += own
        ids[feature] = [
            rng.randrange(rng.choice((5, 50))) for _ in range(sum(own))
        ]
    features = KeyedJaggedTensor.from_lengths_sync(
        keys=FEATURES,
        values=torch.tensor(sum(ids.values(), []), dtype=dtype),
        lengths=torch.tensor(lengths, dtype=torch.int32),
    )
    return features, {
        "user": ids["clicked"] + ids["seen"],
        "item": ids["item"],
    }


def bin_of(count):
    return (count - 1).bit_length()


def expected(drawn, table):
    """Cells of the list, by counting."""
    ids = [ids[table] for ids in drawn]
    whole = [
        sum(ids[i : i + GPUS], []) for i in range(0, len(ids) - GPUS + 1, GPUS)
    ]
    rows = [count for b in whole for count in collections.Counter(b).values()]
    told = ids[: len(whole) * GPUS]
    cells = {
        "pooling_factor": sum(map(len, ids)) / (len(ids) * STRIDE),
        "dedup": sum(len(set(i)) for i in told) / sum(map(len, told)),
    }
    for i in range(17):
        cells[f"bin_{i}"] = sum(bin_of(n) == i for n in rows) / len(rows)
    return cells


def check_counts(rng, dtype, wrap):
    drawn = [draw(rng, dtype=dtype) for _ in range(7)]
    batches = [wrap(features) for features, _ in drawn]
    batches.insert(3, wrap(draw(rng, STRIDE - 2)[0]))
    rows = profile(iter(batches), tables=CONFIGS, gpus=GPUS)
    ok([row["name"] for row in rows] == ["user", "item"], "two tables")
    for row, config in zip(rows, CONFIGS):
        ok(
            (int(row["num_embeddings"]), int(row["dim"]))
            == (config.num_embeddings, config.embedding_dim),
            f"{config.name}: rows and columns are the model's",
        )
        want = expected([ids for _, ids in drawn], config.name)
        got = {key: float(row.get(key, 0)) for key in want}
        ok(got == want, f"{dtype}: as counted", f"{got}\n{want}")
    return rows


def check_configs(rng):
    """Properties of tables, other than their size, that a plan needs."""
    configs = [
        dataclasses.replace(CONFIGS[0], name="#", data_type=DataType.FP16),
        EmbeddingConfig(
            name=" item ",
            feature_names=["item"],
            num_embeddings=1000,
            embedding_dim=8,
        ),
    ]
    rows = profile([draw(rng)[0]], tables=configs)
    plan = neuroshard.plan(rows, 1, effort=100)
    got = [
        (table["name"], table["num_outputs"], table["output"])
        + (table["precision"],)
        for table in plan.json["tables"]
    ]
    want = [("#", 2, "pooled", "fp16"), (" item ", 1, "sequence", "fp32")]
    ok(got == want, "names, outputs and formats of the model", f"{got}")


def check_features(rng):
    """A feature that two tables share, and one without a table."""
    configs = [
        dataclasses.replace(CONFIGS[0], name=name, feature_names=features)
        for name, features in (
            ("first", ["seen"]),
            ("second", ["seen", "clicked"]),
        )
    ]
    batch = draw(rng)[0]
    got = {
        row["name"]: float(row["pooling_factor"])
        for row in profile([batch], tables=configs)
    }
    seen, clicked = (
        int(batch[feature].lengths().sum()) / STRIDE
        for feature in ("seen", "clicked")
    )
    want = {"first": seen, "second": seen + clicked}
    ok(got == want, "features of two tables and of none", f"{got}\n{want}")


def check_uses(rng, rows, work):
    plan = neuroshard.plan(
        rows, GPUS, batch=GPUS * STRIDE, cost="roofline:h100", effort=100
    )
    ok(plan.step_ms > 0, "a plan takes the tables as they are")
    batches = [draw(rng)[0] for _ in range(9)]
    n_left = iter(batches)
    path = f"{work}/list.csv"
    first = profile(n_left, 4, dim=32, output=path)
    ok(len(list(n_left)) == 5, "no more batches than asked are taken")
    ok(
        [row["name"] for row in first] == FEATURES,
        "each feature is a table without configurations",
    )
    again = profile(batches[:4], tables=path)
    ok(again == first, "a list that is given", f"{again}\n{first}")


def refused(name, want, call, status=1):
    try:
        call()
        ok(False, name, "no error")
    except Error as error:
        found = (str(error), error.status)
        ok(found[0].startswith(want) and found[1] == status, name, str(found))


def check_failures(rng, work):
    batches = [draw(rng)[0] for _ in range(3)]
    large = EmbeddingBagConfig(
        name="item", feature_names=FEATURES, num_embeddings=3, embedding_dim=4
    )
    refused("no batches", "there are no batches", lambda: profile([]))
    refused(
        "a batch of another kind",
        "a batch is no KeyedJaggedTensor, but a dict",
        lambda: profile([{"features": batches[0]}], dim=4),
    )
    refused(
        "an id that is no row",
        "standard input: frame ",
        lambda: profile(batches * 1000, tables=[large]),
    )
    refused(
        "no columns", "the ids do not give ", lambda: profile(batches), 2
    )
    refused(
        "a list in no folder",
        f"option '--output': cannot write '{work}/none/",
        lambda: profile(batches, dim=4, output=f"{work}/none/used.csv"),
    )
    real = os.environ["NEUROSHARD"]
    os.environ["NEUROSHARD"] = f"{work}/none"
    refused("no program", "cannot run", lambda: profile(batches, dim=4), 127)
    for name, body, limit, status in (
        ("killed", "kill -9 $$", None, -9),
        ("that does not end", "exec sleep 100", 0.5, -9),
        ("that reads nothing", "exit 7", None, 7),
    ):
        program = f"{work}/{status}-{limit}"
        with open(program, "w", encoding="ascii") as file:
            file.write(
                f'#!/bin/sh\n[ "$1" != --version ] || exec {real} "$1"\n{body}'
            )
        os.chmod(program, stat.S_IRWXU)
        os.environ["NEUROSHARD"] = program
        begin = time.monotonic()
        refused(
            f"a program {name}",
            "'neuroshard tables' ",
            lambda limit=limit: profile(
                batches * 1000, dim=4, timeout_s=limit
            ),
            status,
        )
        ok(time.monotonic() - begin < 30, "within its limit")
    os.environ["NEUROSHARD"] = real

    def failing():
        yield batches[0]
        raise KeyError("the loader's own")

    try:
        profile(failing(), dim=4)
        ok(False, "a loader that fails", "no error")
    except KeyError:
        ok(True, "a loader that fails says so itself")


def main():
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as work:
        tempfile.tempdir = f"{work}/left"
        os.mkdir(tempfile.tempdir)
        check_counts(rng, torch.int32, Batch)
        rows = check_counts(rng, torch.int64, lambda features: features)
        check_configs(rng)
        check_features(rng)
        check_uses(rng, rows, work)
        check_failures(rng, work)
        ok(not os.listdir(tempfile.tempdir), "no file is left")
    finish()


main()
