"""Tables as text: cells for a page, Markdown, CSV and LaTeX. What is in a table is shown, and never acted upon."""

import csv
import io
import math
import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from bench.api import Table
from bench.text_tables import markdown_table

# What a spreadsheet would take for a formula: https://owasp.org/www-community/attacks/CSV_Injection
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001  # their wide forms count too
# Signs that LaTeX prints as they are only in this form.
SIGNS = '\\~^<>|"±↓↑→–†‡×…≥≤∞−'  # noqa: RUF001
COMMANDS = (
    r"\textbackslash{} \textasciitilde{} \textasciicircum{} \textless{} \textgreater{} \textbar{} '' $\pm$ "
    r"$\downarrow$ $\uparrow$ $\rightarrow$ -- $^{\dagger}$ $^{\ddagger}$ $\times$ \dots{} $\ge$ $\le$ $\infty$ $-$"
)
LATEX = {sign: f"\\{sign}" for sign in "{}$&#%_"} | dict(zip(SIGNS, COMMANDS.split(), strict=True))


def cells(table: Table) -> list[list[str]]:
    """Return the table row by row as text."""
    return [[text(value) for value in row] for row in table.data.itertuples(index=False)]


def text(value: Any) -> str:
    """Return one cell as text: numbers to four significant digits, a dash for none."""
    if value is None or value is pd.NA:
        return "–"
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4g}"
    return str(value)


def escaped(words: str) -> str:
    """Return text that Markdown shows as it is: no markup, no line of its own."""
    return re.sub(r"([\\`*_\[\]<>|#&~])", r"\\\1", " ".join(words.split()))


def markdown(table: Table) -> list[str]:
    """Return the lines of a Markdown table."""
    header = [escaped(str(name)) for name in table.data.columns]
    rows = [
        [f"**{escaped(cell)}**" if (r, c) in table.bold else escaped(cell) for c, cell in enumerate(row)]
        for r, row in enumerate(cells(table))
    ]
    return markdown_table(header, rows)


def csv_text(frame: pd.DataFrame) -> str:
    """Return a frame as CSV: numbers in full, text that a spreadsheet shows and does not carry out."""
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow([_harmless(str(name)) for name in frame.columns])
    for row in frame.itertuples(index=False):
        writer.writerow([_csv_cell(value) for value in row])
    return content.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    if value is None or value is pd.NA:
        return ""
    return _harmless(value) if isinstance(value, str) else value


def _harmless(words: str) -> str:
    if not words.lstrip(" ").startswith(FORMULA):
        return words
    try:
        float(words)
    except ValueError:
        return "'" + words
    return words  # a number with its sign


def latex(table: Table, label: str) -> str:
    """Return a table for a paper, with the rules of the package booktabs and the best in bold."""
    header = [str(name) for name in table.data.columns]
    rows = cells(table)
    columns = "".join("r" if c and numeric([row[c] for row in rows]) else "l" for c in range(len(header)))
    lines = [
        "% \\usepackage{booktabs}; names beyond Latin letters need XeLaTeX or LuaLaTeX",
        "\\begin{table}[tb]",
        "\\centering",
        f"\\caption{{{in_latex(table.caption)}}}",
        f"\\label{{tab:{label}}}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        " & ".join(in_latex(name) for name in header) + r" \\",
        "\\midrule",
    ]
    for r, row in enumerate(rows):
        shown = [_bold(cell) if (r, c) in table.bold else in_latex(cell) for c, cell in enumerate(row)]
        lines.append(" & ".join(shown) + r" \\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", "\\end{table}", ""])


def in_latex(words: str) -> str:
    """Return text that LaTeX prints as it is."""
    plain = " ".join(words.split())
    return "".join(LATEX.get(letter, letter) for letter in plain if letter.isprintable())


def _bold(cell: str) -> str:
    mean, sign, rest = cell.partition(" ±")
    return f"\\textbf{{{in_latex(mean)}}}" + (f" {in_latex('±' + rest)}" if sign else "")


def numeric(column: Sequence[str]) -> bool:
    """Whether a column holds numbers, and nothing else but dashes."""
    return any(is_number(cell) for cell in column) and all(is_number(cell) or cell == "–" for cell in column)


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number, also one with its deviation or a mark behind it."""
    return bool(re.match(r"[-+]?(\d|inf)[\d.,e+-]*( %| ±.*|[†‡*]| \(.*\)|$)", cell))
