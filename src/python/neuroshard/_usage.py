# SPDX-License-Identifier: MIT
"""Reads a job's own figures about its tables and checks them against the
model."""
from __future__ import annotations

import csv
import difflib
import os
import re
from typing import (
    Any,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from . import Error
from ._model import Columns, Found

Row = Mapping[str, Any]
Usage = Union[str, "os.PathLike[str]", Mapping[str, Row], Sequence[Row]]
N_BINS = 17
BINS = tuple(f"bin_{i}" for i in range(N_BINS))
REACH = tuple(f"{of}_{k}" for of in ("reach", "miss") for k in range(17))
# Columns of neuroshard-tables(5) in usage. TAKEN: columns that are used.
# OF_MODEL: columns that the model already has. OF_OTHERS: columns that must be
# given elsewhere, and where.
TAKEN = (
    *("pooling_factor", "zipf_alpha", "bins", "row_order", "dedup"),
    *("group", "device", "row_overhead_bytes"),
    *("forward_factor", "backward_factor"),
    *BINS,
    *REACH,
)
OF_MODEL = (
    *("name", "num_embeddings", "dim", "num_outputs", "output"),
    *("precision",),
)
OF_OTHERS = {
    "sharding": "sharding_types of the constraints say",
    "rows_over": "sharding_types of the constraints say",
    "min_width": "min_partition of the constraints says",
    "optimizer": "the model says",
    "comm_precision": "the sharder says",
}
ALIASES = {
    "hotness": "pooling_factor",
    "multi_hot": "pooling_factor",
    "rows": "num_embeddings",
    "hash_size": "num_embeddings",
    "embedding_dim": "dim",
    "num_features": "num_outputs",
}


def rows(
    found: List[Found], usage: Usage, notes: List[str], others: Iterable[str]
) -> List[Columns]:
    """Returns the tables for the program, with the usage of each. The usage of
    a table is the row of its path and name, or of its name, or the rows of its
    features. If two modules have tables of one name, all tables are named by
    their paths. others: further names that the model knows, for example of
    tables that are not planned."""
    given = _read(usage)
    names = [table.name for table in found]
    paths = [f"{table.path}.{table.name}".lstrip(".") for table in found]
    free = set()
    for table, path in zip(found, paths):
        if path not in given and table.name not in given:
            free |= {path, table.name, *table.features}
    check_names("usage", given, free, {*names, *paths, *others}, notes)
    if len(set(names)) < len(names):
        names = paths
    uses = [
        _of(table, path, given, notes) for path, table in zip(paths, found)
    ]
    if all(
        table.assumes_lookups and "pooling_factor" not in use
        for table, use in zip(found, uses)
    ):
        notes.append(
            "assumed: 1 lookup per sample and feature, as no pooling factors "
            "are given"
        )
    return [
        {"name": name, **table.columns, **use}
        for name, table, use in zip(names, found, uses)
    ]


def _read(usage: Usage) -> Dict[str, Columns]:
    """Returns the rows by name; each row maps columns to values, without empty
    cells."""
    named: List[Tuple[Any, Row]]
    if isinstance(usage, Mapping):
        named = list(usage.items())
    elif isinstance(usage, (str, os.PathLike)):
        named = _listed(usage)
    else:
        named = [(row.get("name"), row) for row in usage]
    found: Dict[str, Columns] = {}
    for name, row in named:
        if not name:
            raise Error("the list of usage has lines without a name", 1)
        if name in found:
            raise Error(f"usage has '{name}' twice", 1)
        found[name] = _row(name, row)
    return found


def _listed(path: Union[str, os.PathLike[str]]) -> List[Tuple[Any, Row]]:
    """Returns the rows of a table list with their names."""
    with open(path, encoding="utf-8", newline="") as file:
        lines = (line for line in file if line.strip("\n")[:1] != "#")
        return [(row.get("name"), row) for row in csv.DictReader(lines)]


def add_factors(rows: List[Columns], path: Any) -> None:
    """Adds the measured factors of a table list, if the file exists."""
    if not os.path.exists(path):
        return
    measured = dict(_listed(path))
    for row in rows:
        for key in ("forward_factor", "backward_factor"):
            factor = measured.get(row["name"], {}).get(key)
            row.update({key: factor} if factor else {})


def _row(name: str, row: Row) -> Columns:
    columns: Columns = {}
    for key, value in row.items():
        key = ALIASES.get(key, key)
        if key not in (*TAKEN, *OF_MODEL, *OF_OTHERS):
            close = nearest(str(key), (*TAKEN, *ALIASES))
            hint = f"; did you mean '{close}'?" if close else ""
            raise Error(f"usage of '{name}' has no column '{key}'{hint}", 1)
        if value is None or (isinstance(value, str) and not value):
            continue
        if key in OF_OTHERS:
            raise Error(
                f"usage of '{name}' has {key}, which {OF_OTHERS[key]}", 1
            )
        if key == "bins" and len(value) != N_BINS:
            raise Error(
                f"usage of '{name}' has {len(value)} bins, not {N_BINS}", 1
            )
        columns[key] = value
    return columns


def _of(
    table: Found, path: str, given: Mapping[str, Columns], notes: List[str]
) -> Columns:
    own = given.get(path, given.get(table.name))
    columns = _of_features(table, given) if own is None else own
    for key in ("num_embeddings", "dim"):
        size = table.columns[key]
        if own and str(own.get(key, size)) != str(size):
            notes.append(
                f"usage has {key} {own[key]} of table '{table.name}', the "
                f"model {size}, which counts"
            )
    return {key: value for key, value in columns.items() if key in TAKEN}


def _of_features(table: Found, given: Mapping[str, Columns]) -> Columns:
    """Columns of a table that has no row of its own. The lookups of its
    features are summed; all other columns must be equal in all features."""
    features = [name for name in table.features if name in given]
    if not features:
        return {}
    if len(features) < len(table.features):
        lacks = next(f for f in table.features if f not in given)
        raise Error(
            f"usage has feature '{features[0]}' of table '{table.name}', but "
            f"not its feature '{lacks}'",
            1,
        )
    uses = [given[name] for name in features]
    columns = {key: value for key, value in uses[0].items() if key in TAKEN}
    for key in {key for use in uses for key in use if key in TAKEN}:
        if any(use.get(key) != columns.get(key) for use in uses):
            if key == "pooling_factor" and all(key in use for use in uses):
                continue
            raise Error(
                f"usage of the features of table '{table.name}' differs in "
                f"{key}: give a row of the table instead",
                1,
            )
    if "pooling_factor" in columns:
        total = sum(float(use["pooling_factor"]) for use in uses)
        columns["pooling_factor"] = total
    return columns


def check_names(
    what: str,
    given: Iterable[str],
    free: Iterable[str],
    others: Iterable[str],
    notes: List[str],
) -> None:
    """Checks names that the model does not have. It is an error if such a name
    is close to a known name that has no entry itself. Otherwise a note gives
    the number of unknown names, as lists may have more tables than a model."""
    given, known = list(given), {*free, *others}
    free = sorted(set(free).difference(given))
    extra = [name for name in given if name not in known]
    for name in extra:
        close = nearest(str(name), free)
        if close:
            raise Error(
                f"{what} has '{name}', which the model has not; did you mean "
                f"'{close}'?",
                1,
            )
    if extra:
        shown = ", ".join(map(str, extra[:3])) + ", ..." * (len(extra) > 3)
        n = f"{len(extra)} names" if len(extra) > 1 else "a name"
        notes.append(f"{what} has {n} that the model has not ({shown})")


def nearest(name: str, others: Iterable[str]) -> Optional[str]:
    """Returns the most likely intended name, or None. Names that differ in
    their numbers belong to a series and are never mistaken for each other."""
    alike = [other for other in others if _numbers(other) == _numbers(name)]
    return next(iter(difflib.get_close_matches(name, alike, 1, 0.8)), None)


def _numbers(name: str) -> List[str]:
    return re.findall("[0-9]+", name)
