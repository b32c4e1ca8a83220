"""Reads predictions from files of anybody's: numbers only, in the expected shapes, bounded before they are opened."""

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.api import Prediction, Split
from bench.errors import UserError
from bench.metrics import Logits, Normal, Points, Probabilities, Quantiles
from bench.spec.sizes import MOST_ARRAY_BYTES, MOST_DRAWN_VALUES, MOST_DRAWS
from bench.store.arrays import UNREADABLE, stated_bytes
from bench.submissions.document import Submission, read_bounded

Arrays = Mapping[str, NDArray[Any]]
MOST_TEXT_BYTES = 2**28  # of a CSV or Parquet file
MOST_COLUMNS = 10_000
# The arrays of each kind; those in brackets may be left out.
NAMES = {
    "points": "values",
    "normal": "mean [std] [variance]",
    "quantiles": "values [point]",
    "interval": "lower upper [point]",
    "probabilities": "values",
    "logits": "values",
}
NUMBERED = re.compile(r"(.+)_(\d{1,5})")


def read_prediction(path: Path, submission: Submission, split: Split) -> Prediction:
    """Return the predictions in a file for the test rows of a split; every fault is a UserError in one line."""
    rows = len(split.test_y)
    readers = {".npz": _from_npz, ".csv": _from_csv, ".parquet": _from_parquet}
    arrays = readers[path.suffix](path, rows)
    expected = NAMES[submission.kind].split()
    wanted = [name for name in expected if "[" not in name]
    known = {name.strip("[]") for name in expected}
    if lacking := [name for name in wanted if name not in arrays]:
        raise UserError(f"{path}: no array {lacking[0]!r}; {submission.kind} have {NAMES[submission.kind]}")
    if strange := sorted(set(arrays) - known):
        raise UserError(f"{path}: unknown array {strange[0][:40]!r}; {submission.kind} have {NAMES[submission.kind]}")
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise UserError(f"{path}: {name} holds {array.dtype}, not numbers")
        infinite_allowed = submission.kind in ("interval", "quantiles") and name != "point"
        bad = np.isnan(array) if infinite_allowed else ~np.isfinite(array)
        if count := int(np.count_nonzero(bad)):
            raise UserError(f"{path}: {name}: {count} of {array.size} values are NaN or infinite")
    if (submission.kind in ("probabilities", "logits")) != (split.task == "classification"):
        raise UserError(f"kind = {submission.kind!r}: the dataset is for {split.task}")
    try:
        return _prediction(submission, arrays, rows, split.classes)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _prediction(submission: Submission, arrays: Arrays, rows: int, classes: int) -> Prediction:
    if submission.kind == "points":
        return Points(_drawn(arrays, "values", (rows,)))
    if submission.kind == "normal":
        mean = _drawn(arrays, "mean", (rows,))
        if ("std" in arrays) == ("variance" in arrays):
            raise UserError("normals have a mean and either std or variance")
        name = "std" if "std" in arrays else "variance"
        spread = _drawn(arrays, name, (rows,))
        if spread.min() < 0:
            raise UserError(f"{name}: lowest value is {float(spread.min()):.6g}, must be at least 0")
        return Normal(mean, noise_variance=np.square(spread) if name == "std" else spread)
    if submission.kind == "quantiles":
        point = _drawn(arrays, "point", (rows,)) if "point" in arrays else None
        values = _drawn(arrays, "values", (rows, len(submission.levels)))
        return Quantiles(np.array(submission.levels), values, point)
    if submission.kind == "interval":
        assert submission.level is not None  # the document was checked
        lower, upper = (_drawn(arrays, name, (rows,)) for name in ("lower", "upper"))
        if len(lower) != len(upper):
            raise UserError(f"lower has {len(lower)} draws, upper {len(upper)}")
        tail = (1 - submission.level) / 2
        point = _drawn(arrays, "point", (rows,)) if "point" in arrays else None
        return Quantiles(np.array([tail, 1 - tail]), np.stack([lower, upper], axis=-1), point)
    values = _drawn(arrays, "values", (rows, classes))
    return Probabilities(values) if submission.kind == "probabilities" else Logits(values)


