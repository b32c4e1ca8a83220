"""Calibration after a scaling fitted on validation rows: a column beside boards of calibration, in no ranking."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bench.leaderboard.boards import Board
from bench.leaderboard.rows import Row
from bench.metrics import Metric, declaration
from bench.stats import ScaledColumn, recalibrations
from bench.store.results import StoredResults

FAMILY = "calibration"
Columns = Mapping[tuple[str, str], ScaledColumn]  # by suite and dataset


def recalibrated_columns(
    results: StoredResults, rows: Sequence[Row], metrics: Sequence[str], tasks: Mapping[str, str]
) -> Columns:
    """Return the columns of one suite for the rows that are listed; none where no board is of calibration."""
    if not any(declaration(name).family == FAMILY for name in metrics):
        return {}
    listed = {(row.dataset, row.method) for row in rows}
    places = zip(results.cells["dataset"], results.cells["method"], strict=True)
    cells = results.cells[[place in listed for place in places]]
    found = recalibrations(cells, results.kept, results.frame, results.corrected)
    datasets = dict.fromkeys(row.dataset for row in rows)
    columns = {(results.suite, name): found.column(tasks[name], [name]) for name in datasets}
    return {place: column for place, column in columns.items() if column is not None}


def column_beside(board: Board, metric: Metric, columns: Columns) -> ScaledColumn | None:
    """Return the column that stands beside a board: one of calibration, on one dataset."""
    if board.dataset is None or metric.family != FAMILY:
        return None
    return columns.get((board.suite, board.dataset))


def column_content(column: ScaledColumn, methods: Collection[str]) -> dict[str, Any]:
    """Return a column as data."""
    pairs = {name: pair for name, pair in column.pairs.items() if name in methods}
    values = [{"method": name, "raw": raw, "recalibrated": scaled} for name, (raw, scaled) in pairs.items()]
    return {**asdict(column.scaling), "repeats": column.repeats, "values": values}
