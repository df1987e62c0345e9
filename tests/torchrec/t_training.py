# SPDX-License-Identifier: MIT
"""Compares trainings of whole models, tables and dense part, with PyTorch.
training_dump trains plans whose tables are cut in every way. A plain PyTorch
model trains 10 steps with the same initial weights, ids, features and labels.

SGD in the dense part: losses of all steps and all weights after the last step
are compared. The weights barely move in 10 steps, so the changes of the
weights are compared, too.

Adam and Adagrad in the dense part: their first step is about the learning rate
times the sign of the gradient, so a gradient that rounds to either sign moves
its weight in either direction, and weights cannot agree. The losses are
compared. Then PyTorch starts each step at the executed weights: its gradients
are compared, and its optimizer is applied to the executed gradients.

At last PyTorch trains in three wrong ways, each of which must differ.

Speaks TAP; NEUROSHARD is the program, TRAINING_DUMP is training_dump.
"""
import copy
import json
import os
import subprocess
import tempfile
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from tap import finish, neuroshard, ok

STEPS, BATCH, RATE = 10, 48, 0.01
EPSILON = 1e-8  # of row-wise Adagrad
# Largest error of a number relative to its size plus the largest of its row.
LIMIT = 1e-4
# Largest error of a change of a weight relative to the largest change in its
# tensor. A weight of 0.05 changes by 1e-5 or more, and has rounding errors of
# 4e-9 in each step.
CHANGE_LIMIT = 1e-2
DENSE = {
    "sgd": lambda weights: torch.optim.SGD(weights, lr=RATE),
    "adam": lambda weights: torch.optim.Adam(weights, lr=RATE),
    "adagrad": lambda weights: torch.optim.Adagrad(weights, lr=RATE),
}
SPECS = {
    "dcnv2": "dcnv2;bottom:13-32-16;interaction:dcn:3x8;top:32-16-1",
    "dlrm": "dlrm;bottom:13-32-16;top:32-16-1",
    "cat": "bottom:10;interaction:cat;top:32-16-3",
    "pool": "bottom:25;interaction:pool:7;top:32-16-1",
    "tables alone": "interaction:cat;top:24-1",
}
# Members of a plan that its shards do not change. The others, such as costs,
# would not agree with our shards.
KEPT = "neuroshard_plan batch dense_optimizer cluster step tables".split()


class Table(NamedTuple):
    rows: int
    pooling: int
    way: str  # in which its shards cut it
    outputs: int = 1
    dim: int = 16


TABLES = (
    Table(300, 3, "table"),
    Table(200, 2, "column"),
    Table(90, 4, "row"),
    Table(40, 2, "replicate"),
    Table(30, 3, "replicate"),
    Table(150, 2, "grid"),
    Table(120, 6, "row", outputs=2),
    Table(100, 2, "column"),
)


# --- Plans ------------------------------------------------------------------


def column_ranges(table):
    """Columns of each shard: first and end."""
    if table.way in ("column", "grid"):
        return [(0, 4), (4, table.dim)]
    return [(0, table.dim)]


