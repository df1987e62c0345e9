#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Failures of the program: systematic faults and random ones. Each call ends
in an Error of one sentence with the documented status, and leaves no file,
process or descriptor. Speaks TAP; NEUROSHARD is the program.
"""
import os
import random
import resource
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import neuroshard
from neuroshard import Table
from tap import finish, ok

REAL = os.environ["NEUROSHARD"]
VERSION = f"neuroshard {neuroshard.__version__}"
TABLES = [Table("a", 1000, 16, 2), Table("b", 77, 8, 1, precision="fp16")]
QUICK = {"effort": 200, "cost": "roofline:h100"}
N_DRAWN = {"tiny": 40, "full": 1000}.get(os.environ.get("TEST_SIZE"), 100)
SEED = 1


class Box:
    """A folder with fake programs, and a temporary folder that must stay
    empty."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.left = self.folder / "left"
        self.left.mkdir()
        self.n_programs = 0
        tempfile.tempdir = str(self.left)

    def program(self, body, version=VERSION, start="#!/bin/sh"):
        """Makes a shell script; `body` follows the answer to --version."""
        self.n_programs += 1
        path = self.folder / f"program-{self.n_programs}"
        path.write_text(
            f"{start}\n"
            f'[ "$1" != --version ] || {{ echo "{version}"; exit 0; }}\n'
            "output=/dev/null\n"
            'for arg; do [ "${arg#--output=}" = "$arg" ] ||'
            " output=${arg#--output=}; done\n"
            f"{body}\n",
            encoding="utf-8",
        )
        path.chmod(0o755)
        os.environ["NEUROSHARD"] = str(path)
        return path

    def data(self, data):
        self.n_programs += 1
        path = self.folder / f"data-{self.n_programs}"
        path.write_bytes(data)
        return path


def calls(plan):
    return {
        "plan": lambda **more: neuroshard.plan(TABLES, 2, **QUICK, **more),
        "price": lambda **more: neuroshard.price(plan, **more),
        "compare": lambda **more: neuroshard.compare(
            TABLES, 2, **QUICK, **more
        ),
        "emit": lambda **more: neuroshard.emit(plan, "text", **more),
    }


def n_descriptors():
    return len(os.listdir("/proc/self/fd"))


def has_child():
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def error_of(box, call):
    """Returns the Error of a call, and a description of how it violates the
    rules; (None, "") if the call succeeded."""
    before = n_descriptors()
    error, why = None, ""
    try:
        call()
    except neuroshard.Error as caught:
        error = caught
        text = str(error)
        if not text or "\n" in text or len(text) > 1000:
            why = f"not one sentence: {text!r}"
    except Exception as caught:  # any type
        why = f"no Error, but {caught!r}"
    left = os.listdir(box.left)
    if left:
        why = f"left {left}"
    elif n_descriptors() != before or has_child():
        why = "a descriptor or a child is left"
    return error, why


def fails(box, plan, status, part, name):
    """Checks that all calls of the program fail with this status and a
    sentence that contains the part."""
    for command, call in calls(plan).items():
        error, why = error_of(box, call)
        if not error or error.status != status or part not in str(error):
            why = why or f"{error and error.status}: {error}"
        if why:
            ok(False, name, f"{command}: {why}")
            return
    ok(True, name)


def check_starts(box, plan):
    os.environ["NEUROSHARD"] = str(box.folder / "no such")
    fails(box, plan, 127, "No such file", "there is no program")
    box.program("exit 0", start="#!/no/such/shell")
    fails(box, plan, 127, "No such file", "there is no interpreter")
    path = box.program("exit 0")
    path.chmod(0o644)
    fails(box, plan, 126, "Permission denied", "it is not executable")
    os.environ["NEUROSHARD"] = str(box.folder)
    fails(box, plan, 126, "Permission denied", "it is a folder")
    path = box.program("exit 0")
    path.write_bytes(b"\x7fELF\0\0 no program")
    fails(box, plan, 126, "Exec format error", "it is no program")
    del os.environ["NEUROSHARD"]
    fails(box, plan, 127, "bin/neuroshard", "none in the package, none named")


def check_versions(box, plan):
    for version in ("neuroshard 9.9.9", "", "another program 0.1.0\nmore"):
        box.program("exit 0", version=version)
        fails(box, plan, 126, "of this package", f"it says {version[:30]!r}")
    path = box.program("exit 0")
    path.write_text("#!/bin/sh\nkill -9 $$\n", encoding="utf-8")
    fails(box, plan, -9, "SIGKILL", "asked for its version it is killed")
    path.write_text(f"#!/bin/sh\nexec '{REAL}' \"$@\"\n", encoding="utf-8")
    error, why = error_of(box, calls(plan)["plan"])
    ok(not error and not why, "once it is there it runs", f"{error} {why}")
    other = box.program("exit 0", version="neuroshard 9.9.9")
    os.environ["NEUROSHARD"] = str(path)
    os.replace(other, path)
    fails(box, plan, 126, "it says 'neuroshard 9.9.9'", "it is replaced")


