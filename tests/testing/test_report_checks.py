"""Sizes: a healthy report, and one broken report for every check."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure as MatplotlibFigure

from bench.api import Figure, Report, Results, Section, Table, Text
from bench.testing import ExampleResults, report_checks, verify
from bench.testing.report_results import SITUATIONS


@dataclass(frozen=True)
class Healthy(Report):
    """How many values there are."""

    def section(self, results: Results) -> Section | None:
        if results.frame.empty:
            return None
        counts = results.frame.groupby("method").size().reset_index(name="values")
        figure = MatplotlibFigure()
        figure.subplots().bar(range(len(counts)), counts["values"])
        caption = "Bars: how many values each method has."
        return Section("Sizes", [Text("Counts."), Table("Values", counts), Figure("sizes", caption, figure, counts)])


class NotADataclass(Healthy):
    """How many values there are."""


@dataclass(frozen=True)
class Mute(Healthy):
    """Sizes."""


Mute.__module__ = "nowhere"  # a file without a docstring


@dataclass(frozen=True)
class NoOrder(Healthy):
    """How many values, somewhere."""

    order: ClassVar[Any] = "last"


@dataclass(frozen=True)
class BadExcuse(Healthy):
    """How many values, with an excuse."""

    expected_failures: ClassVar[Mapping[str, str]] = {"captions": ""}


@dataclass(frozen=True)
class Picky(Healthy):
    """How many values, but not in that situation."""

    refused: str = ""

    def section(self, results: Results) -> Section | None:
        refuses: dict[str, Callable[[], bool]] = {
            "empty": lambda: results.cells.empty,
            "normal": lambda: (
                results.cells["method"].nunique() == 3 and results.failures.empty and self.finite(results)
            ),
            "one-method": lambda: results.cells["method"].nunique() == 1 and not results.frame.empty,
            "failed-cells": lambda: not results.failures.empty and not results.frame.empty,
            "all-failed": lambda: not results.cells.empty and results.frame.empty,
            "not-finite": lambda: not self.finite(results),
            "hostile-names": lambda: bool(results.cells["method"].str.contains("<").any()),
        }
        if refuses[self.refused]():
            raise KeyError(self.refused)
        return super().section(results)

    def finite(self, results: Results) -> bool:
        return bool(results.frame["value"].astype(float).abs().lt(1e9).all())


@dataclass(frozen=True)
class NoCaption(Healthy):
    """How many values, without a word."""

    def section(self, results: Results) -> Section | None:
        return Section("Sizes", [Table(" ", pd.DataFrame({"a": [1]}))])


@dataclass(frozen=True)
class NoNumbers(Healthy):
    """How many values, for those who see only."""

    def section(self, results: Results) -> Section | None:
        found = super().section(results)
        if found and isinstance(found.blocks[2], Figure):
            return Section("Sizes", [replace(found.blocks[2], data=None)])
        return found


@dataclass(frozen=True)
class BadMath(Healthy):
    """How many values, under a title that matplotlib takes for an equation."""

    def section(self, results: Results) -> Section | None:
        found = super().section(results)
        if found and isinstance(found.blocks[2], Figure):
            found.blocks[2].figure.axes[0].set_title(r"$\nothing{$")
        return found


@dataclass(frozen=True)
class Writing(Healthy):
    """How many values, doubled."""

    def section(self, results: Results) -> Section | None:
        results.frame["value"] = 2 * results.frame["value"]
        return super().section(results)


@dataclass(frozen=True)
class LeftOpen(Healthy):
    """How many values, with a window."""

    def section(self, results: Results) -> Section | None:
        pyplot.figure()
        return super().section(results)


calls = [0]


@dataclass(frozen=True)
class Counting(Healthy):
    """How many values, and how often that was asked."""

    def section(self, results: Results) -> Section | None:
        calls[0] += 1
        return Section("Sizes", [Text(f"call {calls[0]}")])


@dataclass(frozen=True)
class GlobalNumbers(Healthy):
    """How many values, with luck."""

    def section(self, results: Results) -> Section | None:
        random.random()
        return super().section(results)


BROKEN: dict[str, Report] = {
    "options": NotADataclass(),
    "docstring": Mute(),
    "order": NoOrder(),
    "expected-failures": BadExcuse(),
    **{name: Picky(name) for name in SITUATIONS},
    "captions": NoCaption(),
    "figure-data": NoNumbers(),
    "figures-draw": BadMath(),
    "unchanged": Writing(),
    "figures-closed": LeftOpen(),
    "repeatable": Counting(),
    "global-randomness": GlobalNumbers(),
}


@pytest.mark.slow
def test_the_healthy_report_passes_all() -> None:
    assert {str(v) for v in verify(Healthy()) if v.state != "ok"} == set()


def test_there_is_a_broken_report_for_every_check() -> None:
    assert list(BROKEN) == [check.name for check in report_checks()]


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_check_finds_its_fault(name: str) -> None:
    found = {v.check: v.message for v in verify(BROKEN[name]) if v.state == "failed"}
    # A report that raises in one situation also fails what looks at all situations.
    beside = {"captions", "figure-data", "figures-draw", "unchanged"} if name in SITUATIONS else set()
    beside |= {"figures-closed", "repeatable", "global-randomness"} if name == "normal" else set()
    assert name in found
    assert set(found) <= {name} | beside, found
    assert len(found[name].split()) > 3


@pytest.mark.slow
def test_reports_leave_no_figure_behind_even_where_they_fail() -> None:
    before = pyplot.get_fignums()
    list(verify(LeftOpen()))
    assert pyplot.get_fignums() == before


def test_the_example_results_are_results() -> None:
    results: Results = ExampleResults()
    assert results.failures.empty
    assert results.curves("x") is None
