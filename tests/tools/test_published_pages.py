"""Every page of docs/results is written from kept results: its parts are what its tool writes, the rest has no results.

A page that no tool writes fails the first test, a number that was changed by hand the next two, and a result in a
sentence that someone wrote the last one.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path

import pytest

from tests.fixtures.pages import NUMBER, numbers_by_hand
from tools import conjugate_page, result_tables, results_page, toy_page
from tools.findings import Exports

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "results"
Write = Callable[[str, Exports], str]
FROM_EXPORTS: Mapping[str, Write] = {
    "index.md": lambda _, exports: results_page.page(exports) + "\n",
    **{name: partial(result_tables.page, name) for name in result_tables.PAGES},
}
WITHOUT_EXPORTS: Mapping[str, Callable[[str], str]] = {  # from files beside them
    "conjugate.md": conjugate_page.page,
    "toy.md": toy_page.updated,
}
# Numbers in sentences that people write, beside those of the files of the suites that the page names.
NO_RESULTS: Mapping[str, Mapping[str, str]] = {
    "conjugate.md": {"20": "test points"},
    "equal-cost.md": {"95": "per cent of intervals"},
    "mcni-ablation.md": {"95": "per cent of intervals", "0": "no difference"},
    "shift-digits.md": {"180": "test images", "0": "severity", "0.5": "chance", "10": "CIFAR-10-C", "8": "pixels"},
    "toy.md": {"0": "no difference", "99.7": "per cent of a normal within three standard deviations"},
    "toy-sweep.md": {"95": "per cent of intervals"},
    "truth.md": {"0": "noise"},
    "uci-fixed.md": {
        "4": "last split",
        "2,000": "epochs of the suite",
        "2017": "year",
        "1612.01474": "arXiv",
        "400": "epochs of leaderboard-uci",
        "30": "its patience",
        "20": "its splits",
    },
    "uci-gal.md": {"0": "first split", "4": "last split", "20": "splits"},
}


@pytest.fixture(scope="module")
def exports() -> Iterator[Exports]:
    with Exports(results_page.EXPORTS) as found:
        yield found


def test_every_page_is_written_by_a_tool() -> None:
    assert {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.md")} == {*FROM_EXPORTS, *WITHOUT_EXPORTS}


@pytest.mark.slow
@pytest.mark.parametrize("name", FROM_EXPORTS)
def test_the_page_is_what_the_exports_give(name: str, exports: Exports) -> None:
    text = (FOLDER / name).read_text("utf-8")
    assert FROM_EXPORTS[name](text, exports) == text, "run: make findings"


@pytest.mark.parametrize("name", WITHOUT_EXPORTS)
def test_the_page_is_what_kept_values_give(name: str) -> None:
    text = (FOLDER / name).read_text("utf-8")
    assert WITHOUT_EXPORTS[name](text) == text


@cache
def numbers_of_suite(name: str) -> frozenset[str]:
    text = (ROOT / "bench" / "plan" / "suites" / f"{name}.toml").read_text("utf-8")
    return frozenset(NUMBER.findall(text))


@pytest.mark.parametrize("name", [*result_tables.PAGES, *WITHOUT_EXPORTS])
def test_numbers_outside_of_generated_parts_are_settings(name: str) -> None:
    text = (FOLDER / name).read_text("utf-8")
    suites = set(re.findall(r"uqbench run ([\w-]+)", text))
    settings = frozenset[str]().union(*(numbers_of_suite(suite) for suite in suites))
    assert numbers_by_hand(text) - settings - set(NO_RESULTS[name]) == set()
    assert set(NO_RESULTS[name]) <= numbers_by_hand(text)  # the list has no more than it needs


def test_numbers_are_found_in_sentences_alone() -> None:
    page = "RMSE 1.25 of 4,160\n<!-- a b: begin -->\n7\n<!-- a b: end -->\n`3` [x](docs/9.md) a1 in 2024, mean 0.5.\n"
    page += "```\n8\n```\n"
    assert numbers_by_hand(page) == {"1.25", "4,160", "2024", "0.5"}
