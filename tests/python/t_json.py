#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The output of every command with --json, also after a failure, matches
data/output.schema.json exactly. Speaks TAP; NEUROSHARD is the program.
"""
import csv
import json
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from tap import finish, neuroshard, ok

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("1..0 # SKIP no python3-jsonschema")
    sys.exit(0)

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "data/output.schema.json").read_text())
CORPUS = ROOT / "tests/fuzz/corpus"
DLRM = str(ROOT / "data/tables/mlperf_dlrm_dcnv2_multihot.csv")
KAGGLE = str(ROOT / "data/tables/criteo_kaggle_26.csv")
BENCH = ["bench", "--db", "costs.db", "--batch", "64", "--memory", "16MiB"]
LOOKUPS = [*BENCH, "--samples", "30", "--max-tables", "4", "--seed", "5"]
PLAN = ["--effort", "500", "--cost", "roofline:h100"]
# A definition of the schema, and a command line whose output it describes.
ANSWERS = [
    (
        "plan groups",
        ["plan", KAGGLE, "--gpus", "16", "--groups", "auto", *PLAN],
    ),
    (
        "plan",
        [
            *("plan", KAGGLE, "--gpus", "16", "--groups", "2"),
            *("--sync-every", "1000", *PLAN),
        ],
    ),
    ("plan", ["plan", DLRM, "--gpus", "8", "--effort", "500", "-o", "p.json"]),
    (
        "plan",
        [
            "plan",
            KAGGLE,
            "--gpus",
            "4",
            *PLAN,
            "--batch",
            "256",
            "--dedup",
            "ids",
            "--pipeline",
            "semisync",
            "--dense",
            "dcnv2;dtype:bf16",
            "--dense-ms",
            "1,2",
            "--gpus-per-host",
            "2",
            "--hosts-per-domain",
            "2",
            "-o",
            "k.json",
        ],
    ),
    (
        "plan",
        [
            "plan",
            KAGGLE,
            "--gpus",
            "4",
            "--effort",
            "500",
            "--cost",
            "torchrec",
            "--memory-model",
            "weights",
            "--dense-optimizer",
            "sgd",
            "--min-width",
            "8",
        ],
    ),
    ("plan", ["plan", "odd.csv", "--gpus", "3", *PLAN]),
    (
        "plan",
        [
            "plan",
            "wide.csv",
            "--gpus",
            "2",
            "--effort",
            "500",
            "-o",
            "wide.json",
        ],
    ),
    ("plan", ["plan", DLRM, "--gpus", "8", "--from", "p.json", *PLAN]),
    (
        "plan",
        [
            "plan",
            DLRM,
            "--gpus",
            "7",
            "--from",
            "p.json",
            "--move-limit",
            "60GiB",
            *PLAN,
        ],
    ),
    (
        "plan range",
        [
            "plan",
            DLRM,
            "--gpus",
            "2..6",
            "--effort",
            "300",
            "--memory",
            "40GiB",
            "-o",
            "q.json",
        ],
    ),
    (
        "plan range",
        [
            "plan",
            DLRM,
            "--gpus",
            "2,8",
            "--gpu",
            "h100,t4",
            "--effort",
            "100",
            "--dense-ms",
            "1,1",
            "--target-rate",
            "1M",
        ],
    ),
    ("plan", ["cost", "p.json", "--cost", "roofline:h100"]),
    ("plan", ["cost", "p.json", "-o", "-"]),
    ("plan", ["cost", "p.json", "--dense", "dcnv2;bottom:13-16"]),
    ("compare", ["compare", DLRM, "--gpus", "8", "--effort", "100"]),
    ("compare", ["compare", KAGGLE, "--gpus", "2", "--cost", "torchrec"]),
    (
        "compare",
        [
            "compare",
            KAGGLE,
            "--gpus",
            "4",
            "--batch",
            "256",
            "--effort",
            "100",
            "--plan",
            "k.json",
        ],
    ),
    ("compare", ["compare", "wide.csv", "--gpus", "2", "--effort", "100"]),
    (
        "compare many",
        ["compare", KAGGLE, "--gpus", "2", "--tasks", "3", *PLAN],
    ),
    ("explain", ["explain", "p.json"]),
    ("explain", ["explain", "p.json", "--host-ms", "100"]),
    ("explain", ["explain", "p.json", "--dense", "dlrm;bottom:13-128"]),
    ("explain", ["explain", "wide.json"]),
    ("explain", ["explain", "p.json", "--what-if", "batch=8192"]),
    ("explain", ["explain", "p.json", "--what-if", "gpus=2", "--effort", "9"]),
    ("explain", ["explain", "p.json", "--anew", "--effort", "9"]),
    ("explain table", ["explain", "p.json", "cat_20"]),
    ("diff", ["diff", "p.json", "q.json"]),
    ("diff", ["diff", "p.json", "k.json"]),
    ("reshard", ["diff", "p.json", "q.json", "--format", "reshard"]),
    ("emit", ["emit", "p.json", "--format", "torchrec", "-o", "e.json"]),
    ("emit", ["emit", "p.json", "--format", "text", "-o", "e.txt"]),
    ("report", ["report", "p.json", "q.json", "-o", "p.html"]),
    ("tables", ["tables", DLRM]),
    ("gpus", ["gpus", "--wide"]),
    ("tables import", ["tables", "import", DLRM, "-o", "i.csv"]),
    (
        "tables profile",
        [
            "tables",
            "profile",
            "ids.npy",
            "--batch",
            "4",
            "--hottest",
            "2",
            "--tables",
            "ids_tables.csv",
        ],
    ),
    (
        "tables profile",
        ["tables", "profile", "ids.npy", "--dim", "8", "-o", "used.csv"],
    ),
    ("bench", LOOKUPS),
    ("bench", [*LOOKUPS, "--repeat"]),
    ("bench alltoall", [*BENCH, "--alltoall", "4", "--samples", "12"]),
    ("bench csv", [*BENCH[:3], "--samples", "0", "--csv", "c.csv"]),
    (
        "bench ceilings",
        ["bench", "--db", "c.db", "--ceilings", "--memory", "16MiB"],
    ),
    (
        "bench dense",
        ["bench", "--db", "c.db", "--dense", "grid", "--samples", "2"],
    ),
    (
        "train",
        [
            "train",
            "--db",
            "costs.db",
            "-o",
            "cpu.nsm",
            "--kind",
            "roofline",
            "--force",
        ],
    ),
    ("eval", ["eval", "--db", "costs.db", "--model", "cpu.nsm"]),
    ("eval", ["eval", "--db", "costs.db", "--model", "cpu.nsm", "--drift"]),
    (
        "eval",
        [
            "eval",
            "--db",
            "costs.db",
            "--model",
            "cpu.nsm",
            "--learning-curve",
            "20",
        ],
    ),
    (
        "retrain",
        [
            "retrain",
            "--db",
            "costs.db",
            "--model",
            "cpu.nsm",
            "--kind",
            "roofline",
            "--force",
        ],
    ),
    ("model info", ["model", "info", "cpu.nsm"]),
    ("model info", ["model", "info", str(ROOT / "data/models/h100.nsm")]),
    (
        "model info",
        ["model", "info", str(ROOT / "data/models/cpu-amd-epyc-2t.nsm")],
    ),
    (
        "model info",
        ["model", "info", str(ROOT / "tests/fuzz/corpus/model/products.nsm")],
    ),
    ("model import", ["model", "import", "nets", "-o", "net.nsm"]),
    ("db info", ["db", "info", "costs.db"]),
    ("db check", ["db", "check", "c.db"]),
    ("db merge", ["db", "merge", "costs.db", "c.db", "-o", "all.db"]),
    ("db export", ["db", "export", "all.db", "-o", "all.csv"]),
    ("db import", ["db", "import", "all.csv", "--db", "all.db"]),
    ("run", ["run", "k.json", "--scale-rows", "0.001", "--iterations", "12"]),
    (
        "run",
        [
            "run",
            "k.json",
            "--scale-rows",
            "0.001",
            "--iterations",
            "12",
            "--no-check",
        ],
    ),
    (
        "record",
        [
            "record",
            "--db",
            "r.db",
            "--device",
            "cuda:H100",
            "--isa",
            "sm_90",
            "--nccl-tests",
            str(CORPUS / "nccl_tests/h100_8.txt"),
        ],
    ),
    (
        "record job",
        [
            "record",
            "k.json",
            "--times",
            "times.csv",
            "--db",
            "r.db",
            "--device",
            "cuda:H100",
            "--isa",
            "sm_90",
            "--insist",
            "--output",
            "measured.csv",
        ],
    ),
    ("record memory", ["record", "k.json", "--memory", "peaks.csv"]),
]
# Kind of failure and members of the error, and a command line that fails so.
FAILURES = [
    ("usage", []),
    ("usage", ["plna"]),
    ("usage", ["help", "plna"]),
    ("usage", ["plan"]),
    ("usage", ["plan", DLRM]),
    ("usage", ["plan", DLRM, "--gpus", "0"]),
    ("usage", ["plan", DLRM, "--gpus", "2", "--frob"]),
    ("usage", ["plan", DLRM, "--gpus", "2", "--memory", "80"]),
    ("usage", ["plan", DLRM, DLRM, "--gpus", "2"]),
    ("usage", ["plan", DLRM, "--gpus", "2", "--cost", "frob"]),
    ("usage", ["plan", "list.csv", "--gpus", "2", "-o", "list.csv"]),
    ("usage", ["plan", DLRM, "--gpus", "2..3", "-o", "-"]),
    ("usage", ["plan", DLRM, "--gpus", "2..3", "--trace", "t.csv"]),
    ("usage", ["plan", DLRM, "--gpus", "2", "--trace", "-"]),
    ("usage", ["plan", DLRM, "--gpus", "2", "-o", "-", "--trace", "-"]),
    ("usage", ["compare", DLRM, "--gpus", "2", "--csv", "-"]),
    ("usage", ["bench", "--db", "costs.db", "--samples", "0", "--csv", "-"]),
    ("usage", ["train", "--db", "costs.db", "-o", "-"]),
    ("usage", ["retrain", "--db", "costs.db", "--model", "-"]),
    ("usage", ["emit", "p.json", "--format", "frob"]),
    ("usage", ["emit", "p.json", "--format", "text"]),
    ("usage", ["tables", "import", DLRM]),
    ("usage", ["tables", "profile", "ids.npy", "--dim", "8", "-o", "-"]),
    ("usage", ["model", "frob", "x"]),
    ("usage", ["model", "import", "x", "-o", "-"]),
    ("usage", ["record", "--db", "r.db"]),
    (
        "usage",
        [
            *["record", "p.json", "--times", "times.csv", "--db", "r.db"],
            *["--hosts", "2"],
        ],
    ),
    (
        "usage",
        [
            *["record", "--nccl-tests", "nccl.txt", "--db", "r.db"],
            *["--warm-up", "2"],
        ],
    ),
    ("usage", ["train", "--db", "costs.db"]),
    ("usage", ["compare", DLRM, DLRM, "--gpus", "2", "--plan", "p.json"]),
    ("usage", ["db", "merge", "costs.db"]),
    ("usage", ["db", "export", "costs.db"]),
    ("usage", ["tables", "improt", "x"]),
    ("input", ["db", "import", "bad.csv", "--db", "x.db"]),
    ("input", ["db", "check", "bad.csv"]),
    ("io", ["plan", "no\nsuch\x1b.csv", "--gpus", "2"]),
    ("input", ["plan", "bad.csv", "--gpus", "2"]),
    ("input", ["tables", "bad.csv"]),
    ("input", ["cost", "bad.csv"]),
    ("input", ["explain", "p.json", "frob"]),
    ("input", ["diff", "p.json", "bad.csv"]),
    ("input", ["run", "bad.csv"]),
    ("input", ["model", "info", "bad.csv"]),
    ("input", ["eval", "--db", "costs.db", "--model", "bad.csv"]),
    ("io", ["emit", "p.json", "--format", "text", "-o", "no/such/folder"]),
    ("no_plan tables", ["plan", DLRM, "--gpus", "2", "--memory", "4GiB"]),
    (
        "no_plan tables",
        ["plan", "wide.csv", "--gpus", "1", "--memory", "8GiB"],
    ),
    ("no_plan table", ["plan", "one.csv", "--gpus", "2", "--memory", "5GiB"]),
    (
        "no_plan pinned",
        ["plan", "pins.csv", "--gpus", "2", "--memory", "5GiB"],
    ),
    (
        "no_plan samples",
        ["plan", DLRM, "--gpus", "2", "--memory", "1MiB", "--reserve", "0"],
    ),
    (
        "no_plan group",
        ["plan", "group.csv", "--gpus", "2", "--memory", "5GiB"],
    ),
    (
        "no_plan movement",
        [
            "plan",
            DLRM,
            "--gpus",
            "7",
            "--from",
            "p.json",
            "--move-limit",
            "1MiB",
            *PLAN,
        ],
    ),
    ("no_plan device", ["cost", "tight.json"]),
]


def validator(name):
    assert name in SCHEMA["$defs"], name
    return Draft202012Validator(
        {"$defs": SCHEMA["$defs"], "$ref": "#/$defs/" + quote(name)}
    )


def reasons(name, document):
    """Returns how a document violates a definition; empty if it does not."""
    found = list(validator(name).iter_errors(document))
    return "\n".join(
        f"{list(e.absolute_path)}: {e.message[:300]}"
        for error in found
        for e in error.context or [error]
    )


def parse(text):
    """Parses the only document; nothing follows it."""
    document = json.loads(text)
    assert text.endswith("}\n"), text[-20:]
    return document


def write_net():
    """Writes a compute net like the published ones, with fewer cells."""
    features = [f"bin_{k}" for k in range(17)]
    features += ["dim", "pooling_factor", "row"]
    sizes = [20, 4, 2, 4, 1]
    names = ["t_hidden.0", "t_hidden.1", "c_hidden.0", "c_hidden.1"]
    net = {
        "kind": "compute",
        "features": features,
        "feature_means": [0.0] * 20,
        "feature_stds": [1.0] * 20,
        "layers": [
            {
                "name": name,
                "inp": inp,
                "out": out,
                "weight": [0.1] * (inp * out),
                "bias": [0.1] * out,
            }
            for name, inp, out in zip(names, sizes, sizes[1:])
        ],
    }
    Path("nets").mkdir()
    Path("nets/net_compute.json").write_text(json.dumps(net))


def write_inputs():
    head = "name,num_embeddings,dim,pooling_factor"
    half_gib = 1 << 20
    files = {
        "list.csv": f"{head}\na,1000,16,2\n",
        "bad.csv": f"{head}\na,1000,sixteen,2\n",
        "wide.csv": f"{head}\nü,{8 * half_gib},2048,900\nb,100,16,1\n",
        "one.csv": f"{head},sharding\na,{20 * half_gib},128,2,table\n",
        "pins.csv": f"{head},device\na,{4 * half_gib},128,2,0\n"
        f"b,{4 * half_gib},128,2,0\nc,{4 * half_gib},128,2,0\n",
        "group.csv": f"{head},group\na,{7 * half_gib},128,2,g\n"
        f"b,{7 * half_gib},128,2,g\n",
        "odd.csv": f"{head},row_order,dedup,sharding,device,group\n"
        "a,1000,16,2,frequency,0.5,table|row,,\n"
        "b,1000,16,2,,,,1,\nc,500,16,1,uniform,,,,g\nd,500,16,1,,,,,g\n",
        "ids_tables.csv": f"{head}\nids,10,8,1\n",
        "peaks.csv": "rank,used_bytes\n0,3000000000\n",
        "times.csv": "step,rank,phase,ms\n"
        + "".join(
            f"{step},{rank},{phase},{1 + (step * 7 + rank) % 5 / 100}\n"
            for step in range(20)
            for rank in range(4)
            for phase in ("forward", "backward", "output")
        ),
    }
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    write_net()
    about = "{'descr': '<i8', 'fortran_order': False, 'shape': (12,), }\n"
    Path("ids.npy").write_bytes(
        b"\x93NUMPY\1\0"
        + struct.pack("<H", len(about))
        + about.encode()
        + struct.pack("<12q", *(i * i % 7 for i in range(12)))
    )


def check_schema():
    Draft202012Validator.check_schema(SCHEMA)
    objects = []

    def walk(part):
        if isinstance(part, dict):
            objects.extend([part] if part.get("type") == "object" else [])
            part = list(part.values())
        for item in part if isinstance(part, list) else []:
            walk(item)

    walk(SCHEMA["$defs"])
    ok(
        len(objects) > 50
        and all(part["additionalProperties"] is False for part in objects),
        "the schema lets no member pass that it does not name",
    )


def check_commands():
    """Each command has --json, and its answer is tested here."""
    _, text, _ = neuroshard("--help")
    commands = re.findall(r"^  ([a-z ]*[a-z])  ", text, re.MULTILINE)
    tried = [" ".join(line) for _, line in ANSWERS]
    for command in commands:
        _, text, _ = neuroshard(*command.split(), "--help")
        ok(
            "--json" in text
            and command in SCHEMA["$defs"]
            and any(line.startswith(command + " ") for line in tried),
            f"{command} answers in JSON as the schema says",
        )


def check_answers():
    for name, line in ANSWERS:
        status, text, said = neuroshard(*line, "--json")
        shown = " ".join(line).replace(str(ROOT), "ROOT")[:60]
        if status:
            ok(False, shown, said)
            continue
        document = parse(text)
        ok(not reasons(name, document), shown, reasons(name, document))
        document["undocumented"] = 1
        ok(reasons(name, document), f"{shown}: another member is refused")
        if line[:1] == ["bench"]:  # a busy machine may flag all samples
            with sqlite3.connect(line[2]) as store:
                store.execute("UPDATE sample SET flags = 0")


def check_failure(expected, line):
    status, text, said = neuroshard(*line, "--json")
    kind, *of = expected.split()
    said = [
        words.removeprefix("neuroshard: ")
        for words in said.splitlines()
        if "warning: " not in words
    ]
    document = parse(text)
    error = document["error"]
    why = reasons("failure", document)
    ok(
        not why
        and error["kind"] == kind
        and error["exit"] == status
        and [error["message"]] == said
        and [error["shortage"]["of"] for _ in of] == of,
        f"fails: {' '.join(line)}".replace(str(ROOT), "ROOT")[:70].replace(
            "\n", " "
        ),
        f"{why}\n{document}\n{said}",
    )
    return error


def check_suggestions():
    """A refusal suggests values; with each of them there is a plan."""
    line = ["plan", DLRM, *PLAN]
    error = check_failure(
        "no_plan tables", [*line, "--gpus", "2", "--memory", "20GiB"]
    )
    for option, key in (("--memory", "memory_bytes"), ("--gpus", "gpus")):
        options = {"--gpus": "2", "--memory": "20GiB"}
        options[option] = str(error["suggestions"][key])
        options["--memory"] += "B" if key == "memory_bytes" else ""
        words = [word for pair in options.items() for word in pair]
        status, _, said = neuroshard(*line, *words, "--json")
        ok(status == 0, f"the suggestion works: {option}", said)


def check_reports():
    """A failure after a partial report is a member of it: there is one
    document."""
    status, text, said = neuroshard(
        "plan", DLRM, "--gpus", "1..2", "--memory", "4GiB", "--json"
    )
    document = parse(text)
    why = reasons("plan range", document)
    ok(
        status == 3
        and not why
        and said == f"neuroshard: {document['error']['message']}\n"
        and document["error"]["shortage"]["of"] == "tables",
        "a range in which nothing fits: the report has the error",
        f"{why}\n{said}",
    )
    status, text, _ = neuroshard("plan", DLRM, "--gpus", "2", "--memory=4GiB")
    ok(status == 3 and not text, "without --json standard output stays empty")
    status, text, _ = neuroshard("plan", "--", "--json")
    ok(status == 2 and not text, "a file of that name is no option")


def check_movement():
    """The migration equals that of diff for the two plans and is within the
    limit; the other members equal the plan."""
    line = ["plan", DLRM, "--gpus", "7", "--from", "p.json", *PLAN]
    line += ["--move-limit", "60GiB", "-o", "moved.json", "--json"]
    plan = json.loads(neuroshard(*line)[1])
    movement = plan.pop("movement")
    ok(len(plan.pop("rivals")) == 2, "plan --from: with the rivals")
    more = [shard.pop("memory_bytes") for shard in plan["shards"]]
    marks = [shard.pop("changes_training") for shard in plan["shards"]]
    ok(min(more) > 0 and set(marks) <= {False, True}, "with more of a shard")
    diff = json.loads(neuroshard("diff", "p.json", "moved.json", "--json")[1])
    ok(
        all(movement[key] == diff[key] for key in ("bytes", "gpus", "moves"))
        and 0 < movement["bytes"]["moved"] <= movement["limit_bytes"]
        and plan == json.loads(Path("moved.json").read_text(encoding="utf-8")),
        "plan --from: the movement equals that of diff",
        str(movement)[:2000],
    )


def check_learning():
    """A learning curve ends at the result of a training on all samples,
    decreases towards it, and is refused for models that have none."""
    data = "learned.db"
    shutil.copyfile(ROOT / "data/measurements/cpu-amd-epyc-2t.db", data)
    with sqlite3.connect(data) as store:
        store.execute(
            "DELETE FROM sample_table WHERE sample_id IN "
            "(SELECT id FROM sample WHERE case_idx >= 1000)"
        )
        store.execute("DELETE FROM sample WHERE case_idx >= 1000")
        # Curves of many exchanges take seconds to fit.
        store.execute("DELETE FROM comm_sample WHERE id % 16 != 0")
    neuroshard("train", "--db", data, "-o", "r.nsm", "--kind", "roofline")
    line = ["eval", "--db", data, "--model", "r.nsm", "--learning-curve", "90"]
    document = json.loads(neuroshard(*line, "--json")[1])
    why = reasons("eval", document)
    points = [(p["samples"], p["mape"]) for p in document["learning"]]
    ok(
        not why
        and len(points) == 5
        and all(a < b for (a, _), (b, _) in zip(points, points[1:]))
        and abs(points[-1][1] - document["held_out"][0]["mape"]) < 1e-12
        and points[0][1] > points[-1][1],
        "a learning curve ends as the training does",
        f"{why} {points}",
    )
    check_failure("input", [*line, "--batch", "4096", "--precision", "fp16"])


def worked_s(pid):
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def interrupted(line, least_s):
    """Interrupts a command after this CPU time. Returns its exit status and
    its document."""
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as program:
        while program.poll() is None and worked_s(program.pid) < least_s:
            time.sleep(0.05)
        program.send_signal(signal.SIGINT)
        document = parse(program.communicate()[0])
    return program.returncode, document


def check_interrupts():
    """An interrupt leaves one document that reports it: a report with the
    error, or a plan whose `stopped` says so. Before the search there is only
    the error."""
    line = [os.environ["NEUROSHARD"], "plan", DLRM, "--json", "--gpus"]
    for name, options in (
        ("plan range", ["2..64"]),
        ("plan", ["8", "--effort", "1000000000"]),
    ):
        least_s = 0.3
        status, document = interrupted([*line, *options], least_s)
        while list(document) == ["error"] and least_s < 10:
            ok(
                status == 130 and document["error"]["kind"] == "interrupted",
                f"interrupted before the search: {name}",
                f"{status} {document}",
            )
            least_s *= 2
            status, document = interrupted([*line, *options], least_s)
        why = reasons(name, document)
        kind = document.get("error", {}).get("kind")
        ok(
            status == 130
            and not why
            and "interrupt" in (document.get("stopped") or kind),
            f"interrupted: {name}",
            f"{status} {why}",
        )


def check_csv():
    """A comparison as CSV has the figures of its JSON."""
    line = ["compare", KAGGLE, "--gpus", "2", "--tasks", "2", *PLAN]
    _, text, _ = neuroshard(*line, "--csv", "c.csv", "--json")
    with open("c.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    entries = [
        (task["task"], entry)
        for task in json.loads(text)["tasks"]
        for entry in task["planners"]
    ]
    differing = [
        (row["planner"], key, row[key], value)
        for row, (task, entry) in zip(rows, entries)
        for key, value in {"task": task, **entry}.items()
        if key in row
        and row[key]
        != (
            ""
            if value is None
            else f"{value:.17g}"
            if isinstance(value, float)
            else str(int(value))
            if isinstance(value, bool)
            else value
        )
    ]
    ok(
        len(rows) == len(entries) > 0 and not differing,
        "compare --csv has what --json has",
        str(differing),
    )


def check_rival_cost():
    """A rival that plans by a cost model uses the one given by
    --rival-cost."""
    found = {}
    for rival in (None, "roofline:h100", "torchrec:intra=1"):
        line = ["compare", DLRM, "--gpus", "4", "--effort", "100", "--cost"]
        line += ["roofline:h100", "--json"]
        line += ["--rival-cost", rival] if rival else []
        found[rival] = {
            entry["planner"]: entry["total_ms"]
            for entry in json.loads(neuroshard(*line)[1])["planners"]
        }
    plain, own, odd = found.values()
    ok(
        [name for name in plain if plain[name] != own[name]] == ["torchrec"]
        and odd["reference"] > plain["reference"]
        and odd["neuroshard"] == plain["neuroshard"],
        "--rival-cost is what TorchRec's planner and reference plan by",
        str(found),
    )
    line = ["compare", str(ROOT / "data/tables/meta_torchrec_1935.csv")]
    line += ["--gpus", "96", "--effort", "0", "--rival-limit", "0.001"]
    line += ["--cost", "roofline:h100"]
    entries = json.loads(neuroshard(*line, "--json")[1])["planners"]
    cut = {entry["planner"]: entry.get("cut_short_by") for entry in entries}
    ok(
        [name for name in cut if cut[name] == "time"] == ["torchrec"],
        "a planner whose time ran out is marked",
        str(cut),
    )


def check_trace():
    """The incumbent's cost in a trace never rises, ends at the plan's cost,
    and is independent of the number of threads."""
    traces = []
    for threads in ("1", "3"):
        _, text, _ = neuroshard(
            *["plan", DLRM, "--gpus", "8", "--effort", "60000", "--threads"],
            *[threads, "--trace", "trace.csv", "--json"],
        )
        with open("trace.csv", newline="", encoding="utf-8") as file:
            traces.append(list(csv.DictReader(file)))
    plan = json.loads(text)
    points = [
        (int(row["evaluations"]), float(row["total_ms"])) for row in traces[0]
    ]
    falls = all(a < c and b > d for (a, b), (c, d) in zip(points, points[1:]))
    ok(
        falls
        and len(points) > 2
        and points[-1][0] <= plan["n_evaluations"]
        and points[-1][1] <= plan["total_ms"] * (1 + 1e-9),
        "--trace falls to the cost of the plan, which may be simpler",
        str(points),
    )
    for row in traces[0] + traces[1]:
        row.pop("seconds")
    ok(traces[0] == traces[1], "--trace: any number of threads", str(traces))


def main():
    check_schema()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_inputs()
        check_commands()
        check_answers()
        plan = json.loads(Path("p.json").read_text(encoding="utf-8"))
        plan["cluster"]["memory_bytes"] = [1 << 34] * 8
        Path("tight.json").write_text(json.dumps(plan), encoding="utf-8")
        for expected, line in FAILURES:
            check_failure(expected, line)
        check_suggestions()
        check_reports()
        check_movement()
        check_learning()
        check_interrupts()
        check_csv()
        check_rival_cost()
        check_trace()
        os.chdir(ROOT)
    finish()


main()
