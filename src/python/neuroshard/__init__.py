# SPDX-License-Identifier: MIT
"""Plans which GPU holds which piece of which embedding table.

    import neuroshard

    plan = neuroshard.plan("tables.csv", gpus=8, batch=65536)
    print(plan.report)
    plan.save("plan.json")
    text = plan.emit("torchrec")

Every function runs the program `neuroshard` in a process of its own and reads
its output. The environment variable NEUROSHARD names the program; by default
it is the one in the package. Every failure of the program raises `Error`.
Nothing is printed, and no file is left behind.

Options are the options of the command line: `min_width=8` is `--min-width 8`.
True is an option without a value. None and False leave the option out. A list
is joined by commas (`shard=["table", "row"]`). A `Plan` or a mapping can be
given if the option takes a file (`from_=plan`: add a `_` to a name that is a
keyword of Python). `timeout_s` kills the program after this many seconds and
gives no plan; `time_limit` ends the search, which then returns its best plan.
"""
from __future__ import annotations

import csv
import dataclasses
import html
import io
import json as _json
import os
import re
from pathlib import Path
from typing import (
    Any,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Union,
)

from . import _program
from ._program import Error

__all__ = [
    "Error",
    "Plan",
    "Table",
    "compare",
    "diff",
    "emit",
    "explain",
    "plan",
    "price",
    "ranges",
    "report",
]
__version__ = _program.VERSION

BAD_ANSWER = 65


@dataclasses.dataclass
class Table:
    """An embedding table and how it is used. The members are columns of
    neuroshard-tables(5), which gives their units and ranges. None selects the
    default."""

    name: str
    rows: int
    dim: Optional[int] = None
    pooling_factor: Optional[float] = None
    num_outputs: Optional[float] = None
    output: Optional[str] = None
    precision: Optional[str] = None
    comm_precision: Optional[str] = None
    optimizer: Optional[str] = None
    zipf_alpha: Optional[float] = None
    bins: Optional[Sequence[float]] = None
    row_order: Optional[str] = None
    dedup: Optional[float] = None
    sharding: Union[str, Sequence[str], None] = None
    rows_over: Optional[str] = None
    row_overhead_bytes: Optional[float] = None
    forward_factor: Optional[float] = None
    backward_factor: Optional[float] = None
    min_width: Optional[int] = None
    device: Optional[int] = None
    group: Optional[str] = None


