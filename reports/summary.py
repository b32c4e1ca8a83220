"""One table per dataset: mean and standard deviation over the seeds, the best mean in bold, marks for what differs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.api import Block, Metric, Report, Results, Section, Table, Text, stats
from bench.reports._left_out import explain
from bench.reports._words import arrow, methods_of, metrics_of

Marks = Mapping[tuple[str, str], str]  # of a metric and a method
BETTER, WORSE = "†", "‡"
SETTINGS = stats.Settings()


@dataclass(frozen=True)
class Summary(Report):
    """The numbers of a suite, dataset by dataset."""

    order = 15

    def section(self, results: Results) -> Section | None:
        """Return the tables, or None where nothing is stored."""
        frame = results.frame
        places = {str(dataset): rows for dataset, rows in frame.groupby("dataset", sort=True)}
        chosen = {dataset: metrics_of(results, rows) for dataset, rows in places.items()}
        if not any(chosen.values()):
            return None
        tested = _tested(results, chosen)
        blocks: list[Block] = [Text(_introduction(results, tested))]
        marks = _marks(results, tested)
        groups = frame.groupby(["dataset", "metric", "method"])["value"]
        numbers = pd.DataFrame({"mean": groups.mean(), "spread": groups.std(), "count": groups.size()})
        known = {str(dataset): own.droplevel("dataset") for dataset, own in numbers.groupby(level="dataset")}
        for dataset, metrics in chosen.items():
            if metrics:
                own, rows = known[dataset], places[dataset]
                methods, seeds = methods_of(rows), rows["seed"].nunique()
                blocks.append(_table(dataset, own, methods, seeds, metrics, marks.get(dataset, {})))
                gaps = [
                    (method, metric)
                    for metric in metrics
                    for method in methods
                    if (metric.name, method) not in own.index
                ]
                if reasons := explain(results.cells, dataset, gaps):
                    blocks.append(Text(reasons))
        return Section("Results by dataset", blocks)


def _introduction(results: Results, tested: Sequence[stats.PairwiseTests]) -> str:
    text = (
        "Mean ± standard deviation over the seeds; bold: the best mean, which by itself says nothing of significance."
    )
    if results.baseline:
        text += (
            f" {BETTER} better and {WORSE} worse than {results.baseline}, paired by split and seed (Holm "
            "over all tests of a table). No mark: a difference was not shown, "
            "which is not the same as none. Relative metrics are differences to that method on the same split."
        )
    if tested:
        text += f" Tests: {stats.datasets_by_test((one.dataset, one.repetition) for one in tested)}."
    return text


def _tested(results: Results, chosen: Mapping[str, list[Metric]]) -> list[stats.PairwiseTests]:
    """Return the tests with the baseline; relative metrics test the same as what they are relative to, so need none."""
    if results.baseline is None:
        return []
    wanted = {m.name: m for metrics in chosen.values() for m in metrics if m.relative_to is None and m.has_better}
    tests = stats.compare_all_pairs(results.frame, list(wanted.values()), cells=results.cells, settings=SETTINGS)
    return [one for one in tests if results.baseline in one.methods]


def _marks(results: Results, tested: Sequence[stats.PairwiseTests]) -> dict[str, dict[tuple[str, str], str]]:
    """Return the marks of each dataset."""
    found: dict[str, list[tuple[str, str, float, float]]] = {}
    for one in tested:
        base = one.methods.index(str(results.baseline))
        found.setdefault(one.dataset, []).extend(
            (one.metric, method, float(one.p[i, base]), float(one.gain[i, base]))
            for i, method in enumerate(one.methods)
            if i != base
        )
    marks = {}
    for dataset, tests in found.items():
        p = stats.adjust_p_values([test[2] for test in tests], SETTINGS.correction)
        marks[dataset] = {
            (metric, method): BETTER if gain > 0 else WORSE
            for (metric, method, _, gain), p_adjusted in zip(tests, p, strict=True)
            if p_adjusted < SETTINGS.alpha
        }
    return marks


def _table(
    dataset: str, known: pd.DataFrame, methods: list[str], seeds: int, metrics: list[Metric], marks: Marks
) -> Table:
    """Return the table of a dataset from mean, spread and count of each metric and method."""
    data, bold, numbers = {}, set(), []
    for column, metric in enumerate(metrics, start=1):
        own = known.loc[metric.name]
        means, spreads, counts = (own[name].to_dict() for name in ("mean", "spread", "count"))
        data[f"{metric.name} {arrow(metric)}".rstrip()] = [
            _cell(means.get(m), spreads.get(m), counts.get(m, 0), seeds) + marks.get((metric.name, m), "")
            for m in methods
        ]
        losses = {m: metric.loss(float(means[m])) for m in methods if m in means and metric.has_better}
        best = min((loss for loss in losses.values() if not math.isnan(loss)), default=math.inf)
        if math.isfinite(best) and len(losses) > 1:
            bold |= {(methods.index(m), column) for m, loss in losses.items() if loss == best}
        numbers += [
            (m, metric.name, means[m], spreads.get(m), counts[m], marks.get((metric.name, m), ""))
            for m in methods
            if m in means
        ]
    frame = pd.DataFrame({"method": methods, **data})
    tidy = pd.DataFrame(numbers, columns=["method", "metric", "mean", "standard_deviation", "seeds", "mark"])
    caption = f"{dataset} ({seeds} {'seed' if seeds == 1 else 'seeds'})"
    return Table(caption, frame, frozenset(bold), f"results-{dataset}", tidy)


def _cell(mean: float | None, spread: float | None, count: int, seeds: int) -> str:
    if mean is None:
        return "–"
    fewer = f" ({count} of {seeds})" if count < seeds else ""  # the others failed, diverged or have no value
    if spread is None or math.isnan(spread):
        return f"{mean:.4g}{fewer}"
    return f"{mean:.4g} ± {spread:.2g}{fewer}"
