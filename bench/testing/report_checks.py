"""All checks of a report, one at a time."""

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
    """A report under examination."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def section(self, results: ExampleResults) -> Section | None:
        """Return what the report makes of some results; its figures leave nothing open behind."""
        with _figures_closed(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.report.section(results)


@contextmanager
def _figures_closed() -> Iterator[None]:
    """Close what a report left open, so that one check does not fail because of another."""
    from matplotlib import pyplot

    before = set(pyplot.get_fignums())
    try:
        yield
    finally:
        for number in set(pyplot.get_fignums()) - before:
            pyplot.close(number)


def report_checks() -> Iterator[Check[ReportSubject]]:
    """Yield every check that a report is asked to pass, the quick ones first."""
    yield Check("options", "it is a frozen dataclass and every option has a default", _options)
    yield Check("docstring", "its documentation has a first line", _docstring)
    yield Check("order", "its place among the sections is a whole number", _order)
    yield Check("expected-failures", "its excuses are about checks that exist, each with a reason", _expected_failures)
    for name in SITUATIONS:
        proves = f"it returns a section or None on {name.replace('-', ' ')} results"
        yield Check(name, proves, partial(_situation, name=name))
    yield Check("captions", "every table and figure has a caption, a figure's says what is to be seen", _captions)
    yield Check("figure-data", "every figure has its numbers as a table, for those who cannot see it", _figure_data)
    yield Check("figures-draw", "every figure can be drawn to a file, hostile names included", _figures_draw)
    yield Check("unchanged", "the results are left as they were", _unchanged)
    yield Check("figures-closed", "no figure of matplotlib's stays open and no setting stays changed", _closed)
    yield Check("repeatable", "the same results give the same text and tables", _repeatable)
    yield Check("global-randomness", "global random generators are untouched", _global_randomness)


def _options(subject: ReportSubject) -> None:
    declarations.check_options(subject.report)


def _docstring(subject: ReportSubject) -> None:
    declarations.check_first_line(subject.report)


def _expected_failures(subject: ReportSubject) -> None:
    declarations.check_expected_failures(subject.report, [check.name for check in report_checks()])


def _order(subject: ReportSubject) -> None:
    order = subject.report.order
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
            require(
                inside, f"a bold cell of the table {block.caption!r} is outside of it; give (row, column) positions"
            )


def _sections(subject: ReportSubject) -> Iterator[Section]:
    for make in SITUATIONS.values():
        if section := subject.section(make()):
            yield section


def _captions(subject: ReportSubject) -> None:
    for section in _sections(subject):
        for block in section.blocks:
            if isinstance(block, Table):
                require(block.caption.strip(), "a table has no caption; say what its rows and numbers are")
            if isinstance(block, Figure):
                words = len(block.caption.split())
                require(words >= 5, f"the caption of figure {block.name!r} has {words} words; say what is to be seen")
        names = [block.name for block in section.blocks if isinstance(block, Figure)]
        require(all(name.strip() for name in names), "a figure has no name; its file is called by it")
        require(len(names) == len(set(names)), "two figures of the section have the same name; put the dataset into it")


def _figure_data(subject: ReportSubject) -> None:
    seen = False
    for section in _sections(subject):
        for block in section.blocks:
            if isinstance(block, Figure):
                seen = True
                has = block.data is not None and len(block.data) > 0
                require(has, f"figure {block.name!r} has no data; give what it shows: Figure(..., data=a data frame)")
    if not seen:
        raise NotApplicable("it has no figures")


def _figures_draw(subject: ReportSubject) -> None:
    seen = False
    for section in _sections(subject):
        for block in section.blocks:
            if isinstance(block, Figure):
                seen = True
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    block.figure.savefig(io.BytesIO(), format="png", dpi=40)
    if not seen:
        raise NotApplicable("it has no figures")


def _unchanged(subject: ReportSubject) -> None:
    for make in SITUATIONS.values():
        results, before = make(), make()
        subject.section(results)
        for name in FRAMES:
            try:
                pd.testing.assert_frame_equal(getattr(results, name), getattr(before, name))
            except AssertionError:
                require(
                    False, f"the section changed results.{name}; work on a copy: results.{name}.copy() or .assign(...)"
                )


def _closed(subject: ReportSubject) -> None:
    import matplotlib
    from matplotlib import pyplot

    figures, settings = pyplot.get_fignums(), dict(matplotlib.rcParams)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            subject.report.section(example_results())
        left = set(pyplot.get_fignums()) - set(figures)
        changed = sorted(name for name, value in matplotlib.rcParams.items() if settings.get(name) != value)
    finally:
        for number in set(pyplot.get_fignums()) - set(figures):
            pyplot.close(number)
        dict.update(matplotlib.rcParams, settings)
    require(not left, "a figure stays open in pyplot; make it with matplotlib.figure.Figure(...) instead of pyplot")
    require(not changed, f"the settings {', '.join(changed[:3])} stay changed; wrap them in matplotlib.rc_context")


def _repeatable(subject: ReportSubject) -> None:
    one, other = (_told(subject.section(example_results())) for _ in range(2))
    require(
        one == other, "the same results gave another section; leave out times and random numbers, sort what is a set"
    )


def _told(section: Section | None) -> list[str]:
    if section is None:
        return []
    told = [section.title]
    for block in section.blocks:
        if isinstance(block, Facts):
            told.append(str(dict(block.facts)))
        else:
            told.append(block.text if isinstance(block, Text) else block.caption)
        if isinstance(block, Table):
            told += [block.data.to_csv(), str(sorted(block.bold))]
    return told


def _global_randomness(subject: ReportSubject) -> None:
    with global_generators_untouched("pass a np.random.default_rng(number) where numbers are drawn"):
        subject.section(example_results())