@dataclasses.dataclass(repr=False)
class Plan:
    """A plan; neuroshard-plan(5) describes its format. A notebook shows it as
    the page of `neuroshard report`.

    json     -- the parsed plan file
    report   -- report that the command prints about the plan
    warnings -- warnings of the program, one sentence each
    """

    json: Dict[str, Any]
    report: str = ""
    warnings: List[str] = dataclasses.field(default_factory=list)

    @property
    def gpu_ms(self) -> float:
        """Predicted GPU work of a step: the time of the slowest GPU."""
        return self._number("total_ms")

    @property
    def step_ms(self) -> float:
        """Predicted step time: GPU work and the time of the host."""
        return self._number("step_ms")

    @property
    def samples_per_second(self) -> float:
        """Predicted speed; an upper bound if the dense part is not known."""
        return self._number("samples_per_second")

    @property
    def shards(self) -> List[Dict[str, Any]]:
        """The pieces of the tables, one row each, with the names of their
        tables: `pandas.DataFrame(plan.shards)`."""
        names = [table["name"] for table in self.json["tables"]]
        return [
            {**shard, "table": names[shard["table"]]}
            for shard in self.json["shards"]
        ]

    @property
    def devices(self) -> List[Dict[str, Any]]:
        """The GPUs, one row each. Times of phases are columns such as
        `forward_ms`, and items of memory columns such as `weights_bytes`."""
        return [
            {"device": i, **_flat(device)}
            for i, device in enumerate(self.json["devices"])
        ]

    def __repr__(self) -> str:
        json = self.json
        text = (
            f"{len(json['tables'])} tables in {len(json['shards'])} shards on "
            f"{json['cluster']['gpus']} GPUs"
        )
        for key, what in (("total_ms", "GPU work"), ("step_ms", "step")):
            if isinstance(json.get(key), (int, float)):
                text += f", {what} {json[key]:.4g} ms"
        return f"<neuroshard.Plan: {text}>"

    def _repr_html_(self) -> Optional[str]:
        """The page in a frame of its own; None if the plan is not priced."""
        try:
            page = html.escape(report(self))
        except Error:
            return None
        style = "width:100%;height:60em;border:0"
        return f'<iframe srcdoc="{page}" style="{style}"></iframe>'

    def _number(self, key: str) -> float:
        number = self.json.get(key)
        if not isinstance(number, (int, float)):
            raise Error("the plan is not priced", BAD_ANSWER)
        return number

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the plan file."""
        Path(path).write_bytes(_bytes(self.json))

    def emit(self, format: str, **options: Any) -> str:
        """Same as `neuroshard.emit` for this plan."""
        return emit(self, format, **options)


# Any: a DataFrame of pandas or polars
Tables = Union[
    str, "os.PathLike[str]", Sequence[Union[Table, Mapping[str, Any]]], Any
]
AnyPlan = Union[str, "os.PathLike[str]", Plan, Mapping[str, Any]]


def plan(tables: Tables, gpus: Union[int, str, None], **options: Any) -> Plan:
    """Returns the best plan that the search finds: `neuroshard plan`.

    tables -- path of a table list, or the tables themselves: `Table`s, or
              mappings with the columns of neuroshard-tables(5), in which
              `sharding` and `bins` may be lists, or a DataFrame of pandas or
              polars with these columns
    gpus   -- number of GPUs; "1..16" selects the smallest number in this range
              that holds the tables; None if `cluster` gives the number
    """
    return _planned("plan", _tables(tables), {"gpus": gpus, **options})


def price(plan: AnyPlan, **options: Any) -> Plan:
    """Returns the plan with its predicted cost: `neuroshard cost`. `plan` is a
    `Plan`, its JSON, or the path of a plan file."""
    return _planned("cost", _plan(plan), options)


def compare(
    tables: Tables, gpus: Union[int, str, None], **options: Any
) -> List[Dict[str, Any]]:
    """Compares our plan with the plans of other planners: `neuroshard
    compare`. Returns a dictionary per planner, with `planner`, `valid`,
    `total_ms` ..."""
    asked = {"gpus": gpus, **options}
    answer = _answer("compare", [_tables(tables)], asked)
    return _rows("compare", answer, "planners")


def ranges(
    tables: Tables, gpus: Union[int, str, None], **options: Any
) -> List[Dict[str, Any]]:
    """Plans for several numbers of GPUs, or for several GPUs: `neuroshard
    plan` with gpus="8..64:8" or gpu="h100,a100". Returns a dictionary per
    line of the command's table, with `gpu`, `gpus`, `fits`, `step_ms`,
    `samples_per_second` ..."""
    asked = {"gpus": gpus, **options}
    answer = _answer("plan", [_tables(tables)], asked)
    return _rows("plan", answer, "counts")


def explain(plan: AnyPlan, **options: Any) -> Dict[str, Any]:
    """Returns what limits the plan and what would help: `neuroshard explain`
    with --json."""
    return _answer("explain", [_plan(plan)], options)


def diff(old: AnyPlan, new: AnyPlan, **options: Any) -> Dict[str, Any]:
    """Returns the gain of the plan `new` over `old` and the pieces that move:
    `neuroshard diff` with --json."""
    return _answer("diff", [_plan(old, "old"), _plan(new, "new")], options)


def report(*documents: AnyPlan) -> str:
    """Returns an HTML page of plans and of the command's other JSON documents:
    `neuroshard report`. Two plans are also shown side by side."""
    sources = [_plan(one, f"page_{i}") for i, one in enumerate(documents)]
    written = _run("report", sources, {}, "page.html").written
    return written.decode("utf-8", "replace")


def emit(plan: AnyPlan, format: str, **options: Any) -> str:
    """Returns the plan in the format of a training framework: `neuroshard
    emit`."""
    asked = {"format": format, **options}
    written = _run("emit", [_plan(plan)], asked, "emitted").written
    try:
        return written.decode()
    except UnicodeDecodeError as error:
        raise _bad_answer("emit", str(error)) from error


class _Done(NamedTuple):
    out: bytes  # standard output
    written: bytes  # content of the --output file
    warnings: List[str]


class _Input(NamedTuple):
    path: str
    stdin: bytes = b""  # if there are several inputs, content of a file
    what: str = ""  # name of stdin, or of the file, in messages
    lines: Sequence[str] = ()  # table of each line, from line 2 on


def _readable(text: str, source: _Input, folder: Path) -> str:
    """Rewrites a message so that it names nothing internal to this call. A
    line of standard input becomes its table. A file in the temporary folder
    becomes the option that it was written for."""

    def on_line(found: re.Match[str]) -> str:
        line = int(found[1] or 0) - 2
        if 0 <= line < len(source.lines):
            return f"table '{source.lines[line]}'"
        return source.what

    if source.stdin:
        at = "(?:<stdin>|standard input)(?::([0-9]+))?"
        text = re.sub(at, on_line, text)
    path = re.escape(f"{folder}{os.sep}")
    return re.sub(path + r"([\w-]+)(?:\.json)?(?::[0-9]+)?", r"\1", text)


def _planned(command: str, source: _Input, options: Mapping[str, Any]) -> Plan:
    done = _run(command, [source], options, "plan.json")
    json = _parsed(command, done.written)
    for member in ("neuroshard_plan", "tables", "shards", "devices"):
        if member not in json:
            raise _bad_answer(command, f"the plan has no {member}")
    report = done.out.decode("utf-8", "replace")
    # The last line names the temporary file that the plan was written to.
    if "\nwrote " in report:
        report = report[: report.rindex("\nwrote ") + 1]
    return Plan(json, report, done.warnings)


def _answer(
    command: str, sources: Sequence[_Input], options: Mapping[str, Any]
) -> Dict[str, Any]:
    asked = {"json": True, **options}
    return _parsed(command, _run(command, sources, asked).out)


def _rows(
    command: str, answer: Mapping[str, Any], key: str
) -> List[Dict[str, Any]]:
    rows = answer.get(key)
    if not isinstance(rows, list):
        raise _bad_answer(command, f"it has no {key}")
    return rows


def _run(
    command: str,
    sources: Sequence[_Input],
    options: Mapping[str, Any],
    output: str = "",
) -> _Done:
    options = dict(options)
    timeout_s = options.pop("timeout_s", None)
    if "output" in options:
        raise Error("'output' is no option here: save what is returned", 2)
    warnings: List[str] = []
    with _program.folder() as folder:
        if len(sources) > 1:
            sources = [_in_file(source, folder) for source in sources]
        source = sources[0]
        paths = [source.path for source in sources]
        args = [command, *paths, *_arguments(options, folder)]
        written = folder / (output or "none")
        if output:
            args.append(f"--output={written}")
        try:
            out = _program.run(
                args, source.stdin, timeout_s=timeout_s, warnings=warnings
            )
        except Error as error:
            text = _readable(str(error), source, folder)
            raise Error(text, error.status) from error
        file = written.read_bytes() if written.exists() else b""
        warnings = [_readable(text, source, folder) for text in warnings]
    return _Done(out, file, warnings)


def _in_file(source: _Input, folder: Path) -> _Input:
    """Returns the input as a file: only one can be standard input."""
    if source.path != "-":
        return source
    file = folder / f"{source.what}.json"
    file.write_bytes(source.stdin)
    return _Input(str(file))


def _arguments(options: Mapping[str, Any], folder: Path) -> List[str]:
    args = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        if isinstance(value, Plan):
            value = value.json
        if isinstance(value, Mapping):
            file = folder / f"{name}.json"
            file.write_bytes(_bytes(value))
            value = file
        elif isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        option = "--" + name.rstrip("_").replace("_", "-")
        args.append(option if value is True else f"{option}={value}")
    return args


def _path(path: Union[str, os.PathLike[str]]) -> _Input:
    """Returns an input that is a file, even if its name looks like an option
    or like standard input ("-")."""
    name = os.fspath(path)
    return _Input(os.path.join(".", name) if name.startswith("-") else name)


def _plan(plan: AnyPlan, what: str = "the plan") -> _Input:
    if isinstance(plan, Plan):
        plan = plan.json
    if isinstance(plan, Mapping):
        return _Input("-", _bytes(plan), what)
    return _path(plan)


def _flat(row: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the row with the members of its mappings as columns of its own:
    {"phases_ms": {"input": 1}} becomes {"input_ms": 1}."""
    flat: Dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            unit = key.rpartition("_")[2]
            flat.update({f"{part}_{unit}": v for part, v in value.items()})
        else:
            flat[key] = value
    return flat


