"""Reads a user's table column by column; errors name the row and the column.

A table of a million rows is held as numbers: only cells that are no numbers are kept as text, each distinct one once.
"""

import csv
import re
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from bench.api import Array, UserError

FEWEST = 10  # rows: a tenth of them is one test row
MOST_BYTES = 2**30  # of a file
MOST_CELLS = 2**27  # of a table: 1 GiB as numbers
MOST_KEPT_CELLS = 2**23  # of a table that is kept in memory between two splits
CHUNK = 10_000  # rows that are held as text at once
MISSING = frozenset({"", "na", "n/a", "nan", "null", "?"})  # in any case; 'none' is often a category
WITH_COMMA = re.compile(r"[+-]?\d[\d.,]*,\d+([eE][+-]?\d+)?")  # a decimal comma, or a separator of thousands
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
LAST = "\0last"  # among names of columns: the last one, whatever its name


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of one column: numbers, and words where a cell is no finite number."""

    numbers: Array  # NaN where the cell is a word
    codes: Array | None = None  # the place of each word in `words`, -1 where the cell is a number; None: no words
    words: tuple[str, ...] = ()

    def text(self, row: int) -> str:
        """Return a cell as text."""
        if self.codes is not None and self.codes[row] >= 0:
            return self.words[int(self.codes[row])]
        return f"{self.numbers[row]:g}"

    def which(self, words: Collection[str]) -> Array:
        """Return at which rows the cell is one of these words."""
        if self.codes is None:
            return np.zeros(len(self.numbers), dtype=bool)
        chosen = np.array([word in words for word in self.words] + [False])  # the last: of code -1
        found: Array = chosen[self.codes]
        return found


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name, in the order of the file, with the line of the file that each row ends on."""

    path: Path
    columns: Mapping[str, Column]
    lines: Array
    counted: str = "line"  # what `lines` counts, as a user finds it

    def __len__(self) -> int:
        return len(self.lines)

    def place(self, row: int, column: str) -> str:
        """Return where a cell stands, as a user finds it."""
        return f"{self.path}: {self.counted} {self.lines[row]}, column {column!r}"


