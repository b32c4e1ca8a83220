"""Predictions that state an equal mixture of normals: mixture density networks, and laws with skew or two modes."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, float_array
from bench.metrics.predictions import Normal, RegressionPrediction
from bench.metrics.standard_normal import mean_distance, ratio

HALVINGS = 60  # of the bracket of a quantile: down to rounding


@dataclass(frozen=True, eq=False)
class NormalMixture(RegressionPrediction):
    """Each draw states an equal mixture of K normals, [T, N, K] each. All of its variance is noise."""

    means: FloatArray
    variances: FloatArray

    def __post_init__(self) -> None:
        means = float_array(self.means, "means", (None, None, None))
        variances = float_array(self.variances, "variances", means.shape)
        if variances.min() <= 0:
            raise UserError(f"variances: lowest value is {float(variances.min()):.6g}, must be above 0")
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "variances", variances)

    @property
    def centre(self) -> FloatArray:
        """The mean of the mixture."""
        mean: FloatArray = self.means.mean(-1)
        return mean

    @property
    def noise_variance(self) -> FloatArray:
        """The variance of the mixture: the mean of the variances plus the variance of the means."""
        variance: FloatArray = self.variances.mean(-1) + self.means.var(-1)
        return variance

    def affine(self, factor: float, offset: float) -> Self:
        """Return the mixtures in another unit."""
        return replace(self, means=self.means * factor + offset, variances=self.variances * factor**2)

    def log_density(self, y: FloatArray) -> FloatArray:
        """Return the log of the mean of the K densities."""
        squared = np.square(y[..., None, :, None] - self.means) / self.variances
        logs = -0.5 * (np.log(2 * np.pi * self.variances) + squared)
        top = logs.max(-1)
        summed: FloatArray = top + np.log(np.exp(logs - top[..., None]).mean(-1))
        return summed

    def cdf(self, y: FloatArray) -> FloatArray:
        """Return the mean of the K distribution functions."""
        from scipy.special import ndtr

        values: FloatArray = ndtr(ratio(y[..., None, :, None] - self.means, np.sqrt(self.variances))).mean(-1)
        return values

    def quantile(self, levels: FloatArray) -> FloatArray:
        """Return the quantiles, by bisection between the lowest and the highest of the K normals."""
        from scipy.special import ndtr, ndtri

        level = levels[:, None, None] if levels.ndim == 1 else levels
        std = np.sqrt(self.variances)
        each = self.means + ndtri(level)[..., None] * std
        low, high = each.min(-1), each.max(-1)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = ndtr((middle[..., None] - self.means) / std).mean(-1) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray((low + high) / 2)

    def crps(self, y: FloatArray) -> FloatArray:
        """Return mean_k E|Y_k - y| - 1/2 mean_kl E|Y_k - Y_l|, in closed form (Grimit et al., QJRMS 2006)."""
        distance = mean_distance(y[..., None, :, None] - self.means, np.sqrt(self.variances)).mean(-1)
        gaps = self.means[..., :, None] - self.means[..., None, :]
        both = np.sqrt(self.variances[..., :, None] + self.variances[..., None, :])
        score: FloatArray = distance - 0.5 * mean_distance(gaps, both).mean((-2, -1))
        return score

    def normals(self) -> Normal:
        """Return all T x K normals as draws of their own: their equal mixture is the same distribution."""
        flat = (np.moveaxis(part, -1, 1).reshape(-1, self.row_count) for part in (self.means, self.variances))
        mean, variance = flat
        return Normal(mean, noise_variance=variance)
