"""Tables for papers: LaTeX with the rules of booktabs, numbers aligned at their decimal points, names for readers.

A column of numbers is two columns of LaTeX, what is left of the decimal point and the rest. So the numbers are aligned
in every installation without a package for it, none of them is parsed or rounded, and bold digits, marks and
deviations stay where they are.
"""

import re
from collections.abc import Callable, Sequence

from bench.report.tables import TextTable, is_number

# Signs that LaTeX prints as they are only in this form.
SIGNS = '\\~^<>|"±↓↑→–†‡×…≥≤∞−'  # noqa: RUF001
COMMANDS = (
    r"\textbackslash{} \textasciitilde{} \textasciicircum{} \textless{} \textgreater{} \textbar{} '' $\pm$ "
    r"$\downarrow$ $\uparrow$ $\rightarrow$ \textendash{} $^{\dagger}$ $^{\ddagger}$ $\times$ \dots{} "
    r"$\ge$ $\le$ $\infty$ $-$"
)
LATEX = {sign: f"\\{sign}" for sign in "{}$&#%_"} | dict(zip(SIGNS, COMMANDS.split(), strict=True))
LATEX |= {sign: f"{{{sign}}}" for sign in "[]*`"}  # else an argument of the line break before a row, or a ligature
TABLE = r"""%% \usepackage{booktabs} in the preamble; names beyond Latin letters need XeLaTeX or LuaLaTeX
\begin{table}[tb]
\centering
\caption{%s}
\label{tab:%s}
\smallskip
%s\begin{tabular}{%s}
\toprule
%s\midrule
%s\bottomrule
\end{tabular}
\end{table}
"""
# Letters from which on the cells of a column are texts, which break their lines; and those of a line of a table, from
# which on they and the gaps are smaller. A page of the article class has about 75 of them, on its side 120.
TEXT, SIZES = 30, ((80, ""), (125, "footnotesize"), (10**9, "scriptsize"))
GAPS = "\\setlength{\\tabcolsep}{3pt}"
NAMING = ("method", "dataset", "metric")  # columns whose cells are names of these
Title = Callable[[str], str]  # a name as a paper prints it


def latex(table: TextTable, caption: str, label: str, title: Title = str) -> str:
    """Return a table for a paper, the best in bold; `title` is how a method, a dataset or a metric is called there."""
    naming = [name in NAMING for name in table.header]
    header = [
        rf"\multicolumn{{2}}{{c}}{{{_header(name, title)}}}" if number else _header(name, title)
        for name, number in zip(table.header, table.numeric, strict=True)
    ]
    rows = [
        [
            _number(cell, (r, c) in table.bold)
            if table.numeric[c]
            else _words(_titled(cell, title) if naming[c] else cell, (r, c) in table.bold)
            for c, cell in enumerate(row)
        ]
        for r, row in enumerate(table.rows)
    ]
    first, *body = (f"{' & '.join(row)} \\\\\n" for row in [header, *rows])
    texts = [
        not table.numeric[c] and longest > (TEXT if c else 2 * TEXT)  # the first column holds names
        for c, longest in enumerate(_longest(table))
    ]
    share = min(0.3, max(0.7 / max(sum(texts), 1), 0.1))
    columns = "".join(
        f"p{{{share:.2g}\\textwidth}}" if text else "r@{}l" if number else "l"
        for text, number in zip(texts, table.numeric, strict=True)
    )
    return TABLE % (in_latex(caption), label, _size(table, texts), columns, first, "".join(body))


def _longest(table: TextTable) -> list[int]:
    """Return the letters of the longest cell of each column."""
    return [max((len(row[c]) for row in table.rows), default=0) for c in range(len(table.header))]


def _size(table: TextTable, texts: Sequence[bool]) -> str:
    """Return what makes the letters and gaps of a wide table smaller."""
    widths = [
        TEXT if text else max(longest, len(name)) + 2
        for name, longest, text in zip(table.header, _longest(table), texts, strict=True)
    ]
    size = next(name for most, name in SIZES if sum(widths) <= most)
    return f"\\{size}{GAPS}\n" if size else ""


def in_latex(words: str) -> str:
    """Return text that LaTeX prints as it is."""
    plain = " ".join(words.split())
    told = "".join(LATEX.get(letter, letter) for letter in plain if letter.isprintable())
    return re.sub("-(?=-)", "-{}", told)  # no ligature: options of commands have two


def _header(name: str, title: Title) -> str:
    """Return the head of a column; the arrow of a metric stays beside its name."""
    words, arrow = re.fullmatch(r"(.*?)((?: [↓↑→].*)?)", name, re.DOTALL).groups()  # type: ignore[union-attr]  # matches any text
    told = title(words)
    if told == words and re.match(r"[a-z]{2}", words):  # a word, not the symbol p
        told = words[0].upper() + words[1:]
    return in_latex(told) + (f"~{in_latex(arrow)}" if arrow else "")


def _titled(cell: str, title: Title) -> str:
    """Return a name as a paper prints it, with what stands on a second line below it."""
    name, line, rest = cell.partition("\n")
    return title(name) + (f" {rest}" if line else "")


def _words(cell: str, bold: bool) -> str:
    return rf"\textbf{{{in_latex(cell)}}}" if bold else in_latex(cell)


def _number(cell: str, bold: bool) -> str:
    """Return the two cells of a number: up to its decimal point, and the rest; its deviation is never bold."""
    if not is_number(cell):
        return rf"\multicolumn{{2}}{{c}}{{{in_latex(cell)}}}"
    whole, fraction, rest = re.match(r"([-+<]?(?:[\d,]+|inf))((?:\.\d+)?(?:e[-+]?\d+)?)(.*)", cell, re.DOTALL).groups()  # type: ignore[union-attr]  # as is_number says
    left = _parts(whole, bold)
    right = _parts(fraction, bold) if fraction else ""
    return f"{left} & {right}{_rest(rest)}".rstrip()


def _parts(digits: str, bold: bool) -> str:
    """Return digits with a minus sign instead of a hyphen."""
    sign, number = ("$-$", digits[1:]) if digits.startswith("-") else ("", digits)
    power = re.fullmatch(r"(.*)e([-+]?)0*(\d+)", number)
    told = r"$\infty$" if number == "inf" else in_latex(power[1] if power else number)
    told = rf"\textbf{{{told}}}" if bold and told else told
    ten = rf"$\cdot 10^{{{power[2].replace('+', '')}{power[3]}}}$" if power else ""
    return sign + told + ten


def _rest(rest: str) -> str:
    """Return what stands behind a number: its deviation, an interval, a mark."""
    rest = re.sub(r"^\s", " ", rest)  # an interval may stand on a second line
    told = in_latex(rest)
    told = re.sub(r"(?<![\w.])-(?=\d)", "$-$", told)
    return ("~" if rest.startswith(" ") else "") + told.replace(" $\\pm$ ", "~$\\pm$~").replace("$\\pm$ ", "$\\pm$~")
