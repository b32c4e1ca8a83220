"""All checks of a report."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pandas as pd

from bench.api import Facts, Figure, Report, Section, Table, Text
from bench.testing import declarations
from bench.testing.check import Check, NotApplicable, require
from bench.testing.isolation import global_generators_untouched
from bench.testing.report_results import SITUATIONS, ExampleResults, example_results

FRAMES = ("frame", "cells", "remarks")


class ReportSubject:
    """A report under test."""

    def __init__(self, plugin: Report) -> None:
        self.plugin = plugin

    def section(self, results: ExampleResults) -> Section | None:
        """Return the report's section on some results; figures that it leaves open are closed."""
        with _figures_closed(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.plugin.section(results)

    def sections(self) -> Iterator[Section]:
        """Yield the sections on the results of every situation."""
        for results in SITUATIONS.values():
            if section := self.section(results()):
                yield section

    def figures(self) -> list[Figure]:
        """Return the figures of all sections; raise NotApplicable if there are none."""
        found = [block for section in self.sections() for block in section.blocks if isinstance(block, Figure)]
        if not found:
            raise NotApplicable("it has no figures")
        return found


@contextmanager
def _figures_closed() -> Iterator[None]:
    """Close figures that a report left open, so that one check does not fail because of another."""
    from matplotlib import pyplot

    before = set(pyplot.get_fignums())
    try:
        yield
    finally:
        for number in set(pyplot.get_fignums()) - before:
            pyplot.close(number)


def report_checks() -> Iterator[Check[ReportSubject]]:
    """Yield every check that a report has to pass, the fast ones first."""
    yield declarations.OPTIONS
    yield Check("docstring", "its documentation has a first line", declarations.check_first_line)
    yield Check("order", "its place among the sections is a whole number", _order)
    yield declarations.expected_failures_check(report_checks)
    for name in SITUATIONS:
        proves = f"it returns a section or None on {name.replace('-', ' ')} results"
        yield Check(name, proves, partial(_situation, name=name))
    yield Check("captions", "every table and figure has a caption, a figure's says what it shows", _captions)
    yield Check("figure-data", "every figure has its numbers as a table, for those who cannot see it", _figure_data)
    yield Check("figures-draw", "every figure can be drawn to a file, hostile names included", _figures_draw)
    yield Check("unchanged", "the results are not modified", _unchanged)
    yield Check("figures-closed", "no matplotlib figure stays open and no setting stays changed", _closed)
    yield Check("repeatable", "the same results give the same text and tables", _repeatable)
    yield Check("global-randomness", "global random generators are untouched", _global_randomness)


def _order(subject: ReportSubject) -> None:
    order = subject.plugin.order
    require(isinstance(order, int), f"order is {order!r}; write a whole number, such as order = 50")


def _situation(subject: ReportSubject, name: str) -> None:
    section = subject.section(SITUATIONS[name]())
    if section is None:
        return
    require(isinstance(section, Section), f"section returned a {type(section).__name__}; return a Section or None")
    require(section.title.strip(), "the section has no title")
    require(section.blocks, "the section has no blocks; return None where there is nothing to show")
    for block in section.blocks:
        known = isinstance(block, Text | Facts | Table | Figure)
        require(known, f"a block is a {type(block).__name__}; use Text, Facts, Table and Figure of bench.api")
        if isinstance(block, Table):
            rows, columns = block.data.shape
            inside = all(0 <= r < rows and 0 <= c < columns for r, c in block.bold)
            require(inside, f"a bold cell is outside of the table {block.caption!r}; give (row, column) positions")


def _captions(subject: ReportSubject) -> None:
    for section in subject.sections():
        for block in section.blocks:
            if isinstance(block, Table):
                require(block.caption.strip(), "a table has no caption; say what its rows and numbers are")
            if isinstance(block, Figure):
                words = len(block.caption.split())
                require(words >= 5, f"the caption of figure {block.name!r} has {words} words; say what it shows")
        names = [block.name for block in section.blocks if isinstance(block, Figure)]
        require(all(name.strip() for name in names), "a figure has no name; its file is named after it")
        require(len(names) == len(set(names)), "two figures of the section have the same name; put the dataset into it")


def _figure_data(subject: ReportSubject) -> None:
    for figure in subject.figures():
        has = figure.data is not None and len(figure.data) > 0
        require(has, f"figure {figure.name!r} has no data; give the numbers it shows: Figure(..., data=a data frame)")


def _figures_draw(subject: ReportSubject) -> None:
    for figure in subject.figures():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            figure.figure.savefig(io.BytesIO(), format="png", dpi=40)


def _unchanged(subject: ReportSubject) -> None:
    for situation in SITUATIONS.values():
        results, before = situation(), situation()
        subject.section(results)
        for name in FRAMES:
            try:
                pd.testing.assert_frame_equal(getattr(results, name), getattr(before, name))
            except AssertionError:
                advice = f"work on a copy: results.{name}.copy() or .assign(...)"
                require(False, f"the section changed results.{name}; {advice}")


def _closed(subject: ReportSubject) -> None:
    import matplotlib
    from matplotlib import pyplot

    figures, settings = pyplot.get_fignums(), dict(matplotlib.rcParams)
    try:
        with _figures_closed(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            subject.plugin.section(example_results())
            left = set(pyplot.get_fignums()) - set(figures)
        changed = sorted(name for name, value in matplotlib.rcParams.items() if settings.get(name) != value)
    finally:
        dict.update(matplotlib.rcParams, settings)
    require(not left, "a figure stays open in pyplot; create it with matplotlib.figure.Figure(...) instead of pyplot")
    require(not changed, f"the settings {', '.join(changed[:3])} stay changed; wrap them in matplotlib.rc_context")


def _repeatable(subject: ReportSubject) -> None:
    one, other = (_texts(subject.section(example_results())) for _ in range(2))
    advice = "leave out times and random numbers, and sort sets"
    require(one == other, f"the same results gave another section; {advice}")


def _texts(section: Section | None) -> list[str]:
    """Return all text of a section, captions and tables included."""
    if section is None:
        return []
    texts = [section.title]
    for block in section.blocks:
        if isinstance(block, Facts):
            texts.append(str(dict(block.facts)))
        else:
            texts.append(block.text if isinstance(block, Text) else block.caption)
        if isinstance(block, Table):
            texts += [block.data.to_csv(), str(sorted(block.bold))]
    return texts


def _global_randomness(subject: ReportSubject) -> None:
    with global_generators_untouched("pass a np.random.default_rng(number) to what draws numbers"):
        subject.section(example_results())
