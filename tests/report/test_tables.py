"""Tables as files: names that want to be markup, formulas or commands stay text."""

import csv
import io
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from bench.report.markdown import table_lines
from bench.report.page import table_cells
from bench.report.tables import csv_text, in_latex, is_number, latex, text_table

EVIL = ("<script>alert('x')</script>", '"quoted"', "a|b & 50% $x_1$ {y} \\z ^~#", "🙂 多言語", "שלום עולם", "x" * 500)
FORMULAS = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", " =1", "＝1")  # noqa: RUF001


def test_csv_is_read_back_as_it_was_and_numbers_are_whole() -> None:
    frame = pd.DataFrame({"name": EVIL, "value": [1 / 3, -2.0, float("nan"), 1e-12, float("inf"), 0.0], "n": range(6)})
    rows = list(csv.DictReader(io.StringIO(csv_text(frame))))
    assert [row["name"] for row in rows] == list(EVIL)
    assert float(rows[0]["value"]) == 1 / 3
    assert rows[1]["value"] == "-2.0"
    assert rows[2]["value"] == ""


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_text_in_a_spreadsheet(text: str) -> None:
    rows = list(csv.reader(io.StringIO(csv_text(pd.DataFrame({text: [text]})))))
    assert [cell for row in rows for cell in row] == ["'" + text] * 2


def test_a_number_with_a_sign_is_no_formula() -> None:
    assert csv_text(pd.DataFrame({"a": ["-1.5", "+2e3"]})) == "a\n-1.5\n+2e3\n"


def test_latex_has_rules_bold_and_nothing_to_carry_out() -> None:
    data = pd.DataFrame({"method": ["a_b", EVIL[2]], "rmse ↓": ["0.5 ± 0.1†", "0.7 ± 0.2"]})
    text = latex(text_table(data, frozenset({(0, 1)})), "50 % of $x", "tiny")
    for part in (
        r"\toprule",
        r"\midrule",
        r"\bottomrule",
        r"\textbf{0.5} $\pm$ 0.1$^{\dagger}$",
        r"a\_b",
        r"\caption{50 \% of \$x}",
        r"rmse $\downarrow$",
        r"\begin{tabular}{lr}",
    ):
        assert part in text
    assert r"a\textbar{}b \& 50\% \$x\_1\$ \{y\} \textbackslash{}z \textasciicircum{}\textasciitilde{}\#" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path: Path) -> None:
    table = latex(text_table(pd.DataFrame({"method": [EVIL[0], EVIL[2]], "x": ["1 ± 2†", "–"]})), "A caption", "a")
    whole = f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}{table}\\end{{document}}"
    (tmp_path / "a.tex").write_text(whole, "utf-8")
    done = subprocess.run(["pdflatex", "-halt-on-error", "a.tex"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0


def test_every_letter_of_latex_is_escaped() -> None:
    for letter in "\\{}$&#%_~^":
        told = in_latex(letter)
        assert told != letter
        assert told.startswith("\\")
    assert in_latex("a\nb\x00c") == "a bc"


def test_markdown_cells_are_text() -> None:
    lines = table_lines(text_table(pd.DataFrame({"name": EVIL[:3]})))
    assert len(lines) == 5
    assert lines[2].startswith(r"| \<script\>")
    assert r"a\|b" in lines[4]


@pytest.mark.parametrize("text", ["1", "-1.5", "+0.25", "1e-05", "1.2 ± 0.3", "1.2 ± 0.3†", "4 (1 of 3)", "inf", "5 %"])
def test_numbers_are_seen(text: str) -> None:
    assert is_number(text)


@pytest.mark.parametrize("text", ["", "a1", "–", "first", "1st place of all", "2 better"])
def test_words_are_no_numbers(text: str) -> None:
    assert not is_number(text)


def test_a_qualified_verdict_has_the_tone_of_its_word() -> None:
    verdicts = ["reproduced", "reproduced under departures", "cannot be decided under departures", "not run", "under"]
    table = text_table(pd.DataFrame({"verdict": verdicts}))
    assert [row[0]["tone"] for row in table_cells(table)["rows"]] == ["good", "good", "open", "open", ""]
