"""The verdicts of a gate: each metric of each method on each dataset is compared with its baseline.

Values are paired by seed and compared as losses (lower is better). Identical values are not tested and do not count
towards the correction. All others are decided by one-sided paired t-tests with Holm's correction over the gate:

    regressed     "worse by at most the margin" is rejected
    improved      "better by at most the margin" is rejected
    equivalent    two one-sided tests (TOST) place the change within the margin
    inconclusive  none of these

A real change within the margin is equivalent: that is what the margin is for. At the same seeds a change of the code
moves pairs together, and the test detects small effects. Where pairs are unrelated (other seeds, chaotic training after
a rounding) the differences are still independent with mean zero, and the test keeps its level.

No test is needed, and regressed or missing is the verdict, where

- a value was finite and is infinite now, or there is none although the cell has run (`_vanished`);
- a seed got worse by more than the margin, three times the range of the baseline and ten times the change of the
  other seeds (`_outlier`);
- pairs are too few for a test, and the mean change is beyond margin and three times the baseline's range (`_few`).

At the same seeds and on the same machine unchanged code gives the same bits, so these changes are real. Between
unrelated runs they may be chance, and the notes say how often (`BY_CHANCE`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

import numpy as np
import scipy.special
from numpy.typing import NDArray

from bench.counts import plural
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
ONE_RUN = "the seeds of one run share the noise of the machine: run it again before you believe it"
RANGES = 3.0  # of the baseline's values over seeds: what unchanged code hardly ever reaches
APART = 10.0  # times the largest change of the other seeds: what an outlier is
RUNS = "runs"  # in place of a metric, where cells have no result
# False alarms between unrelated runs of unchanged code, as measured for docs/gate.md; a test compares them.
BY_CHANCE = {
    "diverged": "10.5 to 35.5 % of gates where 1 to 5 % of the cells diverge",
    "infinite": "as often as cells that diverge",
    "outlier": "18.8 to 97 % of gates with very skewed values",
    "few": "38 % of gates with 3 seeds, 8.5 % with 4",
}


@dataclass(frozen=True)
class Rules:
    """The levels and margins of a gate."""

    alpha: float = 0.01  # chance of any false "regressed"; the same for "improved"
    equivalence_alpha: float = 0.05  # chance of any false "equivalent"
    margins: Mapping[str, Margin] = field(default_factory=dict)
    cost: bool = True  # compare times: both were measured on the same machine
    last_look: bool = False  # there will be no more pairs: too few for a test are judged by the range of the baseline


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
    p_worse: float = math.nan  # against a change of the margin
    p_better: float = math.nan
    p_changed: float = math.nan  # against no change at all, in the direction of the mean
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
        lost_then, lost_now = (_without_result(side, place) for side in (then, now))
        if missing:
            why = now.remarks.get(place) or now.remarks.get((place[0], "")) or _statuses(now, place)
            family = next((m.family for name in rows if (m := find_declaration(name))), "")
            yield MetricComparison(*place, RUNS, family, "missing", note=why or "not in the suite any more")
        elif new := lost_now - lost_then:  # seed by seed: one that recovered makes up for no other
            note = f"{_statuses(now, place)}; in the baseline {_statuses(then, place) or 'none'}"
            note += "" if len(lost_now) > len(lost_then) else ", at other seeds"
            note += _by_chance("diverged") if new & {*now.lost[place].get("diverged", ())} else ""
            before, after = len(lost_then), len(lost_now)
            counts = (len(then.seeds), before, after, after - before)
            yield MetricComparison(*place, RUNS, "", "regressed", *counts, note=note)


def _by_chance(rule: str) -> str:
    return f"; between unrelated runs this may be chance ({BY_CHANCE[rule]}, docs/gate.md)"


def _without_result(side: Measured, place: Place) -> set[int]:
    return {seed for seeds in side.lost.get(place, {}).values() for seed in seeds}


def _statuses(side: Measured, place: Place) -> str:
    total = plural(len(side.seeds), "seed")
    return ", ".join(f"{len(s)} of {total} {status}" for status, s in side.lost.get(place, {}).items() if s)


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
            elif gone := _vanished(before, now.values[place][name], _lost_seeds(now, place)):
                yield replace(row, verdict=gone[0], note=gone[1])
            elif metric.family == "cost" and not rules.cost:
                yield replace(row, verdict="not compared", note="times of another machine")
            else:
                yield _test(row, metric, before, now.values[place][name], rules)


def _lost_seeds(side: Measured, place: Place) -> NDArray[np.bool_]:
    """Return whether the cell of each seed has no result; that is a change of `runs`, told once for all metrics."""
    gone = _without_result(side, place)
    return np.array([seed in gone for seed in side.seeds], dtype=bool)


def _vanished(before: Array, after: Array, lost: NDArray[np.bool_]) -> tuple[Verdict, str] | None:
    """Return the verdict and the reason where a finite value became infinite, or is none although its cell has run."""
    was = np.isfinite(before) & ~lost
    infinite, none = int((was & np.isinf(after)).sum()), int((was & np.isnan(after)).sum())
    count = len(before)
    if infinite:
        also = f", and {none} have none" if none else ""
        where = f"infinite at {infinite} of {plural(count, 'seed')} where the baseline is finite{also}"
        return "regressed", where + _by_chance("infinite")
    if none:
        where = f"no value at {none} of {plural(count, 'seed')} where the baseline has one"
        return "missing", f"{where} (NaN, or not computed)"
    return None


def _test(row: MetricComparison, metric: Metric, before: Array, after: Array, rules: Rules) -> MetricComparison:
    both = np.isfinite(before) & np.isfinite(after)
    identical = np.array_equal(before, after, equal_nan=True)
    seeds, before, after = np.flatnonzero(both).astype(np.int64), before[both], after[both]
    row = replace(row, pairs=len(before))
    if not len(before):
        note = "" if identical else "no seed has a number on both sides"
        return replace(row, verdict="identical" if identical else "inconclusive", note=note)
    worse = losses(after, metric) - losses(before, metric)
    row = replace(
        row,
        baseline=float(before.mean()),
        now=float(after.mean()),
        worse_by=float(worse.mean()),
        difference=float(-worse.mean() if metric.direction == "higher" else worse.mean()),
        margin=margin_of(metric, rules.margins).of(float(before.mean())),
    )
    if identical:
        return replace(row, verdict="identical")
    spread = float(np.ptp(losses(before, metric)))
    if len(before) < FEWEST_PAIRS:
        return _few(row, spread, rules)
    row = replace(
        row,
        deviation=float(worse.std(ddof=1)),
        p_worse=one_sided(worse, row.margin),
        p_better=one_sided(-worse, row.margin),
        p_changed=one_sided(np.sign(row.worse_by) * worse, 0.0),
        p_equivalent=float(equivalence_test(worse, row.margin)),
    )
    return _outlier(row, worse, seeds, spread)


def _few(row: MetricComparison, spread: float, rules: Rules) -> MetricComparison:
    """Judge pairs that are too few for a test: only a change that no baseline of such values explains is a verdict."""
    few = f"{plural(row.pairs, 'pair')}: too few for a test, at least {FEWEST_PAIRS} are needed"
    if rules.last_look and row.pairs > 2 and row.worse_by > max(row.margin, RANGES * spread):
        far = f"worse by {row.worse_by:.3g}, beyond the margin and {RANGES:g} times the baseline's range {spread:.3g}"
        return replace(row, verdict="regressed", note=f"{few}; {far}{_by_chance('few')}")
    return replace(row, note=few)


def _outlier(row: MetricComparison, worse: Array, seeds: NDArray[np.int64], spread: float) -> MetricComparison:
    """Name the seeds that got worse by far more than the baseline's seeds differ; a mean would only hide them."""
    far = worse > max(row.margin, RANGES * spread)
    if not far.any() or far.all() or worse[far].min() < APART * np.abs(worse[~far]).max():
        return row
    which = ", ".join(str(seed) for seed in seeds[far][:5]) + (", ..." if far.sum() > 5 else "")
    rest = float(np.abs(worse[~far]).max())
    note = (
        f"{_outliers(int(far.sum()), len(worse))} (number {which}): worse by up to {float(worse.max()):.3g}, "
        f"more than {RANGES:g} times the baseline's range {spread:.3g}; the others changed by at most {rest:.3g}"
        f"{_by_chance('outlier')}"
    )
    return replace(row, verdict="regressed", p_worse=math.nan, note=note)


