"""The standings after a run: means and average ranks by the suite's first metrics, as lines for a terminal."""

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from bench.counts import plural
from bench.errors import UserError
from bench.metrics import Metric, catalogue, declaration
from bench.report.tables import column_texts
from bench.spec.names import short_names
from bench.stats import CellCounts, average_ranks, methods_with_equal_draws, repeats_due
from bench.stats.rank import mean_losses
from bench.store.results import StoredResults
from bench.text_tables import cut

COLUMNS = 5  # metrics beside each other
NAME = 22  # characters of a method
MOST_VALUES = 40  # lines of means; a report shows larger studies better
ARROWS = {"lower": "↓", "higher": "↑", "target": "→"}


def value_lines(results: StoredResults) -> Iterator[str]:
    """Yield the means over seeds of every dataset, calibration among them; a hint where they are too many to read."""
    frame, due = results.frame, repeats_due(results.cells)
    shown = short_names(str(name) for name in frame["dataset"].unique())
    if frame.groupby(["dataset", "method"]).ngroups > MOST_VALUES:
        yield "uqbench report shows the values of each dataset"
        return
    for dataset, own in frame.groupby("dataset", sort=False):
        metrics = _with_calibration(_stored_metrics(results, own))
        if not metrics:
            continue
        repeats = own.dropna(subset="value").groupby("method")["key"].nunique()  # those that diverged have no value
        most = int(repeats.max()) if len(repeats) else 0
        titles = [_title(metric) for metric in metrics]
        methods = list(dict.fromkeys(own["method"]))
        means = own.groupby(["method", "metric"])["value"].mean()
        columns = [
            column_texts([means.get((method, metric.name), math.nan) for method in methods]) for metric in metrics
        ]
        widths = [max(9, 1 + max(map(len, [title, *texts]))) for title, texts in zip(titles, columns, strict=True)]
        heading = f"{cut(shown[str(dataset)], NAME)}, mean of {plural(most, 'seed')}"
        yield f"{heading:<{NAME + 14}}" + "".join(f"{t:>{w}}" for t, w in zip(titles, widths, strict=True))
        for method, values in zip(methods, zip(*columns, strict=True), strict=True):
            texts = "".join(f"{text:>{w}}" for text, w in zip(values, widths, strict=True))
            count, wanted = int(repeats.get(method, 0)), due[str(dataset), str(method)]
            label = cut(method, NAME) + f" ({count} of {wanted})" * (count < wanted)
            yield f"  {label:<{NAME + 12}}{texts}"


def _with_calibration(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the first metrics; where none of them is about calibration, the last gives way to the first that is."""
    first = list(metrics[:COLUMNS])
    calibration = [metric for metric in metrics if metric.family == "calibration"]
    if calibration and calibration[0] not in first:
        first[-1] = calibration[0]
    return first


def standing_lines(results: StoredResults) -> Iterator[str]:
    """Yield a table of average ranks, the best by the first metric on top; nothing where there is nobody to rank."""
    frame = results.frame
    found: dict[str, dict[str, float]] = {}
    counts: dict[str, int] = {}
    for metric in _metrics(results, frame):
        ranks, datasets = _ranks(frame, metric, results.cells)
        if ranks:
            title = _title(metric)
            found[title], counts[title] = ranks, datasets
    if not found:
        return
    methods = sorted(
        dict.fromkeys(method for ranks in found.values() for method in ranks),
        key=lambda method: [ranks.get(method, math.inf) for ranks in found.values()],
    )
    widths = {title: max(9, len(title) + 1) for title in found}
    yield f"{'average rank (1 is the best)':<{NAME + 8}}" + "".join(f"{t:>{width}}" for t, width in widths.items())
    for method in methods:  # without numbers: a place needs a test
        cells = "".join(f"{_rank(ranks.get(method)):>{widths[title]}}" for title, ranks in found.items())
        yield f"      {cut(method, NAME):<{NAME + 2}}{cells}"
    yield f"{'datasets':>14}{'':<{NAME - 6}}" + "".join(f"{counts[title]:>{width}}" for title, width in widths.items())
    repeats = results.cells[results.cells["status"] == "ok"].groupby(["dataset", "method"]).size()
    if (repeats.groupby("dataset").nunique() > 1).any():
        yield "ranks are of means over the repeats that all methods have; a method that diverged is behind them"
    yield "ranks of means say nothing about significance: uqbench compare, uqbench rank, uqbench report"


def _stored_metrics(results: StoredResults, frame: pd.DataFrame) -> list[Metric]:
    """Return the suite's metrics that have values and a better, or all such metrics."""
    present, known = set(frame["metric"]), catalogue()
    named = [declaration(name) for name in results.metrics if name in present and name.partition("@")[0] in known]
    stored = named or [known[name] for name in known if name in present]
    return [metric for metric in stored if metric.relative_to is None and metric.has_better]


def _metrics(results: StoredResults, frame: pd.DataFrame) -> list[Metric]:
    chosen = [metric for metric in _stored_metrics(results, frame) if not metric.only_with]  # narrow is no merit
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


def _title(metric: Metric) -> str:
    """Return the head of a column: the metric, and which values of it are better."""
    target = f" {metric.target:g}" if metric.target is not None else ""
    return f"{metric.name} {ARROWS[metric.direction]}{target}"


def _rank(rank: float | None) -> str:
    return "–" if rank is None else f"{rank:.2f}"
