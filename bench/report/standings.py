"""The standings after a run: average ranks by the suite's first metrics, as a few lines for a terminal."""

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from bench.errors import UserError
from bench.metrics import Metric, catalogue, declaration
from bench.stats import CellCounts, average_ranks, methods_with_equal_draws
from bench.stats.rank import mean_losses
from bench.store.results import StoredResults
from bench.text_tables import cut

COLUMNS = 5  # metrics beside each other
NAME = 22  # characters of a method
ARROWS = {"lower": "↓", "higher": "↑", "target": "→"}


def standing_lines(results: StoredResults) -> Iterator[str]:
    """Yield a table of average ranks, the best by the first metric on top; nothing where there is nobody to rank."""
    frame = results.frame
    found: dict[str, dict[str, float]] = {}
    counts: dict[str, int] = {}
    for metric in _metrics(results, frame):
        ranks, datasets = _ranks(frame, metric, results.cells)
        if ranks:
            title = f"{metric.name} {ARROWS[metric.direction]}"
            found[title], counts[title] = ranks, datasets
    if not found:
        return
    methods = sorted(
        dict.fromkeys(method for ranks in found.values() for method in ranks),
        key=lambda method: [ranks.get(method, math.inf) for ranks in found.values()],
    )
    width = max(12, *(len(title) + 2 for title in found))
    yield f"{'average rank (1 is the best)':<{NAME + 8}}" + "".join(f"{title:>{width}}" for title in found)
    for method in methods:  # without numbers: a place needs a test
        cells = "".join(f"{_rank(ranks.get(method)):>{width}}" for ranks in found.values())
        yield f"      {cut(method, NAME):<{NAME + 2}}{cells}"
    yield f"{'datasets':>14}{'':<{NAME - 6}}" + "".join(f"{counts[title]:>{width}}" for title in found)
    yield "ranks of means say nothing about significance: uqbench compare, uqbench rank, uqbench report"


def _metrics(results: StoredResults, frame: pd.DataFrame) -> list[Metric]:
    present, known = set(frame["metric"]), catalogue()
    named = [declaration(name) for name in results.metrics if name in present and name.partition("@")[0] in known]
    stored = named or [known[name] for name in known if name in present]
    chosen = [metric for metric in stored if metric.relative_to is None and metric.has_better]
    tasks = {metric.task: [m for m in chosen if m.task == metric.task] for metric in chosen}
    each = -(-COLUMNS // max(len(tasks), 1))  # a suite of both tasks shows some of each
    return [metric for own in tasks.values() for metric in own[:each]][:COLUMNS]


def _ranks(frame: pd.DataFrame, metric: Metric, cells: pd.DataFrame) -> tuple[dict[str, float], int]:
    rows = frame[frame["metric"] == metric.name]
    methods: Sequence[str] = [str(method) for method in dict.fromkeys(rows["method"])]
    methods, _ = methods_with_equal_draws(metric, sorted(set(rows["dataset"])), methods, CellCounts.of(cells))
    if len(methods) < 2:
        return {}, 0
    try:
        table = mean_losses(rows, metric, methods, cells)
    except UserError:
        return {}, 0
    if not len(table):
        return {}, 0
    return dict(zip(methods, average_ranks(table).tolist(), strict=True)), len(table)


def _rank(rank: float | None) -> str:
    return "–" if rank is None else f"{rank:.2f}"
