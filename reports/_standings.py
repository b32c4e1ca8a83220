"""How every method stands by each metric of the first table: values, differences to the baseline, and their intervals.

A metric in units of the data cannot be averaged over datasets: there it is the difference to the baseline in per cent
of the baseline's mean on each dataset. Other values are averaged. Intervals over datasets combine the standard errors
of each dataset (Welch and Satterthwaite): they are about other repeats on these datasets, not about other datasets.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from bench.api import Array, Metric, Results, stats
from bench.reports._headline import Headline, headlines
from bench.reports._page_tests import PageTests, page_tests
from bench.reports._words import methods_of

ENDS = 0.975  # of a 95 % interval


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval; the ends are NaN where there are not two repeats."""

    value: float
    low: float = math.nan
    high: float = math.nan

    def scaled(self, factor: float) -> "Estimate":
        """Return the estimate in another unit."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    @property
    def has_interval(self) -> bool:
        """Whether both ends are numbers."""
        return math.isfinite(self.low) and math.isfinite(self.high)


@dataclass(frozen=True)
class Standing:
    """One method by one metric; its differences are to the baseline, those of a target metric of distances to it."""

    value: Estimate
    loss: float  # lower is better: of a target the mean distance to it over datasets, not that of the mean
    difference: Estimate | None  # None of the baseline itself, or where there is none
    on: Mapping[str, stats.DatasetComparison]  # by dataset
    repeats: int  # with a finite value, on all datasets
    due: int  # those that all methods together have, and its own planned ones
    over: str = ""  # the verdict over all datasets together; only leading metrics on several datasets have such a test

    def has_verdict(self, verdict: str) -> bool:
        """Return whether this verdict was reached on a dataset or over all of them."""
        return self.count(verdict) > 0 or self.over == verdict

    @property
    def whole(self) -> bool:
        """Whether its means are over the same repeats as those of all other methods that are whole."""
        return self.repeats >= self.due

    def count(self, verdict: str) -> int:
        """Return on how many datasets this verdict was reached."""
        return sum(row.verdict == verdict for row in self.on.values())

    @property
    def tested(self) -> int:
        """The number of datasets with a test."""
        return sum(not math.isnan(row.p) for row in self.on.values())


@dataclass(frozen=True)
class Common:
    """The means of methods that lost no result over the repeats that all of them have."""

    repeats: int
    means: Mapping[str, float]

    def best(self, metric: Metric) -> list[str]:
        """Return the methods with the best mean."""
        first = min(metric.loss(mean) for mean in self.means.values())
        return [method for method, mean in self.means.items() if metric.loss(mean) == first]


@dataclass(frozen=True)
class Board:
    """All methods by one metric."""

    headline: Headline
    datasets: tuple[str, ...]
    percent: bool  # values and differences are in per cent of the baseline's mean on each dataset
    standings: Mapping[str, Standing]
    common: "Common | None" = None  # where methods were run with different numbers of repeats

    @property
    def metric(self) -> Metric:
        """Its metric."""
        return self.headline.metric

    def order(self, methods: Sequence[str]) -> list[str]:
        """Return methods, the best first; then those that lack repeats, the most repeats first, and those without any.

        Only methods with the same repeats are sorted by their values.
        """
        own = self.standings
        return sorted(methods, key=lambda m: (own[m].due - own[m].repeats, own[m].loss) if m in own else (math.inf, 0))

    def best(self) -> str | None:
        """Return the method with the best value of those with all repeats; None where several share it."""
        own = [(name, one) for name, one in self.standings.items() if one.whole]
        if len(own) < 2:
            return None
        first = min(one.loss for _, one in own)
        leading = [name for name, one in own if one.loss == first]
        return leading[0] if len(leading) == 1 else None


_known: "WeakKeyDictionary[Results, dict[str, list[Board]]]" = WeakKeyDictionary()


def boards(results: Results) -> dict[str, list[Board]]:
    """Return the boards of the first table by task, in the order of its columns."""
    if results not in _known:
        found = {
            task: [board for one in own if (board := _board(results, one)) is not None]
            for task, own in headlines(results).items()
        }
        _known[results] = {task: own for task, own in found.items() if own}
    return _known[results]


def _board(results: Results, headline: Headline) -> Board | None:
    metric, tests = headline.metric, page_tests(results)
    rows = results.frame[results.frame["metric"] == metric.name]
    rows = rows[np.isfinite(rows["value"].astype(float))]
    if rows.empty:
        return None
    datasets = tuple(sorted(str(name) for name in rows["dataset"].unique()))
    against = {one.a: one.rows for one in tests.against_baseline(metric)}
    over = {one.a: str(one.across[0].verdict) for one in tests.against_baseline(metric) if one.across}
    percent = len(datasets) > 1 and metric.unit.startswith("target unit")
    if percent and not against:
        return None  # values in the units of several datasets have no mean, and there is no baseline to compare with
    due = stats.repeats_due(results.cells)
    most = {d: max(count for (place, _), count in due.items() if place == d) for d in datasets}
    standings = {}
    for method, own in rows.groupby("method", sort=False):
        groups = {str(dataset): part for dataset, part in own.groupby("dataset")}
        compared = {row.dataset: row for row in against.get(str(method), ())}
        difference = mean_difference(list(compared.values()), percent)
        if percent and difference is not None and not metric.signed:
            difference = _not_below_nothing(difference)
        value = Estimate(0.0) if method == results.baseline else difference
        if not percent:
            value = _mean_value(metric, groups, tests)
        if value is None:
            continue
        means = [metric.loss(float(part["value"].mean())) for part in groups.values()]
        loss = -value.value if percent and metric.direction == "higher" else value.value
        loss = loss if percent else float(np.mean(means))
        wanted = sum(due.get((dataset, str(method)), most[dataset]) for dataset in datasets)
        standings[str(method)] = Standing(
            value, loss, difference, compared, len(own), wanted, over.get(str(method), "")
        )
    if not standings:
        return None  # the baseline has no value of a metric in units of the data
    order = [method for method in methods_of(results.frame) if method in standings]
    common = _over_common(rows, results.cells) if len(datasets) == 1 else None
    return Board(headline, datasets, percent, {method: standings[method] for method in order}, common)


def _over_common(rows: pd.DataFrame, cells: pd.DataFrame) -> Common | None:
    """Return the means of one dataset over common repeats; None where all methods have the same ones, or none."""
    planned = cells[cells["dataset"] == rows["dataset"].iloc[0]].groupby("method").size()
    table = rows.pivot(index=["split", "seed"], columns="method", values="value")
    table = table[[method for method in table if table[method].count() == planned[method]]]
    shared = table.dropna()
    if len(shared) in (0, len(table.dropna(how="all"))) or len(table.columns) < 2:
        return None
    return Common(len(shared), {str(method): float(mean) for method, mean in shared.mean().items()})


def mean_difference(rows: Sequence[stats.DatasetComparison], percent: bool) -> Estimate | None:
    """Return the mean over datasets of the differences to the baseline; None where there is none.

    On one dataset the interval is that of the comparison itself.
    """
    known = [row for row in rows if math.isfinite(row.difference) and (not percent or row.mean_b)]
    if not known:
        return None
    scale = [100 / abs(row.mean_b) if percent else 1.0 for row in known]
    if len(known) == 1:
        ends = known[0].interval
        low, high = (ends.low, ends.high) if ends else (math.nan, math.nan)
        return Estimate(known[0].difference, low, high).scaled(scale[0])
    errors = [
        row.deviation * math.sqrt(stats.variance_factor(row.pairs, row.test_share)) * factor if row.pairs else math.nan
        for row, factor in zip(known, scale, strict=True)
    ]
    means = [row.difference * factor for row, factor in zip(known, scale, strict=True)]
    return combined(means, errors, [row.pairs for row in known])


def _not_below_nothing(change: Estimate) -> Estimate:
    """Return a change in per cent of a metric that is never negative, its interval cut where the metric is 0."""
    return Estimate(change.value, max(change.low, min(change.value, -100.0)), change.high)


def combined(means: Sequence[float], errors: Sequence[float], counts: Sequence[int]) -> Estimate:
    """Return the mean of several means with the interval that their standard errors and repeats give together."""
    value = float(np.mean(means))
    variances = np.square(np.asarray(errors, dtype=float))
    total = float(variances.sum())
    if not math.isfinite(total) or min(counts) < 2:
        return Estimate(value)
    if total == 0.0:
        return Estimate(value, value, value)
    freedom = total**2 / float((variances**2 / (np.asarray(counts) - 1)).sum())
    half = float(stats.t_quantile(ENDS, freedom)) * math.sqrt(total) / len(means)
    return Estimate(value, value - half, value + half)


def _mean_value(metric: Metric, groups: Mapping[str, pd.DataFrame], tests: PageTests) -> Estimate:
    """Return the mean over datasets of the mean value of a method, its interval cut at the range of the metric."""
    means, errors, counts = [], [], []
    for dataset, own in groups.items():
        tested = tests.tested.get((dataset, metric.name))
        values, share = _repeats(own, tested.tests.repetition if tested else None)
        means.append(float(values.mean()))
        spread = float(values.std(ddof=1)) if len(values) > 1 else math.nan
        errors.append(spread * math.sqrt(stats.variance_factor(len(values), share)))
        counts.append(len(values))
    found = combined(means, errors, counts)
    low, high = stats.cut_interval([found.low, found.high], found.value, metric.value_range).tolist()
    return Estimate(found.value, low, high)


def _repeats(rows: pd.DataFrame, related: stats.Repetition | None) -> tuple[Array, float]:
    """Return the values of the repeats, means of those on one split where splits overlap, and their test share."""
    values = rows["value"].to_numpy(dtype=float)
    if related is None or related.kind == "seeds":
        return values, 0.0
    return rows.groupby("split")["value"].mean().to_numpy(dtype=float), related.test_share
