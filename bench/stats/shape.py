"""Whether differences look as a test of their mean needs them: skewness and outliers beside those of Gaussian samples.

No test of means keeps its level under arbitrary skew. Ten differences show strong skew and outliers, but not those that
are too rare to be among them: a sample that looks Gaussian proves nothing.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from bench.stats.distributions import skewness
from bench.stats.tests import Array

RARE = 0.01  # share of Gaussian samples that are called skewed, and that have an outlier
LEAST_OUTLIER = 5.0  # distance of an outlier from the median, in median absolute deviations
MOST_SIMULATED = 200  # pairs; the cuts of larger samples are those of 200
SAMPLES = 10_000


@dataclass(frozen=True)
class Shape:
    """The skewness of differences and the number of outliers, with the cuts beyond which they are unusual."""

    pairs: int
    skewness: float
    skewness_cut: float
    outliers: int
    outlier_cut: float  # in median absolute deviations from the median

    @property
    def problems(self) -> list[str]:
        """What is unusual, in words."""
        found = []
        if abs(self.skewness) > self.skewness_cut:
            found.append(
                f"the differences are skewed (skewness {self.skewness:.2g}, Gaussian within {self.skewness_cut:.2g})"
            )
        if self.outliers:
            kind = "is an outlier" if self.outliers == 1 else "are outliers"
            beyond = f"beyond {self.outlier_cut:.2g} median absolute deviations"
            found.append(f"{self.outliers} of {self.pairs} differences {kind} ({beyond})")
        return found


def shape(differences: ArrayLike) -> Shape:
    """Return the shape of the differences of one dataset; differences without variance have none that is unusual."""
    d = np.asarray(differences, dtype=np.float64)
    skewness_cut, outlier_cut = _cuts(min(len(d), MOST_SIMULATED))
    skewed = float(skewness(d)) if np.ptp(d) > 1e-9 * np.abs(d).max() else 0.0
    return Shape(len(d), skewed, skewness_cut, int((_distances(d) > outlier_cut).sum()), outlier_cut)


def _distances(values: Array) -> Array:
    """Return distances from the median in median absolute deviations; 0 where more than half are equal."""
    away = np.abs(values - np.median(values, axis=-1, keepdims=True))
    unit = np.median(away, axis=-1, keepdims=True)
    return np.asarray(np.where(unit > 0.0, away / np.where(unit > 0.0, unit, 1.0), 0.0))


@lru_cache(maxsize=256)
def _cuts(pairs: int) -> tuple[float, float]:
    """Return the skewness and the distance that 1 % of Gaussian samples exceed."""
    samples = np.random.default_rng(pairs).normal(size=(SAMPLES, pairs))
    skewed, farthest = np.abs(skewness(samples)), _distances(samples).max(axis=-1)
    skewness_cut, out = (float(np.quantile(values, 1.0 - RARE)) for values in (skewed, farthest))
    return skewness_cut, max(out, LEAST_OUTLIER)
