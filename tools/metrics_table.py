"""The table of all metrics in docs/metrics.md, written from their declarations.

`python -m tools.metrics_table docs/metrics.md` brings the document up to date.
"""

import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from bench.errors import UserError
from bench.metrics.discovery import BUILT_IN, assemble
from bench.metrics.metric import Metric
from bench.text_tables import markdown_table

BEGIN = "<!-- begin: written by python -m tools.metrics_table -->"
END = "<!-- end -->"
COLUMNS = ("name", "task", "best", "unit", "needs", "formula", "source")


def markdown(metrics: Iterable[Metric]) -> str:
    """Return a Markdown table of `metrics`, one table a family."""
    lines: list[str] = []
    for family, own in groupby(metrics, lambda metric: metric.family):
        rows = [[cell.replace("|", "\\|") for cell in _cells(metric)] for metric in own]
        lines += ["", f"### {family.capitalize()}", "", *markdown_table(COLUMNS, rows)]
    return "\n".join([*lines, ""])


def _cells(metric: Metric) -> tuple[str, ...]:
    best = f"{metric.target:g}" if metric.direction == "target" else metric.direction
    needs = ", ".join(sorted(metric.needs)) or "-"
    return (f"`{metric.name}`", metric.task, best, metric.unit, needs, metric.formula, metric.source)


def updated(document: str) -> str:
    """Return `document` with the table of built-in metrics between its two marks."""
    if BEGIN not in document or END not in document:
        raise UserError(f"the document lacks the marks {BEGIN!r} and {END!r}")
    before, rest = document.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    return before + BEGIN + "\n" + markdown(assemble(BUILT_IN, ()).values()) + "\n" + END + after


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")
