"""`leaderboard.json`: the content of all pages, for other programs. schema.json describes it."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from bench import __version__
from bench.history.changes import Change, Changing
from bench.history.points import Point, points
from bench.history.series import Version
from bench.json_values import without_nan
from bench.leaderboard.against import Against
from bench.leaderboard.boards import Board, Entry
from bench.leaderboard.collect import Leaderboard
from bench.leaderboard.rerun import Rerun
from bench.leaderboard.rows import Row
from bench.metrics import Metric, condition
from bench.spec.spec import REPEATED
from bench.stats.dataset_comparison import FEWEST_PAIRS
from bench.web.dates import iso_time

FORMAT = 1  # raised when a reader of the file would have to change
METRIC = ("task", "family", "direction", "target", "unit", "formula", "source")


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    content: dict[str, Any] = json.loads((files("bench.leaderboard") / "schema.json").read_text("utf-8"))
    return content


def document(board: Leaderboard, reruns: dict[tuple[str, str], Rerun]) -> dict[str, Any]:
    """Return the document; NaN and infinity, which JSON cannot hold, are null."""
    settings, history = board.settings, board.history
    environments = {_name(e): dict(e) for row in board.rows for e in _environments(row)}
    content = {
        "format": FORMAT,
        "uqbench": __version__,
        "updated": iso_time(board.updated),
        "version": board.version or None,
        "settings": {
            **_fields(settings, "alpha", "level", "correction", "test_share"),
            "fewest_pairs": FEWEST_PAIRS,
            "changes": {"alpha": history.alpha, "places": history.cuts},
        },
        "suites": [asdict(suite) for suite in board.suites],
        "metrics": {name: metric_content(name, metric) for name, metric in board.metrics.items()},
        "rows": [_row(row, reruns[row.suite, row.method]) for row in board.rows],
        "boards": [board_content(one) for one in board.boards],
        "history": [line_content(line, settings.level) for line in history.lines],
        "environments": dict(sorted(environments.items())),
        "unlisted": [asdict(one) for one in board.unlisted],
    }
    plain: dict[str, Any] = without_nan(content)
    return plain


def _fields(source: object, *names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


def metric_content(name: str, metric: Metric) -> dict[str, Any]:
    """Return the declaration of a stored metric."""
    return {"name": name.partition("@")[0], "condition": condition(name), **_fields(metric, *METRIC)}


def line_content(line: Changing, level: float) -> dict[str, Any]:
    """Return one line of the history: its points and its change points."""
    return {
        **_fields(line.series.label, "suite", "dataset", "method"),
        "metric": line.series.metric,
        "points": [_point(point) for point in points(line.series, level)],
        "changes": [_change(change, line.series.versions[change.at]) for change in line.changes],
    }


def _point(point: Point) -> dict[str, Any]:
    version = point.version
    code = {"code": version.name, "subject": version.subject, "version": version.plugins}
    return {**code, "finished": iso_time(version.finished), **_fields(point, "repeats", "mean", "low", "high")}


def _change(change: Change, version: Version) -> dict[str, Any]:
    place = {"point": change.at, "code": version.name, "subject": version.subject}
    return place | _fields(change, "before", "after", "p", "better")


def _environments(row: Row) -> Iterable[Any]:
    return (source.environment for source in row.sources.values())


def _name(environment: Any) -> str:
    return hashlib.blake2b(json.dumps(environment, sort_keys=True).encode(), digest_size=8).hexdigest()


def _sources(row: Row) -> dict[str, Any]:
    return {
        "code": row.codes,
        "devices": row.devices,
        "environments": sorted({_name(environment) for environment in _environments(row)}),
        "finished": [iso_time(row.started), iso_time(row.finished)],
    }


def row_sources(row: Row) -> dict[str, Any]:
    """Return where a row comes from, in short: the document has the rest under the same suite, dataset and method."""
    return {**_fields(row, "suite", "dataset", "method", "planned", "seeds"), **_sources(row)}


def _row(row: Row, again: Rerun) -> dict[str, Any]:
    spec = {name: value for name, value in row.spec.plain().items() if name not in REPEATED}
    return {
        **_fields(row, "suite", "dataset", "method"),
        "plugins": {kind: spec.pop(kind) for kind in ("dataset", "method")},
        **spec,
        **_fields(row, "planned", "states", "seeds", "data"),
        **_sources(row),
        "cpu_seconds": row.cpu_seconds,
        "rerun": again.lines,
        **({"submission": dict(row.submission)} if row.submission else {}),
    }


def board_content(board: Board) -> dict[str, Any]:
    """Return a board with its entries, the best first."""
    fields = _fields(board, "suite", "task", "dataset", "metric", "device", "datasets", "test", "notes")
    fields |= _fields(board, "baseline", "decision")
    return {**fields, "entries": [_entry(entry, board.dataset is None) for entry in board.entries]}


def _entry(entry: Entry, overall: bool) -> dict[str, Any]:
    place = {**_fields(entry, "method", "place", "groups"), "against": _against(entry.against)}
    if overall:
        score = {"value": entry.score, "low": entry.low, "high": entry.high}
        return {**place, "average_rank": entry.value, "score": score}
    behind = dict(zip(("value", "low", "high"), entry.behind, strict=True)) if entry.behind else None
    mean = {"mean": entry.value, "low": entry.low, "high": entry.high, "behind": behind}
    return {**place, **mean, **_fields(entry, "repeats", "planned", "lost")}


def _against(against: Against | None) -> dict[str, Any] | None:
    if against is None:
        return None
    fields = _fields(against, "verdict", "p", "difference", "low", "high")
    one = against.posterior
    posterior = None if one is None else {"better": one.below, "within": one.within, "worse": one.above}
    rows = None if against.other_rows is None else asdict(against.other_rows)
    return {**fields, "posterior": posterior, "other_rows": rows}
