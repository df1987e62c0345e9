"""HugeCTR's checks of an embedding collection, once more.

Written from HugeCTR 2f2016fa: EmbeddingCollectionConfig and its helpers,
split_column_wise_sharding_config, EmbeddingCollectionParam and
get_table_shard_id. `Config` is what a job passes to `shard`, and tables are
{name: (rows, columns, combiner, hotness)}.
"""
import types
from dataclasses import dataclass
from enum import Enum

WIDEST = 256  # columns that the kernels of lookups take
Compression = Enum("Compression", "Reduction Unique")
Communication = Enum("Communication", "Uniform Hierarchical")


class Refused(Exception):
    """A check of HugeCTR that fails."""


@dataclass
class Config:
    """The arguments of EmbeddingCollectionConfig.shard."""

    matrix: list
    strategy: list
    compression: dict
    comm: Communication = Communication.Uniform


def check(holds, why):
    if not holds:
        raise Refused(why)


def load(text):
    """Runs an emitted module with a stand-in for hugectr."""
    names = types.SimpleNamespace(
        CompressionStrategy=Compression, CommunicationStrategy=Communication
    )
    scope = {"hugectr": names}
    exec(text.replace("import hugectr\n", ""), scope)  # noqa: S102
    return Config(
        scope["shard_matrix"],
        scope["shard_strategy"],
        scope["compression_strategy_dict"],
        scope["comm_strategy"],
    )


def groups_of(strategy):
    """The placement and the column factor of each table."""
    placed = {}
    for place, entries in strategy:
        check(place in ("mp", "dp"), "placement strategy is not mp or dp")
        for entry in entries:
            name, factor = entry if isinstance(entry, tuple) else (entry, 1)
            check(name not in placed, f"{name} has two strategies")
            check(
                place == "mp" or factor == 1,
                f"dp table {name} has no column-wise sharding",
            )
            check(factor >= 1, f"{name} has a column factor of {factor}")
            placed[name] = (place, factor)
    return placed


def split(config, tables):
    """Returns {(name, column piece): its GPUs}, in the order of the GPUs."""
    pieces = {}
    for name, (_, factor) in groups_of(config.strategy).items():
        check(name in tables, f"no table {name}")
        columns = tables[name][1]
        check(columns % factor == 0, f"ev_size of {name} is not divided")
        check(columns // factor <= WIDEST, f"a piece of {name} is too wide")
        gpus = [g for g, row in enumerate(config.matrix) if name in row]
        check(len(gpus) % factor == 0, f"GPUs of {name} are not divided")
        n_ways = len(gpus) // factor
        for i, gpu in enumerate(gpus):
            pieces.setdefault((name, i // n_ways), []).append(gpu)
    return pieces


def check_compression(config, tables, placed):
    kinds = config.compression
    reduction = set(kinds.get(Compression.Reduction, ()))
    unique = set(kinds.get(Compression.Unique, ()))
    check(not reduction & unique, "a table is in two compressions")
    model = {name for name, (place, _) in placed.items() if place == "mp"}
    check(reduction | unique == model, "compression does not match mp tables")
    for name in model:
        if tables[name][2] == "concat":
            check(name in unique, f"{name} concatenates, so it needs Unique")


def check_all(config, tables, n_gpus, host=None):
    """Raises Refused. `host` is the number of GPUs of each host."""
    check(len(config.matrix) == n_gpus, "not one list for each GPU")
    for row in config.matrix:
        check(len(set(row)) == len(row), "a table is listed twice for a GPU")
        check(set(row) <= set(tables), "a list has an unknown table")
    placed = groups_of(config.strategy)
    pieces = split(config, tables)
    for name in tables:
        check(name in placed, f"{name} has no strategy")
        n_lists = sum(name in row for row in config.matrix)
        check(n_lists > 0, f"{name} is on no GPU")
        is_data = placed[name][0] == "dp"
        check(not is_data or n_lists == n_gpus, f"{name} is not on all GPUs")
    check_compression(config, tables, placed)
    if any(place == "dp" for place, _ in placed.values()):
        for name, (_, _, combiner, hotness) in tables.items():
            check(
                combiner != "concat" or hotness <= 1,
                f"dp group beside {name}, which concatenates several",
            )
    if config.comm is Communication.Hierarchical:
        check(host and n_gpus % host == 0, "hosts differ")
    return pieces


def rows_of(gpus, gpu, rows):
    """The number of rows of a piece on one of its GPUs: key mod n."""
    return len(range(gpus.index(gpu), rows, len(gpus)))
