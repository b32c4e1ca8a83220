"""The files of one metric's history: a page as the leaderboard's, and its data as JSON and CSV."""

import csv
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.errors import UserError, unknown_name
from bench.history.changes import Changing, Histories, with_changes
from bench.history.series import read_series, wanted_labels
from bench.history.view import history_content, shown_line
from bench.metrics import catalogue, find_declaration
from bench.store.store import Store
from bench.web.names import metric_name
from bench.web.templating import templates

LEVEL = 0.95  # of the intervals


def metric_history(stores: Sequence[Store], metric: str, suite: str | None = None) -> Histories:
    """Return the history of a metric from all cells of some stores, whatever their suite wants now."""
    if find_declaration(metric) is None:
        raise unknown_name("metric", metric, catalogue(), "--metric")
    wanted = wanted_labels(stores, suite)
    series = read_series(stores, wanted, {label.suite: [metric] for label in wanted})
    if not series:
        shown = ", ".join(store.address for store in stores)
        raise UserError(f"--metric {metric}: no value of it is stored in {shown}; see 'uqbench list metrics'")
    return with_changes(series)


def write_history(metric: str, found: Histories, out: Path) -> list[Path]:
    """Write `history-METRIC.html` (self-contained), `.json` and `.csv` into a folder; return the files."""
    name = "history-" + "".join(c if c.isalnum() or c in "_-" else "-" for c in metric)
    paths = [out / f"{name}{ending}" for ending in (".html", ".json", ".csv")]
    page = templates("bench.history").get_template("history_metric.html")
    content = history_content(found, [shown_line(one, LEVEL, singles=True) for one in found.lines])
    html = page.render(content, title=f"History of {metric_name(metric)}", data=paths[1].name, table=paths[2].name)
    try:
        out.mkdir(parents=True, exist_ok=True)
        # Names come from a store and may hold halves of characters.
        paths[0].write_text(html, "utf-8", errors="backslashreplace")
        paths[1].write_text(json.dumps(_content(metric, found), indent=1, allow_nan=False) + "\n", "utf-8")
        with paths[2].open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(_table(found.lines))
    except OSError as error:
        raise UserError(f"--out {out}: cannot be written: {error.strerror or error}") from None
    return paths


def _content(metric: str, found: Histories) -> dict[str, Any]:
    return {
        "metric": metric,
        "alpha": found.alpha,
        "places": found.cuts,
        "series": [_series(one) for one in found.lines],
    }


def _series(one: Changing) -> dict[str, Any]:
    series = one.series
    return {
        **asdict(series.label),
        "seeds": list(series.seeds),
        "versions": [asdict(version) for version in series.versions],
        "values": [[value if math.isfinite(value) else None for value in row] for row in series.values.tolist()],
        "changes": [
            {"code": series.versions[change.at].name, "subject": series.versions[change.at].subject, **asdict(change)}
            for change in one.changes
        ],
    }


def _table(lines: Sequence[Changing]) -> Iterator[Sequence[Any]]:
    yield ("dataset", "method", "code", "seed", "value", "change_point", "versions", "options")
    for one in lines:
        series, changed = one.series, {change.at for change in one.changes}
        for number, (version, row) in enumerate(zip(series.versions, series.values.tolist(), strict=True)):
            for seed, value in zip(series.seeds, row, strict=True):
                if math.isfinite(value):
                    yield (
                        series.label.dataset,
                        series.label.method,
                        version.name,
                        seed,
                        value,
                        int(number in changed),
                        version.plugins,
                        series.label.options,
                    )
