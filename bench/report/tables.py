"""Tables as text and as CSV. Names in a table are printed and never executed."""

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.csv_cells import harmless_cell, harmless_text

NOTHING = 1e-9  # of the largest number of a column: a rounding error of zero
MOST_TIMES = 1000  # the largest number of a column by the smallest, for equally many decimals


@dataclass(frozen=True)
class TextTable:
    """A table with its cells as text, from which the page, Markdown and LaTeX are written."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    bold: frozenset[tuple[int, int]]  # (row, column) positions to stand out
    numeric: Sequence[bool]  # for each column: numbers, to be aligned to the right


def text_table(data: pd.DataFrame, bold: frozenset[tuple[int, int]] = frozenset()) -> TextTable:
    """Return a frame as text, cell by cell; the first column holds names, whatever it looks like."""
    header = [str(name) for name in data.columns]
    columns = [column_texts(list(data.iloc[:, place])) for place in range(len(header))]
    rows = [[column[place] for column in columns] for place in range(len(data))]
    return TextTable(header, rows, bold, [c > 0 and _numeric([row[c] for row in rows]) for c in range(len(header))])


def column_texts(values: Sequence[Any]) -> list[str]:
    """Return the cells of a column; numbers of similar size get equally many decimals, so that their points align."""
    numbers = [abs(value) for value in values if isinstance(value, float) and math.isfinite(value)]
    numbers = [number for number in numbers if number > NOTHING * max(numbers)]
    whole = all(number == round(number) for number in numbers)
    if not numbers or whole or max(numbers) > MOST_TIMES * min(numbers) or max(numbers) >= 1e6 or min(numbers) < 1e-4:
        return [_text(value) for value in values]
    # Four digits of the largest, three of the smallest.
    largest, smallest = (math.floor(math.log10(each)) for each in (max(numbers), min(numbers)))
    decimals = max(0, 3 - largest, 2 - smallest)
    return [_text(value, decimals) for value in values]


def _text(value: Any, decimals: int | None = None) -> str:
    """Return one cell as text: numbers to so many decimals or to four significant digits, a dash for none."""
    if value is None or value is pd.NA:
        return "–"
    if isinstance(value, float):
        form = ".4g" if decimals is None else f".{decimals}f"
        return "–" if math.isnan(value) else f"{value:{form}}"
    return str(value)


def _numeric(column: Sequence[str]) -> bool:
    """Whether a column holds numbers, and nothing else but dashes."""
    return any(is_number(cell) for cell in column) and all(is_number(cell) or cell == "–" for cell in column)


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number, also one with its deviation, its interval, a unit or marks behind it."""
    line = " ".join(cell.split())
    return bool(re.match(r"[-+<]?(\d|inf)[\d.,e+-]*( %| x\b| ±.*| ?[†‡*]| \(.*\)| \[.*\]|$)", line))


def csv_text(frame: pd.DataFrame) -> str:
    """Return a frame as CSV: numbers in full, text that a spreadsheet shows and does not carry out."""
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow([harmless_text(str(name)) for name in frame.columns])
    for row in frame.itertuples(index=False):
        writer.writerow([_csv_cell(value) for value in row])
    return content.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    if value is None or value is pd.NA:
        return ""
    return harmless_cell(value)
