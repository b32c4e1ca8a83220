"""Exports metric values for other programs: CSV, JSON or Parquet, one row per value."""

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator
from enum import StrEnum, auto
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bench.csv_cells import harmless_cell
from bench.errors import UserError
from bench.machine.files import write_output

if TYPE_CHECKING:
    from bench.store.store import Store

COLUMNS = ("suite", "dataset", "split", "method", "seed", "metric", "value", "key", "status")
Row = tuple[Any, ...]  # the values of these columns
ROWS_AT_ONCE = 20_000


class Format(StrEnum):
    """The formats of exported files."""

    CSV = auto()
    JSON = auto()
    PARQUET = auto()


def rows(store: "Store", suite: str | None = None) -> Iterator[Row]:
    """Yield the metric values of one suite or of all, with the metrics relative to a baseline; `COLUMNS` names them."""
    if suite is not None:
        store.require_suite(suite)
    return chain.from_iterable(_rows_of(store, name) for name in (store.suites() if suite is None else [suite]))


def _rows_of(store: "Store", suite: str) -> Iterator[Row]:
    from bench.store.results import StoredResults

    found, states = StoredResults(store, suite).columns, store.states(suite)
    for first in range(0, len(found.value), ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        numbers = (found.place[part].tolist(), found.metric[part].tolist(), found.value[part].tolist())
        for p, m, value in zip(*numbers, strict=True):
            *place, key = found.places[p]
            yield (*place, found.metrics[m], value, key, states[key])


def write_csv(values: Iterable[Row], file: IO[bytes]) -> int:
    """Write values as CSV; numbers have all their digits."""
    text = io.TextIOWrapper(file, "utf-8", newline="")
    count = 0
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for part in _parts(values):
            writer.writerows([harmless_cell(value) for value in row] for row in part)  # a float is written as its repr
            count += len(part)
    finally:
        text.detach()  # or it would close the file, which is the caller's
    return count


def write_json(values: Iterable[Row], file: IO[bytes]) -> int:
    """Write values as a JSON list, one object per row; infinity and NaN, which JSON does not have, are strings."""
    file.write(b"[")
    count = 0
    for count, row in enumerate(values, 1):
        record = dict(zip(COLUMNS, row, strict=True))
        if not math.isfinite(record["value"]):
            record["value"] = str(record["value"])
        file.write((",\n" if count > 1 else "\n").encode() + json.dumps(record).encode())
    file.write(b"\n]\n")
    return count


def write_parquet(values: Iterable[Row], file: IO[bytes]) -> int:
    """Write values as Parquet, one group of rows after another."""
    try:
        import pyarrow as arrow
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise UserError("--format parquet: needs the package pyarrow: pip install 'uqbench[parquet]'") from None
    kinds = dict.fromkeys(COLUMNS, arrow.string()) | {"split": arrow.int64(), "seed": arrow.int64()}
    schema = arrow.schema(list((kinds | {"value": arrow.float64()}).items()))
    count = 0
    with ParquetWriter(file, schema) as writer:
        for part in _parts(values):
            writer.write_batch(arrow.record_batch(list(zip(*part, strict=True)), schema=schema))
            count += len(part)
    return count


def write(values: Iterable[Row], form: Format, file: IO[bytes]) -> int:
    """Write values in one of the formats; return how many there were."""
    writers = {Format.CSV: write_csv, Format.JSON: write_json, Format.PARQUET: write_parquet}
    return writers[form](values, file)


def write_file(values: Iterable[Row], form: Format, path: Path) -> int:
    """Write values to a file, completely or not at all; return how many there were."""
    counts: list[int] = []
    write_output(path, lambda file: counts.append(write(values, form, file)), durable=True)
    return counts[-1]


def _parts(values: Iterable[Row]) -> Iterator[list[Row]]:
    """Cut values into lists, so that memory does not grow with their number."""
    source = iter(values)
    while part := list(islice(source, ROWS_AT_ONCE)):
        yield part


def write_plugins(store: "Store", suite: str | None, folder: Path) -> list[Path]:
    """Write the plug-in files of the cells of one suite or of all as `HASH/NAME.py`; return the files."""
    from bench.store.store import plugin_hashes

    names = store.suites() if suite is None else [suite]
    used: set[str] = set()
    for name in names:
        for spec in {row["spec"] for row in store.cells(name)}:
            used |= plugin_hashes(spec)
    sources = store.plugins(used).items()
    return [write_output(folder / name / source.file_name, source.content) for name, source in sources]
