"""Histories as the templates want them: pictures, texts, change points in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from bench.history.changes import Change, Changing, Histories
from bench.history.points import Point, points
from bench.history.series import Version
from bench.metrics import declaration
from bench.web.dates import moment
from bench.web.names import better, metric_name
from bench.web.numbers import digits, shown
from bench.web.svg import Mark, Spot, line


@dataclass(frozen=True)
class ShownChange:
    """A change point in words."""

    number: int  # in the picture of its line, from 1
    code: str
    subject: str
    before: str
    after: str
    verdict: str
    date: str
    since: float


@dataclass(frozen=True)
class ShownPoint:
    """A version in the table of a line."""

    code: str
    subject: str
    plugins: str
    finished: str
    repeats: int
    mean: str
    interval: str
    change: ShownChange | None


@dataclass(frozen=True)
class ShownLine:
    """A line, ready for a page."""

    suite: str
    dataset: str
    method: str
    options: str
    metric: str  # as it is read
    picture: Markup
    points: tuple[ShownPoint, ...]
    changes: tuple[ShownChange, ...]
    note: str

    @property
    def name(self) -> str:
        """What it is about, beside the method."""
        return f"{self.metric} on {self.dataset}"


def shown_line(one: Changing, level: float, *, singles: bool = False) -> ShownLine:
    """Return a line for a page; `singles` draws the seeds, too."""
    series, own = one.series, points(one.series, level)
    places = digits([p.high - p.low for p in own], [p.mean for p in own])
    changes = {
        change.at: _change(number, change, series.versions[change.at], places)
        for number, change in enumerate(one.changes, start=1)
    }
    spots = [Spot(p.mean, p.low, p.high, f"{_words(p.version)}: {shown(p.mean, places)}") for p in own]
    marks = [Mark(change.at, change.better) for change in one.changes]
    rows = series.values.T.tolist() if singles else ()
    return ShownLine(
        series.label.suite,
        series.label.dataset,
        series.label.method,
        series.label.options,
        metric_name(series.metric),
        line(spots, marks, rows),
        tuple(_point(p, places, changes.get(n)) for n, p in enumerate(own)),
        tuple(changes.values()),
        "" if series.comparable else f"Times of {series.machines} machines: no change points are looked for.",
    )


def _point(point: Point, places: int, change: ShownChange | None) -> ShownPoint:
    interval = f"{shown(point.low, places)} to {shown(point.high, places)}" if point.repeats > 1 else ""
    version = point.version
    return ShownPoint(
        version.name,
        version.subject,
        version.plugins,
        _day(version.finished),
        point.repeats,
        shown(point.mean, places),
        interval,
        change,
    )


def _change(number: int, change: Change, version: Version, places: int) -> ShownChange:
    while places < 7 and shown(change.before, places) == shown(change.after, places):
        places += 1
    return ShownChange(
        number,
        version.name,
        version.subject,
        shown(change.before, places),
        shown(change.after, places),
        "better" if change.better else "worse",
        _day(version.since),
        version.since,
    )


def _words(version: Version) -> str:
    return f"{version.name} {version.subject}".strip()


def _day(seconds: float) -> str:
    return (moment(seconds) or "")[:10]


def history_content(found: Histories, shown_lines: Sequence[ShownLine]) -> dict[str, Any]:
    """Return what a page about many lines shows: all change points, the newest first, and the lines by metric."""
    by_metric: dict[str, list[ShownLine]] = {}
    for one, each in zip(found.lines, shown_lines, strict=True):
        by_metric.setdefault(one.series.metric, []).append(each)
    changes = [(each, change) for own in by_metric.values() for each in own for change in each.changes]
    changes.sort(key=lambda pair: -pair[1].since)
    versions = {(version.code, version.plugins) for one in found.lines for version in one.series.versions}
    return {
        "changes": changes,
        "correction": found.correction,
        "lines": len(shown_lines),
        "versions": len(versions),
        "metrics": [
            {"name": metric_name(name), "better": better(declaration(name)), "groups": _groups(own)}
            for name, own in by_metric.items()
        ],
    }


def _groups(lines: Sequence[ShownLine]) -> list[tuple[str, list[ShownLine]]]:
    """Return the lines that changed, those that did not, and those that could not; with words for all but the first."""
    groups: dict[str, list[ShownLine]] = {"": [], "without a change point": [], "of one version only": []}
    changed, steady, single = groups.values()
    for one in lines:
        (changed if one.changes else steady if len(one.points) > 1 else single).append(one)
    return [
        (f"{len(own)} line{'s' * (len(own) != 1)} {words}" if words else "", own)
        for words, own in groups.items()
        if own
    ]
