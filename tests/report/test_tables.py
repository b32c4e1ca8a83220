"""Tables as files: names that want to be markup, formulas or commands stay text."""

import csv
import io

import pandas as pd
import pytest
from markupsafe import Markup

from bench.report.markdown import table_lines
from bench.report.page import _joined, table_cells
from bench.report.tables import csv_text, is_number, text_table

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


def test_markdown_cells_are_text() -> None:
    lines = table_lines(text_table(pd.DataFrame({"name": EVIL[:3]})))
    assert len(lines) == 5
    assert lines[2].startswith(r"| \<script\>")
    assert r"a\|b" in lines[4]


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "-1.5",
        "+0.25",
        "1e-05",
        "1.2 ± 0.3",
        "1.2 ± 0.3†",
        "4 (1 of 3)",
        "inf",
        "5 %",
        "-5 % †2",
        "3 x",
        "0.5†\n(0.4 to 0.6)",
        "<0.001",
    ],
)
def test_numbers_are_seen(text: str) -> None:
    assert is_number(text)


@pytest.mark.parametrize("text", ["", "a1", "–", "first", "1st place of all", "2 better"])
def test_words_are_no_numbers(text: str) -> None:
    assert not is_number(text)


def test_a_qualified_verdict_has_the_tone_of_its_word() -> None:
    verdicts = ["reproduced", "reproduced under departures", "cannot be decided under departures", "not run", "under"]
    table = text_table(pd.DataFrame({"verdict": verdicts}))
    assert [row[0]["tone"] for row in table_cells(table)["rows"]] == ["good", "good", "open", "open", ""]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1.23456, 12.5, -0.5, float("nan")], ["1.235", "12.500", "-0.500", "–"]),
        ([0.9731, 0.98, 0.0], ["0.9731", "0.9800", "0.0000"]),
        ([3.0, 10.0, 250.0], ["3", "10", "250"]),  # whole numbers stay so
        ([0.00001234, 2.5], ["1.234e-05", "2.5"]),  # too far apart for equally many decimals
        ([1234.5, 20.25], ["1234.5", "20.2"]),
        ([7.1e-15, 0.0548, 0.0711], ["0.00000", "0.05480", "0.07110"]),  # a rounding error of zero
    ],
)
def test_numbers_of_a_column_align_at_their_points(values: list[float], texts: list[str]) -> None:
    table = text_table(pd.DataFrame({"name": list("abcd"[: len(values)]), "value": values}))
    assert [row[1] for row in table.rows] == texts


def test_a_wide_table_has_spreads_below_its_numbers_and_a_narrow_one_beside_them() -> None:
    """The text of a cell is the same in both; a qualified verdict has its qualification below it."""
    data = pd.DataFrame({"method": ["a"], **{f"metric_{n} ↓": ["1.25 ± 0.31 (3 of 5)†"] for n in range(16)}})
    wide, narrow = table_cells(text_table(data)), table_cells(text_table(data[["method", "metric_0 ↓"]]))
    assert wide["dense"]
    assert not narrow["dense"]
    assert (wide["rows"][0][1]["text"], wide["rows"][0][1]["second"]) == ("1.25†", "±\N{NO-BREAK SPACE}0.31\n(3 of 5)")
    assert (narrow["rows"][0][1]["text"], narrow["rows"][0][1]["second"]) == ("1.25 ± 0.31 (3 of 5)†", "")
    assert wide["rows"][0][1]["apart"] == narrow["rows"][0][1]["apart"] is True
    assert wide["header"][1]["text"] == Markup("metric_<wbr>0\N{NO-BREAK SPACE}↓")
    verdict = table_cells(text_table(pd.DataFrame({"claim": ["c"], "verdict": ["not reproduced under departures"]})))
    cell = verdict["rows"][0][1]
    assert (cell["text"], cell["second"], cell["tone"]) == ("not reproduced", "under departures", "bad")


def test_the_arrows_of_long_names_count_in_the_width_of_a_table() -> None:
    """Five metrics of the public code were wider than the page, and neither lines nor letters were changed."""
    names = (
        "accuracy_mean_logits",
        "ece_last_pass",
        "brier_mean_logits",
        "nll_mean_logits",
        "aurc_variance_mean_logits",
    )
    data = pd.DataFrame({"method": ["deterministic"], **{f"{name} ↓": ["0.6455 ± 0.0055"] for name in names}})
    assert table_cells(text_table(data))["dense"]


def test_words_of_facts_and_captions_keep_the_arrow_beside_its_metric() -> None:
    assert (
        _joined("Intervals: crps_mixture ↓, 5 %") == "Intervals: crps_mixture\N{NO-BREAK SPACE}↓, 5\N{NO-BREAK SPACE}%"
    )