def _tables(tables: Tables) -> _Input:
    if isinstance(tables, (str, os.PathLike)):
        return _path(tables)
    if hasattr(tables, "to_dicts"):  # polars
        tables = tables.to_dicts()
    elif hasattr(tables, "to_dict"):  # pandas
        tables = tables.to_dict("records")
    rows = [_row(table) for table in tables]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    names = [str(row.get("name", "")) for row in rows]
    if any(len(name.splitlines()) > 1 for name in names):
        names = []  # line numbers do not match tables
    stdin = text.getvalue().encode("utf-8", "surrogatepass")
    return _Input("-", stdin, "the tables", names)


def _row(table: Union[Table, Mapping[str, Any]]) -> Dict[str, Any]:
    if isinstance(table, Table):
        table = vars(table)
    # A cell that is missing in a DataFrame is None or NaN.
    row = {
        key: value
        for key, value in table.items()
        if value is not None and value == value
    }
    if "rows" in row and "num_embeddings" not in row:
        row["num_embeddings"] = row.pop("rows")
    if not isinstance(row.get("sharding", ""), str):
        row["sharding"] = "|".join(row["sharding"])
    for i, share in enumerate(row.pop("bins", ())):
        row[f"bin_{i}"] = share
    return row


def _bytes(json: Mapping[str, Any]) -> bytes:
    return (_json.dumps(json, indent=1) + "\n").encode()


def _parsed(command: str, text: bytes) -> Dict[str, Any]:
    try:
        json = _json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad_answer(command, str(error)) from error
    if not isinstance(json, dict):
        raise _bad_answer(command, "it is no object")
    return json


def _bad_answer(command: str, why: str) -> Error:
    return Error(
        f"the answer of 'neuroshard {command}' cannot be read: {why}",
        BAD_ANSWER,
    )
