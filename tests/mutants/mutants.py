# SPDX-License-Identifier: MIT
"""Changes the program in one place at a time and checks whether its tests
notice.

Each folder's mutants are drawn at random, by universalmutator's rules for C.
They are run against the folder's unit tests and the quick properties of
tests/prop, until one test fails. A mutant that does not compile, that compiles
to the same code, or that is in equivalent.txt is replaced by another one.
Prints the share of killed mutants per folder and the surviving mutants with
their lines.

The result of each mutant is kept in build/mutants/fates. With --resume only
survivors are repeated, and only if the tests have changed since.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import filecmp
import hashlib
import io
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import time

from universalmutator import mutator

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FATES = ROOT / "build/mutants/fates"
# Rooms of each folder.
FOLDERS = {
    "search": ["search"],
    "core": ["src/core"],
    "costmodel": ["costmodel/formulas", "costmodel/modelfile",
                  "costmodel/models", "costmodel/learning"],
    "io": ["src/io"],
    "exec": ["src/exec"],
    "emit": ["src/emit"],
    "explain": ["src/explain"],
}
RULES = ["universal.rules", "c_like.rules", "c.rules"]
# Lines that only release resources are skipped: only the sanitizers would
# notice if they are missing.
IGNORED = [r"^\s*(if \(.*\) )?(mem_free|json_decref|buf_release|fclose|\w+_"
           r"(release|free|close|reset))\(", r"^\s*\(void\)", r"\bassert\("]
# QUICK_S: longest time of a quick property, in seconds. A mutant takes too
# long if it takes more than ten times the program's time plus LEAST_LIMIT_S.
QUICK_S = LEAST_LIMIT_S = 5
# Mutants are compiled with the program's flags, but without debug information.
# Unused code is allowed. A missing return value is an error, because the
# result would be arbitrary. Arguments of wrong types are errors, too, because
# no build accepts them.
CFLAGS = ("-O2 -g0 -Wno-error -Werror=return-type "
          "-Werror=incompatible-pointer-types -Werror=int-conversion")


class Mutant:
    def __init__(self, folder, path, line_no, was, line):
        self.folder, self.path, self.line_no = folder, path, line_no
        self.was, self.line = was, line
        self.verdict = self.killer = None

    def text(self, original):
        """Returns the text of the mutated file."""
        lines = original.splitlines(keepends=True)
        lines[self.line_no - 1] = self.line
        return "".join(lines)


def lines_that_count(lines):
    """Yields the numbers of lines inside functions, from 1; other lines only
    declare."""
    inside = False
    for number, line in enumerate(lines, 1):
        if line.startswith("}"):
            inside = False
        if inside:
            yield number
        if line.startswith("{"):
            inside = True


def is_failure(line):
    """Whether a line sets a status other than 0; all such mutants are
    equivalent."""
    match = re.fullmatch(r"\s*(?:return|(?:int )?rc =) *([-+()0-9]+);\s*", line)
    with contextlib.suppress(SyntaxError, TypeError):
        return match is not None and eval(match[1], {}) != 0
    return False


def is_idle_jump(lines, number, line):
    """Whether a mutant only adds a redundant jump: a `break` or `continue`
    before an existing one, or a `continue` at the end of a loop, where only
    closing braces follow."""
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
    """Returns the possible mutants, grouped by line."""
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


def digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def sources_of(folder):
    return [str(file.relative_to(ROOT)) for room in FOLDERS[folder]
            for file in sorted((ROOT / room).glob("*.c"))]


def tests_folders(folder):
    """Returns the names of the folders in tests/unit that test a folder."""
    return [pathlib.Path(room).name for room in FOLDERS[folder]]


def draw(folder, seed):
    """Returns all mutants of a folder in the order in which they are tried.
    First a line is drawn, then its mutant, so that rules with many variants do
    not dominate. The draw of a line does not depend on other lines."""
    lines, seen = [], collections.Counter()
    for path in sources_of(folder):
        for line in mutants_of(folder, path):
            of = (str(seed), line[0].path, line[0].was.strip())
            seen[of] += 1
            turn = digest(*of, str(seen[of]))
            line.sort(key=lambda mutant: digest(turn, mutant.line.strip()))
            lines.append((turn, line))
    lines = [line for _, line in sorted(lines, key=lambda line: line[0])]
    while lines:
        for line in lines:
            yield line.pop()
        lines = [line for line in lines if line]


def known_equivalents():
    known = set()
    for line in (HERE / "equivalent.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            path, text, _ = line.split("\t")
            known.add((path, text.strip()))
    return known


class Tree:
    """A copy of the sources with its own build."""

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
        """Copies only changed files, so that a build continues from the last
        one."""
        files = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"], cwd=ROOT, check=True,
            capture_output=True).stdout.decode().split("\0")
        files = {name for name in files if name and (ROOT / name).is_file()}
        self.path.mkdir(parents=True, exist_ok=True)
        for old in self.path.rglob("*"):
            name = str(old.relative_to(self.path))
            if (old.is_file() and name not in files and
                    not name.startswith("build/")):
                old.unlink()
        for name in files:
            copy = self.path / name
            if copy.is_file() and filecmp.cmp(ROOT / name, copy, False):
                continue
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy)

    def run(self, command, limit_s=None, **env):
        """Returns status and output; status None if it takes too long."""
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
        """Runs a test; properties run with fewer cases."""
        size = {"TEST_SIZE": "tiny"} if "/prop/" in name else {}
        return self.run([name], limit_s, **size)

    def make(self, *targets):
        return self.run(["make", "--no-print-directory", "-s", "CUDA=0",
                         "MPI=0", "O=build/o", f"CFLAGS={CFLAGS}", *targets])

    def made(self, *targets):
        """Makes the targets from the current sources. Returns a digest of
        each, or None if make fails."""
        status, _ = self.make(*targets)
        return [hashlib.sha256((self.path / target).read_bytes()).digest()
                for target in targets] if status == 0 else None


def object_of(path):
    return "build/o/" + path.removesuffix(".c") + ".o"


def tests_of(folder):
    files = [file for room in tests_folders(folder)
             for file in sorted((ROOT / "tests/unit" / room).glob("t_*.c"))]
    files += sorted((ROOT / "tests/prop").glob("t_*.c"))
    return ["build/o/" + str(file.relative_to(ROOT).with_suffix(""))
            for file in files]


def time_tests(tree, names, seconds):
    """Measures the seconds of each test of the unchanged program. Tests that
    fail, skip or are slow get None and are left out; slow ones are left to
    `make test`."""
    for name in names:
        if name in seconds:
            continue
        begin = time.monotonic()
        limit_s = QUICK_S if "/prop/" in name else None
        status, out = tree.run_test(name, limit_s)
        seconds[name] = time.monotonic() - begin
        if status != 0 or "1..0" in out:
            seconds[name] = None
            print(f"# left out: {name}", file=sys.stderr)


class Judge:
    """Judges the mutants of a folder by its tests."""

    def __init__(self, base, folder, seconds, resume):
        self.base, self.folder = base, folder
        paths = sources_of(folder)
        names = tests_of(folder)
        targets = [*names, *map(object_of, paths)]
        status, out = base.make("-j", str(os.cpu_count()), *targets)
        if status:
            sys.exit(f"the program does not build:\n{out}")
        self.clean = dict(zip(targets, base.made(*targets)))
        time_tests(base, names, seconds)
        self.seconds = {n: seconds[n] for n in names if seconds[n] is not None}
        self.kills = collections.Counter()
        files = sorted((base.path / "tests").rglob("*.[ch]"))
        self.tests = digest(*(
            file.read_text() for file in files
            if file.parent.name in ["tests", "prop", *tests_folders(folder)]))
        self.fates = {}
        if resume and FATES.is_file():
            for line in FATES.read_text().splitlines():
                key, tests, *fate = json.loads(line)
                if fate[0] != "lives" or tests == self.tests:
                    self.fates[key] = fate

    def names(self, mutant):
        """Order of tests: first the test of the file, then tests that kill
        often, then quick ones."""
        own = "t_" + pathlib.Path(mutant.path).stem
        return sorted(self.seconds, key=lambda name: (
            pathlib.Path(name).name != own, -self.kills[name],
            self.seconds[name]))

    def fate(self, tree, mutant):
        """Returns the verdict on a mutant, and the test that kills it."""
        target = object_of(mutant.path)
        code = tree.made(target)
        if not code:
            return "does not compile", None
        if code == [self.clean[target]]:
            return "same code", None
        for name in self.names(mutant):
            program = tree.made(name)
            if not program:
                return "does not link", None
            if program == [self.clean[name]]:
                continue
            status, _ = tree.run_test(
                name, LEAST_LIMIT_S + 10 * self.seconds[name])
            if status != 0:
                self.kills[name] += 1
                slow = " takes too long" if status is None else ""
                return "killed", name.removeprefix("build/o/tests/") + slow
        return "lives", None

    def judge(self, tree, mutant):
        source = tree.path / mutant.path
        original = source.read_text()
        text = mutant.text(original)
        key = digest(mutant.path, text)
        if key not in self.fates:
            try:
                source.write_text(text)
                self.fates[key] = self.fate(tree, mutant)
            finally:
                source.write_text(original)
            with FATES.open("a") as file:
                fate = [key, self.tests, *self.fates[key]]
                print(json.dumps(fate), file=file)
        mutant.verdict, mutant.killer = self.fates[key]
        return mutant


def run_folder(folder, options, trees, seconds):
    """Judges as many mutants of a folder as asked for; returns those that
    count."""
    todo, counted, equivalents = draw(folder, options.seed), [], 0
    known = known_equivalents()
    judge = Judge(trees[0], folder, seconds, options.resume)
    for tree in trees[1:]:
        shutil.rmtree(tree.path, ignore_errors=True)
        shutil.copytree(trees[0].path, tree.path, symlinks=True)
    free = queue.SimpleQueue()
    for tree in trees:
        free.put(tree)

    def one(mutant):
        tree = free.get()
        try:
            return judge.judge(tree, mutant)
        finally:
            free.put(tree)

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
    parser.add_argument("--resume", action="store_true",
                        help="go on where the last run was stopped")
    parser.add_argument("--verbose", action="store_true",
                        help="say at once what was changed")
    parser.add_argument("folders", nargs="*", default=list(FOLDERS),
                        metavar="FOLDER", help=" ".join(FOLDERS))
    options = parser.parse_args()
    unknown = set(options.folders) - set(FOLDERS)
    if unknown:
        parser.error(f"no such folder: {' '.join(sorted(unknown))}")
    options.n = -(-options.n // len(options.folders))

    trees = [Tree(ROOT / f"build/mutants/{i}") for i in range(options.jobs)]
    trees[0].copy_sources()
    if not options.resume:
        FATES.unlink(missing_ok=True)
    seconds = {}
    report({folder: run_folder(folder, options, trees, seconds)
            for folder in options.folders})


if __name__ == "__main__":
    main()
