#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The package gives the same plans, prices, tables and texts as the command,
with tables in Python and in files. Speaks TAP; NEUROSHARD is the program."""
import copy
import csv
import inspect
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import neuroshard
from neuroshard import Table
from tap import finish, ok
from tap import neuroshard as command

DATA = Path(os.environ["NEUROSHARD_DATA"])
MANUAL = DATA / ".." / "man"
LIST = DATA / "tables" / "meta_tbe_eeg_example_5.csv"
QUICK = {"effort": 2000, "cost": "roofline:h100"}
QUICK_ARGS = ("--effort", "2000", "--cost", "roofline:h100")
# Members that name the origin of the tables, or that plan files do not have.
LEFT_OUT = (
    "source",
    "rivals",
    "cheapest_ms",
    "alternatives",
    "memory_bytes",
    "changes_training",
)


def kept(plan):
    plan = {key: part for key, part in plan.items() if key not in LEFT_OUT}
    plan["shards"] = [
        {key: part for key, part in shard.items() if key not in LEFT_OUT}
        for shard in plan["shards"]
    ]
    return plan


def same(one, other, name):
    one, other = (kept(plan) for plan in (one, other))
    keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    ok(not keys, name, f"they differ in {keys}")


def refused(call, status, part, name):
    try:
        call()
        why = "it was not refused"
    except neuroshard.Error as error:
        why = f"{error.status}: {error}"
        ok(error.status == status and part in str(error), name, why)
        return
    ok(False, name, why)


def check_plan():
    _, out, _ = command("plan", str(LIST), "--gpus=2", "--json", *QUICK_ARGS)
    by_command = json.loads(out)
    by_path = neuroshard.plan(LIST, 2, **QUICK)
    same(by_path.json, by_command, "a list's path: the command's plan")
    with open(LIST, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    by_rows = neuroshard.plan(rows, 2, **QUICK)
    same(by_rows.json, by_command, "its rows as mappings: the same plan")
    ok(
        by_rows.report.startswith("5 tables on 2 x ") and by_path.step_ms > 0,
        "a plan has its report and its step",
    )
    _, out, _ = command("plan", str(LIST), "--gpus=2", *QUICK_ARGS)
    ok(
        by_path.report + out.splitlines(keepends=True)[-1] == out,
        "the report is what the command prints, without the next command",
    )
    return by_path


def check_tables():
    bins = [0.5, 0.25, 0.25] + [0] * 14
    every = Table(
        'a, "b"\u00e9',
        rows=5000,
        dim=32,
        pooling_factor=2.5,
        num_outputs=2,
        output="pooled",
        precision="fp16",
        comm_precision="bf16",
        optimizer="adam",
        bins=bins,
        row_order="frequency",
        dedup=0.5,
        sharding=["table", "column"],
        rows_over="host",
        device=1,
        group="g",
    )
    some = {"name": "c", "rows": 7, "dim": 8, "zipf_alpha": 0.5}
    some["pooling_factor"] = 1
    before = copy.deepcopy([every, some])
    plan = neuroshard.plan([every, some], 2, **QUICK)
    ok(before == [every, some], "tables are not changed")
    wanted = {
        "name": every.name,
        "num_embeddings": 5000,
        "dim": 32,
        "pooling_factor": 2.5,
        "num_outputs": 2,
        "precision": "fp16",
        "comm_precision": "bf16",
        "optimizer": "adam",
        "bins": bins,
        "row_order": "frequency",
        "dedup": 0.5,
        "kinds": ["table", "column"],
        "rows_over": "host",
        "device": 1,
        "group": "g",
    }
    got = plan.json["tables"][0]
    wrong = {
        key: got.get(key) for key in wanted if got.get(key) != wanted[key]
    }
    ok(not wrong, "every column of a Table arrives", f"{wrong}")
    got = plan.json["tables"][1]
    ok(
        got["num_embeddings"] == 7 and got["zipf_alpha"] == 0.5,
        "a mapping next to it arrives, too",
    )
    refused(
        lambda: neuroshard.plan([{**some, "num_embeddings": 8}], 1),
        1,
        "mean the same",
        "rows and num_embeddings",
    )
    more = {"name": "c", "rows": 7, "dim": 8, "x": 1}
    plan = neuroshard.plan([more], 1, pooling=1)
    ok(
        len(plan.warnings) == 1 and "'x'" in plan.warnings[0],
        "warnings of the program are kept",
        f"{plan.warnings}",
    )
    names = ["#t", " a ", "-", "name", "1", "x" * 300]
    rows = [Table(name, rows=7, dim=8, pooling_factor=1) for name in names]
    plan = neuroshard.plan(rows, 1, **QUICK)
    got = [table["name"] for table in plan.json["tables"]]
    ok(got == names, "no name is taken for a comment or cut", f"{got}")
    columns = {*inspect.signature(Table).parameters} - {"rows", "bins"}
    page = (MANUAL / "neuroshard-tables.5").read_text(encoding="utf-8")
    missing = [name for name in columns if f".It Li {name}" not in page]
    ok(not missing, "and is in neuroshard-tables(5)", f"{missing} are not")


def check_others(plan):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "-plan.json"
        plan.save(file)
        _, out, _ = command("cost", str(file), "--json", "--dense-ms=1,2")
        for form, given in (
            ("plan", plan),
            ("JSON", plan.json),
            ("path", file),
        ):
            priced = neuroshard.price(given, dense_ms=(1, 2))
            same(
                priced.json,
                json.loads(out),
                f"price: the command's, of a {form}",
            )
        before = os.getcwd()
        os.chdir(folder)
        try:
            same(
                neuroshard.price("-plan.json").json,
                plan.json,
                "price: of a file whose name looks like an option",
            )
        finally:
            os.chdir(before)
        for format in ("torchrec", "torchrec-loader", "text"):
            _, out, _ = command("emit", str(file), "--format", format)
            ok(plan.emit(format) == out, f"emit: the command's {format}")
        _, out, _ = command(
            "emit", str(file), "--format=torchrec", "--module=model.ebc"
        )
        ok(plan.emit("torchrec", module="model.ebc") == out, "emit: an option")
    planners = neuroshard.compare(LIST, 2, **QUICK)
    _, out, _ = command(
        "compare", str(LIST), "--gpus=2", "--json", *QUICK_ARGS
    )
    ok(
        [(each["planner"], each.get("total_ms")) for each in planners]
        == [
            (each["planner"], each.get("total_ms"))
            for each in json.loads(out)["planners"]
        ],
        "compare: the command's planners",
    )


def check_options(plan):
    kept = neuroshard.plan(LIST, 2, from_=plan, move_limit="0", **QUICK)
    ok(
        [(s["table"], s["device"]) for s in kept.json["shards"]]
        == [(s["table"], s["device"]) for s in plan.json["shards"]],
        "a Plan where a file is asked for, and a name with '_'",
    )
    cluster = {"hosts": [{"gpus": 2, "memory": ["40GiB", "80GiB"]}]}
    plan = neuroshard.plan(LIST, None, cluster=cluster, json=False, **QUICK)
    ok(
        plan.json["cluster"]["memory_bytes"] == [40 << 30, 80 << 30],
        "a mapping where a file is asked for",
    )
    plan = neuroshard.plan(LIST, 2, shard=["table", "row"], seed=None, **QUICK)
    ok(plan.json["kinds"] == ["table", "row"], "a list is joined by commas")
    plan = neuroshard.plan(LIST, "1..2", **QUICK)
    ok(plan.json["cluster"]["gpus"] == 1, "gpus='1..2': the fewest that fit")


def check_refusals():
    refused(
        lambda: neuroshard.plan("/no/such", 2),
        1,
        "cannot open '/no/such'",
        "no such file: status 1",
    )
    refused(lambda: neuroshard.plan([], 2), 1, "no tables", "no tables")
    refused(
        lambda: neuroshard.plan(LIST, 2, no_such=1),
        2,
        "no option '--no-such",
        "an unknown option: status 2",
    )
    refused(
        lambda: neuroshard.plan(LIST, 1, memory="1MiB", **QUICK),
        3,
        "no plan fits",
        "no plan fits: status 3",
    )
    refused(lambda: neuroshard.plan(LIST, 2, output="x"), 2, "save", "output")
    refused(
        lambda: neuroshard.plan(LIST, 2, timeout_s=float("inf")),
        126,
        "cannot run",
        "seconds that no clock counts",
    )
    refused(lambda: neuroshard.price({}), 1, "is missing", "no plan at all")
    refused(
        lambda: neuroshard.plan([Table("\ud800", 1, 4)], 1),
        1,
        "not UTF-8",
        "a name that is no text",
    )
    refused(
        lambda: neuroshard.Plan({}).step_ms, 65, "not priced", "no step yet"
    )
    error = pickle.loads(pickle.dumps(neuroshard.Error("why", 3)))
    ok((str(error), error.status) == ("why", 3), "an Error can be pickled")


def check_sentences():
    """Errors and warnings name a table or an option that the caller knows, not
    a line of standard input or a temporary file."""
    good, bad = Table("good, one", 10, 4, 1), Table("bad", 10, 10**7, 1)
    hosts = {"hosts": [{"gpus": 4, "memory": ["1GiB", "2GiB"]}]}
    for call, start in (
        (lambda: neuroshard.plan([good, bad], 1), "table 'bad': dim "),
        (lambda: neuroshard.plan([bad, good], 1), "table 'bad': dim "),
        (lambda: neuroshard.plan([Table("a\nb", 1, 8)], 1), "the tables: "),
        (lambda: neuroshard.plan([], 1), "the tables"),
        (lambda: neuroshard.plan([{"name": "a"}], 1), "the tables: "),
        (lambda: neuroshard.price({"version": 1}), "the plan: "),
        (lambda: neuroshard.emit({}, "torchrec"), "the plan: "),
        (
            lambda: neuroshard.plan([good], None, cluster=hosts),
            "cluster: hosts[0].memory has 2 entries, but the host has 4 gpus",
        ),
        (lambda: neuroshard.plan([good], 1, from_={"a": 1}), "from_: "),
        (
            lambda: neuroshard.plan([{"name": "a", "rows": 9, "dim": 4}], 1),
            "the tables: the header has no column 'pooling_factor'",
        ),
    ):
        try:
            call()
            text = "it was not refused"
        except neuroshard.Error as error:
            text = str(error)
        ok(
            text.startswith(start)
            and "<stdin>" not in text
            and tempfile.gettempdir() not in text,
            f"an error begins with {start!r}",
            text,
        )
    more = {"name": "a", "rows": 9, "dim": 4, "hotness": 1, "owner": "ads"}
    plan = neuroshard.plan([more], 1, **QUICK)
    ok(
        plan.warnings[0].startswith("the tables: unknown columns are ignored"),
        "a warning, too",
        f"{plan.warnings}",
    )


def check_silence():
    script = f"import neuroshard; neuroshard.plan({str(LIST)!r}, 1, effort=10)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False
    )
    ok(
        (done.returncode, done.stdout, done.stderr) == (0, b"", b""),
        "nothing is printed",
        f"{done}",
    )


def check_example():
    page = (MANUAL / "neuroshard-python.7").read_text(encoding="utf-8")
    example = page.partition(".Sh EXAMPLES\n.Bd -literal\n")[2]
    example = example.partition(".Ed\n")[0].replace(
        "gpus=8", "gpus=8, effort=9"
    )
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", example],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        files = os.listdir(folder)
    last = (done.stdout.splitlines() or [""])[-1]
    ok(
        "without a pipeline" in last and files == ["plan.json"],
        f"the manual's example: {last}",
        f"{done} {files}",
    )


def main():
    plan = check_plan()
    check_tables()
    check_others(plan)
    check_options(plan)
    check_refusals()
    check_sentences()
    check_silence()
    check_example()
    ok(
        re.fullmatch(
            rf"neuroshard {re.escape(neuroshard.__version__)} "
            r"\(build (g[0-9a-f]{8,}(-dirty)?|[0-9.]+)\)\n",
            command("--version")[1],
        ),
        "the package's version is the program's",
    )
    finish()


main()
