#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs every command of neuroshard-tutorial(7) in sequence and checks that it
prints the lines below it in the manual, in order. A line that ends in "..."
shows only its beginning. The same is done for the command of README.md that
has a report below it. Speaks TAP; NEUROSHARD is the program.

The job runs if TorchRec is installed, as t_examples.py runs it in
test-torchrec.
"""
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tap import finish, ok

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "man/neuroshard-tutorial.7"
VENV = Path(os.environ.get("TORCHREC_VENV", ROOT / "build/torchrec"))
# tests/torchrec/python writes this file once the installation is complete.
HAS_TORCHREC = (VENV / "requirements.txt").is_file()
# Files of the reader: the list that the page prints, and times of a job.
TIMES = "step,rank,phase,ms\n" + "".join(
    f"{step},{rank},forward,0.48\n{step},{rank},backward,1.55\n"
    for step in range(1, 9)
    for rank in range(4)
)


def examples():
    """Returns the commands, each with the lines below it."""
    found = []
    text = PAGE.read_text(encoding="utf-8")
    for block in re.findall(r"^\.Bd -literal\n(.*?)^\.Ed$", text, re.M | re.S):
        block = re.sub(r" \\e\n *", " ", block).replace("\\&", "")
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line:
                found[-1][1].append(line)
    return found


def readme():
    """Returns the command of the README that has a report, and its lines."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(
        r"^    \$ \./(neuroshard plan .*)\n((?:    .*\n|\n)+)", text, re.M
    )
    return block[1], [line for line in block[2].splitlines() if line]


def is_like(line, shown):
    """Whether a line matches. Blanks count once; "..." ends the shown part."""
    line, shown = " ".join(line.split()), " ".join(shown.split())
    if shown.endswith("..."):
        return line.startswith(shown[:-3].rstrip())
    return line == shown


def missing(lines, shown):
    """Returns the first shown line that is missing, taking lines in order, or
    None."""
    at = 0
    for wanted in shown:
        while at < len(lines) and not is_like(lines[at], wanted):
            at += 1
        if at == len(lines):
            return wanted
        at += 1
    return None


def run(command, folder):
    """Runs a command; returns status, output, and the folder of the next
    command."""
    script = command
    if command.startswith("cd "):
        return 0, "", folder / command[3:]
    if command.startswith("torchrun "):
        script = f"'{VENV}/bin/python' -W ignore -m torch.distributed.run "
        script += "--standalone " + command.split(" ", 1)[1]
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, folder


def main():
    found = examples()
    ok(len(found) >= 15, f"{len(found)} commands")
    with tempfile.TemporaryDirectory() as name:
        home = folder = Path(name)
        (home / "data").symlink_to(ROOT / "data")
        shutil.copytree(
            ROOT / "src/python/examples", home / "src/python/examples"
        )
        (home / "times.csv").write_text(TIMES, encoding="utf-8")
        (home / "tables.csv").write_text(
            "\n".join([*found[0][1], ""]), encoding="utf-8"
        )
        (home / "bin").mkdir()
        (home / "bin/neuroshard").symlink_to(os.environ["NEUROSHARD"])
        os.environ["PATH"] = f"{home}/bin:" + os.environ["PATH"]
        os.environ["NEUROSHARD_DATA"] = str(ROOT / "data")
        for command, shown in found:
            if command.startswith("torchrun ") and not HAS_TORCHREC:
                ok(
                    (folder / command.split()[-1]).is_file(),
                    f"named: {command}",
                )
                continue
            if command.startswith("neuroshard "):
                folder = home
            status, text, folder = run(command, folder)
            lacks = missing(text.splitlines(), shown)
            ok(
                status == 0 or (command.startswith("diff ") and status == 1),
                command,
                text,
            )
            ok(
                lacks is None,
                f"prints what the page shows of {command}",
                f"lacks: {lacks}\n{text}",
            )
        command, shown = readme()
        text = run(command, home)[1]
        lacks = missing(text.splitlines(), shown)
        ok(
            lacks is None and len(shown) > 12,
            f"prints what the README shows of {command}",
            f"lacks: {lacks}\n{text}",
        )
    finish()


main()