def regular_size(path: Path, most: int = MOST_BYTES) -> int:
    """Return the size of a file; raises for what is no regular file, which may have no end, and for large ones."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    if not stat.S_ISREG(facts.st_mode):
        raise UserError(f"{path}: not a regular file; name a file with the table")
    if facts.st_size > most:
        advice = "larger tables need a dataset of their own: uqbench new dataset"
        raise UserError(f"{path}: {facts.st_size:,} bytes, a table has at most {most:,}; {advice}")
    return facts.st_size


_kept: dict[tuple[object, ...], Table] = {}  # the last table that was read, where it is not large


def read_once(path: Path, text: frozenset[str], read: Callable[[Path, frozenset[str]], Table]) -> Table:
    """Read a table; every split of it does, so it is kept until another one is read, or it changes."""
    size = regular_size(path)
    place = (read, path.resolve(), path.stat().st_mtime_ns, size, text)
    if place not in _kept:
        _kept.clear()
        table = read(path, text)
        if len(table) * len(table.columns) > MOST_KEPT_CELLS:
            return table  # reading it again takes less than training on it, and the memory is needed there
        _kept[place] = table
    return _kept[place]


def read_csv(path: Path, text: frozenset[str], decimal: str = ".") -> Table:
    """Read a table and check its shape; columns in `text` are kept as words, also where they are numbers."""
    return read_once(path, text, _read_csv if decimal == "." else _read_with_commas)


def _read_with_commas(path: Path, text: frozenset[str]) -> Table:
    """Read a table of numbers with decimal commas."""
    return _read_csv(path, text, commas=True)


def _read_csv(path: Path, text: frozenset[str], *, commas: bool = False) -> Table:
    try:
        with path.open(encoding="utf-8-sig", newline="") as content:
            return _parse(path, content, text, commas)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a table: the file is not UTF-8 text") from None
    except csv.Error as error:
        raise UserError(f"{path}: not a table: {error}") from None


def _parse(path: Path, content: IO[str], text: frozenset[str], commas: bool) -> Table:
    head = content.readline()
    delimiter = max(",;\t", key=head.count)  # the first of equals: a comma
    content.seek(0)
    reader = csv.reader(content, delimiter=delimiter, strict=True)
    names = [name.strip() for name in next(reader, [])]
    check_names(path, names)
    rows = ((reader.line_num, row) for row in reader if row)  # an empty line is none
    words = {names[-1] if name == LAST else name for name in text}
    if commas:
        numbers = {place for place, name in enumerate(names) if name not in words}
        rows = (
            (line, [_with_point(path, line, cell) if place in numbers else cell for place, cell in enumerate(row)])
            for line, row in rows
        )
    return collect(path, names, rows, words, "the first row names")


def _with_point(path: Path, line: int, cell: str) -> str:
    """Return a number with a decimal comma as Python writes it, and other cells as they are."""
    if "." in cell and is_number(cell):
        found = f"{path}: line {line}: {cell.strip()!r} has a point where decimal = ','"
        raise UserError(f"{found}; separators of thousands must be removed")
    return cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell.strip()) else cell


def collect(
    path: Path, names: Sequence[str], rows: Iterator[tuple[int, list[str]]], words: Collection[str], naming: str
) -> Table:
    """Return the table of rows of text, each with its line; columns in `words` are kept as words."""
    builders, lines = [ColumnBuilder(as_text=name in words) for name in names], []
    while chunk := list(islice(rows, CHUNK)):
        for line, row in chunk:
            if len(row) != len(names):
                raise UserError(f"{path}: line {line}: {len(row)} cells where {naming} {len(names)} columns")
        lines.append(np.array([line for line, _ in chunk], dtype=np.int64))
        if sum(map(len, lines)) * len(names) > MOST_CELLS:
            raise UserError(f"{path}: more than {MOST_CELLS:,} cells; such tables need a dataset of their own")
        for builder, cells in zip(builders, zip(*(row for _, row in chunk), strict=True), strict=True):
            builder.add([cell.strip() for cell in cells])
    count = sum(map(len, lines))
    if count < FEWEST:
        raise UserError(f"{path}: {count} rows below the column names; at least {FEWEST} are needed")
    columns = {name: builder.column() for name, builder in zip(names, builders, strict=True)}
    return Table(path, columns, np.concatenate(lines))


class ColumnBuilder:
    """Collects the cells of a column, part by part."""

    def __init__(self, *, as_text: bool) -> None:
        self.as_text = as_text
        self.numbers: list[Array] = []
        self.codes: list[Array] = []  # one for each part, from the first word on
        self.words: dict[str, int] = {}

    def add(self, cells: Sequence[str]) -> None:
        """Add cells as text."""
        if self.as_text:
            values = np.broadcast_to(np.nan, len(cells))  # takes no memory
        else:
            try:
                values = np.array(cells, dtype=np.float64)
            except ValueError:
                values = np.array([number(cell) for cell in cells])
            if np.isinf(values).any():
                values[np.isinf(values)] = np.nan
        self.numbers.append(values)
        words = np.flatnonzero(np.isnan(values)).tolist()
        if not self.words and not words:
            return  # most columns hold numbers only
        codes = np.full(len(cells), -1, dtype=np.int32)
        for row in words:
            codes[row] = self.words.setdefault(cells[row], len(self.words))
        self.codes.append(codes)

    def column(self) -> Column:
        """Return all cells; the builder is empty afterwards."""
        count = sum(map(len, self.numbers))
        numbers = np.broadcast_to(np.nan, count) if self.as_text else np.concatenate(self.numbers)
        codes = None
        if self.words:
            known = sum(map(len, self.codes))
            codes = np.concatenate([np.full(count - known, -1, dtype=np.int32), *self.codes])
        self.numbers.clear()
        self.codes.clear()
        return Column(numbers, codes, tuple(self.words))


def targets_of(table: Table, target: str, commas: str) -> Array:
    """Return a regression target; one that never changes cannot be learned. `commas`: see `comma_message`."""
    column = table.columns[target]
    bad = np.flatnonzero(np.isnan(column.numbers))
    if len(bad):
        words = np.flatnonzero(
            np.isnan(column.numbers) & ~column.which([word for word in column.words if is_missing(word)])
        )
        if 2 * len(words) > len(table):
            advice = f"if {target!r} names classes, task = 'classification'"
        else:
            advice = "every row needs a target: leave such rows out"
        raise UserError(
            comma_message(table, target, commas) or f"{_bad_cell(table, target, bad[0], len(bad))}; {advice}"
        )
    y = np.array(column.numbers)
    if np.ptp(y) == 0:
        raise UserError(f"{table.path}: the target {target!r} is {y[0]:g} in every row; name another with target = ...")
    return y


def comma_message(table: Table, name: str, advice: str) -> str:
    """Return the message for a column whose words are mostly numbers with a comma, or nothing."""
    column = table.columns[name]
    words = [word for word in column.words if not is_missing(word)]
    with_comma = {word for word in words if WITH_COMMA.fullmatch(word)}
    if 2 * len(with_comma) <= len(words):
        return ""
    rows = np.flatnonzero(column.which(with_comma))
    more = f" (and {len(rows) - 1} more such cells)" if len(rows) > 1 else ""
    what = f"{column.text(rows[0])!r} is a number with a comma{more}"
    return f"{table.place(rows[0], name)}: {what}; {advice}, and separators of thousands must be removed"


def is_missing(word: str) -> bool:
    """Return whether a cell states no value."""
    return word.lower() in MISSING


def not_a_number(table: Table, column: str, row: int, count: int) -> str:
    """Return the message for a feature's cell that should have been a finite number."""
    return f"{_bad_cell(table, column, row, count)}; fill it in, encode it, or leave it out"


