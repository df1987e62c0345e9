#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checks of words and modules can fail: tests/check/plain.py, words.sh,
commits.sh and modules.py each accept a good input and refuse a bad one by
name. Speaks TAP."""
import os
import subprocess
import tempfile
from pathlib import Path

from tap import finish, ok

CHECK = Path(__file__).resolve().parents[1] / "check"
GOOD = "/* Index of the first free piece, or NO_PIECE. */\nint first_free;\n"


def run(folder, script, *args):
    done = subprocess.run([CHECK / script, *args], cwd=folder, text=True,
                          capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


def judge(folder, script, text, wanted, name):
    """Checks that the script accepts the text (wanted is None), or refuses it
    with a message that contains `wanted`."""
    (folder / "x.c").write_text(text, encoding="utf-8")
    status, message = run(folder, script, "x.c")
    ok((status == 0 and not message) if wanted is None
       else status == 1 and wanted in message,
       f"{script}: {name}", f"status {status}: {message}")


def check_plain(folder):
    judge(folder, "plain.py", GOOD, None, "a plain comment")
    for comment, marker in (
        ("Returns what is left of it for the others.", "what 1"),
        ("Of the pieces on the device in hand.", "headless 1"),
        ("Rows that are read so many times by it.", "so many 1"),
        ("The time that is told by the model.", "told 1"),
        ("The rows that lie beside the columns there.", "beside 1"),
        ("Where the table is cut, which costs more.", "where, which 1"),
        ("Every device but for the last of them.", "but for 1"),
        ("Rows are counted, and columns are likewise counted.", "likewise 1"),
    ):
        judge(folder, "plain.py", f"/* {comment} */\n", marker, comment)
    judge(folder, "plain.py", 'char *s = "what is this of it, then";\n', None,
          "strings are not read")


def check_words(folder):
    judge(folder, "words.sh", GOOD + "/* laps of */ char *s = \"of\";\n", None,
          "comments and strings are not read")
    for text, wanted in (("int of;\n", '"of"'), ("int n_laps;\n", '"n_laps"'),
                         ("struct tryout *t;\n", '"tryout"')):
        judge(folder, "words.sh", text, wanted, text.strip())
    for name in "ab":
        (folder / f"{name}.c").write_text("struct twice {\n", encoding="utf-8")
    status, message = run(folder, "words.sh", "a.c", "b.c")
    ok(status == 1 and "struct twice is also defined in a.c" in message,
       "words.sh: a struct tag of two files", message)


def commit(folder, subject, n_lines=1, body=""):
    """Commits a file of n_lines new lines; returns how the check answers."""
    (folder / "text").write_text(f"{subject}\n" * n_lines, encoding="utf-8")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost"]
    message = ["-m", subject] + (["-m", body] if body else [])
    for args in (["add", "-A"], ["commit", "-q", *message]):
        subprocess.run([*git, *args], cwd=folder, check=True)
    answer = run(folder, "commits.sh")
    if answer[0]:
        subprocess.run([*git, "reset", "-q", "--hard", "HEAD~1"], cwd=folder,
                       check=True)
    return answer


def check_commits(folder):
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    (folder / "VERSION").write_text("0.1.0\n", encoding="utf-8")
    ok(commit(folder, "no rule yet")[0] == 0, "commits.sh: before 0.2.0")
    (folder / "VERSION").write_text("0.2.0\n", encoding="utf-8")
    commit(folder, "release")
    for subject, n_lines, body in (
        ("search: break ties by index", 5, ""),
        ("search: " + "x" * 52, 5, ""),
        ("core: embed shards once", 30, "The body says why."),
    ):
        answer = commit(folder, subject, n_lines, body)
        ok(answer[0] == 0, f"commits.sh: {subject}", answer[1])
    for subject, n_lines, wanted in (
        ("search: " + "x" * 53, 5, "has 61 columns, of 60"),
        ("break ties", 5, "is not 'area: verb ...'"),
        ("search: ties are broken.", 5, "ends with a full stop"),
        ("search: fixed ties", 5, "'fixed' is no verb"),
        ("search: break many ties", 30, "no body says why"),
    ):
        status, message = commit(folder, subject, n_lines)
        ok(status == 1 and wanted in message, f"commits.sh: {subject}",
           f"status {status}: {message}")


def judge_modules(folder, files, wanted, name):
    """Checks that modules.py accepts the files of the rooms base and io
    (wanted is None), or refuses them with a message that contains `wanted`."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        for room in "base", "io":
            (Path(work) / room).mkdir()
        for path, text in files.items():
            (Path(work) / path).write_text(text, encoding="utf-8")
        status, message = run(work, "modules.py", "base", "io")
    ok((status == 0 and not message) if wanted is None
       else status == 1 and wanted in message,
       f"modules.py: {name}", f"status {status}: {message}")


def check_modules(folder):
    names = [f"count_{i}" for i in range(1000)]
    header = "".join(f"int {name}(void);\n" for name in names)
    source = "".join(f"int {name}(void)\n{{\n}}\n" for name in names)
    judge_modules(folder, {"base/a.h": header, "base/a.c": source}, None,
                  "headers of their own")
    judge_modules(folder, {"base/a_private.h": header, "base/a.c": source},
                  None, "private headers of their own")
    judge_modules(folder, {"base/b.h": header, "base/a.c": source},
                  "1000 functions are declared in headers of other names",
                  "headers of other names")
    judge_modules(folder, {"base/b.h": header + "count_fn rows;\n",
                           "base/a.c": source + "int rows(int n)\n{\n}\n"},
                  "1001 functions", "functions declared by their type")
    circle = {"a.h": "", "b.h": "", "a.c": '#include "ROOM/b.h"\n',
              "b.c": '#include "ROOM/a.h"\n'}
    for room, wanted in (("base", "other: base/a base/b"), ("io", None)):
        judge_modules(folder, {f"{room}/{name}": text.replace("ROOM", room)
                               for name, text in circle.items()},
                      wanted, f"a circle in {room}")
    judge_modules(folder, {"base/a.h": "", "base/a.c": '#include "base/a.h"\n',
                           "base/a_private.h": '#include "base/a.h"\n',
                           "base/b.c": '#include "base/a_private.h"\n'}, None,
                  "no circle of a header and its private header")


os.environ.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1")
for check in check_plain, check_words, check_commits, check_modules:
    with tempfile.TemporaryDirectory() as work:
        check(Path(work))
finish()