def _drawn(arrays: Arrays, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array with an axis of draws, which one draw may leave out."""
    array = np.asarray(arrays[name], dtype=np.float64)
    array = array[None] if array.ndim == len(shape) else array
    if array.ndim != len(shape) + 1 or array.shape[1:] != shape or not len(array):
        axes = ", ".join(map(str, shape))
        raise UserError(f"{name}: expected shape [{axes}] or [draws, {axes}], got {list(arrays[name].shape)}")
    if len(array) > MOST_DRAWS or array.size > MOST_DRAWN_VALUES:
        raise UserError(f"{name}: {array.size:,} values of {len(array):,} draws; at most {MOST_DRAWN_VALUES:,} values")
    return array


def _from_npz(path: Path, rows: int) -> Arrays:
    content = read_bounded(path, MOST_ARRAY_BYTES)
    try:
        stated = stated_bytes(content)  # nothing is unpacked before
        if stated > MOST_ARRAY_BYTES:
            raise UserError(f"{path}: its arrays have {stated:,} bytes in memory; at most {MOST_ARRAY_BYTES:,}")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            if len(arrays.files) > MOST_COLUMNS:
                raise UserError(f"{path}: {len(arrays.files)} arrays; at most {MOST_COLUMNS}")
            return {name: arrays[name] for name in arrays.files}
    except UNREADABLE as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path}: not a file of arrays ({' '.join(str(error).split())[:100]})") from None


def _from_csv(path: Path, rows: int) -> Arrays:
    content = read_bounded(path, MOST_TEXT_BYTES)
    try:
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        names = [name.strip() for name in next(reader, [])]
        _check_columns(path, names)
        table = np.empty((rows, len(names)))
        count = 0
        for row in reader:
            if not row:
                continue
            if count == rows:
                raise UserError(f"{path}: more than the {rows} rows of the test set")
            if len(row) != len(names):
                raise UserError(f"{path}: line {reader.line_num}: {len(row)} cells for {len(names)} columns")
            try:
                table[count] = row
            except ValueError:
                raise UserError(f"{path}: line {reader.line_num}: not all cells are numbers") from None
            count += 1
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text") from None
    except csv.Error as error:
        raise UserError(f"{path}: not a table: {error}") from None
    if count != rows:
        raise UserError(f"{path}: {count} rows, the test set has {rows}")
    return _stacked(dict(zip(names, table.T, strict=True)))


def _from_parquet(path: Path, rows: int) -> Arrays:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UserError(f"{path}: needs pyarrow: pip install 'uqbench[parquet]'") from None
    content = read_bounded(path, MOST_TEXT_BYTES)
    try:
        with parquet.ParquetFile(pyarrow.BufferReader(content)) as file:
            names = list(file.schema_arrow.names)
            _check_columns(path, names)
            if file.metadata.num_rows != rows:
                raise UserError(f"{path}: {file.metadata.num_rows:,} rows, the test set has {rows}")
            if rows * len(names) * 8 > MOST_ARRAY_BYTES:
                raise UserError(f"{path}: {rows:,} rows of {len(names)} columns are too many")
            found = {}
            for name, field in zip(names, file.schema_arrow, strict=True):
                if not (pyarrow.types.is_floating(field.type) or pyarrow.types.is_integer(field.type)):
                    raise UserError(f"{path}: column {name[:40]!r} holds {field.type}, not numbers")
                column = file.read(columns=[name]).column(0).to_numpy(zero_copy_only=False)
                found[name] = np.asarray(column, dtype=np.float64)
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a Parquet table: {' '.join(str(error).split())[:100]}") from None
    return _stacked(found)


def _check_columns(path: Path, names: list[str]) -> None:
    if not names or len(set(names)) < len(names) or len(names) > MOST_COLUMNS:
        raise UserError(f"{path}: expected a first row of different names, at most {MOST_COLUMNS}")


def _stacked(columns: Arrays) -> Arrays:
    """Return columns as arrays; `values_1`, `values_2`, ... are the columns of one array."""
    found: dict[str, Any] = {}
    numbered: dict[str, dict[int, Any]] = {}
    for name, column in columns.items():
        if match := NUMBERED.fullmatch(name):
            numbered.setdefault(match[1], {})[int(match[2])] = column
        else:
            found[name] = column
    for name, parts in numbered.items():
        found[name] = np.stack([parts[number] for number in sorted(parts)], axis=-1)
    return found
