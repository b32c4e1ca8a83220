"""Every method of a board against the declared baseline: a family of methods, not of pairs of methods."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.counts import plural
from bench.metrics import Metric
from bench.stats import (
    CellCounts,
    Posterior,
    Settings,
    adjust_p_values,
    joint_sign_test,
    losses,
    next_dataset,
    pairs_needed,
    repetition,
    smallest_joint_p,
    smallest_permutation_p,
    t_test,
    variance_factor,
)
from bench.stats.dataset_comparison import FEWEST_PAIRS
from bench.stats.hierarchical import FEWEST_DATASETS
from bench.stats.pairing import grids
from bench.stats.shape import shape
from bench.stats.shared_splits import are_shared, means_of_splits

Array = NDArray[np.float64]
Verdict = Literal["better", "worse", "not shown to differ"]
HALF = 0.5 / math.sqrt(2.0)  # half a standard deviation over seeds, in standard deviations of differences


@dataclass(frozen=True)
class OtherRows:
    """What the test over seeds and test rows says of a verdict on seeds of one test set."""

    shown: bool  # the verdict is better or worse, and this test says the same
    p: float  # corrected for the family; NaN: not tested
    untested: str = ""  # why not, in words


@dataclass(frozen=True)
class Against:
    """A method against the baseline of its board."""

    verdict: Verdict
    p: float  # corrected for the family
    difference: float  # of mean losses, positive is worse; over datasets in standard deviations over seeds
    low: float = math.nan  # 95 % interval, not corrected
    high: float = math.nan
    posterior: Posterior | None = None  # of the difference on another dataset; below is better by the margin
    other_rows: OtherRows | None = None  # where repeats are seeds on one test set


def decide_on_dataset(
    gaps: Array, ends: Array, families: Sequence[Sequence[int]], share: float, settings: Settings
) -> dict[int, Against]:
    """Return the verdict on each method of each family, given differences of losses to the baseline `[method, repeat]`.

    `ends` are the intervals of their means.
    """
    found: dict[int, Against] = {}
    for family in families:
        known = [gaps[i][np.isfinite(gaps[i])] for i in family]
        p = adjust_p_values([p_value(d, share) for d in known], settings.correction)
        for i, d, own in zip(family, known, p, strict=True):
            if not math.isnan(own):
                low, high = map(float, ends[i])
                found[i] = Against(_verdict(float(own), d, settings), float(own), float(d.mean()), low, high)
    return found


def doubts_on_dataset(found: Mapping[int, Against], gaps: Array, methods: Sequence[str], baseline: str) -> str:
    """Return which verdicts rest on differences whose mean is hard to test, in words; '' where there are none."""
    decided = [i for i, one in found.items() if one.verdict != "not shown to differ"]
    doubtful = [methods[i] for i in decided if shape(gaps[i][np.isfinite(gaps[i])]).problems]
    if not doubtful:
        return ""
    return (
        f"differences to {baseline} that are skewed or have outliers, so that the test of their mean may not hold its "
        f"level: {', '.join(doubtful)}; uqbench compare tests their median"
    )


def p_value(d: Array, share: float) -> float:
    """Return p of the test on one dataset; NaN: too few repeats."""
    if len(d) < FEWEST_PAIRS:
        return math.nan
    p = float(t_test(d, share))
    # The same difference in every pair: no variance, so the permutation test decides.
    return smallest_permutation_p(len(d)) if math.isnan(p) else p


def _verdict(p: float, d: Array, settings: Settings) -> Verdict:
    if p >= settings.alpha:
        return "not shown to differ"
    return "better" if d.mean() < 0.0 else "worse"


def needed_on_dataset(
    found: Mapping[int, Against], baseline: str, repeats: int, share: float, existing: int | None, settings: Settings
) -> str:
    """Return how many repeats would decide on methods that were not shown to differ; '' where there are none."""
    unclear = sum(one.verdict == "not shown to differ" for one in found.values())
    if not unclear:
        return ""
    pairs = _pairs_needed(repeats, settings.alpha / len(found), settings.power, share)
    number = f"{pairs} repeats" if pairs is not None else "more than overlapping splits can give"
    limit = f"; the dataset has {existing} splits" if existing is not None and (pairs or math.inf) > existing else ""
    return (
        f"not shown to differ from {baseline}: {plural(unclear, 'method')}; to show half a standard "
        f"deviation over seeds with {100 * settings.power:.0f} % probability needs {number}{limit}"
    )


@lru_cache(maxsize=1024)
def _pairs_needed(pairs: int, alpha: float, power: float, share: float) -> int | None:
    return pairs_needed(HALF, 1.0, target=power, alpha=alpha, test_share=share, estimated_from=pairs)


def decide_over_datasets(
    values: pd.DataFrame,
    metric: Metric,
    datasets: Sequence[str],
    methods: Sequence[str],
    baseline: str,
    counts: CellCounts,
    settings: Settings,
) -> tuple[dict[str, Against], list[str]]:
    """Return the verdict on each method over all datasets, and notes on what could not be decided.

    The test is `joint_sign_test` of the mean differences in standard deviations over seeds. A method without a finite
    value in every repeat is not tested.
    """
    means, errors = _differences(values, metric, datasets, methods, baseline, counts, settings)
    tested = [i for i, method in enumerate(methods) if method != baseline and np.isfinite(means[:, i]).all()]
    notes = []
    lacking = [method for i, method in enumerate(methods) if method != baseline and i not in tested]
    if lacking:
        notes.append(f"not tested against {baseline}, without a finite value in every repeat: {', '.join(lacking)}")
    if not tested:
        return {}, notes
    p = joint_sign_test(means[:, tested], np.random.default_rng(settings.seed))
    found = {}
    for own, i in zip(p, tested, strict=True):
        posterior = None
        if len(datasets) >= FEWEST_DATASETS and np.isfinite(errors[:, i]).all():
            posterior = next_dataset(means[:, i], errors[:, i], settings.margin.size)
        verdict = _verdict(float(own), means[:, i], settings)
        found[methods[i]] = Against(verdict, float(own), float(means[:, i].mean()), posterior=posterior)
    if any(one.posterior for one in found.values()):
        notes.append(
            "next dataset: what a Bayesian model expects, given its assumptions and the noise of seeds; it promises no "
            "error rate, and no verdict is based on it"
        )
    return found, [*notes, *_needed_over_datasets(found, baseline, means[:, tested], settings)]


def _needed_over_datasets(found: Mapping[str, Against], baseline: str, means: Array, settings: Settings) -> list[str]:
    unclear = [i for i, one in enumerate(found.values()) if one.verdict == "not shown to differ"]
    count = len(means)
    if not unclear:
        return []
    words = f"not shown to differ from {baseline}: {plural(len(unclear), 'method')}"
    if smallest_joint_p(count) >= settings.alpha:
        enough = next(n for n in range(2, 100) if smallest_joint_p(n) < settings.alpha)
        return [f"{words}; {count} datasets cannot show a difference, at least {enough} are needed"]
    spread = float(np.median(means[:, unclear].std(axis=0, ddof=1)))
    size = settings.margin.size
    needed = pairs_needed(size, spread, target=settings.power, alpha=settings.alpha / len(found), estimated_from=count)
    number = "over 10,000" if needed is None else f"about {needed}"
    return [
        f"{words}; to show a mean difference of {size:g} standard deviations over seeds with "
        f"{100 * settings.power:.0f} % probability needs {number} such datasets"
    ]


def _differences(
    values: pd.DataFrame,
    metric: Metric,
    datasets: Sequence[str],
    methods: Sequence[str],
    baseline: str,
    counts: CellCounts,
    settings: Settings,
) -> tuple[Array, Array]:
    """Return mean differences of losses to the baseline and their standard errors `[dataset, method]`, standardised.

    The unit of a dataset is the standard deviation of one method over seeds without what pairs share, the median over
    the methods. A method without a finite value in every repeat has NaN: repeats that went well favour it.
    """
    means, errors = (np.full((len(datasets), len(methods)), np.nan) for _ in range(2))
    base = methods.index(baseline)
    for grid in grids(values, [metric.name], methods):
        if grid.dataset not in datasets:
            continue
        related = repetition(grid.dataset, grid.splits, counts.only(methods)).overridden(settings.test_share)
        loss = losses(grid.values.T, metric)
        if related.kind != "seeds" and are_shared(grid.splits):
            loss = means_of_splits(loss, grid.splits)
        if loss.shape[1] < 2:
            continue
        d = loss - loss[base]
        spread = d.std(axis=1, ddof=1)
        known = np.isfinite(spread) & (np.arange(len(methods)) != base)
        if not known.any():
            continue
        unit = float(np.median(spread[known])) / math.sqrt(2.0) or 1.0
        place = datasets.index(grid.dataset)
        means[place] = d.mean(axis=1) / unit
        errors[place] = spread * math.sqrt(variance_factor(d.shape[1], related.test_share)) / unit
    return means, errors
