"""The verdicts of a gate: each metric of each method on each dataset is compared with its baseline.

Values are paired by seed and compared as losses (lower is better). Identical values are not tested and do not count
towards the correction. All others are decided by one-sided paired t-tests with Holm's correction over the gate:

    regressed     "not worse" is rejected, and the mean change is beyond the margin
    improved      the same in the other direction
    equivalent    two one-sided tests (TOST) place the change within the margin
    inconclusive  none of these

A real change within the margin is equivalent: that is what the margin is for. At the same seeds a change of the code
moves pairs together, and the test detects small effects. Where pairs are unrelated (other seeds, chaotic training after
a rounding) the differences are still independent with mean zero, and the test keeps its level.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

import numpy as np
import scipy.special

from bench.gate.values import Measured, Place
from bench.metrics import Metric, find_declaration
from bench.metrics.margins import Margin, margin_of
from bench.stats.corrections import holm
from bench.stats.pairing import losses
from bench.stats.planning import detectable_difference
from bench.stats.tests import Array, equivalence_test, is_constant, standard_error

Verdict = Literal["identical", "equivalent", "improved", "regressed", "inconclusive", "missing", "new", "not compared"]
FAILING: tuple[Verdict, ...] = ("regressed", "missing")
FEWEST_PAIRS = 5  # with fewer there is no test, only identity
RUNS = "runs"  # in place of a metric, where cells have no result


@dataclass(frozen=True)
class Rules:
    """The levels and margins of a gate."""

    alpha: float = 0.01  # chance of any false "regressed"; the same for "improved"
    equivalence_alpha: float = 0.05  # chance of any false "equivalent"
    margins: Mapping[str, Margin] = field(default_factory=dict)
    cost: bool = True  # compare times: both were measured on the same machine


@dataclass(frozen=True)
class MetricComparison:
    """One metric of one method on one dataset. Differences are now - baseline, in the metric's own unit."""

    dataset: str
    method: str
    metric: str
    family: str
    verdict: Verdict
    pairs: int = 0
    baseline: float = math.nan  # means over the pairs
    now: float = math.nan
    difference: float = math.nan  # with a target: of the distances to it
    margin: float = math.nan
    p_worse: float = math.nan
    p_better: float = math.nan
    p_equivalent: float = math.nan
    p_worse_adjusted: float = math.nan
    p_better_adjusted: float = math.nan
    p_equivalent_adjusted: float = math.nan
    worse_by: float = math.nan  # the mean change as a loss: above 0 is worse
    deviation: float = math.nan  # of the differences over pairs
    note: str = ""

    @property
    def place(self) -> Place:
        """The dataset and the method."""
        return self.dataset, self.method


def compare(then: Measured, now: Measured, rules: Rules) -> list[MetricComparison]:
    """Return every comparison with its p-values; the verdict is 'inconclusive' where a test has to decide."""
    return [*_lost(then, now), *_pairs(then, now, rules), *_new(then, now)]


def _lost(then: Measured, now: Measured) -> Iterator[MetricComparison]:
    for place, rows in sorted(then.values.items()):
        missing = place not in now.values
        before, after = (_count(side.lost.get(place, {})) for side in (then, now))
        if missing:
            why = now.remarks.get(place) or now.remarks.get((place[0], "")) or _statuses(now, place)
            family = next((m.family for name in rows if (m := find_declaration(name))), "")
            yield MetricComparison(*place, RUNS, family, "missing", note=why or "not in the suite any more")
        elif after > before:
            note = f"{_statuses(now, place)}; in the baseline {_statuses(then, place) or 'none'}"
            counts = (len(then.seeds), before, after, after - before)
            yield MetricComparison(*place, RUNS, "", "regressed", *counts, note=note)


def _count(statuses: Mapping[str, Sequence[int]]) -> int:
    return sum(len(seeds) for seeds in statuses.values())


def _statuses(side: Measured, place: Place) -> str:
    parts = [f"{len(s)} of {len(side.seeds)} seeds {status}" for status, s in side.lost.get(place, {}).items() if s]
    return ", ".join(parts)


def _new(then: Measured, now: Measured) -> Iterator[MetricComparison]:
    for place, rows in sorted(now.values.items()):
        if place not in then.values:
            yield MetricComparison(*place, "all metrics", "", "new", note="not in the baseline")
            continue
        for name in sorted(set(rows) - set(then.values[place])):
            metric = find_declaration(name)
            yield MetricComparison(*place, name, metric.family if metric else "", "new", note="not in the baseline")


