"""Reads ARFF files, the tables of OpenML: a header that declares the type of each column, then rows of text."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bench.api import UserError
from bench.datasets._table import LAST, Table, collect, read_once

NUMBERS = ("numeric", "real", "integer")
WORDS = ("string", "date")  # a date has a format behind it
QUOTED = r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\""""
ATTRIBUTE = re.compile(rf"(?:{QUOTED}|([^\s{{}}'\",%]\S*))\s+(.*)", re.DOTALL)
CELL = re.compile(rf"\s*(?:(?:{QUOTED})\s*|([^,'\"][^,]*|))(,|$)")
ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True)
class Header:
    """The columns that an ARFF file declares."""

    names: tuple[str, ...]
    nominal: frozenset[str]  # columns of categories, whether they are words or numbers
    words: frozenset[str]  # columns of any text
    lines: int  # of the header


def read_arff(path: Path, text: frozenset[str]) -> Table:
    """Read a table; columns of categories and texts, and those in `text`, are kept as words."""
    return read_once(path, text, _read)


def read_header(path: Path) -> Header:
    """Read what a file declares."""
    with _opened(path) as content:
        return _header(path, content)


def _read(path: Path, text: frozenset[str]) -> Table:
    try:
        with _opened(path) as content:
            header = _header(path, content)
            words = {header.names[-1] if name == LAST else name for name in text} | header.nominal | header.words
            return collect(path, header.names, _rows(path, content, header.lines), words, "the header declares")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a table: the file is not UTF-8 text") from None


def _opened(path: Path) -> IO[str]:
    try:
        return path.open(encoding="utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None


def _header(path: Path, content: IO[str]) -> Header:
    names: list[str] = []
    nominal, words, number = set(), set(), 0
    try:
        for number, line in enumerate(content, 1):
            keyword, _, rest = line.strip().replace("\t", " ").partition(" ")
            if keyword.lower() == "@data":
                break
            if keyword.lower() == "@attribute":
                name, kind = _attribute(path, number, rest.strip())
                names.append(name)
                if kind == "nominal":
                    nominal.add(name)
                elif kind in WORDS:
                    words.add(name)
            elif keyword and keyword[0] != "%" and keyword.lower() != "@relation":
                raise UserError(f"{path}: line {number}: expected @attribute or @data, got {keyword[:40]!r}")
        else:
            raise UserError(f"{path}: not an ARFF table: it has no line @data")
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a table: the file is not UTF-8 text") from None
    twice = [name for name, count in Counter(names).items() if count > 1]
    if not names or twice:
        raise UserError(f"{path}: the header declares {f'{twice[0]!r} twice' if twice else 'no column'}")
    return Header(tuple(names), frozenset(nominal), frozenset(words), number)


def _attribute(path: Path, line: int, declaration: str) -> tuple[str, str]:
    """Return the name of a column and its kind: 'nominal', or the name of a type."""
    found = ATTRIBUTE.fullmatch(declaration)
    if not found:
        raise UserError(f"{path}: line {line}: not a declaration of a column: {declaration[:40]!r}")
    name = _unescaped(found[1] if found[1] is not None else found[2]) if found[3] is None else found[3]
    kind = found[4].strip()
    if kind.startswith("{") and kind.endswith("}"):
        return name.strip(), "nominal"
    kind = kind.partition(" ")[0].lower()
    if not name.strip() or kind not in (*NUMBERS, *WORDS):
        raise UserError(f"{path}: line {line}: column {name!r} has type {kind[:40]!r}; expected numbers or words")
    return name.strip(), kind


def _rows(path: Path, content: IO[str], before: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line of data, and its cells."""
    for number, line in enumerate(content, before + 1):
        row = line.strip()
        if not row or row[0] == "%":
            continue
        if row[0] == "{":
            raise UserError(f"{path}: line {number}: sparse rows are not read; this table needs a dataset of its own")
        yield number, _cells(path, number, row) if "'" in row or '"' in row else row.split(",")


def _cells(path: Path, line: int, row: str) -> list[str]:
    """Return the cells of a row, some of which are quoted."""
    cells, place = [], 0
    while found := CELL.match(row, place):
        quoted = found[1] if found[1] is not None else found[2]
        cells.append(found[3] if quoted is None else _unescaped(quoted))
        place = found.end()
        if not found[4]:
            return cells
    raise UserError(f"{path}: line {line}: a quotation mark is not closed, or stands inside a cell")


def _unescaped(text: str) -> str:
    return ESCAPED.sub(lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)
