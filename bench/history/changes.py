"""Change points: the first versions whose values differ from those before.

A place is tested by the paired t over seeds, of the means after minus the means before. It is significant after
Bonferroni's correction over all places at which any of the series of a page could change, and only counts where
the mean change is beyond the metric's margin. Of the significant places the one with the largest step is cut: not
the one with the smallest p, which is the same wherever a clean step is cut, as the noise shrinks with the step. Then
both halves are searched (binary segmentation). Finally every change must be significant between its neighbours.

The values of one run of a time have noise in common, by what else the machine did: seeds are no repeats of it. Times
are therefore tested by the means of runs, not paired, and only where there are enough of them on both sides together.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
import scipy.special

from bench.counts import plural
from bench.gate.verdicts import FEWEST_PAIRS, one_sided
from bench.history.series import Series
from bench.metrics import Metric, declaration
from bench.metrics.margins import margin_of
from bench.stats.tests import Array

FEWEST_RUNS = 6  # on both sides of a change together, where the values of a run share noise
ALPHA = 0.01  # the chance of any false change point among the series of a page


BY_RUNS = (
    " The times of one run share the noise of their machine, so they are tested by the means of runs (one per store), "
    f"at least {FEWEST_RUNS} on both sides of a change together."
)


@dataclass(frozen=True)
class Change:
    """The first version whose values differ from those before."""

    at: int  # which version of its series
    before: float  # means over the seeds that both sides have
    after: float
    p: float  # of the test between its neighbours; significant below `Histories.level`
    better: bool | None  # None: a metric of which no value is better

    @property
    def verdict(self) -> str:
        """Better, worse, or different where no value is better."""
        return "different" if self.better is None else "better" if self.better else "worse"


@dataclass(frozen=True, eq=False)
class Changing:
    """A series with its change points, the oldest first."""

    series: Series
    changes: tuple[Change, ...]


@dataclass(frozen=True, eq=False)
class Histories:
    """The series of a page, and the level at which their change points were tested."""

    lines: tuple[Changing, ...] = ()
    cuts: int = 0  # places at which a series could be cut
    alpha: float = ALPHA

    @property
    def level(self) -> float:
        """The p below which a change is significant."""
        return self.alpha / max(1, self.cuts)

    @property
    def correction(self) -> str:
        """How the change points were tested, for readers."""
        places = plural(self.cuts, "place")
        return (
            "A change point is the first version whose values differ from those before, by a paired t-test over at "
            f"least {FEWEST_PAIRS} seeds and by more than the metric's margin. The tests are corrected after "
            f"Bonferroni for the {places} at which the lines of this history could change: the chance of any false "
            f"change point is {100 * self.alpha:g} %.{BY_RUNS if self._by_runs else ''}"
        )

    @property
    def _by_runs(self) -> bool:
        return any(line.series.shares_noise and line.series.comparable for line in self.lines)


def with_changes(series: Sequence[Series], alpha: float = ALPHA) -> Histories:
    """Find the change points of the series of a page."""
    open_ = [each for each in series if each.comparable]
    found = Histories((), sum(len(each.versions) - 1 for each in open_), alpha)
    lines = [Changing(each, _changes(each, found.level) if each.comparable else ()) for each in series]
    return replace(found, lines=tuple(lines))


def _changes(series: Series, level: float) -> tuple[Change, ...]:
    metric = declaration(series.metric)
    if series.shares_noise:
        values = np.array(list(zip_longest(*series.runs, fillvalue=np.nan))).T
    else:
        values = np.where(np.isfinite(series.values), series.values, np.nan)
    cuts = sorted(_cuts(values, metric, level, 0, len(values)))
    while cuts:
        ends = [0, *cuts, len(values)]
        sides = [(values[a:b], values[b:c]) for a, b, c in zip(ends, ends[1:], ends[2:], strict=False)]
        p = [_p_of_cut(*both, metric) for both in sides]
        weakest = int(np.argmax(p))
        if p[weakest] < level:
            return tuple(_change(cut, *both, one, metric) for cut, both, one in zip(cuts, sides, p, strict=True))
        del cuts[weakest]
    return ()


def _change(cut: int, before: Array, after: Array, p: float, metric: Metric) -> Change:
    old, new = (float(side.mean()) for side in _sides(before, after, metric))
    return Change(cut, old, new, p, metric.better(new, old) if metric.has_better else None)


def _cuts(values: Array, metric: Metric, level: float, begin: int, end: int) -> Iterator[int]:
    """Yield the versions at which the values change, between two of them."""
    best = (0.0, 0)
    for cut in range(begin + 1, end):
        before, after = values[begin:cut], values[cut:end]
        if _p_of_cut(before, after, metric) < level:
            old, new = _sides(before, after, metric)
            share = (cut - begin) * (end - cut) / (end - begin)
            best = max(best, (abs(float(new.mean() - old.mean())) * math.sqrt(share), cut))
    if best[1]:
        yield best[1]
        yield from _cuts(values, metric, level, begin, best[1])
        yield from _cuts(values, metric, level, best[1], end)


def _p_of_cut(before: Array, after: Array, metric: Metric) -> float:
    """Return two-sided p that the values after differ from those before; 1 where they do so within the margin."""
    old, new = _sides(before, after, metric)
    by_runs = metric.family == "cost"
    if (len(old) + len(new) < FEWEST_RUNS) if by_runs else (len(old) < FEWEST_PAIRS):
        return 1.0
    if abs(float(new.mean() - old.mean())) <= margin_of(metric, {}).of(float(old.mean())):
        return 1.0
    if by_runs:
        return _p_of_runs(old, new)
    moved = new - old
    return min(1.0, 2.0 * min(one_sided(moved), one_sided(-moved)))


def _p_of_runs(old: Array, new: Array) -> float:
    """Return two-sided p of the t-test of two samples with a common variance; one of them may be a single run.

    Of logarithms, as the noise of a busy machine is a factor.
    """
    if min(old.min(), new.min()) > 0.0:
        old, new = np.log(old), np.log(new)
    spread = np.square(old - old.mean()).sum() + np.square(new - new.mean()).sum()
    freedom = len(old) + len(new) - 2
    error = math.sqrt(spread / freedom * (1.0 / len(old) + 1.0 / len(new)))
    return 0.0 if error == 0.0 else float(2.0 * scipy.special.stdtr(freedom, -abs(new.mean() - old.mean()) / error))


def _sides(before: Array, after: Array, metric: Metric) -> tuple[Array, Array]:
    """Return the means of both sides for the seeds that both have; of times the means of all their runs."""
    if metric.family == "cost":
        return before[~np.isnan(before)], after[~np.isnan(after)]
    both = ~(np.isnan(before).all(axis=0) | np.isnan(after).all(axis=0))
    return np.nanmean(before[:, both], axis=0), np.nanmean(after[:, both], axis=0)