def _bad_cell(table: Table, column: str, row: int, count: int) -> str:
    cell = table.columns[column].text(row)
    more = f" (and {count - 1} more such cells)" if count > 1 else ""
    what = f"{cell!r} is not a finite number" if cell else "the cell is empty"
    return f"{table.place(row, column)}: {what}{more}"


def classes_of(table: Table, target: str) -> tuple[Array, int]:
    """Return a classification target as numbers of its sorted values, and how many values there are."""
    column = table.columns[target]
    codes = words_of(table, target, "a class")
    names = sorted(column.words, key=by_size)
    if len(names) < 2:
        raise UserError(f"{table.path}: the target {target!r} is {names[0]!r} in every row; name another")
    if 2 * len(names) > len(table):
        raise UserError(
            f"{table.path}: {len(names)} classes in {len(table)} rows; if {target!r} is a number, task = 'regression'"
        )
    number_of = {name: index for index, name in enumerate(names)}
    return np.array([number_of[word] for word in column.words])[codes], len(names)


def groups_of(table: Table, name: str) -> Array:
    """Return the group of every row by its name."""
    column, codes = table.columns[name], words_of(table, name, "a group")
    if 2 * len(column.words) > len(table):
        raise UserError(f"{table.path}: {len(column.words)} groups in {len(table)} rows; {name!r} does not group them")
    return np.array(column.words)[codes]


def words_of(table: Table, name: str, needed: str) -> Array:
    """Return the codes of a column that was read as text; raises where a cell is empty."""
    column = table.columns[name]
    empty = np.flatnonzero(column.which(("",)))
    if len(empty):
        raise UserError(f"{table.place(empty[0], name)}: the cell is empty; every row needs {needed}")
    if column.codes is None:
        raise UserError(f"{table.path}: column {name!r} holds no words")
    return column.codes


def by_size(word: str) -> tuple[float, str]:
    """Return the key that sorts numbers by size, then words."""
    return (number(word), word) if is_number(word) else (np.inf, word)


def check_names(path: Path, names: Sequence[str]) -> None:
    """Raise if these cannot be the names of a table's columns."""
    if not names:
        raise UserError(f"{path}: the file is empty; expected column names in the first row and numbers below")
    if all(is_number(name) for name in names):
        raise UserError(f"{path}: the first row holds numbers; expected the names of the columns there")
    if not names[0] and all(names[1:]):
        hint = "if it is the index of pandas, write the table with index=False"
        raise UserError(f"{path}: the first row holds an empty name for the first column; {hint}")
    for name, count in Counter(names).items():
        if not name or count > 1:
            raise UserError(f"{path}: the first row holds {'an empty name' if not name else f'{name!r} twice'}")


def is_number(text: str) -> bool:
    """Return whether a text states a number."""
    return not np.isnan(number(text))


def number(text: str) -> float:
    """Return the number that a text states, or NaN."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
