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


def check_answers(plan):
    """explain, diff, ranges and report give what the commands give."""
    other = neuroshard.plan(LIST, 2, seed=1, shard="table", **QUICK)
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("old", "new")]
        plan.save(files[0])
        other.save(files[1])
        for form, given in (("plans", (plan, other)), ("paths", files)):
            _, out, _ = command("diff", *files, "--json")
            got, want = neuroshard.diff(*given), json.loads(out)
            for side in ("before", "after"):
                got[side].pop("plan")
                want[side].pop("plan")
            ok(got == want, f"diff: the command's, of {form}")
        _, out, _ = command("explain", files[0], "--json")
        ok(
            neuroshard.explain(plan) == json.loads(out),
            "explain: the command's",
        )
        command("report", files[0], f"-o{folder}/page.html")
        page = Path(folder, "page.html").read_text(encoding="utf-8")
        pages = [
            re.sub('"search_ms":[^,]*,', "", text)
            for text in (neuroshard.report(files[0]), page)
        ]
        ok(pages[0] == pages[1], "report: the command's page")
    pair = neuroshard.report(plan, other)
    ok(
        '"pair":true' in pair
        and pair.count('"kind":"plan"') == 2
        and "page_0.json and page_1.json" in pair,
        "report: two plans are shown side by side",
    )
    rows = neuroshard.ranges(LIST, "1,2", **QUICK)
    ok(
        [row["gpus"] for row in rows] == [1, 2] and rows[1]["fits"],
        "ranges: a row for each number of GPUs",
        f"{rows}",
    )
    refused(
        lambda: neuroshard.ranges(LIST, 2, **QUICK),
        65,
        "it has no counts",
        "ranges: one number of GPUs is no range",
    )
    refused(
        lambda: neuroshard.diff(plan, {}),
        1,
        "new: ",
        "diff: a message names the argument",
    )


def check_notebook(plan):
    """What a notebook shows of a plan, and rows for a DataFrame."""
    text = repr(plan)
    ok(
        text.startswith("<neuroshard.Plan: 5 tables in ")
        and f"on 2 GPUs, GPU work {plan.gpu_ms:.4g} ms" in text
        and "\n" not in text
        and len(text) < 100,
        f"repr: {text}",
    )
    page = plan._repr_html_()
    ok(
        page.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
        and page.count('"') == 4,
        "a notebook shows the page in a frame",
        page[:200],
    )
    bare = {k: v for k, v in plan.json.items() if k != "total_ms"}
    bare["devices"] = []
    ok(
        neuroshard.Plan(bare)._repr_html_() is None,
        "and only the text of a plan without prices",
    )
    names = {table["name"] for table in plan.json["tables"]}
    ok(
        len(plan.shards) == len(plan.json["shards"])
        and {row["table"] for row in plan.shards} == names
        and not any(
            isinstance(v, (dict, list)) for v in plan.shards[0].values()
        ),
        "shards: a row each, with the name of the table",
    )
    device = plan.devices[1]
    ok(
        device["device"] == 1
        and device["forward_ms"]
        == plan.json["devices"][1]["phases_ms"]["forward"]
        and device["weights_bytes"]
        == plan.json["devices"][1]["memory_bytes"]["weights"]
        and all(not isinstance(v, (dict, list)) for v in device.values()),
        "devices: a row each, with phases and memory as columns",
        f"{device}",
    )


class PandasFrame:
    """Has the one method of pandas.DataFrame that is used."""

    def __init__(self, rows):
        self.rows = rows

    def to_dict(self, orient):
        return self.rows if orient == "records" else None


class PolarsFrame(PandasFrame):
    def to_dicts(self):
        return self.rows


def check_frames():
    rows = [
        {"name": "a", "rows": 100, "dim": 8, "pooling_factor": 2.0},
        {"name": "b", "rows": 90, "dim": 8, "pooling_factor": 1.0},
    ]
    want = neuroshard.plan(rows, 1, **QUICK).json
    gaps = [{**row, "zipf_alpha": float("nan")} for row in rows]
    for name, frame in (
        ("pandas", PandasFrame(gaps)),
        ("polars", PolarsFrame([{**row, "zipf_alpha": None} for row in rows])),
    ):
        got = neuroshard.plan(frame, 1, **QUICK).json
        same(got, want, f"a DataFrame of {name}, with missing cells")


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
    check_answers(plan)
    check_notebook(plan)
    check_frames()
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