def _pairs(then: Measured, now: Measured, rules: Rules) -> Iterator[MetricComparison]:
    for place, rows in sorted(then.values.items()):
        for name, before in sorted(rows.items()) if place in now.values else ():
            metric = find_declaration(name)
            if metric is None:
                yield MetricComparison(*place, name, "", "missing", note="no metric of this name is declared any more")
                continue
            row = MetricComparison(*place, name, metric.family, "inconclusive")
            if name not in now.values[place]:
                yield replace(row, verdict="missing", note="no value of this metric any more")
            elif metric.family == "cost" and not rules.cost:
                yield replace(row, verdict="not compared", note="times of another machine")
            else:
                yield _test(row, metric, before, now.values[place][name], rules)


def _test(row: MetricComparison, metric: Metric, before: Array, after: Array, rules: Rules) -> MetricComparison:
    both = np.isfinite(before) & np.isfinite(after)
    identical = np.array_equal(before, after, equal_nan=True)
    before, after = before[both], after[both]
    row = replace(row, pairs=len(before))
    if len(before):
        worse = losses(after, metric) - losses(before, metric)
        centre = losses(before, metric) if metric.direction == "target" else before
        row = replace(
            row,
            baseline=float(before.mean()),
            now=float(after.mean()),
            worse_by=float(worse.mean()),
            difference=float(-worse.mean() if metric.direction == "higher" else worse.mean()),
            margin=margin_of(metric, rules.margins).of(float(centre.mean())),
        )
    if identical:
        return replace(row, verdict="identical")
    if len(before) < FEWEST_PAIRS:
        return replace(row, note=f"{len(before)} pairs: too few for a test, at least {FEWEST_PAIRS} are needed")
    return replace(
        row,
        deviation=float(worse.std(ddof=1)),
        p_worse=one_sided(worse),
        p_better=one_sided(-worse),
        p_equivalent=float(equivalence_test(worse, row.margin)),
    )


def one_sided(worse: Array) -> float:
    """Return p of the one-sided t-test that the mean is above zero.

    The same difference in every pair is not noise over seeds, however few pairs there are: p is 0.
    """
    if is_constant(worse):
        return 0.0 if worse.mean() > 0.0 else 1.0
    return float(scipy.special.stdtr(len(worse) - 1, -worse.mean() / standard_error(worse)))


def decide(
    rows: Sequence[MetricComparison], alpha: float, equivalence_alpha: float, settled: Sequence[MetricComparison] = ()
) -> list[MetricComparison]:
    """Return the rows with verdicts, by Holm's correction over them and the rows settled at earlier looks.

    A settled row stays in the family: with p = 0 where its hypothesis was rejected, else with p = 1. That keeps the
    level whatever made the others go on (the group sequential Holm procedure, Ye et al. 2013).
    """
    tested = [row for row in rows if not math.isnan(row.p_worse)]
    before = [row for row in settled if not math.isnan(row.p_worse)]

    def adjust(p: Sequence[float], rejected: Verdict) -> list[float]:
        family = holm([*p, *(0.0 if row.verdict == rejected else 1.0 for row in before)])
        return [float(each) for each in family[: len(tested)]]

    worse = adjust([row.p_worse for row in tested], "regressed")
    better = adjust([row.p_better for row in tested], "improved")
    equivalent = adjust([row.p_equivalent for row in tested], "equivalent")
    decided = {}
    for row, *p in zip(tested, worse, better, equivalent, strict=True):
        found = replace(row, p_worse_adjusted=p[0], p_better_adjusted=p[1], p_equivalent_adjusted=p[2])
        decided[id(row)] = _decide_row(found, alpha, equivalence_alpha, len(tested) + len(before))
    return [decided.get(id(row), row) for row in rows]


def _decide_row(row: MetricComparison, alpha: float, equivalence_alpha: float, family: int) -> MetricComparison:
    if row.p_worse_adjusted < alpha and row.worse_by > row.margin:
        return replace(row, verdict="regressed")
    if row.p_better_adjusted < alpha and -row.worse_by > row.margin:
        return replace(row, verdict="improved")
    real = min(row.p_worse_adjusted, row.p_better_adjusted) < alpha
    word = "worse" if row.worse_by > 0.0 else "better"
    if row.p_equivalent_adjusted < equivalence_alpha:
        return replace(row, verdict="equivalent", note=f"{word}, within the margin" if real else "")
    if real:
        return replace(row, note=f"{word}, but perhaps within the margin {row.margin:.3g}")
    seen = row.deviation * _detectable(row.pairs, 2.0 * alpha / family)
    return replace(row, note=f"{row.pairs} pairs would have shown {seen:.3g} (80 % power)")


@cache
def _detectable(pairs: int, alpha: float) -> float:
    """Return the smallest change detected with 80 % power, in standard deviations of the differences."""
    return detectable_difference(1.0, pairs, alpha=min(1.0, alpha), estimated_from=pairs)
