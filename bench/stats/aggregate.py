"""Aggregates over runs and datasets, with bootstrap intervals: scores are one array of runs per dataset.

Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice". The bootstrap is
stratified: runs are resampled within their dataset, so the interval is about these datasets and other seeds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.stats.bootstrap import percentile_interval, resampling_counts, resampling_weights
from bench.stats.effects import superiority
from bench.stats.tests import Array

COMPARABLE = 10.0  # standard deviations over seeds may differ by this factor between datasets


@dataclass(frozen=True)
class Estimate:
    """A number with its interval."""

    value: float
    low: float
    high: float


def interquartile_mean(scores: ArrayLike) -> float:
    """Return the mean of the middle half of all values."""
    values = np.ravel(np.asarray(scores, dtype=np.float64))
    cut = int(0.25 * values.size)
    if not values.size:
        return math.nan
    return float(np.partition(values, (cut, values.size - cut - 1))[cut : values.size - cut].mean())


def interquartile_mean_interval(
    scores: Sequence[ArrayLike], generator: np.random.Generator, *, level: float = 0.95, resamples: int = 2_000
) -> Estimate:
    """Return the interquartile mean over the runs of all datasets, with a stratified percentile interval.

    Without resamples the interval is NaN.
    """
    runs = [np.asarray(values, dtype=np.float64) for values in scores]
    if not resamples:
        return Estimate(interquartile_mean(np.concatenate(runs)), math.nan, math.nan)
    counts = np.concatenate([resampling_counts(len(values), resamples, generator) for values in runs], axis=1)
    low, high = percentile_interval(_interquartile_means(np.concatenate(runs), counts), level)
    return Estimate(interquartile_mean(np.concatenate(runs)), float(low), float(high))


def _interquartile_means(values: Array, counts: NDArray[np.integer[Any]]) -> Array:
    """Return the interquartile means of resamples that hold each value so often `[resamples, values]`.

    The values are sorted once for all resamples; to sort or partition each of them took six times as long.
    """
    order, size = np.argsort(values), len(values)
    cut = int(0.25 * size)  # as many as `interquartile_mean` leaves out at each end
    reached = np.clip(np.cumsum(counts[:, order], axis=1, dtype=np.int32), cut, size - cut)
    middle = np.diff(reached, axis=1, prepend=cut)
    used = middle.any(axis=0)  # an infinite value that no middle half holds does not matter
    return np.asarray(middle[:, used] @ values[order[used]] / (size - 2 * cut))


def improvement_probability(
    losses_a: Sequence[ArrayLike],
    losses_b: Sequence[ArrayLike],
    generator: np.random.Generator,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
) -> Estimate:
    """Return the mean over datasets of P(a run of A has a lower loss than a run of B), with a stratified interval.

    Runs of A and B on one dataset are pairs (the same split and seed) and are resampled together.
    """
    both = [np.stack([np.asarray(x, float), np.asarray(y, float)]) for x, y in zip(losses_a, losses_b, strict=True)]
    return improvement_probabilities(both, [(0, 1)], generator, level=level, resamples=resamples)[0]


def improvement_probabilities(
    losses: Sequence[ArrayLike],
    pairs: Sequence[tuple[int, int]],
    generator: np.random.Generator,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
) -> list[Estimate]:
    """Return `improvement_probability` for many pairs of methods, given losses `[methods, runs]` of every dataset.

    All pairs share their resamples, so that one matrix product per dataset serves them all: each interval is valid by
    itself.
    """
    first, second = (list(side) for side in zip(*pairs, strict=True))
    values, sampled = np.zeros(len(pairs)), np.zeros((resamples, len(pairs)))
    for table in losses:
        runs = np.asarray(table, dtype=np.float64)
        a, b = runs[first][:, :, None], runs[second][:, None, :]
        wins = ((a < b) + 0.5 * (a == b)).reshape(len(pairs), -1)
        weights = resampling_weights(runs.shape[1], resamples, generator)
        for start in range(0, resamples, 500):  # 500 x 20 x 20 products are 1.6 MB: they stay in the cache
            part = weights[start : start + 500]
            products = (part[:, :, None] * part[:, None, :]).reshape(len(part), -1)
            sampled[start : start + 500] += products @ wins.T
        values += superiority(runs[second], runs[first])
    ends = percentile_interval(sampled.T / len(losses), level)
    return [
        Estimate(float(value), float(low), float(high))
        for value, (low, high) in zip(values / len(losses), ends, strict=True)
    ]


@dataclass(frozen=True)
class Profile:
    """A performance profile: at every threshold, the share of runs that are better, with a pointwise interval."""

    thresholds: Array
    share: Array
    low: Array
    high: Array


def performance_profile(
    losses: Sequence[ArrayLike],
    thresholds: ArrayLike,
    generator: np.random.Generator,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
) -> Profile:
    """Return the share of runs with a loss below each threshold, mean over datasets (each counts the same)."""
    places = np.asarray(thresholds, dtype=np.float64)
    share, sampled = np.zeros(len(places)), np.zeros((resamples, len(places)))
    for values in losses:
        below = (np.asarray(values, dtype=np.float64)[:, None] < places).astype(np.float64)
        share += below.mean(axis=0) / len(losses)
        sampled += resampling_weights(len(below), resamples, generator) @ below / len(losses)
    ends = percentile_interval(sampled.T, level)
    return Profile(places, share, ends[:, 0], ends[:, 1])


def comparable(deviations: Sequence[float]) -> bool:
    """Whether the largest standard deviation over seeds is at most ten times the smallest that is not zero."""
    some = [value for value in deviations if value > 0.0]
    return len(some) < 2 or max(some) <= COMPARABLE * min(some)


def standardised(losses: ArrayLike) -> Array:
    """Return losses `[methods, repeats]` of one dataset, centred per repeat and divided by their standard deviation.

    A hard split is hard for all methods, so each repeat's mean over the methods is subtracted first. 0 is the average
    method.
    """
    x = np.asarray(losses, dtype=np.float64)
    rest = x - x.mean(axis=0)
    return np.asarray(rest / (rest.std() or 1.0))
