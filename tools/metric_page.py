"""The tables of metrics in docs/metrics.md, written from the declarations.

python -m tools.metric_page docs/metrics.md
"""

import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from bench.metrics.discovery import BUILT_IN, assemble
from bench.metrics.metric import Metric
from bench.text_tables import markdown_table
from tools.pages import replace_part

COLUMNS = ("name", "task", "best", "unit", "needs", "formula", "source")


def markdown(metrics: Iterable[Metric]) -> str:
    """Return `metrics` as Markdown tables, one per family, and those on request in one of their own."""
    every = list(metrics)
    always, on_request = ([m for m in every if m.on_request == asked] for asked in (False, True))
    parts = [(family.capitalize(), list(own)) for family, own in groupby(always, lambda metric: metric.family)]
    lines: list[str] = []
    for title, own in [*parts, *([("On request", on_request)] if on_request else [])]:
        rows = [[cell.replace("|", "\\|") for cell in _cells(metric)] for metric in own]
        lines += ["", f"### {title}", "", *markdown_table(COLUMNS, rows)]
    return "\n".join([*lines, ""])


def _cells(metric: Metric) -> tuple[str, ...]:
    best = f"{metric.target:g}" if metric.direction == "target" else metric.direction if metric.has_better else "–"
    needs = ", ".join(sorted(metric.needs)) or "-"
    return (f"`{metric.name}`", metric.task, best, metric.unit, needs, metric.formula, metric.source)


def updated(page: str) -> str:
    """Return the page with the tables of the built-in metrics between its marks."""
    return replace_part(page, "metrics", markdown(assemble(BUILT_IN, ()).values()))


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(updated(path.read_text("utf-8")), "utf-8")
