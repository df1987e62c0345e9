# SPDX-License-Identifier: MIT
"""Measures how a job's batches use its tables.

    from neuroshard.data import profile

    tables = profile(loader, 200, tables=ebc.embedding_bag_configs(), gpus=8)
    plan = neuroshard.plan(tables, gpus=8, batch=8 * batch_size)

Ids go from the batches through a pipe to `neuroshard tables profile`, which
keeps none of them. neuroshard-tables-profile(1) describes the measured
figures.
"""
from __future__ import annotations

import collections
import contextlib
import csv
import itertools
import os
import struct
import subprocess
import threading
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Union

from . import _program
from ._program import Error

__all__ = ["profile"]
COLUMNS = "name num_embeddings dim num_outputs output precision"


def profile(
    batches: Iterable[Any],
    n_batches: Optional[int] = None,
    *,
    tables: Union[str, "os.PathLike[str]", Iterable[Any], None] = None,
    dim: Optional[int] = None,
    gpus: int = 1,
    output: Union[str, "os.PathLike[str]", None] = None,
    timeout_s: Optional[float] = None,
) -> List[Dict[str, str]]:
    """Returns the tables with the measured figures, as rows of
    neuroshard-tables(5). `plan` takes these rows directly; NeuroShardPlanner
    takes them as `usage={row["name"]: row for row in tables}`, or from the
    file `output`.

    batches   -- a dataloader of one rank: KeyedJaggedTensors, or objects that
                 have one as `sparse_features`; batches of another size than
                 the first, usually the last one, are left out
    n_batches -- largest number of batches to read; None: all
    tables    -- TorchRec's configurations of the tables, with name,
                 feature_names, num_embeddings, embedding_dim, and data_type;
                 or the path of a table list; or None: each feature is a table.
                 Features that are in no configuration are left out
    dim       -- columns of each table, if `tables` does not give them
    gpus      -- number of ranks; each has one such batch in every step
    output    -- file that also receives the table list
    timeout_s -- seconds until the program is killed
    """
    batches = iter(batches)
    first = next(batches, None)
    if first is None:
        raise Error("there are no batches", 1)
    size = _features(first).stride()
    tables_of: Optional[Dict[str, List[str]]] = None
    with _program.folder() as folder:
        if not (tables is None or isinstance(tables, (str, os.PathLike))):
            configs = list(tables)
            tables_of = collections.defaultdict(list)
            for config in configs:
                for feature in config.feature_names:
                    tables_of[feature].append(config.name)
            tables = _write_list(folder / "tables.csv", configs)
        listed = "profiled.csv" if output is None else os.path.abspath(output)
        written = folder / listed
        args = ["tables", "profile", "-", f"--output={written}"]
        args += [f"--gpus={gpus}", f"--batch={gpus * size}"]
        args += [f"--tables={os.fspath(tables)}"] if tables else []
        args += [f"--dim={dim}"] if dim else []
        chosen = itertools.islice(itertools.chain([first], batches), n_batches)
        frames = (
            frame
            for features in map(_features, chosen)
            if features.stride() == size
            for frame in _frames(features, size, tables_of)
        )
        _run(args, frames, folder / "messages", timeout_s)
        text = written.read_text(encoding="utf-8")
    lines = csv.DictReader(text.splitlines())
    return [{key: cell for key, cell in row.items() if cell} for row in lines]


def _features(batch: Any) -> Any:
    features = getattr(batch, "sparse_features", batch)
    if not hasattr(features, "stride"):
        kind = type(features).__name__
        raise Error(f"a batch is no KeyedJaggedTensor, but a {kind}", 1)
    return features


def _write_list(path: Path, configs: List[Any]) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(COLUMNS.split())
        for config in configs:
            data_type = getattr(config, "data_type", None)
            row = (
                *(config.name, config.num_embeddings, config.embedding_dim),
                len(config.feature_names),
                "pooled" if hasattr(config, "pooling") else "sequence",
                getattr(data_type, "value", "fp32").lower(),
            )
            writer.writerow(row)
    return path


def _frames(
    features: Any, n_samples: int, tables_of: Optional[Dict[str, List[str]]]
) -> Iterator[bytes]:
    """Yields a batch in the format of the manual, only with features that a
    table has. If several features share a table, only the last one ends its
    samples."""
    uses = [
        (key, table)
        for key in features.keys()
        for table in ([key] if tables_of is None else tables_of.get(key, []))
    ]
    last = {table: key for key, table in uses}
    for key, table in uses:
        name = table.encode("utf-8", "surrogatepass")
        ids = features[key].values().long().cpu().contiguous().numpy()
        ending = n_samples if last[table] == key else 0
        yield struct.pack("<3q", ending, ids.size, len(name)) + name
        yield ids.data


def _run(
    args: List[str],
    frames: Iterator[bytes],
    messages: Path,
    timeout_s: Optional[float],
) -> None:
    """Runs the program with the frames as its standard input."""
    _program.run(["--version"], timeout_s=timeout_s)
    with open(messages, "wb") as file:
        process = subprocess.Popen(
            [_program.program(), *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=file,
        )
    assert process.stdin
    limit_s = threading.TIMEOUT_MAX if timeout_s is None else timeout_s
    timer = threading.Timer(limit_s, process.kill)
    timer.start()
    try:
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
            pipe.writelines(frames)
        process.wait()
    finally:
        timer.cancel()
        process.kill()
        process.wait()
    if process.returncode:
        raise _program.failed(args, process.returncode, messages.read_bytes())
