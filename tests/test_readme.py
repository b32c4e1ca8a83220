"""Every number in the README is that of a result in the repository, or is known not to be one."""

import math
import re
from pathlib import Path

import pytest

from bench.api import Figure, catalogue
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.store.results import StoredResults
from tests.fixtures.pages import numbers_by_hand
from tools import speed_table
from tools.gallery import README_SUITE
from tools.gallery_results import unpacked
from tools.pages import built_in

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
LANDING = (ROOT / "docs" / "index.md").read_text("utf-8")
OF_OTHERS = {"19", "9", "0.12.1", "0.4.0", "2021"}  # in the table of other projects, with sources below it
NO_RESULTS = {"3.11": "Python", "18": "of November", "2026": "the year", "2.0": "Apache"}
TESTED = {"58", "30", "20", "100", "24", "144"}  # below
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def test_every_number_is_traced() -> None:
    assert numbers_by_hand(README) == TESTED | OF_OTHERS | set(NO_RESULTS)


def test_the_landing_page_names_every_method() -> None:
    assert [name for name in built_in(Registry(), "method") if f"`{name}`" not in LANDING] == []


@pytest.mark.parametrize("name", speed_table.PARTS)
def test_the_speeds_are_those_that_were_kept(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert speed_table.page(name, text, speed_table.read_rows(speed_table.ROWS)) == text


def test_the_search_is_as_large_as_it_says() -> None:
    suite = load_suite("uci")
    protocol, sizes = suite.protocol_for("boston"), set()
    for name, entry in suite.methods.items():
        space = {**Registry().make("method", name, {}).search_space, **entry.space}
        searched = [values for option, values in space.items() if option not in entry.options]
        sizes.add(math.prod(map(len, [*protocol.grid.values(), *searched])))
    folds, draws = WORDS[protocol.folds], protocol.draws
    assert f"over {min(sizes)} to {max(sizes)} configurations on {folds} folds, a final fit, {draws} draws" in README


def test_the_caption_of_the_picture_says_what_it_shows() -> None:
    (_, report) = built_in(Registry(), "report")["intervals"]
    with unpacked(ROOT / "docs" / "gallery" / "results.tar.xz") as store:
        section = report.section(StoredResults(store, README_SUITE))
    assert section is not None
    (caption,) = (block.caption for block in section.blocks if isinstance(block, Figure) and "toy" in block.name)
    inside = [float(share) for share in re.findall(r"([\d.]+) % of the points inside", caption)]
    widths = [float(width) for width in re.findall(r"mean width ([\d.]+\d)", caption)]
    assert len(inside) == len(widths) == 5
    assert max(widths) > 2 * min(widths)  # "by more than twice"
    for text in (README, LANDING):
        assert re.findall(r"more than (\d+) % of the", text) == [f"{max(inside):.0f}"] * 2


@pytest.mark.parametrize(("kind", "least"), [("method", 30), ("dataset", 20)])
def test_there_are_as_many_plugins_as_it_says(kind: str, least: int) -> None:
    assert len(Registry().plugins(kind)) > least  # type: ignore[arg-type]  # one of its kinds
    assert re.search(rf"more than {least} \[{kind}s\]", README, re.IGNORECASE)


def test_as_many_datasets_need_no_download_as_it_says() -> None:
    found = {name: dataset for name, (_, dataset) in built_in(Registry(), "dataset").items() if not dataset.files}
    ready = [name for name, dataset in found.items() if re.match(r"generated|scikit-learn", dataset.source)]
    ready.remove("random-rows")  # of latency suites: there is nothing to learn from them
    assert f"{WORDS[len(ready)]} of which need no download" in README


def test_there_are_as_many_metrics_as_it_says() -> None:
    assert len(catalogue()) > 100
    assert re.search(r"more\s+than 100 \[metrics\]", README)


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 100
    assert README.count("uqbench run") == 0  # commands are in docs/commands.md
