# SPDX-License-Identifier: MIT
"""Finds the program and runs it.

What can go wrong with a program is an `Error` here: it is not there, cannot be
run, is another version, refuses, is killed, or takes too long. Nothing is
printed. Temporary files lie in a folder of their own, removed at the end of a
call whatever happens.
"""
from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator, List, NoReturn, Optional, Sequence, Tuple

HERE = Path(__file__).parent
VERSION = (HERE / "VERSION").read_text(encoding="ascii").strip()
PACKAGED = HERE / "bin" / "neuroshard"
MOST_OF_A_SENTENCE = 600


class Error(Exception):
    """Why there is no answer, in one sentence: `str()` of it.

    status -- exit status of the program: 1 failed, 2 usage, 3 no plan fits the
              memory, 130 interrupted; 126 where it cannot be run or is another
              version, 127 where it is not there, 65 where its answer is not
              what it should be; below 0 the signal that killed it, -9 also
              where the time limit did
    """

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status

    def __reduce__(self) -> Tuple[type, Tuple[str, int]]:
        return type(self), (str(self), self.status)


def program() -> str:
    """The program: what NEUROSHARD names, else the one in the package."""
    return os.environ.get("NEUROSHARD") or str(PACKAGED)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A private folder for one call. What the system refuses in it is an
    Error."""
    try:
        with tempfile.TemporaryDirectory(prefix="neuroshard-") as path:
            yield Path(path)
    except OSError as error:
        raise Error(f"temporary files: {error}", 1) from error


def run(
    args: Sequence[str],
    stdin: bytes = b"",
    *,
    timeout_s: Optional[float] = None,
    warnings: Optional[List[str]] = None,
) -> bytes:
    """What the program prints on standard output.

    args      -- command, options and files
    timeout_s -- seconds after which it is killed; None: never
    warnings  -- takes what it warns of, a sentence each
    """
    path = program()
    _check_version(path)
    out, messages = _run(path, args, stdin, timeout_s)
    if warnings is not None:
        start = "neuroshard: warning: "
        warnings += [
            line[len(start) :] for line in messages if line.startswith(start)
        ]
    return out


@functools.lru_cache(maxsize=None)
def _check_version(path: str) -> None:
    out, _ = _run(path, ["--version"], b"", 60)
    said = _lines(out)
    if said != [f"neuroshard {VERSION}"]:
        what = f"'{said[0][:80]}'" if said else "nothing"
        raise Error(
            f"'{path}' is not neuroshard {VERSION} of this package: it says "
            + what,
            126,
        )


def _run(
    path: str,
    args: Sequence[str],
    stdin: bytes,
    timeout_s: Optional[float],
) -> Tuple[bytes, List[str]]:
    name = f"'neuroshard {args[0]}'"
    try:
        done = subprocess.run(
            [path, *args],
            input=stdin,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Error(
            f"{name} took longer than {timeout_s:g} s and was killed",
            -signal.SIGKILL,
        ) from error
    except (OSError, OverflowError, ValueError) as error:
        status = 127 if isinstance(error, FileNotFoundError) else 126
        why = getattr(error, "strerror", None) or error
        raise Error(f"cannot run '{path}': {why}", status) from error
    if done.returncode:
        raise failed(args, done.returncode, done.stderr)
    return done.stdout, _lines(done.stderr)


def failed(args: Sequence[str], status: int, stderr: bytes) -> Error:
    """Of a program that has ended so, and what it said."""
    name = f"'neuroshard {args[0]}'"
    return Error(_sentence(name, status, _lines(stderr)), status)


def _lines(text: bytes) -> List[str]:
    """Those that say anything, and what can be printed of them."""
    lines = (
        "".join(c if c.isprintable() else " " for c in line).strip()
        for line in text.decode("utf-8", "replace").split("\n")
    )
    return [line for line in lines if line]


def _sentence(name: str, status: int, messages: List[str]) -> str:
    start = "neuroshard: "
    said = [
        line[len(start) :]
        for line in messages
        if line.startswith(start) and not line.startswith(start + "warning: ")
    ]
    why = (said or messages or [""])[-1][:MOST_OF_A_SENTENCE]
    if status < 0:
        try:
            number = signal.Signals(-status).name
        except ValueError:
            number = f"signal {-status}"
        return f"{name} was killed by {number}" + (f": {why}" if why else "")
    return why or f"{name} failed with status {status} and said nothing"


def main() -> NoReturn:
    """The console script: becomes the program of the package."""
    try:
        os.execv(PACKAGED, ["neuroshard", *sys.argv[1:]])
    except OSError as error:
        print(
            f"neuroshard: cannot run '{PACKAGED}': {error.strerror}",
            file=sys.stderr,
        )
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)
