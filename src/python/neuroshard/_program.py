# SPDX-License-Identifier: MIT
"""Finds the program and runs it.

Every failure is an `Error`: the program is missing, cannot be run, has another
version, refuses its input, is killed, or takes too long. Nothing is printed.
Temporary files are in a private folder, which is removed at the end of a call,
also after a failure.
"""
from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, Iterator, List, NoReturn, Optional, Sequence, Tuple

HERE = Path(__file__).parent
VERSION = (HERE / "VERSION").read_text(encoding="ascii").strip()
PACKAGED = HERE / "bin" / "neuroshard"
MOST_OF_A_SENTENCE = 600
VERSION_S = 60.0  # limit of `--version` if there is no other


class Error(Exception):
    """Reason why there is no answer; `str()` of it is one sentence.

    status -- exit status of the program: 1 failed, 2 usage, 3 no plan fits the
              memory, 130 interrupted. Further values:
                126  the program cannot be run or has another version
                127  the program is missing
                 65  its answer is malformed
                < 0  negative number of the signal that killed it; -9 also if
                     the time limit did
    """

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status

    def __reduce__(self) -> Tuple[type, Tuple[str, int]]:
        return type(self), (str(self), self.status)


def program() -> str:
    """Path of the program: the value of NEUROSHARD, or else the one in the
    package."""
    return os.environ.get("NEUROSHARD") or str(PACKAGED)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Yields a private folder for one call. Errors of the system become
    `Error`."""
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
    """Runs the program and returns its standard output.

    args      -- command, options and files
    timeout_s -- seconds until the program and all processes that it started
                 are killed, including the check of its version; None: no limit
    warnings  -- receives the program's warnings, one sentence each
    """
    path = program()
    limit = None if timeout_s is None else _Limit(timeout_s)
    _check_version(path, limit)
    out, messages = _run(path, args, stdin, limit)
    if warnings is not None:
        start = "neuroshard: warning: "
        warnings += [
            line[len(start) :] for line in messages if line.startswith(start)
        ]
    return out


class _Limit:
    """Time limit of one call, in seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.monotonic() + seconds

    def left(self) -> float:
        return max(self.end - time.monotonic(), 0)


# Identity of the file at each path whose version was right. The version is
# checked again if another file replaces it.
_right: Dict[str, Tuple[int, ...]] = {}


def _file(path: str) -> Optional[Tuple[int, ...]]:
    try:
        found = os.stat(shutil.which(path) or path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _check_version(path: str, limit: Optional[_Limit]) -> None:
    file = _file(path)
    if file is not None and _right.get(path) == file:
        return
    if limit is None or limit.left() > VERSION_S:
        limit = _Limit(VERSION_S)
    out, _ = _run(path, ["--version"], b"", limit)
    said = _lines(out)
    if [line.partition(" (build ")[0] for line in said] != [
        f"neuroshard {VERSION}"
    ]:
        what = f"'{said[0][:80]}'" if said else "nothing"
        raise Error(
            f"'{path}' is not neuroshard {VERSION} of this package: it says "
            + what,
            126,
        )
    if file is not None:
        _right[path] = file


def _communicate(
    path: str, args: Sequence[str], stdin: bytes, limit: Optional[_Limit]
) -> Tuple[int, bytes, bytes]:
    """Runs the program; returns its status, output and messages. If the wait
    ends early, the program and all processes that it started are killed: they
    form a process group."""
    with subprocess.Popen(
        [path, *args],
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            out, messages = process.communicate(
                stdin, None if limit is None else limit.left()
            )
        except BaseException:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            raise
    return process.returncode, out, messages


def _run(
    path: str,
    args: Sequence[str],
    stdin: bytes,
    limit: Optional[_Limit],
) -> Tuple[bytes, List[str]]:
    name = f"'neuroshard {args[0]}'"
    try:
        status, out, messages = _communicate(path, args, stdin, limit)
    except subprocess.TimeoutExpired as error:
        seconds = limit.seconds if limit else 0
        raise Error(
            f"{name} took longer than {seconds:g} s and was killed",
            -signal.SIGKILL,
        ) from error
    except (OSError, OverflowError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        why = getattr(error, "strerror", None) or error
        raise Error(
            f"cannot run '{path}': {why}", 127 if missing else 126
        ) from error
    if status:
        raise failed(args, status, messages)
    return out, _lines(messages)


def _environment() -> Dict[str, str]:
    """The environment of this process without COLUMNS, so that the program
    does not wrap its sentences."""
    return {key: v for key, v in os.environ.items() if key != "COLUMNS"}


def failed(args: Sequence[str], status: int, stderr: bytes) -> Error:
    """Returns the Error of a program that ended with this status and these
    messages."""
    name = f"'neuroshard {args[0]}'"
    return Error(_sentence(name, status, _lines(stderr)), status)


def _lines(text: bytes) -> List[str]:
    """Lines that are not empty, with unprintable characters replaced by
    spaces."""
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
    """Console script: replaces this process by the program of the package."""
    try:
        os.execv(PACKAGED, ["neuroshard", *sys.argv[1:]])
    except OSError as error:
        print(
            f"neuroshard: cannot run '{PACKAGED}': {error.strerror}",
            file=sys.stderr,
        )
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)
