"""Exports metric values for other programs: CSV, JSON or Parquet, one row per value."""

import csv
import io
import json
import math
from collections.abc import Sequence
from enum import StrEnum, auto
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bench.errors import UserError, unknown_name

if TYPE_CHECKING:
    import pandas as pd

    from bench.store.store import Store

COLUMNS = ("suite", "dataset", "split", "method", "seed", "metric", "value", "key", "status")


class Format(StrEnum):
    """The formats of exported files."""

    CSV = auto()
    JSON = auto()
    PARQUET = auto()


def table(store: "Store", suite: str | None = None) -> "pd.DataFrame":
    """Return the metric values of one suite or of all, one row each, with the metrics relative to a baseline."""
    import pandas as pd

    from bench.store.results import StoredResults

    known = store.suites()
    if suite is not None and suite not in known:
        raise unknown_name("suite", suite, known, f"store {store.address}")
    parts = []
    for name in known if suite is None else [suite]:
        results = StoredResults(store, name)
        states = dict(zip(results.cells["key"], results.cells["status"], strict=True))
        parts.append(results.frame.assign(status=results.frame["key"].map(states)))
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)
    return frame[list(COLUMNS)]


def write_csv(frame: "pd.DataFrame", file: IO[bytes]) -> None:
    """Write a table as CSV; numbers have all their digits."""
    text = io.TextIOWrapper(file, "utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows(_rows(frame))  # a float is written as its repr
    text.flush()
    text.detach()


def write_json(frame: "pd.DataFrame", file: IO[bytes]) -> None:
    """Write a table as a JSON list, one object per row; infinity and NaN, which JSON does not have, are strings."""
    file.write(b"[")
    for number, row in enumerate(_rows(frame)):
        record = dict(zip(frame.columns, row, strict=True))
        if isinstance(record["value"], float) and not math.isfinite(record["value"]):
            record["value"] = str(record["value"])
        file.write((",\n" if number else "\n").encode() + json.dumps(record).encode())
    file.write(b"\n]\n")


def write_parquet(frame: "pd.DataFrame", file: IO[bytes]) -> None:
    """Write a table as Parquet."""
    types = dict.fromkeys(COLUMNS, "string") | {"split": "int64", "seed": "int64", "value": "float64"}
    try:
        content = frame.astype(types).to_parquet(None, engine="pyarrow", index=False)
    except ImportError:
        raise UserError("--format parquet: needs the package pyarrow: pip install 'uqbench[parquet]'") from None
    file.write(content)


def write(frame: "pd.DataFrame", form: Format, file: IO[bytes]) -> None:
    """Write a table in one of the formats."""
    writers = {Format.CSV: write_csv, Format.JSON: write_json, Format.PARQUET: write_parquet}
    writers[form](frame, file)


def write_file(frame: "pd.DataFrame", form: Format, path: Path) -> None:
    """Write a table to a file, completely or not at all."""
    from bench.machine.files import sync_folder, write_whole

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda file: write(frame, form, file))
        sync_folder(path.parent)
    except OSError as error:
        raise UserError(f"--out {path}: {error.strerror or error}") from error


def write_plugins(store: "Store", suite: str | None, folder: Path) -> list[Path]:
    """Write the plug-in files of the cells of one suite or of all as `HASH/NAME.py`; return the files."""
    from bench.store.store import plugin_hashes

    names = store.suites() if suite is None else [suite]
    used: set[str] = set()
    for name in names:
        for spec in {row["spec"] for row in store.cells(name)}:
            used |= plugin_hashes(spec)
    paths = []
    try:
        for name, source in store.plugins(used).items():
            path = folder / name / source.file_name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source.content)
            paths.append(path)
    except OSError as error:
        raise UserError(f"--plugins {folder}: {error.strerror or error}") from error
    return paths


def _rows(frame: "pd.DataFrame") -> Sequence[tuple[Any, ...]]:
    return list(zip(*(frame[name].tolist() for name in frame.columns), strict=True))
