"""`leaderboard.json`: everything the pages show, for other programs. schema.json describes it."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from bench import __version__
from bench.history.changes import Changing
from bench.history.points import points
from bench.json_values import without_nan
from bench.leaderboard.boards import Board, Entry
from bench.leaderboard.collect import Leaderboard
from bench.leaderboard.rerun import Rerun
from bench.leaderboard.rows import Row
from bench.metrics import condition
from bench.spec.spec import REPEATED
from bench.stats.compare import FEWEST_PAIRS
from bench.web.dates import iso_time

FORMAT = 1  # raised when a reader of the file would have to change


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    content: dict[str, Any] = json.loads((files("bench.leaderboard") / "schema.json").read_text("utf-8"))
    return content


def document(board: Leaderboard, reruns: dict[tuple[str, str], Rerun]) -> dict[str, Any]:
    """Return the document; what JSON has not (NaN, infinity) is null."""
    settings = board.settings
    environments = {_name(e): dict(e) for row in board.rows for e in _environments(row)}
    content = {
        "format": FORMAT,
        "uqbench": __version__,
        "updated": iso_time(board.updated),
        "settings": {
            "alpha": settings.alpha,
            "level": settings.level,
            "correction": settings.correction,
            "test_share": settings.test_share,
            "fewest_pairs": FEWEST_PAIRS,
            "changes": {"alpha": board.history.alpha, "places": board.history.cuts},
        },
        "suites": [asdict(suite) for suite in board.suites],
        "metrics": {name: _metric(name, metric) for name, metric in board.metrics.items()},
        "rows": [_row(row, reruns[row.suite, row.method]) for row in board.rows],
        "boards": [_board(one) for one in board.boards],
        "history": [_line(line, settings.level) for line in board.history.lines],
        "environments": dict(sorted(environments.items())),
        "unlisted": [asdict(one) for one in board.unlisted],
    }
    plain: dict[str, Any] = without_nan(content)
    return plain


def _metric(name: str, metric: Any) -> dict[str, Any]:
    told = ("task", "family", "direction", "target", "unit", "formula", "source")
    return {"name": name.partition("@")[0], "condition": condition(name), **{key: getattr(metric, key) for key in told}}


def _line(line: Changing, level: float) -> dict[str, Any]:
    label, versions = line.series.label, line.series.versions
    return {
        "suite": label.suite,
        "dataset": label.dataset,
        "method": label.method,
        "metric": line.series.metric,
        "points": [
            {
                "code": point.version.name,
                "subject": point.version.subject,
                "version": point.version.plugins,
                "finished": iso_time(point.version.finished),
                "repeats": point.repeats,
                "mean": point.mean,
                "low": point.low,
                "high": point.high,
            }
            for point in points(line.series, level)
        ],
        "changes": [
            {
                "point": change.at,
                "code": versions[change.at].name,
                "subject": versions[change.at].subject,
                "before": change.before,
                "after": change.after,
                "p": change.p,
                "better": change.better,
            }
            for change in line.changes
        ],
    }


def _environments(row: Row) -> Iterable[Any]:
    return (source.environment for source in row.sources.values())


def _name(environment: Any) -> str:
    return hashlib.blake2b(json.dumps(environment, sort_keys=True).encode(), digest_size=8).hexdigest()


def _row(row: Row, again: Rerun) -> dict[str, Any]:
    spec = {name: value for name, value in row.spec.plain().items() if name not in REPEATED}
    return {
        "suite": row.suite,
        "dataset": row.dataset,
        "method": row.method,
        "plugins": {kind: spec.pop(kind) for kind in ("dataset", "method")},
        **spec,
        "planned": row.planned,
        "states": dict(row.states),
        "seeds": list(row.seeds),
        "data": list(row.data),
        "code": list(row.codes),
        "devices": list(row.devices),
        "environments": sorted({_name(environment) for environment in _environments(row)}),
        "finished": [iso_time(row.started), iso_time(row.finished)],
        "cpu_seconds": row.cpu_seconds,
        "rerun": list(again.lines),
    }


def _board(board: Board) -> dict[str, Any]:
    return {
        "suite": board.suite,
        "task": board.task,
        "dataset": board.dataset,
        "metric": board.metric,
        "device": board.device,
        "datasets": list(board.datasets),
        "test": board.test,
        "notes": list(board.notes),
        "entries": [_entry(entry, board.dataset is None) for entry in board.entries],
    }


def _entry(entry: Entry, overall: bool) -> dict[str, Any]:
    place = {"method": entry.method, "place": entry.place, "groups": entry.groups}
    if overall:
        score = {"value": entry.score, "low": entry.low, "high": entry.high}
        return {**place, "average_rank": entry.value, "score": score}
    behind = dict(zip(("value", "low", "high"), entry.behind, strict=True)) if entry.behind else None
    return {
        **place,
        "mean": entry.value,
        "low": entry.low,
        "high": entry.high,
        "behind": behind,
        "repeats": entry.repeats,
        "planned": entry.planned,
        "lost": entry.lost,
    }
