"""The error rates that docs/ publishes, as `make validity` has written them: small, or marked in their row."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bench.leaderboard
import bench.stats.text
from bench.reports.leaderboard import EXPLAINED

DOCS = Path(__file__).parents[2] / "docs"
MARKS = ("(wrong here", "no promise)")  # a test that is not used there; a case in which no level is promised
# What is no error rate: here more is better.
POWER = ("Power of", "The same where differences are", "Boards over 8 datasets, 10 seeds: how often", "caught")
ROWS_OF_POWER = ("studies with a note", "times slower")
PAGES = [
    ("statistics", ("validity",), 6.0),
    ("gate", ("gate", "noise", "times", "history"), 3.0),  # 1 % is promised; 200 gates have a standard error of 0.7
]


def part_of(page: str, part: str) -> str:
    return page.partition(f"<!-- {part}: begin -->")[2].partition(f"<!-- {part}: end -->")[0]


def rows_of(text: str) -> Iterator[tuple[str, str, list[float]]]:
    """Yield name and numbers of each row, after the title of its table: the bold line above it, or else the header."""
    for table in re.finditer(r"(?:^\*\*(.+?)\*\*\n\n)?^(\|.+\|)\n\| --- .+\n((?:\|.+\|\n?)+)", text, re.MULTILINE):
        title, header, rows = table.groups()
        for line in rows.splitlines():
            _, name, *numbers, _ = (cell.strip() for cell in line.split("|"))
            yield title or header, name, [float(number) for number in numbers]


def too_large(text: str, most: float) -> list[str]:
    """Return the rows with an error rate above `most` that carry no mark."""
    found = []
    for title, name, numbers in rows_of(text):
        if any(word in title for word in POWER) or any(word in name for word in ROWS_OF_POWER):
            continue
        errors = [100.0 - number for number in numbers] if title.startswith("Coverage") else numbers
        allowed = 20.0 if "20 promised" in name else most
        if max(errors) > allowed and not any(mark in name for mark in MARKS):
            found.append(f"{title}: {name}: {errors}")
    return found


@pytest.mark.parametrize(("page", "parts", "most"), PAGES)
def test_every_published_error_rate_is_small_or_marked_in_its_row(
    page: str, parts: tuple[str, ...], most: float
) -> None:
    text = (DOCS / f"{page}.md").read_text("utf-8")
    for part in parts:
        assert len(list(rows_of(part_of(text, part)))) >= 4, part
        assert too_large(part_of(text, part), most) == []


def test_the_pages_say_what_the_marks_mean() -> None:
    for page, _, _ in PAGES:
        text = " ".join((DOCS / f"{page}.md").read_text("utf-8").split())
        assert "*no promise*" in text, page
        assert "*wrong here*" in text, page


def test_the_output_has_the_rates_of_the_page() -> None:
    """In `rank`, `compare`, reports and on boards."""
    text = part_of((DOCS / "statistics.md").read_text("utf-8"), "validity")
    covered = [numbers for _, name, numbers in rows_of(text) if name.startswith("interquartile mean")]
    few, _, many = (min(column) for column in zip(*covered, strict=True))
    again = re.search(r"testing again \(no promise\): ([0-9.]+) % false positives", text)
    assert again
    terminal = inspect.getsource(bench.stats.text)
    site = Path(bench.leaderboard.__file__).with_name("templates").joinpath("reading.html").read_text("utf-8")
    for shown in (terminal, site, EXPLAINED):
        assert f"covers {few:.0f} % with 5 seeds and {many:.0f} % with 20" in shown
    assert f"Testing again after adding pairs has {float(again[1]):.0f} % false" in terminal
    assert f"Testing again after adding repeats has {float(again[1]):.0f} % false" in site
    assert "It promises no error rate." in site


def test_a_large_rate_without_a_mark_is_found() -> None:
    marked = "| paired t (wrong here), skewed | 9.0 | 9.0 |\n| t, lopsided (no promise) | 9.0 | 9.0 |\n"
    rows = f"| paired t | 5.9 | 6.1 |\n{marked}"
    head = "\n\n| | 5 seeds | 10 seeds |\n| --- | ---: | ---: |\n"
    (found,) = too_large(f"**False positives**{head}{rows}", 6.0)
    assert found.startswith("False positives: paired t: ")
    assert too_large(f"**Coverage of intervals**{head}| t | 94.0 | 95.0 |\n", 6.0) == []
    assert len(too_large(f"**Coverage of intervals**{head}| t | 93.9 | 95.0 |\n", 6.0)) == 1
    assert too_large(f"**Power of the test**{head}{rows}", 6.0) == []