def shards_of(index, n_ranks):
    """Shards of a table: row blocks times column ranges."""
    table = TABLES[index]
    if table.way == "replicate":
        places = [(0, table.rows, 0, table.dim)] * n_ranks
    else:
        n_rows = n_ranks if table.way in ("row", "grid") else 1
        rows = [i * -(-table.rows // n_rows) for i in range(n_rows)]
        places = [
            (begin, min(end, table.rows), left, right)
            for left, right in column_ranges(table)
            for begin, end in zip(rows, rows[1:] + [table.rows])
        ]
    return [
        {
            "table": index,
            "row_begin": begin,
            "row_end": end,
            "col_begin": left,
            "col_end": right,
            "device": (i if n_ranks == len(places) else index + i) % n_ranks,
        }
        for i, (begin, end, left, right) in enumerate(places)
    ]


def make_plan(work, spec, n_ranks, pipeline, dense, tables):
    """Writes a plan with our shards; returns its path."""
    path = f"{work}/tables.csv"
    with open(path, "w", encoding="ascii") as file:
        file.write(
            "name,num_embeddings,dim,pooling_factor,num_outputs,optimizer\n"
        )
        for i, table in enumerate(TABLES):
            file.write(
                f"t{i},{table.rows},{table.dim},{table.pooling},"
                f"{table.outputs},{tables}\n"
            )
    status, out, err = neuroshard(
        "plan", path, f"--gpus={n_ranks}", f"--batch={BATCH}",
        f"--dense={spec}", f"--dense-optimizer={dense}",
        f"--pipeline={pipeline}", "--cost=roofline:h100", "--search=grid",
        "--output=-",
    )  # fmt: skip
    if status:
        raise RuntimeError(err)
    plan = json.loads(out)
    plan = {key: plan[key] for key in KEPT}
    plan["shards"] = [
        shard for i in range(len(TABLES)) for shard in shards_of(i, n_ranks)
    ]
    path = f"{work}/plan.json"
    with open(path, "w", encoding="ascii") as file:
        json.dump(plan, file)
    return path


# --- The executed training --------------------------------------------------


class Executed:
    """A training that training_dump has executed. Arrays have the shapes of
    the model, and their first index is the step."""

    def __init__(self, plan, seed):
        run = subprocess.run(
            [os.environ["TRAINING_DUMP"], plan, ".", str(STEPS), str(seed)],
            cwd=os.path.dirname(plan), capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if run.returncode:
            raise RuntimeError(run.stderr)
        self.hashes = run.stdout.split()

        def array(name, *shape):
            path = f"{os.path.dirname(plan)}/{name}.npy"
            if not os.path.exists(path):
                return None
            values = np.load(path)
            if values.dtype == np.uint64:
                values = values.astype(np.int64)
            return torch.from_numpy(values).reshape(len(values), *shape)

        self.losses = array("losses")
        self.features = array("features", BATCH, -1)
        if self.features is None:
            self.features = torch.zeros(STEPS, BATCH, 0)
        self.labels = array("labels", BATCH, -1)
        self.parameters = array("parameters", -1)
        self.gradients = array("gradients", -1)
        self.ids = [array(f"ids_{i}") for i in range(len(TABLES))]
        self.offsets = [array(f"offsets_{i}", -1) for i in range(len(TABLES))]
        self.weights, self.states = (
            [
                array(f"{name}_{i}", table.rows, table.dim)
                for i, table in enumerate(TABLES)
            ]
            for name in ("weights", "states")
        )

    def bags(self, step):
        """Returns ids and offsets of each table in a step."""
        for ids, offsets in zip(self.ids, self.offsets):
            begin, end = offsets[step][0], offsets[step][-1]
            yield ids[begin:end], offsets[step] - begin


# --- PyTorch ----------------------------------------------------------------


def linears(widths, bias=True):
    return [nn.Linear(*pair, bias) for pair in zip(widths, widths[1:])]


class Model(nn.Module):
    """The whole model by the text of its dense part. The parameters of its
    linear layers have the order of the dump."""

    def __init__(self, spec):
        super().__init__()
        parts = dict(part.split(":", 1) for part in spec.split(";"))
        bottom = [int(n) for n in parts.get("bottom", "0").split("-")]
        top = [int(n) for n in parts["top"].split("-")]
        self.kind, *rest = parts["interaction"].split(":")
        n_vectors = sum(table.outputs for table in TABLES)
        width, dim = n_vectors * TABLES[0].dim, TABLES[0].dim
        if self.kind == "dot":
            width = n_vectors * (n_vectors + 1) // 2
        if self.kind == "pool":
            self.means = nn.AvgPool1d(int(rest[0]), ceil_mode=True)
            width = -(-width // int(rest[0]))
        width += bottom[-1]
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(
                table.rows, dim, mode="sum", include_last_offset=True
            )
            for table in TABLES
        )
        self.bottom = nn.ModuleList(linears(bottom))
        self.cross = nn.ModuleList()
        if self.kind == "dcn":
            n_layers, rank = (int(n) for n in rest[0].split("x"))
            for _ in range(n_layers):
                self.cross.append(nn.Linear(width, rank, bias=False))
                self.cross.append(nn.Linear(rank, width))
        self.top = nn.ModuleList(linears([width, *top]))

    def dense(self):
        """Parameters of the dense part."""
        return [
            parameter
            for layers in (self.bottom, self.cross, self.top)
            for parameter in layers.parameters()
        ]

    def join(self, x, pooled):
        if self.kind == "pool":
            return self.means(pooled)
        if self.kind != "dot":
            return pooled
        vectors = torch.cat((x, pooled), 1).reshape(BATCH, -1, x.shape[1])
        products = vectors @ vectors.transpose(1, 2)
        rows, cols = torch.tril_indices(*products.shape[1:], offset=-1)
        return products[:, rows, cols]

    def forward(self, features, bags):
        x = features
        for layer in self.bottom:
            x = layer(x).relu()
        pooled = torch.cat(
            [
                table(ids, offsets).reshape(BATCH, -1)
                for table, (ids, offsets) in zip(self.tables, bags)
            ],
            1,
        )
        x = joined = torch.cat((x, self.join(x, pooled)), 1)
        for v, w in zip(self.cross[::2], self.cross[1::2]):
            x = joined * w(v(x)) + x
        for layer in self.top[:-1]:
            x = layer(x).relu()
        return self.top[-1](x)

    def load(self, executed, step):
        """Takes the weights before a step."""
        nn.utils.vector_to_parameters(
            executed.parameters[step].clone(), self.dense()
        )
        for table, weights in zip(self.tables, executed.weights):
            table.weight.data = weights[step].clone()

    def differentiate(self, executed, step, ids_of=None):
        """Computes the gradients of a step. Returns its loss."""
        self.zero_grad()
        bags = executed.bags(step if ids_of is None else ids_of)
        logits = self(executed.features[step], bags)
        loss = nn.functional.binary_cross_entropy_with_logits(
            logits, executed.labels[step]
        )
        loss.backward()
        return loss.item()


def update_tables(model, states):
    """Updates the tables by SGD or, where a table has a state, by row-wise
    Adagrad, which has one state for the columns of a shard."""
    for table, module, state in zip(TABLES, model.tables, states):
        step = RATE * module.weight.grad
        if state is not None:
            for begin, end in column_ranges(table):
                square = module.weight.grad[:, begin:end] ** 2
                state[:, begin:end] += square.mean(1, keepdim=True)
            step /= state.sqrt() + EPSILON
        module.weight.data -= step


# --- Comparisons ------------------------------------------------------------


class Errors:
    """Largest errors found so far."""

    LIMITS = {
        "losses": LIMIT,
        "gradients": LIMIT,
        "weights": LIMIT,
        "changes": CHANGE_LIMIT,
    }

    def __init__(self):
        self.largest = {}

    def add(self, what, error):
        error = float(error)
        self.largest[what] = max(self.largest.get(what, 0), error)
        if error != error:
            self.largest[what] = float("inf")

    def add_rows(self, what, got, want):
        """Compares the rows of a matrix, or a vector as one row."""
        got, want = (t.detach().reshape(-1, t.shape[-1]) for t in (got, want))
        scale = want.abs() + want.abs().amax(1, keepdim=True)
        error = (got - want).abs() / scale
        self.add(what, torch.where(got == want, 0, error).max())

    def add_weights(self, got, want, before):
        """Compares weights and what has changed since `before`."""
        self.add_rows("weights", got, want)
        change = (want - before).abs().max()
        self.add("changes", (got - want).abs().max() / change)

    def are_small(self):
        return all(e <= self.LIMITS[what] for what, e in self.largest.items())

    def __str__(self):
        return ", ".join(f"{what} {e:.1e}" for what, e in self.largest.items())


def split(values, model):
    """Splits a vector into the tensors of the dense part."""
    shapes = [parameter.shape for parameter in model.dense()]
    parts = values.split([shape.numel() for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(parts, shapes)]


def states_of(executed, step):
    return [s if s is None else s[step].clone() for s in executed.states]


def train_freely(errors, executed, model, dense, ids_ahead=0, factor=1):
    """Trains from the initial weights. `ids_ahead` takes the ids of a later
    step, and `factor` scales the gradients: both make it wrong."""
    model.load(executed, 0)
    update, states = DENSE[dense](model.dense()), states_of(executed, 0)
    for step in range(STEPS):
        ids_of = (step + ids_ahead) % STEPS
        want = model.differentiate(executed, step, ids_of)
        got = executed.losses[step].item()
        errors.add("losses", abs(got - want) / want)
        for parameter in model.parameters():
            parameter.grad *= factor
        update.step()
        update_tables(model, states)


def compare_weights(errors, executed, model):
    """Compares all weights after the last step."""
    for got, want, before in zip(
        split(executed.parameters[-1], model),
        model.dense(),
        split(executed.parameters[0], model),
    ):
        errors.add_weights(got, want.data, before)
    for table, weights in zip(model.tables, executed.weights):
        errors.add_weights(weights[-1], table.weight.data, weights[0])


def compare_steps(errors, executed, model, dense):
    """Starts each step at the executed weights."""
    model.load(executed, 0)
    update = DENSE[dense](model.dense())
    for step in range(STEPS):
        model.load(executed, step)
        want = model.differentiate(executed, step)
        errors.add("losses", abs(executed.losses[step].item() - want) / want)
        got = split(executed.gradients[step], model)
        for parameter, gradient in zip(model.dense(), got):
            errors.add_rows("gradients", gradient, parameter.grad)
            parameter.grad.copy_(gradient)
        update.step()
        update_tables(model, states_of(executed, step))
        for after, parameter, before in zip(
            split(executed.parameters[step + 1], model),
            model.dense(),
            split(executed.parameters[step], model),
        ):
            errors.add_weights(after, parameter.data, before)
        for table, weights in zip(model.tables, executed.weights):
            errors.add_weights(
                weights[step + 1], table.weight.data, weights[step]
            )


# --- Cases ------------------------------------------------------------------


class Case(NamedTuple):
    model: str
    n_ranks: int
    pipeline: str
    seed: int
    dense: str  # optimizer of the dense part
    tables: str  # optimizer of the tables

    def __str__(self):
        return (
            f"{self.model}, {self.n_ranks} rank{'s' * (self.n_ranks > 1)}, "
            f"{self.pipeline}, seed {self.seed}, {self.dense}, tables "
            f"{self.tables}"
        )


def execute(case):
    """Returns what the dump executed, and the PyTorch model. Checks that
    `neuroshard run`, with a process for each rank, gets the same bits."""
    with tempfile.TemporaryDirectory() as work:
        return execute_in(work, case)


def execute_in(work, case):
    plan = make_plan(
        work, SPECS[case.model], case.n_ranks, case.pipeline, case.dense,
        case.tables,
    )  # fmt: skip
    executed = Executed(plan, case.seed)
    ranks = [f"--ranks={case.n_ranks}"] if case.n_ranks > 1 else []
    status, out, err = neuroshard(
        "run", plan, f"--steps={STEPS}", f"--seed={case.seed}", "--threads=2",
        "--no-check", "--json", *ranks,
    )  # fmt: skip
    run = json.loads(out) if not status else {}
    ok(
        executed.hashes == [run.get("dense_hash"), run.get("weight_hash")]
        and executed.losses.flatten().tolist() == run["losses"],
        f"{case}: `run` trains to the same bits",
        err,
    )
    with open(plan, encoding="ascii") as file:
        return executed, Model(json.load(file)["step"]["dense"])


def test_freely(case):
    executed, model = execute(case)
    errors = Errors()
    train_freely(errors, executed, model, case.dense)
    compare_weights(errors, executed, model)
    ok(errors.are_small(), f"{case}: {errors}")


def test_steps(case):
    executed, model = execute(case)
    errors = Errors()
    train_freely(errors, executed, model, case.dense)
    ok(errors.are_small(), f"{case}: {errors}")
    errors = Errors()
    compare_steps(errors, executed, model, case.dense)
    ok(errors.are_small(), f"{case}, step by step: {errors}")


def without_rows(executed, n_ranks):
    """Returns a copy without the lookups of the first row block of each table
    that is cut in rows."""
    copied = copy.copy(executed)
    copied.ids, copied.offsets = list(executed.ids), list(executed.offsets)
    for i, table in enumerate(TABLES):
        if table.way in ("row", "grid"):
            is_kept = executed.ids[i] >= -(-table.rows // n_ranks)
            n_before = torch.cat((torch.zeros(1), is_kept.cumsum(0))).long()
            copied.ids[i] = executed.ids[i][is_kept]
            copied.offsets[i] = n_before[executed.offsets[i]]
    return copied


def test_wrong(case):
    """A PyTorch model that is wrong in one way must differ."""
    executed, model = execute(case)
    wrong = {
        "ids of another batch": (executed, {"ids_ahead": 1}),
        "a row block left out": (without_rows(executed, case.n_ranks), {}),
        "a mean per rank": (executed, {"factor": case.n_ranks}),
    }
    for what, (source, options) in wrong.items():
        errors = Errors()
        train_freely(errors, source, model, case.dense, **options)
        compare_weights(errors, executed, model)
        ok(not errors.are_small(), f"{case}, {what} differs: {errors}")


def main():
    """Seeds and optimizers of the tables take turns."""
    torch.set_num_threads(1)
    tables = ("sgd", "rowwise_adagrad")
    n = 0
    for model in SPECS:
        for n_ranks in (1, 2, 4):
            for pipeline in ("none", "sdd"):
                n += 1
                rule = tables[n % 2]
                test_freely(Case(model, n_ranks, pipeline, n, "sgd", rule))
        for i, dense in enumerate(("adam", "adagrad")):
            test_steps(Case(model, 2 + 2 * i, "none", n, dense, tables[i]))
        test_wrong(Case(model, 2, "none", n, "sgd", tables[n % 2]))
    finish()


main()
