"""Histories prepared for the templates: pictures, formatted numbers, change points in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from bench.counts import plural
from bench.history.changes import FEWEST_RUNS, Change, Changing, Histories
from bench.history.points import Point, points
from bench.history.series import Label, Series, Version
from bench.metrics import declaration
from bench.web.names import better_values, metric_name
from bench.web.numbers import decimal_places, format_interval, format_number
from bench.web.svg import ChangeMark, LinePoint, draw_line


@dataclass(frozen=True)
class ChangeView:
    """A change point with its formatted means."""

    version: Version  # the first one whose values differ
    before: str
    after: str
    verdict: str
    plugins: str = ""  # those that differ from the version before, in words


@dataclass(frozen=True)
class PointView:
    """A version in the table of a line."""

    point: Point
    mean: str
    interval: str
    change: ChangeView | None


@dataclass(frozen=True)
class LineView:
    """One metric of one method on one dataset over versions."""

    label: Label
    metric: str  # its name for readers
    picture: Markup
    points: tuple[PointView, ...]
    changes: tuple[ChangeView, ...]
    note: str

    @property
    def name(self) -> str:
        """What it is about, beside the method."""
        return f"{self.metric} on {self.label.dataset}"


def line_view(line: Changing, level: float, *, seeds: bool = False) -> LineView:
    """Return a line for a page; `seeds` draws the values of single seeds, too."""
    series, own = line.series, points(line.series, level)
    places = decimal_places((point.mean, point.low, point.high) for point in own)
    changes = {
        change.at: _change(change, series.versions[change.at], places, series.changed_plugins(change.at))
        for change in line.changes
    }
    means = [format_number(point.mean, places) for point in own]
    intervals = [format_interval(point.low, point.high, places) for point in own]
    words = [" ".join(filter(None, (p.version.label, p.version.name, p.version.subject))) for p in own]
    titles = [f"{text}: {mean}" for text, mean in zip(words, means, strict=True)]
    marks = [ChangeMark(change.at, change.better) for change in line.changes]
    drawn = [LinePoint(p.mean, p.low, p.high, title, p.version.short) for p, title in zip(own, titles, strict=True)]
    return LineView(
        series.label,
        metric_name(series.metric),
        draw_line(drawn, marks, series.values.T.tolist() if seeds else ()),
        tuple(PointView(p, means[n], intervals[n], changes.get(n)) for n, p in enumerate(own)),
        tuple(changes.values()),
        _note(series),
    )


def _note(series: Series) -> str:
    """Return why a line can have no change points, if so."""
    if not series.comparable:
        return f"Times of {series.machines} machines are not compared: no change points."
    runs = sum(len(own) for own in series.runs)
    if series.shares_noise and len(series.versions) > 1 and runs < FEWEST_RUNS:
        return (
            f"{plural(runs, 'run')}: the times of one run share the noise of their machine, so change points need at "
            f"least {FEWEST_RUNS} runs. Run versions again into stores of their own."
        )
    return ""


def _change(change: Change, version: Version, places: int, plugins: str) -> ChangeView:
    while places < 7 and format_number(change.before, places) == format_number(change.after, places):
        places += 1
    before, after = (format_number(mean, places) for mean in (change.before, change.after))
    return ChangeView(version, before, after, change.verdict, plugins)


def page_content(found: Histories, lines: Sequence[LineView]) -> dict[str, Any]:
    """Return the content of a page about many lines: all change points, the newest first, and the lines by metric."""
    by_metric: dict[str, list[LineView]] = {}
    for one, line in zip(found.lines, lines, strict=True):
        by_metric.setdefault(one.series.metric, []).append(line)
    changes = [(line, change) for own in by_metric.values() for line in own for change in line.changes]
    changes.sort(key=lambda pair: -pair[1].version.since)
    versions = {(version.code, version.plugins) for one in found.lines for version in one.series.versions}
    metrics = [
        {"name": metric_name(name), "better": better_values(declaration(name)), "groups": _groups(own)}
        for name, own in by_metric.items()
    ]
    counts = {"lines": len(lines), "versions": len(versions)}
    return {"changes": changes, "correction": found.correction, "metrics": metrics, **counts}


def _groups(lines: Sequence[LineView]) -> list[tuple[str, list[LineView]]]:
    """Return lines with a change point, without one, and of one version; with a heading for all but the first."""
    groups: dict[str, list[LineView]] = {"": [], "without a change point": [], "of one version only": []}
    changed, steady, single = groups.values()
    for one in lines:
        (changed if one.changes else steady if len(one.points) > 1 else single).append(one)
    headings = {kind: f"{plural(len(own), 'line')} {kind}" if kind else "" for kind, own in groups.items()}
    return [(headings[kind], own) for kind, own in groups.items() if own]
