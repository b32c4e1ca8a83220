"""Tables as text, as CSV and as LaTeX. Names in a table are printed and never executed."""

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.csv_cells import harmless_cell, harmless_text

# Signs that LaTeX prints as they are only in this form.
SIGNS = '\\~^<>|"±↓↑→–†‡×…≥≤∞−'  # noqa: RUF001
COMMANDS = (
    r"\textbackslash{} \textasciitilde{} \textasciicircum{} \textless{} \textgreater{} \textbar{} '' $\pm$ "
    r"$\downarrow$ $\uparrow$ $\rightarrow$ -- $^{\dagger}$ $^{\ddagger}$ $\times$ \dots{} $\ge$ $\le$ $\infty$ $-$"
)
LATEX_TABLE = r"""%% \usepackage{booktabs}; names beyond Latin letters need XeLaTeX or LuaLaTeX
\begin{table}[tb]
\centering
\caption{%s}
\label{tab:%s}
\begin{tabular}{%s}
\toprule
%s\midrule
%s\bottomrule
\end{tabular}
\end{table}
"""
LATEX = {sign: f"\\{sign}" for sign in "{}$&#%_"} | dict(zip(SIGNS, COMMANDS.split(), strict=True))


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
    rows = [[_text(value) for value in row] for row in data.itertuples(index=False)]
    return TextTable(header, rows, bold, [c > 0 and _numeric([row[c] for row in rows]) for c in range(len(header))])


def _text(value: Any) -> str:
    """Return one cell as text: numbers to four significant digits, a dash for none."""
    if value is None or value is pd.NA:
        return "–"
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4g}"
    return str(value)


def _numeric(column: Sequence[str]) -> bool:
    """Whether a column holds numbers, and nothing else but dashes."""
    return any(is_number(cell) for cell in column) and all(is_number(cell) or cell == "–" for cell in column)


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number, also one with its deviation or a mark behind it."""
    return bool(re.match(r"[-+]?(\d|inf)[\d.,e+-]*( %| ±.*|[†‡*]| \(.*\)|$)", cell))


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


def latex(table: TextTable, caption: str, label: str) -> str:
    """Return a table for a paper, with the rules of the package booktabs and the best in bold."""
    rows = [
        [_bold(cell) if (r, c) in table.bold else in_latex(cell) for c, cell in enumerate(row)]
        for r, row in enumerate(table.rows)
    ]
    header, *body = (f"{' & '.join(row)} \\\\\n" for row in [[in_latex(name) for name in table.header], *rows])
    columns = "".join("r" if number else "l" for number in table.numeric)
    return LATEX_TABLE % (in_latex(caption), label, columns, header, "".join(body))


def in_latex(words: str) -> str:
    """Return text that LaTeX prints as it is."""
    plain = " ".join(words.split())
    return "".join(LATEX.get(letter, letter) for letter in plain if letter.isprintable())


def _bold(cell: str) -> str:
    mean, sign, rest = cell.partition(" ±")
    return f"\\textbf{{{in_latex(mean)}}}" + (f" {in_latex('±' + rest)}" if sign else "")