def _outliers(count: int, seeds: int) -> str:
    return f"{plural(count, 'outlier')} among {plural(seeds, 'seed')}"


def one_sided(worse: Array, margin: float = 0.0) -> float:
    """Return p of the one-sided t-test that the mean is above a margin.

    The same difference in every pair is not noise over seeds, however few pairs there are: p is 0 or 1.
    """
    if is_constant(worse):
        return 0.0 if worse.mean() > margin else 1.0
    return float(scipy.special.stdtr(len(worse) - 1, -(worse.mean() - margin) / standard_error(worse)))


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
    shared = ONE_RUN if row.family == "cost" else ""
    if row.p_worse_adjusted < alpha:
        return replace(row, verdict="regressed", note=shared)
    if row.p_better_adjusted < alpha:
        return replace(row, verdict="improved", note=shared)
    real = row.p_changed * 2 * family < alpha  # Bonferroni: a note, not a verdict
    word = "worse" if row.worse_by > 0.0 else "better"
    if row.p_equivalent_adjusted < equivalence_alpha:
        return replace(row, verdict="equivalent", note=f"{word}, within the margin" if real else "")
    if real:
        return replace(row, note=f"{word}, but perhaps within the margin {row.margin:.3g}")
    seen = row.margin + row.deviation * _detectable(row.pairs, 2.0 * alpha / family)
    return replace(row, note=f"{row.pairs} pairs would have shown {seen:.3g} (80 % power)")


@cache
def _detectable(pairs: int, alpha: float) -> float:
    """Return the smallest change detected with 80 % power, in standard deviations of the differences."""
    return detectable_difference(1.0, pairs, alpha=min(1.0, alpha), estimated_from=pairs)
