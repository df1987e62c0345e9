#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Completions of bash and zsh. Each shell runs on its own terminal, and the
test types into it. Speaks TAP; NEUROSHARD is the program.
"""
import os
import pty
import re
import select
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tap import finish, neuroshard, ok

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "data/completion"
PROGRAM = os.environ["NEUROSHARD"]
SHELLS = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        "bind 'set bell-style none'; bind 'set page-completions off'; "
        f"bind 'set completion-query-items 0'; . {FOLDER}/neuroshard.bash\n",
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        f"fpath=({FOLDER} $fpath); autoload -Uz compinit; compinit -u -D; "
        "unsetopt beep; LISTMAX=9999; zstyle ':completion:*' list-prompt ''\n",
    ),
}
# Typed text, and its completion.
BECOMES = [
    ("neuroshard expla", "neuroshard explain "),
    ("neuroshard tables pro", "neuroshard tables profile "),
    ("neuroshard db ex", "neuroshard db export "),
    ("neuroshard help retr", "neuroshard help retrain "),
    ("neuroshard plan --pipel", "neuroshard plan --pipeline "),
    ("neuroshard db merge --outp", "neuroshard db merge --output "),
    ("neuroshard plan x --pipeline sem", "--pipeline semisync "),
    ("neuroshard plan x --pipeline=sem", "--pipeline=semisync "),
    ("neuroshard plan x -s ref", "-s reference "),
    ("neuroshard emit p --format torchrec-c", "torchrec-constraints "),
    ("neuroshard plan x --gpu h100-p", "--gpu h100-pcie "),
    ("neuroshard plan x --cost torchr", "--cost torchrec "),
    ("neuroshard plan only", "neuroshard plan only_here.csv "),
    ("neuroshard plan x -o only", "-o only_here.csv "),
    ("neuroshard tables only", "neuroshard tables only_here.csv "),
]
# Typed text, and the complete list of suggestions.
LISTS = [
    ("neuroshard tables ", ["import", "profile"]),
    ("neuroshard db ", ["info", "check", "merge", "export", "import"]),
    ("neuroshard plan x --pipeline ", ["sdd", "none", "prefetch", "semisync"]),
    ("neuroshard bench --device c", ["cpu", "cuda"]),
    ("neuroshard plan x --tiers ", ["host=", "auto"]),
    ("neuroshard plan --mi", ["--min-width"]),
    ("neuroshard db import x --", ["--db", "--json", "--help"]),
]


class Shell:
    """A shell on a terminal."""

    def __init__(self, line, begin):
        pid, self.fd = pty.fork()
        if not pid:
            os.environ.update(
                TERM="dumb", PS1="READY ", HOME=os.getcwd(), LC_ALL="C.UTF-8"
            )
            os.execvp(line[0], line)
        self.pid = pid
        os.write(self.fd, b"stty columns 400 rows 60; " + begin.encode())
        os.write(self.fd, b"PS1='GO''NE '; PROMPT='GO''NE '\n")
        self.read_until("GONE ")

    def read_until(self, text, limit_s=30.0):
        """Returns the output up to this text, or the output within the time
        limit."""
        end, seen = time.monotonic() + limit_s, ""
        while text not in seen and time.monotonic() < end:
            ready, _, _ = select.select([self.fd], [], [], 0.05)
            if ready:
                seen += os.read(self.fd, 65536).decode(errors="replace")
                seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x07\0]", "", seen)
        return seen

    def type(self, keys, until):
        os.write(self.fd, keys.encode())
        seen = self.read_until(until)
        os.write(self.fd, b"\x15\n")  # discards the line
        return seen + self.read_until("GONE ", 5.0)

    def end(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def no_terminal():
    """Returns why a shell can have no terminal here, or an empty string. Some
    containers have no pseudo-terminals."""
    try:
        for fd in pty.openpty():
            os.close(fd)
    except OSError:
        return "no terminal can be opened"
    return ""


def check_shell(name):
    shell = Shell(*SHELLS[name])
    for typed, want in BECOMES:
        check_typed(shell, f"{name}: {typed}", typed + "\t", [want])
    for typed, words in LISTS:
        patterns = [rf"(?<!\S){re.escape(word)}(?!\w)" for word in words]
        keys = typed + "\t\t"
        check_typed(shell, f"{name}: {typed}", keys, words, patterns)
    shell.end()


def check_typed(shell, name, keys, words, patterns=None):
    """Types up to three times: on a busy machine keys may arrive before the
    shell reads them."""
    patterns = patterns or [re.escape(word) for word in words]
    seen = ""
    for _ in range(3):
        seen = shell.type(keys, words[-1])
        if all(re.search(pattern, seen) for pattern in patterns):
            break
    ok(all(re.search(p, seen) for p in patterns), name, repr(seen))


def check_all():
    """Checks completions of each command and each of its options."""
    _, text, _ = neuroshard("--help")
    commands = re.findall(r"^  ([a-z ]*[a-z])  ", text, re.MULTILINE)
    _, text, _ = neuroshard("complete")
    words = {}
    for line in text.splitlines():
        key, word, *means = line.split("\t")
        words.setdefault(key, []).extend([word] * len(means))
    ok(
        words[""] == list(dict.fromkeys(c.split()[0] for c in commands)),
        "each first word of a command",
        text,
    )
    for command in commands:
        _, text, _ = neuroshard(*command.split(), "--help")
        options = re.findall(r"^  (?:-., |    )(--[a-z0-9-]+)", text, re.M)
        found = words[f"{command}="]
        ok(found == options, f"each option of {command}", str(found))


def main():
    check_all()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("only_here.csv").write_text("", encoding="utf-8")
        os.mkdir("bin")
        os.symlink(PROGRAM, "bin/neuroshard")
        os.environ["PATH"] = f"{folder}/bin:" + os.environ["PATH"]
        os.environ["NEUROSHARD_DATA"] = str(ROOT / "data")
        why = no_terminal()
        for name in SHELLS:
            if why:
                ok(True, f"{name} # SKIP {why}")
            elif shutil.which(name):
                check_shell(name)
            else:
                ok(True, f"{name} # SKIP no {name}")
        os.chdir(ROOT)
    finish()


sys.exit(main())
