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
    """Return `metrics` as Markdown tables, one per family."""
    lines: list[str] = []
    for family, own in groupby(metrics, lambda metric: metric.family):
        rows = [[cell.replace("|", "\\|") for cell in _cells(metric)] for metric in own]
        lines += ["", f"### {family.capitalize()}", "", *markdown_table(COLUMNS, rows)]
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
