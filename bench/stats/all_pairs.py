"""Every method against every other on each dataset: the deciding test alone, without the rest of a comparison.

For tables that mark differences and for matrices of wins, where a whole `Comparison` of each pair would take minutes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.stats import tests
from bench.stats.cell_counts import CellCounts, Cells
from bench.stats.dataset_comparison import FEWEST_PAIRS
from bench.stats.effects import paired_superiority
from bench.stats.equal_draws import draws_of
from bench.stats.failures import failures_as_losses, favours_failures, share_of_wins
from bench.stats.pairing import MetricLike, grids, losses
from bench.stats.replication import Repetition, repetition
from bench.stats.settings import Settings
from bench.stats.shared_splits import are_shared, means_of_splits
from bench.stats.tests import Array


@dataclass(frozen=True)
class PairwiseTests:
    """All methods on one dataset by one metric; arrays are `[method, other]`."""

    dataset: str
    metric: str
    methods: tuple[str, ...]
    pairs: Array  # number of repeats that both have
    gain: Array  # mean loss of the other minus that of the method: above 0, the method is better
    p: Array  # of the paired t-test (corrected where splits overlap); NaN: too few pairs
    wins: Array  # the share of pairs in which the method is better; ties count half, a run that diverged loses
    more_failures: Array  # runs that diverged or became infinite, beyond those of the other
    repetition: Repetition  # how the repeats are related, which decides on the test

    def better(self, p_adjusted: Array, alpha: float) -> Array:
        """Return 1 where a method is better by these p-values, -1 where it is worse, 0 where neither is shown.

        As in a comparison, no verdict favours the method that failed more often.
        """
        sign = np.sign(self.gain)
        return np.where((p_adjusted < alpha) & ~favours_failures(sign, self.more_failures), sign, 0.0)


def compare_all_pairs(
    frame: pd.DataFrame, measures: Sequence[MetricLike], *, cells: Cells = None, settings: Settings = Settings()
) -> list[PairwiseTests]:
    """Return the tests of every dataset and metric; p-values are not corrected, because the caller knows the family.

    By a metric that is biased in the number of draws T, methods of different T are not compared (NaN, no pairs).
    """
    counts = CellCounts.of(cells)
    wanted = {measure.name: measure for measure in measures}
    related: dict[str, Repetition] = {}  # the same for all metrics of a dataset
    tables = []
    for grid in grids(frame, list(wanted)):
        if grid.dataset not in related:
            found = repetition(grid.dataset, grid.splits, counts)
            related[grid.dataset] = found.overridden(settings.test_share)
        numbers = losses(grid.values.T, wanted[grid.metric])
        one = related[grid.dataset]
        splits = grid.splits if one.kind != "seeds" and are_shared(grid.splits) else None
        table = _compare_grid(grid.dataset, grid.metric, grid.methods, numbers, one, splits)
        table = _with_failures(table, numbers, grid.failures(counts).T, splits)
        tables.append(_at_equal_draws(table, wanted[grid.metric], counts))
    return tables


def _at_equal_draws(table: PairwiseTests, measure: MetricLike, counts: CellCounts) -> PairwiseTests:
    if not measure.biased_in_draws:
        return table
    own = [draws_of(measure, table.dataset, method, counts) for method in table.methods]
    differ = np.array([[bool(a and b and a != b) for b in own] for a in own])
    gain, p, wins = (np.where(differ, np.nan, values) for values in (table.gain, table.p, table.wins))
    return replace(table, pairs=np.where(differ, 0.0, table.pairs), gain=gain, p=p, wins=wins)


def _compare_grid(
    dataset: str,
    metric: str,
    methods: Sequence[str],
    values: Array,
    related: Repetition,
    splits: NDArray[Any] | None,  # of every repeat, where several share one
) -> PairwiseTests:
    count, share = len(methods), related.test_share
    finite = np.isfinite(values)
    both = finite[:, None, :] & finite[None, :, :]
    counted = both.astype(np.float64)
    pairs = (counted if splits is None else np.ceil(means_of_splits(counted, splits))).sum(axis=-1)
    gain, p, wins = (np.full((count, count), np.nan) for _ in range(3))
    whole = np.asarray(finite.all(axis=1))
    if whole.sum() > 1 and values.shape[1]:
        chosen = np.ix_(whole, whole)
        known = values[whole]
        known = known if splits is None else means_of_splits(known, splits)
        gain[chosen], p[chosen], wins[chosen] = _test(known[:, None, :], known[None, :, :], share)
    for i, j in np.argwhere(~(whole[:, None] & whole[None, :])):
        kept = both[i, j]
        if kept.any():
            one, other = values[i, kept], values[j, kept]
            if splits is not None:
                one, other = (means_of_splits(side, splits[kept]) for side in (one, other))
            gain[i, j], p[i, j], wins[i, j] = _test(one, other, share)
    return PairwiseTests(dataset, metric, tuple(methods), pairs, gain, p, wins, np.zeros((count, count)), related)


def _with_failures(
    table: PairwiseTests, values: Array, failed: NDArray[np.bool_], splits: NDArray[Any] | None
) -> PairwiseTests:
    """Return the table with runs that failed as losses, as in a comparison."""
    if not failed.any():
        return table
    wins, more, known = table.wins.copy(), table.more_failures.copy(), np.isfinite(values) & ~failed
    some = np.asarray(failed.any(axis=1))
    for i, j in np.argwhere(some[:, None] | some[None, :]):
        both, ended = known[i] & known[j], (known[i] | failed[i]) & (known[j] | failed[j])
        lost = ended & ~both
        d = values[i, both] - values[j, both]
        if splits is not None and both.any():
            d = means_of_splits(d, splits[both])
        own = None if splits is None else (splits[both], splits[lost])
        gone = failed[[i, j]][:, lost]
        wins[i, j] = share_of_wins(failures_as_losses(d, gone, own))
        more[i, j] = gone[0].sum() - gone[1].sum()
    return replace(table, wins=wins, more_failures=more)


def _test(a: Array, b: Array, share: float) -> tuple[Array, Array, Array]:
    a, b = np.broadcast_arrays(a, b)
    d = b - a
    if d.shape[-1] < FEWEST_PAIRS:
        p = np.full(d.shape[:-1], np.nan)
    else:
        p = tests.t_test(d, share)
        # Where the difference is the same in every pair, the permutation test decides, as in a comparison.
        p = np.where(np.isnan(p), tests.smallest_permutation_p(d.shape[-1]), p)
    return d.mean(axis=-1), p, paired_superiority(b, a)
