"""Compare two methods on one dataset by one metric: the test that decides, and all evidence beside it.

The verdict comes later, because p-values are corrected for the whole family of tests (compare.py).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from bench.counts import plural
from bench.stats import planning, tests
from bench.stats.bayes import Posterior, correlated_t_test
from bench.stats.bootstrap import bca_interval, hull
from bench.stats.effects import cliffs_delta, pooled_deviation, unshared_deviation
from bench.stats.failures import favours_failures, share_of_wins
from bench.stats.pairing import Direction, LostCells, MetricLike, Repeats, losses, widest_difference
from bench.stats.replication import Repetition
from bench.stats.settings import Settings, Verdict
from bench.stats.shape import Shape, shape
from bench.stats.shared_splits import Components, variance_components
from bench.stats.tests import Array

FEWEST_PAIRS = 5  # no verdict with fewer


@dataclass(frozen=True)
class Interval:
    """An interval for the mean difference, and the method that computed it."""

    low: float
    high: float
    kind: str


@dataclass(frozen=True)
class DatasetComparison:
    """A against B on one dataset by one metric. Differences are A - B (by a target: of the distances to it)."""

    dataset: str
    metric: str
    direction: Direction
    target: float | None
    pairs: int  # or splits, where several seeds share each of them
    test_share: float  # that the test is corrected for; 0: independent repeats, or seeds on one split
    repetition: Repetition  # how the repeats are related, and who says so
    mean_a: float = math.nan
    mean_b: float = math.nan
    difference: float = math.nan
    deviation: float = math.nan  # of the differences over pairs
    components: Components | None = None  # of the differences, where several seeds share each split
    interval: Interval | None = None  # for display: each end is the wider one of the two below
    bootstrap_interval: Interval | None = None
    t_interval: Interval | None = None
    p: float = math.nan  # of the test that decides
    decided_by: str = ""
    p_adjusted: float = math.nan
    permutation_p: float = math.nan  # NaN where splits overlap: it needs independent pairs
    wilcoxon_p: float = math.nan  # NaN in the same case; runs that diverged are the largest losses
    sign_p: float = math.nan  # of the median; NaN in the same case; runs that diverged are losses
    sign_p_adjusted: float = math.nan
    trimmed_difference: float = math.nan  # the 20 % trimmed mean of the differences; runs that diverged are losses
    trimmed_p: float = math.nan  # Yuen's test of it; NaN below 10 pairs
    trimmed_p_adjusted: float = math.nan
    failures: int = 0  # repeats in which one of the two diverged or became infinite
    more_failures: int = 0  # those of A beyond those of B; no verdict favours the method that has more
    shape: Shape | None = None  # of the differences: skewness and outliers
    better_probability: float = math.nan  # the share of pairs in which A is better: ties count half, failures lose
    cliffs_delta: float = math.nan  # of the losses, B above A, not paired: 1 where every repeat of A beats all of B
    standardised: float = math.nan  # difference / standard deviation of a method over seeds
    margin: float = math.nan
    equivalence_p: float = math.nan
    equivalence_p_adjusted: float = math.nan
    posterior: Posterior | None = None  # of A - B as losses, ROPE = margin: below means A is better
    detectable: float = math.nan  # smallest difference that these pairs show with the requested power; infinite: none
    pairs_for_margin: int | None = None  # None: no number of repeats reaches it
    split_count: int | None = None  # of the dataset: a plan for more cannot be run; None: as many as are asked for
    detectable_at_most: float = math.nan  # the smallest difference that all its splits show with the requested power
    verdict: Verdict = "inconclusive"
    lost: tuple[LostCells, ...] = ()
    doubts: tuple[str, ...] = ()  # why the test of the mean may not hold its level: skew, outliers, failures
    messages: tuple[str, ...] = ()

    @property
    def plan_is_possible(self) -> bool:
        """Whether the dataset has as many splits as the margin needs."""
        if self.pairs_for_margin is None:
            return False
        return self.split_count is None or self.pairs_for_margin <= self.split_count


def compare_on_dataset(
    measure: MetricLike, repeated: Repeats, settings: Settings, family_size: int
) -> DatasetComparison:
    """Return everything but the verdict, planned for the strictest level of a family of so many tests."""
    related = repeated.repetition.overridden(settings.test_share)
    share = related.test_share
    pairs = repeated.count
    row = DatasetComparison(repeated.dataset, measure.name, measure.direction, measure.target, pairs, share, related)
    # Seeds on one split are as many as are asked for.
    existing = None if related.kind == "seeds" else repeated.split_count
    row = replace(row, lost=repeated.lost, messages=repeated.messages, split_count=existing)
    row = _note(row, related.note) if related.note else row
    if repeated.refused:
        return _note(row, repeated.refused)
    more = int(repeated.failed[0].sum()) - int(repeated.failed[1].sum())
    row = replace(row, failures=int((repeated.failed.sum(axis=0) == 1).sum()), more_failures=more)
    if pairs == 0:
        row = _with_signs(row, repeated.with_failures(np.empty(0)), share) if row.failures else row
        return _note(row, "no pairs: the methods have no split and seed in common")
    mean_a, mean_b = repeated.over_splits(repeated.values).mean(axis=1)
    row = replace(row, mean_a=float(mean_a), mean_b=float(mean_b))
    loss_a, loss_b = repeated.losses(measure)
    d = loss_a - loss_b
    runs_a, runs_b = losses(repeated.values, measure)  # all of them, also where splits are shared
    if repeated.shares_splits:
        components = variance_components(runs_a - runs_b, repeated.splits)
        row = _note(replace(row, components=components), str(components))
    sign = -1.0 if measure.direction == "higher" else 1.0  # back to the metric's own unit
    row = replace(row, difference=sign * float(d.mean()))
    with_failures = repeated.with_failures(d)
    if pairs < FEWEST_PAIRS:
        row = _with_signs(row, with_failures, share) if row.failures else row
        what = plural(pairs, "split" if repeated.shares_splits else "pair")
        return _note(row, f"{what}: too few for a verdict, at least {FEWEST_PAIRS} are needed")
    deviation = 0.0 if bool(tests.is_constant(d)) else float(d.std(ddof=1))
    noise = _seed_deviation(row, runs_a, runs_b)
    margin = settings.margin.size * (noise if settings.margin.relative else 1.0)
    row = replace(
        row,
        deviation=deviation,
        margin=margin,
        better_probability=share_of_wins(with_failures),
        cliffs_delta=float(cliffs_delta(loss_b, loss_a)),
        standardised=sign * float(d.mean()) / noise if noise else math.nan,
        equivalence_p=float(tests.equivalence_test(d, margin, share)),
        posterior=correlated_t_test(d, margin, share),
        shape=shape(d),
    )
    row = _with_tests(row, d, with_failures, settings)
    row = _with_intervals(row, d, sign, share, settings)
    row = _with_plan(row, share, settings, family_size)
    return replace(row, detectable=math.inf) if row.detectable > widest_difference(measure) else row


def _seed_deviation(row: DatasetComparison, runs_a: Array, runs_b: Array) -> float:
    """Return the standard deviation of a method over seeds, without what makes some splits harder than others.

    Where several seeds share a split, it is that of the seeds of a split. Where every repeat has its own rows, what
    both methods have in common in a repeat is taken for its difficulty. Else margins would grow with the differences
    between splits, and the less alike these are, the larger the differences between methods that count as none.
    """
    if row.repetition.kind == "seeds":
        return float(pooled_deviation(runs_a, runs_b))
    if row.components is not None:
        return row.components.between_seeds / math.sqrt(2.0)
    return float(unshared_deviation(runs_a, runs_b))


def _with_signs(row: DatasetComparison, differences: Array, share: float) -> DatasetComparison:
    """Return the row with what signs say; they need independent pairs, and as many as any other test."""
    row = replace(row, better_probability=share_of_wins(differences))
    return row if share or len(differences) < FEWEST_PAIRS else replace(row, sign_p=float(tests.sign_test(differences)))


def _with_tests(row: DatasetComparison, d: Array, with_failures: Array, settings: Settings) -> DatasetComparison:
    share = row.test_share
    generator = np.random.default_rng(settings.seed)
    permutation = float(tests.permutation_test(d, generator, settings.resamples))
    if row.deviation == 0.0:
        row = _note(
            row,
            f"all {row.pairs} pairs are equal"
            if d[0] == 0.0
            else "the difference is the same in every pair: no variance, so the permutation test decides",
        )
        exact = 1.0 if d[0] == 0.0 else tests.smallest_permutation_p(row.pairs)
        return replace(row, p=exact, decided_by="permutation test", permutation_p=exact)
    row = replace(row, p=float(tests.t_test(d, share)), decided_by="corrected resampled t" if share else "paired t")
    sign = -1.0 if row.direction == "higher" else 1.0
    row = replace(row, trimmed_difference=sign * float(tests.trimmed_mean(with_failures)))
    if len(with_failures) >= tests.FEWEST_TRIMMED:
        row = replace(row, trimmed_p=float(tests.trimmed_test(with_failures, share)))
    if share:
        return row  # permutation and signed ranks need independent pairs
    smallest = tests.smallest_permutation_p(row.pairs)
    if smallest >= settings.alpha:
        enough = next(n for n in range(row.pairs, 100) if tests.smallest_permutation_p(n) < settings.alpha)
        row = _note(row, f"{row.pairs} pairs: no permutation p below {smallest:.4g}; use at least {enough}")
    signed_ranks = float(tests.wilcoxon_test(with_failures))
    return _with_signs(replace(row, permutation_p=permutation, wilcoxon_p=signed_ranks), with_failures, share)


def _with_intervals(
    row: DatasetComparison, d: Array, sign: float, share: float, settings: Settings
) -> DatasetComparison:
    generator = np.random.default_rng(settings.seed)
    widened = " widened for overlapping splits" if share else ""
    ends = bca_interval(d, generator, level=settings.level, resamples=settings.resamples, test_share=share)
    student = tests.t_interval(d, settings.level, share)
    return replace(
        row,
        interval=_interval(sign * hull(ends, student), "hull of the two below"),
        bootstrap_interval=_interval(sign * ends, f"BCa bootstrap{widened}"),
        t_interval=_interval(sign * student, "corrected t" if share else "t"),
    )


def _interval(ends: Array, kind: str) -> Interval:
    return Interval(float(ends.min()), float(ends.max()), kind)


def _with_plan(row: DatasetComparison, share: float, settings: Settings, family_size: int) -> DatasetComparison:
    # The strictest level that Holm's correction may require of this test.
    alpha = settings.alpha / max(family_size, 1)
    if row.deviation == 0.0:
        # With enough pairs for the permutation test any difference is detected, with fewer none.
        enough = next(n for n in range(FEWEST_PAIRS, 1_000) if tests.smallest_permutation_p(n) < alpha)
        seen = 0.0 if row.pairs >= enough else math.inf
        return replace(row, detectable=seen, pairs_for_margin=enough)
    spread, pairs, power = row.deviation, row.pairs, settings.power
    smallest = planning.detectable_difference(
        spread, pairs, target=power, alpha=alpha, test_share=share, estimated_from=pairs
    )
    # Not for the observed difference: power at the estimate says no more than p does (Hoenig and Heisey 2001).
    for_margin = planning.pairs_needed(
        row.margin, spread, target=power, alpha=alpha, test_share=share, estimated_from=pairs
    )
    row = replace(row, detectable=smallest, pairs_for_margin=for_margin)
    if row.split_count is None:
        return row
    reachable = planning.detectable_difference(
        spread, row.split_count, target=power, alpha=alpha, test_share=share, estimated_from=pairs
    )
    return replace(row, detectable_at_most=reachable)


def decide(row: DatasetComparison, p: float, equivalence: float, settings: Settings) -> DatasetComparison:
    """Return the row with its verdict by the corrected p-values of the difference and of equivalence."""
    row = replace(row, p_adjusted=p, equivalence_p_adjusted=equivalence)
    if math.isnan(p):
        return row
    equal = equivalence < settings.alpha or (row.deviation == 0.0 and row.difference == 0.0)
    if p >= settings.alpha and not equal:
        return row
    sign = 0.0 if p >= settings.alpha else np.sign(row.difference if row.direction == "higher" else -row.difference)
    verdict: Verdict = "equivalent" if sign == 0.0 else "better" if sign > 0.0 else "worse"
    if favours_failures(sign, row.more_failures):
        return _note(row, no_favour(verdict, row.more_failures))
    row = replace(row, verdict=verdict)
    return _note(row, "a real difference, but within the margin") if sign and equivalence < settings.alpha else row


def no_favour(verdict: Verdict, more_failures: int) -> str:
    """Return why a verdict is not given, in words."""
    loser, other = ("A", "B") if more_failures > 0 else ("B", "A")
    return (
        f"{verdict} in the runs that ended, but {loser} diverged or became infinite in {abs(more_failures)} more than "
        f"{other}: no verdict favours it"
    )


def _note(row: DatasetComparison, message: str) -> DatasetComparison:
    return replace(row, messages=(*row.messages, message))
