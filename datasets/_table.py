"""Reads a user's table from a file; errors name the row and the column."""

import csv
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.api import Array, UserError

FEWEST = 10  # rows: a tenth of them is one test row
MOST_BYTES = 2**28  # of a file: every cell is held as text, which takes several times as much memory


@dataclass(frozen=True)
class Table:
    """Cells as text, with the line of the file that each row ends on."""

    path: Path
    columns: list[str]
    cells: list[list[str]]
    lines: list[int]

    def place(self, row: int, column: str) -> str:
        """Return where a cell stands, as a user finds it."""
        return f"{self.path}: line {self.lines[row]}, column {column!r}"


def read_table(path: Path) -> Table:
    """Read a table and check its shape."""
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):  # a pipe or a device may have no end
            raise UserError(f"{path}: not a regular file; name a file with the table")
        if facts.st_size > MOST_BYTES:
            advice = "larger tables need a dataset of their own: uqbench new dataset"
            raise UserError(f"{path}: {facts.st_size:,} bytes, a table has at most {MOST_BYTES:,}; {advice}")
        with path.open(encoding="utf-8-sig", newline="") as content:
            head = content.readline()
            delimiter = max(",;\t", key=head.count)  # the first of equals: a comma
            content.seek(0)
            reader = csv.reader(content, delimiter=delimiter, strict=True)
            columns = [name.strip() for name in next(reader, [])]
            cells, lines = [], []
            for row in reader:
                if row:  # an empty line is none
                    cells.append([cell.strip() for cell in row])
                    lines.append(reader.line_num)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a table: the file is not UTF-8 text") from None
    except csv.Error as error:
        raise UserError(f"{path}: not a table: {error}") from None
    _check(path, columns, cells, lines)
    return Table(path, columns, cells, lines)


def numbers(table: Table, columns: Sequence[str]) -> Array:
    """Return some columns as numbers `[rows, columns]`, all of them finite."""
    places = [table.columns.index(name) for name in columns]
    chosen = [[row[place] for place in places] for row in table.cells]
    try:
        values = np.array(chosen, dtype=np.float64)
    except ValueError:
        values = np.array([[_number(cell) for cell in row] for row in chosen])
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = bad[0]
        cell = chosen[row][column]
        more = f" (and {len(bad) - 1} more such cells)" if len(bad) > 1 else ""
        what = f"{cell!r} is not a finite number" if cell else "the cell is empty"
        raise UserError(f"{table.place(row, columns[column])}: {what}{more}; fill it in, encode it, or leave it out")
    return values


def targets_of(table: Table, target: str) -> Array:
    """Return a regression target; one that never changes cannot be learned."""
    y = numbers(table, [target])[:, 0]
    if np.ptp(y) == 0:
        raise UserError(f"{table.path}: the target {target!r} is {y[0]:g} in every row; name another with target = ...")
    return y


def classes_of(table: Table, target: str) -> tuple[Array, int]:
    """Return a classification target as numbers of its sorted values, and how many values there are."""
    place = table.columns.index(target)
    labels = [row[place] for row in table.cells]
    if "" in labels:
        raise UserError(f"{table.place(labels.index(''), target)}: the cell is empty; every row needs a class")
    names = sorted(set(labels), key=lambda label: (_number(label), label) if _is_number(label) else (np.inf, label))
    if len(names) < 2:
        raise UserError(f"{table.path}: the target {target!r} is {names[0]!r} in every row; name another")
    if 2 * len(names) > len(labels):
        raise UserError(
            f"{table.path}: {len(names)} classes in {len(labels)} rows; if {target!r} is a number, task = 'regression'"
        )
    number = {name: index for index, name in enumerate(names)}
    return np.array([number[label] for label in labels]), len(names)


def groups_of(table: Table, column: str) -> Array:
    """Return the group of every row by its name."""
    place = table.columns.index(column)
    names = [row[place] for row in table.cells]
    if "" in names:
        raise UserError(f"{table.place(names.index(''), column)}: the cell is empty; every row needs a group")
    if 2 * len(set(names)) > len(names):
        raise UserError(f"{table.path}: {len(set(names))} groups in {len(names)} rows; {column!r} does not group them")
    return np.array(names)


def _check(path: Path, columns: Sequence[str], cells: Sequence[Sequence[str]], lines: Sequence[int]) -> None:
    if not columns:
        raise UserError(f"{path}: the file is empty; expected column names in the first row and numbers below")
    if all(_is_number(name) for name in columns):
        raise UserError(f"{path}: the first row holds numbers; expected the names of the columns there")
    for name, count in Counter(columns).items():
        if not name or count > 1:
            raise UserError(f"{path}: the first row holds {'an empty name' if not name else f'{name!r} twice'}")
    for row, line in zip(cells, lines, strict=True):
        if len(row) != len(columns):
            raise UserError(f"{path}: line {line}: {len(row)} cells where the first row names {len(columns)} columns")
    if len(cells) < FEWEST:
        raise UserError(f"{path}: {len(cells)} rows below the column names; at least {FEWEST} are needed")


def _is_number(text: str) -> bool:
    return not np.isnan(_number(text))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
