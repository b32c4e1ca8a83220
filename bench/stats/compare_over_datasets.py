"""Compare two methods over several datasets by one mean difference per dataset."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.stats import planning
from bench.stats.aggregate import COMPARABLE, Estimate, comparable, improvement_probability
from bench.stats.bayes import Posterior, signed_rank
from bench.stats.corrections import adjust_p_values
from bench.stats.dataset_comparison import DatasetComparison, no_favour
from bench.stats.effects import pooled_deviation
from bench.stats.failures import favours_failures
from bench.stats.pairing import MetricLike, Repeats
from bench.stats.settings import Settings, Verdict
from bench.stats.tests import signed_rank_sum, smallest_permutation_p, wilcoxon_test

# Wilcoxon's test needs this many times the pairs of a t-test where noise is Gaussian (Pitman efficiency 3 / pi).
WILCOXON_COST = math.pi / 3.0


@dataclass(frozen=True)
class OverallComparison:
    """A against B over datasets by one metric, decided by Wilcoxon's signed-rank test of the mean differences."""

    metric: str
    datasets: int
    better: int  # datasets with this verdict
    worse: int
    equivalent: int
    inconclusive: int
    standardised: bool  # differences were divided by each dataset's standard deviation over seeds
    difference: float  # mean over datasets of A - B as losses: below 0 is in favour of A
    signed_ranks: float  # sum over datasets: its sign is the direction of the test
    p: float
    posterior: Posterior  # Bayesian signed-rank test, ROPE = the mean margin: below means A is better
    improvement: Estimate  # A12, mean over datasets: a repeat of A beats one of B that is not its pair
    margin: float  # mean over datasets
    detectable: float  # smallest mean difference that this many datasets show with the requested power; inf: none
    datasets_needed: int | None  # to detect a difference of the mean margin
    more_failures: int  # of A, beyond those of B, on all datasets that both have
    p_adjusted: float = math.nan
    verdict: Verdict = "inconclusive"
    messages: tuple[str, ...] = ()


def compare_over_datasets(
    members: Sequence[tuple[Sequence[DatasetComparison], Sequence[tuple[MetricLike, Repeats]]]], settings: Settings
) -> list[tuple[OverallComparison, ...]]:
    """Return for every member one comparison per metric with at least two tested datasets; all are one family."""
    chosen = [_tested(rows, groups) for rows, groups in members]
    size = sum(len(own) for own in chosen)
    overall = [
        [_compare_metric(one, rows, settings, size) for one in own]
        for (rows, _), own in zip(members, chosen, strict=True)
    ]
    p = iter(adjust_p_values([one.p for own in overall for one in own], settings.correction))
    return [tuple(_decide(one, float(next(p)), settings) for one in own) for own in overall]


def _tested(
    rows: Sequence[DatasetComparison], groups: Sequence[tuple[MetricLike, Repeats]]
) -> list[list[tuple[DatasetComparison, MetricLike, Repeats]]]:
    """Return the tested rows of each metric that has at least two of them."""
    by_metric: dict[str, list[tuple[DatasetComparison, MetricLike, Repeats]]] = {}
    for row, (measure, repeated) in zip(rows, groups, strict=True):
        if not math.isnan(row.p):
            by_metric.setdefault(row.metric, []).append((row, measure, repeated))
    return [own for own in by_metric.values() if len(own) > 1]


def _compare_metric(
    chosen: Sequence[tuple[DatasetComparison, MetricLike, Repeats]],
    everything: Sequence[DatasetComparison],
    settings: Settings,
    family_size: int,
) -> OverallComparison:
    """Return everything but the verdict; `everything` has also the datasets on which too few pairs were left."""
    rows = [row for row, _, _ in chosen]
    loss_a, loss_b = zip(*(repeated.losses(measure) for _, measure, repeated in chosen), strict=True)
    deviations = [float(pooled_deviation(a, b)) for a, b in zip(loss_a, loss_b, strict=True)]
    same_scale = comparable(deviations)
    units = np.array([1.0 if same_scale else (deviation or 1.0) for deviation in deviations])
    d = np.array([float(a.mean() - b.mean()) for a, b in zip(loss_a, loss_b, strict=True)]) / units
    margin = float(np.mean([row.margin for row in rows] / units))
    generator = np.random.default_rng(settings.seed)
    spread, alpha = float(d.std(ddof=1)), settings.alpha / max(family_size, 1)
    messages = []
    if not same_scale:
        messages.append(f"scales differ more than {COMPARABLE:g} times between datasets: differences are standardised")
    enough = next(n for n in range(2, 100) if smallest_permutation_p(n) < alpha)
    if len(d) < enough:
        others = f" in a family of {family_size} tests" if family_size > 1 else ""
        messages.append(
            f"{len(d)} datasets cannot show a difference (no signed-rank p below "
            f"{smallest_permutation_p(len(d)):.4g}): a verdict{others} needs at least {enough}"
        )
    words = Counter(row.verdict for row in rows)
    seen = planning.detectable_difference(spread, len(d), target=settings.power, alpha=alpha, estimated_from=len(d))
    needed = planning.pairs_needed(margin, spread, target=settings.power, alpha=alpha, estimated_from=len(d))
    return OverallComparison(
        metric=rows[0].metric,
        datasets=len(d),
        better=words["better"],
        worse=words["worse"],
        equivalent=words["equivalent"],
        inconclusive=words["inconclusive"],
        standardised=not same_scale,
        difference=float(d.mean()),
        margin=margin,
        signed_ranks=float(signed_rank_sum(d)),
        p=float(wilcoxon_test(d)),
        posterior=signed_rank(d, margin, generator),
        improvement=improvement_probability(loss_a, loss_b, generator, level=settings.level),
        detectable=math.sqrt(WILCOXON_COST) * seen if len(d) >= enough else math.inf,
        datasets_needed=None if needed is None else max(math.ceil(needed * WILCOXON_COST), enough),
        more_failures=sum(row.more_failures for row in everything if row.metric == rows[0].metric),
        messages=tuple(messages),
    )


def _decide(one: OverallComparison, p: float, settings: Settings) -> OverallComparison:
    one = replace(one, p_adjusted=p)
    if p >= settings.alpha and one.equivalent < one.datasets:
        return one
    sign = 0.0 if p >= settings.alpha else -np.sign(one.signed_ranks)
    verdict: Verdict = "equivalent" if sign == 0.0 else "better" if sign > 0.0 else "worse"
    if favours_failures(sign, one.more_failures):
        return replace(one, messages=(*one.messages, no_favour(verdict, one.more_failures)))
    return replace(one, verdict=verdict)
