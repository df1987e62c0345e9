#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The wheel, installed in a separate environment without network, compiler or
other programs on the path. Its content matches its name, it plans like the
program that was packed, and it can be removed without a trace. Speaks TAP;
WHEEL is the file.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from tap import finish, neuroshard, ok

WHEEL = Path(os.environ["WHEEL"])
DATA = Path(os.environ["NEUROSHARD_DATA"])
LIST = DATA / "tables" / "criteo_kaggle_26.csv"
INTERPRETER, DYNAMIC, NOTE = 3, 2, 4
ABI_TAG = 1
# glibc 2.17 and Linux 3.7 are both of December 2012.
KERNEL = (3, 7)
SECONDS = 10


def segments(program):
    """(type, bytes) of each segment of a 64-bit ELF file."""
    assert program[:5] == b"\x7fELF\2"
    (offset,) = struct.unpack_from("<Q", program, 32)
    size, n_segments = struct.unpack_from("<HH", program, 54)
    for i in range(n_segments):
        kind, _, at, _, _, n_bytes, _, _ = struct.unpack_from(
            "<IIQQQQQQ", program, offset + i * size
        )
        yield kind, program[at : at + n_bytes]


def least_kernel(notes):
    """Oldest kernel version of the GNU ABI tag, or None."""
    for note in notes:
        at = 0
        while at + 12 <= len(note):
            n_name, n_bytes, kind = struct.unpack_from("<III", note, at)
            name = note[at + 12 : at + 12 + n_name]
            at += 12 + (n_name + 3) // 4 * 4
            if kind == ABI_TAG and name == b"GNU\0":
                return struct.unpack_from("<IIII", note, at)[1:3]
            at += (n_bytes + 3) // 4 * 4
    return None


def check_file():
    with zipfile.ZipFile(WHEEL) as archive:
        names = set(archive.namelist())
        program = archive.read("neuroshard/bin/neuroshard")
    kinds = [kind for kind, _ in segments(program)]
    kernel = least_kernel(
        part for kind, part in segments(program) if kind == NOTE
    )
    ok(
        INTERPRETER not in kinds and DYNAMIC not in kinds,
        "the program needs no library, and so no version of glibc",
    )
    ok(
        WHEEL.name.split("-")[2:]
        == ["py3", "none", "manylinux_2_17_x86_64.whl"]
        and kernel is not None
        and kernel <= KERNEL,
        f"Linux {kernel} suffices, older than its tag says",
        WHEEL.name,
    )
    shipped = {
        f"neuroshard/share/neuroshard/{path.relative_to(DATA)}"
        for path in DATA.rglob("*")
        if path.is_file() and "measurements" not in path.parts
    }
    ok(shipped < names, "the data are in it", f"{shipped - names}")
    ok(
        sum("/LICENSE" in name for name in names) > 3,
        "the licences of linked libraries are in it",
    )


def check_tag(folder):
    """Checks .ci/wheel-tag on other programs: it prints the newest glibc
    symbol of a program that is linked with libc only, and nothing if other
    libraries are linked."""
    tag = [str(DATA / ".." / ".ci" / "wheel-tag")]
    source = folder / "program.c"
    source.write_text("int main(void) { return 0; }\n", encoding="ascii")
    program = folder / "program"
    subprocess.run(["cc", "-o", program, source], check=True)
    newest = max(
        int(version.split(b".")[1].split(b"\0")[0])
        for version in program.read_bytes().split(b"GLIBC_")[1:]
    )
    done = subprocess.run(
        [*tag, program], capture_output=True, text=True, check=False
    )
    ok(
        done.stdout == f"manylinux_2_{max(newest, 17)}_x86_64\n",
        f"a program of glibc 2.{newest}: {done.stdout.strip()}",
        done.stderr,
    )
    subprocess.run(
        ["cc", "-o", program, source, "-Wl,--no-as-needed", "-lsqlite3"],
        check=True,
    )
    done = subprocess.run(
        [*tag, program], capture_output=True, text=True, check=False
    )
    ok(
        done.returncode == 1 and "needs libsqlite3.so" in done.stderr,
        "a program of a library that not every system has: refused",
        done.stdout + done.stderr,
    )


class Environment:
    """A virtual environment, with nothing else on the path."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "bin"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)

    def run(self, *command):
        done = subprocess.run(
            [str(self.bin / command[0]), *map(str, command[1:])],
            env={"PATH": str(self.bin), "HOME": str(self.folder)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def pip(self, *args):
        return self.run("python", "-m", "pip", *args)


def check_installed(folder):
    environment = Environment(folder / "venv")
    before = sorted(environment.folder.rglob("*"))
    ok(
        not any(
            shutil.which(name, path=str(environment.bin))
            for name in ("cc", "gcc", "clang", "g++", "ld")
        ),
        "there is no compiler",
    )
    start = time.monotonic()
    status, _, err = environment.pip("install", "--no-index", WHEEL)
    ok(status == 0, "pip installs it without network", err)
    _, planned, err = environment.run(
        "neuroshard", "plan", LIST, "--gpus", "4", "--json"
    )
    took_s = time.monotonic() - start
    ok(
        took_s <= SECONDS and planned,
        f"installed and planned in {took_s:.1f} s, of {SECONDS}",
        err,
    )
    _, beside, _ = neuroshard("plan", str(LIST), "--gpus", "4", "--json")
    ok(planned == beside, "the plan of the packed program, byte for byte")
    script = (
        "import json, neuroshard, sys\n"
        f"plan = neuroshard.plan({str(LIST)!r}, 4)\n"
        "json.dump([neuroshard.__version__, plan.json], sys.stdout)\n"
    )
    status, out, err = environment.run("python", "-c", script)
    version, by_package = json.loads(out) if out else (None, None)
    wanted = json.loads(beside)
    for member in ("rivals", "cheapest_ms", "alternatives"):
        del wanted[member]
    for shard in wanted["shards"]:
        del shard["memory_bytes"], shard["changes_training"]
    ok(
        by_package == wanted,
        "import neuroshard: the same plan",
        err,
    )
    _, out, _ = environment.run("neuroshard", "--version")
    ok(out.startswith(f"neuroshard {version} (build "), "one version")
    status, _, err = environment.run("neuroshard", "plan", "none", "--gpus=1")
    ok(
        status == 1 and "cannot open 'none'" in err,
        "the script has the program's status and sentences",
    )
    environment.pip("uninstall", "--yes", "neuroshard")
    after = [
        path
        for path in sorted(environment.folder.rglob("*"))
        if "__pycache__" not in path.parts
    ]
    ok(not set(after) - set(before), "it is removed without a trace")


def main():
    check_file()
    with tempfile.TemporaryDirectory() as folder:
        check_tag(Path(folder))
        check_installed(Path(folder))
    finish()


main()
