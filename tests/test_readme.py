"""Every number in the README and on the landing page is that of a result in the repository."""

import re
from math import exp, log
from pathlib import Path

import pytest

from bench.api import Figure, catalogue
from bench.plugins.registry import Registry
from bench.store.results import StoredResults
from tools.gallery import README_SUITE
from tools.gallery_results import unpacked
from tools.pages import built_in

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
LANDING = (ROOT / "docs" / "index.md").read_text("utf-8")
MEASURED = (ROOT / "docs" / "performance.md").read_text("utf-8")


def rows(text: str, heading: str) -> list[list[str]]:
    """The rows of the first table whose head begins so."""
    lines = text.partition(f"| {heading}")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


def test_the_speeds_are_those_that_were_measured() -> None:
    measured = rows(MEASURED, "set | method | member-steps")
    ratios = {(row[0], row[1]): row[7] for row in measured}
    head = README.partition("\n| set | ")[2].partition(" |\n")[0].split(" | ")
    shown = {
        (row[0], method): ratio for row in rows(README, "set |") for method, ratio in zip(head, row[1:], strict=True)
    }
    assert shown == ratios
    mean = exp(sum(log(float(row[6]) / float(row[5])) for row in measured) / len(measured))  # loop by stack, in us
    assert f"The geometric mean is {mean:.1f}x" in README
    jax = [float(row[10].rstrip("x")) for row in measured]
    compiling = [int(row[9]) for row in measured]
    assert f"after {min(compiling)} to {max(compiling)} s of compiling takes {min(jax)} to {max(jax)} times" in README


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
        assert f"more than {max(inside):.0f} % of the" in text


@pytest.mark.parametrize(("kind", "least"), [("method", 30), ("dataset", 20)])
def test_there_are_as_many_plugins_as_it_says(kind: str, least: int) -> None:
    assert len(Registry().plugins(kind)) > least  # type: ignore[arg-type]  # one of its kinds
    assert re.search(rf"more than {least} \[{kind}s\]", README, re.IGNORECASE)


def test_there_are_as_many_metrics_as_it_says() -> None:
    assert len(catalogue()) > 100
    assert re.search(r"more\s+than 100 \[metrics\]", README)


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 100
    assert README.count("uqbench run") == 0  # commands are in docs/commands.md