def check_ends(box, plan):
    for name in ("KILL", "SEGV", "ABRT", "TERM"):
        box.program(f"kill -{name} $$; sleep 9")
        status = -getattr(signal, f"SIG{name}")
        fails(box, plan, status, f"SIG{name}", f"killed by SIG{name}")
    box.program("echo half an answer; head -c 100 /dev/zero; kill -9 $$")
    fails(box, plan, -9, "SIGKILL", "killed with half an answer")
    for status in (1, 2, 3, 130):
        box.program(
            "echo 'neuroshard: warning: what was seen before' >&2\n"
            f"echo 'neuroshard: a sentence' >&2; exit {status}"
        )
        fails(box, plan, status, "a sentence", f"refuses with {status}")
    box.program("exit 1")
    fails(box, plan, 1, "status 1 and said nothing", "refuses without a word")
    box.program("echo first >&2; echo last >&2; echo >&2; exit 1")
    fails(box, plan, 1, "last", "the last of many lines")
    box.program("printf 'no \\377 text\\r\\0' >&2; exit 1")
    fails(box, plan, 1, "no \N{REPLACEMENT CHARACTER} text", "says no text")
    box.program("yes 'a lot ' | tr -d '\\n' | head -c 5000000 >&2; exit 1")
    fails(box, plan, 1, "a lot a lot", "says five million bytes")


def check_input(box):
    box.program("exec <&-; echo 'neuroshard: no' >&2; exit 1")
    many = [{"name": f"t{i}", "rows": i + 1, "dim": 8} for i in range(50000)]
    error, why = error_of(box, lambda: neuroshard.plan(many, 2))
    ok(
        error is not None and error.status == 1 and not why,
        "it does not read what it is given",
        f"{error} {why}",
    )


