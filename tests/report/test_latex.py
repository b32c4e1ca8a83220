"""Tables for papers: what is text stays text, decimals are aligned, and a real LaTeX takes them."""

import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from bench.plugins.registry import Registry
from bench.report.latex import in_latex, latex
from bench.report.tables import text_table
from bench.report.titles import Titles, metric_title

# Starts of a row, or what follows a rule, that would be an argument of the command before.
HOSTILE = ("[a] & 50% $x_1$ {y} \\z ^~#", "*", "\\input{/etc/passwd}", "%", '--x `a` <b> | "q"', "_", "]", "é")
NUMBERS = ("0.5 ± 0.1†", "-12.25 ± 3", "1e-05", "–", "inf", "3 (1 of 3)", "1,234.5‡", "5 %")
TITLES = Titles(Registry())


def hostile_table() -> str:
    data = pd.DataFrame({HOSTILE[0]: HOSTILE, "method": ["mc-dropout", *HOSTILE[1:]], "rmse ↓": NUMBERS})
    return latex(
        text_table(data, frozenset({(0, 2), (1, 2), (1, 0)})), f"50 % of $x {HOSTILE[0]} † ± →", "tiny", TITLES
    )


def rows_of(table: str) -> list[list[str]]:
    body = table.partition("\\toprule\n")[2].partition("\\bottomrule")[0].replace("\\midrule\n", "")
    return [re.split(r"(?<!\\)&", line.removesuffix("\\\\")) for line in body.splitlines()]


def width(row: list[str]) -> int:
    return sum(2 if "\\multicolumn{2}" in cell else 1 for cell in row)


def test_every_row_has_as_many_cells_as_the_table_has_columns() -> None:
    table = hostile_table()
    assert r"\begin{tabular}{llr@{}l}" in table
    assert [width(row) for row in rows_of(table)] == [4] * (1 + len(HOSTILE))


def test_numbers_are_cut_at_their_decimal_point() -> None:
    data = pd.DataFrame({"method": ["a", "b", "c", "d", "e"], "x": ["0.5 ± 0.1†", "-12.25 ± 3", "7", "–", "1e-05"]})
    cells = [[cell.strip() for cell in row[1:]] for row in rows_of(latex(text_table(data), "c", "l"))]
    assert cells[1:] == [
        ["0", r".5~$\pm$~0.1$^{\dagger}$"],
        ["$-$12", r".25~$\pm$~3"],
        ["7", ""],
        [r"\multicolumn{2}{c}{\textendash{}}"],
        ["1", r"$\cdot 10^{-5}$"],
    ]


def test_bold_is_the_mean_alone_and_the_frame_is_ready_to_paste() -> None:
    data = pd.DataFrame({"method": ["mc-dropout"], "rmse ↓": ["0.5 ± 0.1"]})
    table = latex(text_table(data, frozenset({(0, 1)})), "A caption", "tiny", TITLES)
    for part in (r"\toprule", r"\midrule", r"\bottomrule", r"\caption{A caption}", r"\label{tab:tiny}"):
        assert part in table
    assert rows_of(table)[0] == ["Method ", r" \multicolumn{2}{c}{RMSE~$\downarrow$} "]
    assert r"MC dropout & \textbf{0} & \textbf{.5}~$\pm$~0.1 \\" in table


def test_every_sign_of_latex_is_escaped() -> None:
    for letter in "\\{}$&#%_~^":
        assert in_latex(letter) != letter
        assert in_latex(letter).startswith("\\")
    assert in_latex("a\nb\x00c") == "a bc"
    assert in_latex("[a] *") == "{[}a{]} {*}"
    assert in_latex("--seeds") == "-{}-seeds"


def test_titles_are_those_of_plug_ins_and_unknown_names_stay() -> None:
    names = (
        "mc-dropout",
        "deep-ensemble",
        "wine-red",
        "kin8nm",
        "rmse",
        "nll_mc",
        "rmse@fog",
        "my_label-2",
        "csv:a.csv",
    )
    told = [
        "MC dropout",
        "Deep ensemble",
        "Red wine",
        "Kin8nm",
        "RMSE",
        "NLL MC",
        "RMSE at fog",
        "my_label-2",
        "csv:a.csv",
    ]
    assert [TITLES(name) for name in names] == told
    assert metric_title("predictive_entropy") == "Predictive entropy"
    assert TITLES.in_words("`mc-dropout` on `a_b`") == "MC dropout on a_b"


def test_a_plug_in_file_has_its_own_title(tmp_path: Path) -> None:
    path = tmp_path / "own_noise.py"
    path.write_text(
        '"""Own."""\nfrom dataclasses import dataclass\nfrom bench.api import Method\n@dataclass(frozen=True)\n'
        'class Own(Method):\n    """Own."""\n    title = "O & N"\n',
        "utf-8",
    )
    assert Titles(Registry([path]))("own-noise") == "O & N"


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="pdflatex is absent: apt install texlive-latex-recommended"
)
def test_a_real_latex_takes_the_tables(tmp_path: Path) -> None:
    plain = pd.DataFrame({"method": ["mc-dropout", "deterministic"], "rmse ↓": ["10.5 ± 0.1†", "9.75 ± 0.2"]})
    tables = hostile_table() + latex(text_table(plain, frozenset({(1, 1)})), "Plain", "plain", TITLES)
    whole = f"\\documentclass{{article}}\n\\usepackage{{booktabs}}\n\\begin{{document}}\n{tables}\\end{{document}}\n"
    (tmp_path / "a.tex").write_text(whole, "utf-8")
    command = ["pdflatex", "-halt-on-error", "-no-shell-escape", "a.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-2000:]
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_texts_break_their_lines_and_wide_tables_have_smaller_letters() -> None:
    """A third of the tables of published suites were wider than a page on its side, those of texts by metres."""
    claims = pd.DataFrame(
        {"claim": ["a long claim " * 8], "numbers": ["0.5 and 0.6, difference 0.1; " * 9], "n": ["5"]}
    )
    assert r"\begin{tabular}{p{0.3\textwidth}p{0.3\textwidth}r@{}l}" in latex(text_table(claims), "c", "l", TITLES)
    narrow = pd.DataFrame({"method": ["a"], "rmse ↓": ["1.25 ± 0.31"]})
    five, ten = (
        pd.DataFrame({"method": ["a"], **{f"metric_{n} ↓": ["1.25 (1.10 to 1.40)"] for n in range(count)}})
        for count in (5, 10)
    )
    texts = [latex(text_table(data), "c", "l", TITLES) for data in (narrow, five, ten)]
    assert [re.findall(r"\\(\w+size)\\setlength", text) for text in texts] == [[], ["footnotesize"], ["scriptsize"]]
    names = pd.DataFrame({"method": ["Conformalised quantile regression"], "rmse ↓": ["1.25"]})
    assert r"\begin{tabular}{lr@{}l}" in latex(text_table(names), "c", "l", TITLES)


def test_a_second_line_of_a_cell_stands_behind_the_first() -> None:
    data = pd.DataFrame({"method": ["mc-dropout\n(baseline)", "x"], "rmse ↓": ["2.50†\n(2.25 to 2.75)", "3.00\n(–)"]})
    rows = [[cell.strip() for cell in row] for row in rows_of(latex(text_table(data), "caption", "label", TITLES))]
    assert rows[1] == ["MC dropout (baseline)", "2", r".50$^{\dagger}$ (2.25 to 2.75)"]
    assert rows[2] == ["x", "3", ".00~(\\textendash{})"]
