# SPDX-License-Identifier: MIT
"""Changes the program in one place at a time and sees whether its tests notice.

Each folder's mutants are drawn at random, by universalmutator's rules for C,
and run against the folder's unit tests and the properties of tests/prop, the
latter short. A mutant that does not compile, or to the same code, is another's
turn; so is one of equivalent.txt. Printed are the share of killed ones by
folder and those that lived, with their lines.
"""

import argparse
import concurrent.futures
import contextlib
import io
import os
import pathlib
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from universalmutator import mutator

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDERS = {
    "search": "search",
    "core": "src/core",
    "costmodel": "costmodel",
    "io": "src/io",
    "exec": "src/exec",
    "emit": "src/emit",
}
RULES = ["universal.rules", "c_like.rules", "c.rules"]
# What only releases is left alone: it is the sanitizers that see it missing.
IGNORED = [r"^\s*(if \(.*\) )?(mem_free|json_decref|buf_release|fclose|\w+_"
           r"(release|free|close|reset))\(", r"^\s*\(void\)", r"\bassert\("]
LEAST_LIMIT_S = 10
# Mutants are compiled as the program is, but for debugging; what they leave
# unused is no error, what they do not return is: anything may come back then.
CFLAGS = "-O2 -g0 -Wno-error -Werror=return-type"


class Mutant:
    def __init__(self, folder, path, line_no, was, line):
        self.folder, self.path, self.line_no = folder, path, line_no
        self.was, self.line = was, line
        self.verdict = self.killer = None


def lines_that_count(lines):
    """Numbers of the lines inside of functions, from 1: the others declare."""
    inside = False
    for number, line in enumerate(lines, 1):
        if line.startswith("}"):
            inside = False
        if inside:
            yield number
        if line.startswith("{"):
            inside = True


def is_failure(line):
    """Whether it sets a status other than 0: all of those are one."""
    match = re.fullmatch(r"\s*(?:return|(?:int )?rc =) *([-+()0-9]+);\s*", line)
    with contextlib.suppress(SyntaxError, TypeError):
        return match is not None and eval(match[1], {}) != 0
    return False


def is_idle_jump(lines, number, line):
    """Whether it only adds a `break` or `continue` behind a statement where
    there is one, or a `continue` where a loop goes round: what follows closes
    blocks, and then the loop."""
    was, _, jump = (part.strip() for part in line.rstrip().rpartition("\n"))
    if not was or jump not in ("break;", "continue;"):
        return False
    if was[-1] in ";:}" and "".join(lines[number:number + 1]).strip() == jump:
        return True
    if jump == "break;":
        return False
    for at, end in enumerate(lines[number:], number):
        if end.strip() != "}":
            return False
        begin = next((before for before in reversed(lines[:at])
                      if before.strip() and
                      indent_of(before) == indent_of(end)), "").strip()
        if begin.startswith(("for ", "while ")):
            return True
    return False


def indent_of(line):
    return len(line) - len(line.lstrip())


def mutants_of(folder, path):
    """By line: what may become of it."""
    lines = (ROOT / path).read_text().splitlines(keepends=True)
    with contextlib.redirect_stdout(io.StringIO()):
        made = mutator.mutants_regexp(lines, RULES, ignorePatterns=IGNORED,
                                      ignoreStringOnly=True)
    counted = set(lines_that_count(lines))
    by_line = {}
    for number, line, *_ in made:
        if number not in counted or is_idle_jump(lines, number, line):
            continue
        if not (is_failure(lines[number - 1]) and is_failure(line)):
            by_line.setdefault(number, []).append(
                Mutant(folder, path, number, lines[number - 1], line))
    return list(by_line.values())


def draw(folder, seed):
    """All of a folder, in the order in which they are tried: first a line is
    drawn, then what becomes of it, so that long rules do not crowd out."""
    rng = random.Random(f"{seed} {folder}")
    lines = []
    for file in sorted((ROOT / FOLDERS[folder]).glob("*.c")):
        lines += mutants_of(folder, str(file.relative_to(ROOT)))
    rng.shuffle(lines)
    while lines:
        for line in lines:
            yield line.pop(rng.randrange(len(line)))
        lines = [line for line in lines if line]


def known_equivalents():
    known = set()
    for line in (HERE / "equivalent.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            path, text, _ = line.split("\t")
            known.add((path, text.strip()))
    return known


class Tree:
    """A copy of the sources with a build of its own."""

    def __init__(self, path):
        self.path = path
        self.env = dict(
            os.environ,
            ROOT=str(path),
            NEUROSHARD=str(path / "build/o/neuroshard"),
            NEUROSHARD_DATA=str(path / "data"),
            NEUROSHARD_SHARED=str(ROOT.parent / "shared"),
            FAULT_SO=str(path / "build/o/fault.so"),
        )
        for name in ("MAKEFLAGS", "MAKELEVEL", "TEST_SIZE"):
            self.env.pop(name, None)

    def copy_sources(self):
        shutil.rmtree(self.path, ignore_errors=True)
        files = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"], cwd=ROOT, check=True,
            capture_output=True).stdout.decode().split("\0")
        for name in filter(None, files):
            if (ROOT / name).is_file():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.path / name)

    def run(self, command, limit_s=None, **env):
        """The status and the output; None where it takes too long."""
        with subprocess.Popen(command, cwd=self.path, env=self.env | env,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              start_new_session=True) as process:
            try:
                out, _ = process.communicate(timeout=limit_s)
                return process.returncode, out.decode(errors="replace")
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return None, "it takes too long"

    def run_test(self, name, limit_s=None):
        """Of the properties fewer than there are."""
        size = {"TEST_SIZE": "tiny"} if "/prop/" in name else {}
        return self.run([name], limit_s, **size)

    def make(self, *targets):
        return self.run(["make", "--no-print-directory", "-s", "CUDA=0",
                         "MPI=0", "O=build/o", f"CFLAGS={CFLAGS}", *targets])

    def object_of(self, path):
        """The code of a source file as it is now; None if there is none."""
        target = "build/o/" + path.removesuffix(".c") + ".o"
        status, _ = self.make(target)
        return (self.path / target).read_bytes() if status == 0 else None


