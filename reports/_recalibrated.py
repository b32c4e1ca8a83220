"""Calibration after corrections that are fitted on validation rows: computed once per page, shown beside raw values."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from bench.api import Results, stats
from bench.reports._words import decimals, rounded

MOST_PLACES = 4
_known: "WeakKeyDictionary[Results, stats.Recalibrations]" = WeakKeyDictionary()


def recalibrations(results: Results) -> stats.Recalibrations:
    """Return the corrected values of a suite."""
    if results not in _known:
        _known[results] = stats.recalibrations(results.cells, results.kept, results.frame, results.corrected)
    return _known[results]


def column_cells(column: stats.ScaledColumn, methods: Sequence[str]) -> list[str]:
    """Return the cells of a table: the raw value, and below it the scaled one."""
    places = min(decimals((), [value for pair in column.pairs.values() for value in pair]), MOST_PLACES)
    texts = {method: [rounded(value, places) for value in pair] for method, pair in column.pairs.items()}
    return [f"{texts[method][0]}\n(→ {texts[method][1]})" if method in texts else "–" for method in methods]


def column_numbers(column: stats.ScaledColumn, methods: Sequence[str]) -> list[tuple[str, str, float]]:
    """Return method, metric and value of each number, for a file."""
    return [
        (method, part, value)
        for method in methods
        for part, value in zip(column.parts, column.pairs.get(method, ()), strict=False)
    ]


def explained(column: stats.ScaledColumn) -> str:
    """Return the sentence of a caption."""
    return f"Recalibrated: {column.note}."
