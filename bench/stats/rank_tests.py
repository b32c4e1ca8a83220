"""Ranks of methods over datasets: losses `[..., datasets, methods]`, lower is better, the best has rank 1.

Demsar 2006, "Statistical Comparisons of Classifiers over Multiple Data Sets".
"""

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from bench.stats.corrections import holm
from bench.stats.distributions import chi_squared_tail, f_tail, range_quantile, range_tail, ranks
from bench.stats.tests import Array, wilcoxon_test


def ranks_per_dataset(losses: ArrayLike) -> Array:
    """Return the rank of every method on every dataset; equal losses share the mean of their ranks."""
    return ranks(losses)


def average_ranks(losses: ArrayLike) -> Array:
    """Return the average rank of every method over the datasets."""
    return np.asarray(ranks_per_dataset(losses).mean(axis=-2))


def friedman_demsar(losses: ArrayLike) -> tuple[Array, Array]:
    """Return Friedman's chi-squared as in Demsar 2006, without a correction for ties, and its p."""
    average = average_ranks(losses)
    datasets, methods = np.shape(losses)[-2:]
    spread = np.square(average).sum(axis=-1) - methods * (methods + 1) ** 2 / 4.0
    statistic = np.asarray(12.0 * datasets / (methods * (methods + 1)) * spread)
    return statistic, chi_squared_tail(statistic, methods - 1)


def friedman(losses: ArrayLike) -> tuple[Array, Array]:
    """Return Friedman's chi-squared corrected for ties (as in scipy), and its p; 0 and 1 where all are tied."""
    table = ranks_per_dataset(losses)
    methods = table.shape[-1]
    statistic, _ = friedman_demsar(losses)
    # The correction is the share of the rank variance that ties leave: (k^3 - k) / 12 per dataset without ties.
    kept = np.square(table - (methods + 1) / 2.0).sum(axis=-1).mean(axis=-1) / ((methods**3 - methods) / 12.0)
    corrected = np.where(kept > 0.0, statistic / np.where(kept > 0.0, kept, 1.0), 0.0)
    return corrected, chi_squared_tail(corrected, methods - 1)


def iman_davenport(statistic: ArrayLike, datasets: int, methods: int) -> tuple[Array, Array]:
    """Return Iman and Davenport's F (1980) of a Friedman statistic, less conservative than chi-squared, and its p."""
    chi = np.asarray(statistic, dtype=np.float64)
    rest = datasets * (methods - 1) - chi
    perfect = rest <= 1e-12 * datasets  # every dataset has the same order
    f = np.where(perfect, np.inf, (datasets - 1) * chi / np.where(perfect, 1.0, rest))
    return f, f_tail(f, methods - 1, (methods - 1) * (datasets - 1))


def nemenyi(losses: ArrayLike) -> Array:
    """Return p of Nemenyi's test for every pair `[..., methods, methods]`: the studentised range of average ranks."""
    average = average_ranks(losses)
    datasets, methods = np.shape(losses)[-2:]
    gap = np.abs(average[..., :, None] - average[..., None, :]) / np.sqrt(methods * (methods + 1) / (6.0 * datasets))
    return range_tail(gap * np.sqrt(2.0), methods)


def critical_difference(datasets: int, methods: int, alpha: float = 0.05) -> float:
    """Return how far two average ranks must be apart to differ by Nemenyi's test."""
    q = range_quantile(alpha, methods) / np.sqrt(2.0)
    return float(q * np.sqrt(methods * (methods + 1) / (6.0 * datasets)))


def rank_groups(average: ArrayLike, difference: float) -> list[tuple[int, ...]]:
    """Return the largest groups of methods (indices, best first) whose average ranks differ by less than `difference`.

    These are the bars of a critical-difference diagram; a method that differs from all others is in no group.
    """
    values = np.asarray(average, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    groups: list[tuple[int, ...]] = []
    end_before = 0
    for start in range(len(order)):
        end = start + int(np.sum(values[order[start:]] - values[order[start]] < difference))
        if end - start > 1 and end > end_before:
            groups.append(tuple(int(i) for i in order[start:end]))
        end_before = max(end, end_before)
    return groups


def wilcoxon_holm(losses: ArrayLike) -> dict[tuple[int, int], tuple[float, float]]:
    """Return p and Holm's adjusted p of Wilcoxon's signed-rank test for every pair of methods over the datasets."""
    table = np.asarray(losses, dtype=np.float64)
    pairs = list(combinations(range(table.shape[-1]), 2))
    p = np.array([float(wilcoxon_test(table[:, i] - table[:, j])) for i, j in pairs])
    return {pair: (float(a), float(b)) for pair, a, b in zip(pairs, p, holm(p), strict=True)}