def tests_of(folder):
    room = pathlib.Path(FOLDERS[folder]).name
    files = sorted((ROOT / "tests/unit" / room).glob("t_*.c"))
    files += sorted((ROOT / "tests/prop").glob("t_*.c"))
    return ["build/o/" + str(file.relative_to(ROOT).with_suffix(""))
            for file in files]


def time_tests(tree, names):
    """Seconds of each test of the program as it is; those that fail or skip
    tell nothing."""
    seconds = {}
    for name in names:
        begin = time.monotonic()
        status, out = tree.run_test(name)
        if status == 0 and "1..0" not in out:
            seconds[name] = time.monotonic() - begin
        else:
            print(f"# left out: {name}", file=sys.stderr)
    return seconds


def judge(tree, mutant, clean, seconds):
    """Says of the mutant whether it counts, and which test kills it."""
    source = tree.path / mutant.path
    original = source.read_text()
    lines = original.splitlines(keepends=True)
    lines[mutant.line_no - 1] = mutant.line
    try:
        source.write_text("".join(lines))
        code = tree.object_of(mutant.path)
        if code is None:
            return "does not compile", None
        if code == clean[mutant.path]:
            return "same code", None
        names = sorted((n for n in tests_of(mutant.folder) if n in seconds),
                       key=seconds.get)
        status, out = tree.make(*names)
        if status:
            return "does not link", out
        for name in names:
            status, _ = tree.run_test(name, LEAST_LIMIT_S + 10 * seconds[name])
            if status != 0:
                return "killed", name.removeprefix("build/o/tests/")
        return "lives", None
    finally:
        source.write_text(original)


def run_folder(folder, options, trees, clean, seconds):
    """Judges as many of a folder as asked for; the list of those that count."""
    todo, counted, equivalents = draw(folder, options.seed), [], 0
    known = known_equivalents()

    def one(mutant):
        tree = trees.get()
        try:
            mutant.verdict, mutant.killer = judge(tree, mutant, clean, seconds)
        finally:
            trees.put(tree)
        return mutant

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        while len(counted) < options.n:
            batch = []
            for mutant in todo:
                if (mutant.path, mutant.line.strip()) in known:
                    equivalents += 1
                    continue
                batch.append(mutant)
                if len(batch) == options.n - len(counted):
                    break
            if not batch:
                break
            for mutant in pool.map(one, batch):
                if mutant.verdict in ("killed", "lives"):
                    counted.append(mutant)
                    print(f"# {len(counted)} {mutant.path}:{mutant.line_no} "
                          f"{mutant.verdict} {mutant.killer or ''}",
                          file=sys.stderr, flush=True)
                    if options.verbose:
                        print(f"- {mutant.was.strip()}\n"
                              f"+ {mutant.line.strip()}", file=sys.stderr,
                              flush=True)
    return counted, equivalents


def report(results):
    print("folder      mutants  killed  share  struck as equivalent")
    n_all = n_killed = 0
    for folder, (mutants, equivalents) in results.items():
        killed = sum(m.verdict == "killed" for m in mutants)
        n_all, n_killed = n_all + len(mutants), n_killed + killed
        print(f"{folder:<11} {len(mutants):7} {killed:7} "
              f"{100 * killed / max(len(mutants), 1):5.0f} % {equivalents:4}")
    print(f"{'all':<11} {n_all:7} {n_killed:7} "
          f"{100 * n_killed / max(n_all, 1):5.0f} %")
    for folder, (mutants, _) in results.items():
        for m in mutants:
            if m.verdict == "lives":
                print(f"\n{m.path}:{m.line_no}\n- {m.was.strip()}\n"
                      f"+ {m.line.strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-n", type=int, default=150, help="mutants in all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true",
                        help="say at once what was changed")
    parser.add_argument("folders", nargs="*", default=list(FOLDERS),
                        metavar="FOLDER", help=" ".join(FOLDERS))
    options = parser.parse_args()
    unknown = set(options.folders) - set(FOLDERS)
    if unknown:
        parser.error(f"no such folder: {' '.join(sorted(unknown))}")
    options.n = -(-options.n // len(options.folders))

    base = Tree(ROOT / "build/mutants/0")
    base.copy_sources()
    names = sorted({n for f in options.folders for n in tests_of(f)})
    status, out = base.make("-j", str(options.jobs), *names)
    if status:
        sys.exit(f"the program does not build:\n{out}")
    seconds = time_tests(base, names)
    clean = {}
    for folder in options.folders:
        for file in sorted((ROOT / FOLDERS[folder]).glob("*.c")):
            path = str(file.relative_to(ROOT))
            clean[path] = base.object_of(path)
    trees = queue.SimpleQueue()
    trees.put(base)
    for i in range(1, options.jobs):
        tree = Tree(ROOT / f"build/mutants/{i}")
        shutil.rmtree(tree.path, ignore_errors=True)
        shutil.copytree(base.path, tree.path, symlinks=True)
        trees.put(tree)
    report({folder: run_folder(folder, options, trees, clean, seconds)
            for folder in options.folders})


if __name__ == "__main__":
    main()
