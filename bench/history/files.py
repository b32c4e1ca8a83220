"""The files of one metric's history: a page in the style of the leaderboard, and its data as JSON and CSV."""

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.csv_cells import harmless_cell
from bench.errors import UserError, unknown_name
from bench.history.changes import Changing, Histories, with_changes
from bench.history.repository import NO_REPOSITORY, Repository
from bench.history.series import read_series, wanted_labels
from bench.history.view import line_view, page_content
from bench.json_values import without_nan
from bench.machine.files import write_output
from bench.metrics import catalogue, find_declaration
from bench.store.store import Store
from bench.web.names import metric_name, readable_name
from bench.web.templating import templates

LEVEL = 0.95  # of the intervals
COLUMNS = ("dataset", "method", "code", "seed", "value", "change_point", "versions", "options")


def metric_history(stores: Sequence[Store], metric: str, suite: str | None = None) -> Histories:
    """Return the history of a metric from all cells of some stores, also of cells that their suite no longer has."""
    if find_declaration(metric) is None:
        raise unknown_name("metric", metric, catalogue(), "--metric")
    wanted = wanted_labels(stores, suite)
    series = read_series(stores, wanted, {label.suite: [metric] for label in wanted})
    if not series:
        names = ", ".join(store.address for store in stores)
        raise UserError(f"--metric {metric}: no value of it is stored in {names}; see 'uqbench list metrics'")
    return with_changes(series)


def write_history(metric: str, found: Histories, out: Path, repository: Repository = NO_REPOSITORY) -> list[Path]:
    """Write `history-METRIC.html` (self-contained), `.json` and `.csv` into a folder; return the files.

    Commits on the page lead to the repository.
    """
    name = readable_name(f"history-{metric}")
    paths = [out / f"{name}{ending}" for ending in (".html", ".json", ".csv")]
    environment = templates("bench.history")
    environment.globals["commit_address"] = repository.commit
    page = environment.get_template("history_metric.html")
    content = page_content(found, [line_view(line, LEVEL, seeds=True) for line in found.lines])
    html = page.render(content, title=f"History of {metric_name(metric)}", data=paths[1].name, table=paths[2].name)
    series = [_series(line) for line in found.lines]
    data = without_nan({"metric": metric, "alpha": found.alpha, "places": found.cuts, "series": series})
    table = io.StringIO(newline="")
    rows = ([harmless_cell(value) for value in row] for row in _csv_rows(found.lines))
    csv.writer(table, lineterminator="\n").writerows([COLUMNS, *rows])
    texts = (html, json.dumps(data, indent=1, allow_nan=False) + "\n", table.getvalue())
    return [write_output(path, text) for path, text in zip(paths, texts, strict=True)]


def _series(line: Changing) -> dict[str, Any]:
    series, versions = line.series, line.series.versions
    return {
        **asdict(series.label),
        "seeds": list(series.seeds),
        "versions": [asdict(version) for version in versions],
        "values": series.values.tolist(),
        "changes": [
            {"code": versions[change.at].name, "subject": versions[change.at].subject, **asdict(change)}
            for change in line.changes
        ],
    }


def _csv_rows(lines: Sequence[Changing]) -> Iterator[Sequence[Any]]:
    for line in lines:
        series, changed, label = line.series, {change.at for change in line.changes}, line.series.label
        for number, (version, row) in enumerate(zip(series.versions, series.values.tolist(), strict=True)):
            for seed, value in zip(series.seeds, row, strict=True):
                if math.isfinite(value):
                    place = (label.dataset, label.method, version.name, seed)
                    yield (*place, value, int(number in changed), version.plugins, label.options)
