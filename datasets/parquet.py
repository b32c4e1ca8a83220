"""A table of your own in a Parquet file: parquet:path/to/file.parquet, with the options of `csv`.

Numbers and truth values are numbers, texts and dictionaries are words, dates and times are ISO dates, and a null is a
missing value. Other types, such as lists, are refused by the name of their column. Needs pyarrow:
`pip install 'uqbench[parquet]'`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bench.api import UserError
from bench.datasets._own_table import OwnTable
from bench.datasets._table import FEWEST, LAST, MOST_CELLS, Column, ColumnBuilder, Table, check_names, read_once


@dataclass(frozen=True)
class Parquet(OwnTable):
    """Any table of numbers, words and dates; it is checked, and errors name the row and the column."""

    kind: ClassVar[str] = "parquet"

    def skip(self) -> str | None:
        """Return what is missing: the name of a table, or the package that reads it."""
        try:
            import pyarrow.parquet  # noqa: F401  # whether it is there
        except ImportError:
            return "needs pyarrow: pip install 'uqbench[parquet]'"
        return super().skip()

    def read(self, path: Path, text: frozenset[str]) -> Table:
        """Read the file."""
        return read_once(path, text, _read)


def _read(path: Path, text: frozenset[str]) -> Table:
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            facts = file.metadata
            names = list(file.schema_arrow.names)
            check_names(path, names)
            if facts.num_rows * len(names) > MOST_CELLS:
                raise UserError(
                    f"{path}: {facts.num_rows:,} rows of {len(names)} columns; at most {MOST_CELLS:,} cells"
                )
            if facts.num_rows < FEWEST:
                raise UserError(f"{path}: {facts.num_rows} rows; at least {FEWEST} are needed")
            words = {names[-1] if name == LAST else name for name in text}
            columns = {}
            for name in names:  # one at a time: no second copy of the table
                values = file.read(columns=[name]).column(0)
                columns[name] = _column(path, name, values, as_text=name in words)
    except pyarrow.ArrowException as error:
        raise UserError(f"{path}: not a Parquet table: {' '.join(str(error).split())[:200]}") from None
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())[:200]
        raise UserError(f"{path}: cannot be read: {reason}") from None
    return Table(path, columns, np.arange(1, facts.num_rows + 1), counted="row")


def _column(path: Path, name: str, values: Any, *, as_text: bool) -> Column:
    """Return a column of an Arrow table."""
    from pyarrow import compute, types

    kind = values.type
    if types.is_dictionary(kind):
        values = values.cast(kind.value_type)
        kind = values.type
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if is_number and not as_text:
        numbers = compute.cast(values, "float64").to_numpy(zero_copy_only=False)
        bad = ~np.isfinite(numbers)
        if not bad.any():
            return Column(numbers)
        codes = np.where(bad, np.int32(np.isinf(numbers)), np.int32(-1)).astype(np.int32)
        return Column(np.where(bad, np.nan, numbers), codes, ("", "inf"))
    moment = types.is_date(kind) or types.is_timestamp(kind)
    if not (is_number or moment or types.is_string(kind) or types.is_large_string(kind) or types.is_decimal(kind)):
        raise UserError(f"{path}: column {name!r} has type {kind}; expected numbers, words or dates")
    builder = ColumnBuilder(as_text=as_text or moment)
    for chunk in values.chunks:
        cells = chunk.to_pylist()
        builder.add(["" if cell is None else cell.isoformat() if moment else str(cell).strip() for cell in cells])
    return builder.column()