def check_memory(box, plan):
    if not os.environ.get("FAULT_SO", "none"):
        ok(True, "out of memory # SKIP the program is built with sanitizers")
        return
    wrong, said = [], set()
    draw = random.Random(SEED)
    # Half of the limits are near the smallest sufficient one, which depends on
    # the libraries that the program was built with.
    least, enough = 2000, 40000
    while enough - least > 200:
        kib = (least + enough) // 2
        box.program(f"ulimit -v {kib} && exec '{REAL}' \"$@\"")
        error, _ = error_of(box, calls(plan)["plan"])
        least, enough = (kib, enough) if error else (least, kib)
    for i in range(N_DRAWN):
        kib = (
            draw.randrange(enough * 7 // 10, enough)
            if i % 2
            else draw.randrange(2000, 40000)
        )
        box.program(f"ulimit -v {kib} && exec '{REAL}' \"$@\"")
        error, why = error_of(box, draw.choice([*calls(plan).values()]))
        wrong += [f"{kib} KiB: {why}"] if why else []
        said.add(str(error).partition(" (")[0])
    ok(
        not wrong and {"None", "out of memory"} < said,
        "drawn memory limits: an answer or an Error",
        f"{wrong} {said}",
    )


def check_answers(box, plan):
    answers = {
        "nothing": b"",
        "no JSON": b"step 1.23 ms",
        "a list": b"[]",
        "null": b"null",
        "another object": b'{"tables": []}',
        "no UTF-8": b'{"\xff": 1}',
        "deep": b"[" * 200000,
    }
    real = calls(plan)
    for name, answer in answers.items():
        box.program(f"tee \"$output\" <'{box.data(answer)}'")
        wrong = []
        for command in ("plan", "price", "compare"):
            error, why = error_of(box, real[command])
            if why or not error or error.status != 65:
                wrong.append(f"{command}: {why or error}")
        ok(not wrong, f"the answer is {name}", f"{wrong}")
    box.program(f"cat '{box.data(bytes([255]))}' >\"$output\"")
    error, why = error_of(box, real["emit"])
    ok(
        error is not None and error.status == 65 and not why,
        "what is emitted is no text",
        f"{error} {why}",
    )
    box.program("exit 0")
    error, why = error_of(box, real["plan"])
    ok(
        error is not None and error.status == 65 and not why,
        "nothing is written",
        f"{error} {why}",
    )


def check_drawn_answers(box, plan):
    """Damages plans: each gives an Error, or a Plan that its readers refuse or
    accept."""
    box.program(f"exec '{REAL}' \"$@\"")
    file = box.folder / "plan.json"
    plan.save(file)
    text = file.read_bytes()
    draw = random.Random(SEED)
    wrong = []
    n_refused = 0
    for _ in range(N_DRAWN):
        at = draw.randrange(len(text))
        what = draw.choice(("cut", "byte", "piece"))
        if what == "cut":
            broken = text[: min(at, len(text) - 2)]
        elif what == "byte":
            broken = text[:at] + bytes([draw.randrange(256)]) + text[at + 1 :]
        else:
            broken = text[:at] + text[at + draw.randrange(1, 50) :]
        box.program(f"cat '{box.data(broken)}' >\"$output\"")
        found = []
        error, why = error_of(box, lambda: found.append(calls(plan)["plan"]()))
        if what == "cut" and not error:
            why = "a plan that was cut was taken"
        n_refused += error is not None
        os.environ["NEUROSHARD"] = REAL
        for again in found if not why else ():
            _, why = error_of(box, lambda: again.step_ms)
            why = why or error_of(box, lambda: again.emit("text"))[1]
        wrong += [f"{what} at {at}: {why}"] if why else []
    ok(
        not wrong and n_refused,
        f"{N_DRAWN} answers with a hole, {n_refused} refused",
        f"{wrong[:5]}",
    )


def check_time(box, plan):
    for body, name in (
        ("exec sleep 100", "it sleeps"),
        ("sleep 5 & wait", "its child holds the pipes"),
        ("trap '' TERM INT; while :; do :; done", "it hears no signal"),
        ("while :; do echo talk >&2; done", "it talks without end"),
    ):
        box.program(body)
        wrong = []
        start = time.monotonic()
        for command, call in calls(plan).items():
            error, why = error_of(box, lambda: call(timeout_s=0.2))
            if why or not error or error.status != -9:
                wrong.append(f"{command}: {why or error}")
            elif "longer than 0.2 s" not in str(error):
                wrong.append(str(error))
        if time.monotonic() - start > 60:
            wrong.append("it took a minute")
        ok(not wrong, f"time limit: {name}", f"{wrong}")
    check_version_in_time(box, plan)
    check_children(box, plan)
    os.environ["NEUROSHARD"] = REAL
    error, why = error_of(box, lambda: calls(plan)["plan"](timeout_s=600))
    ok(not error and not why, "time limit: in time", f"{error} {why}")


def check_version_in_time(box, plan):
    """The time limit includes the check of the version."""
    box.program("exit 0").write_text("#!/bin/sh\nexec sleep 100\n")
    start = time.monotonic()
    error, why = error_of(box, lambda: calls(plan)["plan"](timeout_s=0.5))
    took_s = time.monotonic() - start
    ok(
        error is not None
        and error.status == -9
        and "--version' took longer than 0.5 s" in str(error)
        and not why
        and took_s < 50,
        "time limit: includes the check of the version",
        f"{error} {why} {took_s}",
    )


def is_running(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def check_children(box, plan):
    """The child processes of a wrapper script end with it."""
    pids = box.folder / "pids"
    box.program(
        f"sleep 500 & echo $! >>'{pids}'\n"
        f"(sleep 500 & echo $! >>'{pids}'; wait)"
    )
    error, why = error_of(box, lambda: calls(plan)["plan"](timeout_s=2))
    children = pids.read_text(encoding="ascii").split()
    end = time.monotonic() + 20
    while any(map(is_running, children)) and time.monotonic() < end:
        time.sleep(0.05)
    left = [pid for pid in children if is_running(pid)]
    ok(
        error is not None
        and error.status == -9
        and len(children) == 2
        and not left
        and not why,
        "time limit: its children end too",
        f"{error} {why} {children} {left}",
    )


def check_files(box, plan):
    os.environ["NEUROSHARD"] = REAL
    tempfile.tempdir = str(box.folder / "none")
    fails(box, plan, 1, "temporary files", "no place for temporary files")
    tempfile.tempdir = str(box.left)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    error, why = error_of(box, calls(plan)["plan"])
    again, why_again = error_of(
        box, lambda: neuroshard.plan(TABLES, 2, from_=plan, **QUICK)
    )
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    for error, why, name in (
        (error, why, "the program cannot write"),
        (again, why_again, "the package cannot write"),
    ):
        ok(
            error is not None and error.status == 1 and not why,
            name,
            f"{error} {why}",
        )


def check_interrupt(box):
    """An interrupted call leaves nothing either."""
    box.program("exec sleep 100")
    script = (
        "import neuroshard, signal\n"
        "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
        "signal.alarm(1)\n"
        "neuroshard.plan('x', 2)\n"
    )
    done = subprocess.run(
        ["python3", "-c", script],
        env={**os.environ, "TMPDIR": str(box.left)},
        capture_output=True,
        check=False,
    )
    left = os.listdir(box.left)
    ok(
        b"KeyboardInterrupt" in done.stderr and not left,
        "an interrupt passes, and leaves no file",
        f"{done} {left}",
    )


def main():
    plan = neuroshard.plan(TABLES, 2, **QUICK)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, stat.S_IRWXU)
        box = Box(folder)
        check_starts(box, plan)
        check_versions(box, plan)
        check_ends(box, plan)
        check_input(box)
        check_memory(box, plan)
        check_answers(box, plan)
        check_drawn_answers(box, plan)
        check_time(box, plan)
        check_files(box, plan)
        check_interrupt(box)
        ok(not os.listdir(box.left), "no temporary file is left")
    finish()


main()
