# SPDX-License-Identifier: MIT
"""Finds the program and runs it.

What can go wrong with a program is an `Error` here: it is not there, cannot be
run, is another version, refuses, is killed, or takes too long. Nothing is
printed. Temporary files lie in a folder of their own, removed at the end of a
call whatever happens.
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
VERSION_S = 60.0  # that the question for it may take, without a limit


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
    timeout_s -- seconds after which it and all processes that it started are
                 killed, the question for its version included; None: never
    warnings  -- takes what it warns of, a sentence each
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
    """Seconds that one call has, in all."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.monotonic() + seconds

    def left(self) -> float:
        return max(self.end - time.monotonic(), 0)


# The file behind each path whose version was right: a program that takes its
# place is asked again.
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
    """Status, output and messages. Whatever ends the wait early ends the
    program too, with all processes that it started: they are a group."""
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
    """That of this process. Without COLUMNS the program does not break its
    sentences into lines."""
    return {key: v for key, v in os.environ.items() if key != "COLUMNS"}


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
