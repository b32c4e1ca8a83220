"""The equal mixture of the T draws of a prediction: the distribution that a forecast of a real target is.

Vectorised over rows and draws, in blocks of rows that fit in the processor's cache.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, float_array, row_blocks
from bench.metrics.mixture_crps import disagreement
from bench.metrics.mixture_quantiles import invert
from bench.metrics.predictions import RegressionPrediction

# The median and the ends of 11 central intervals (Bracher et al. 2021): what scores of quantiles are computed from.
LEVELS: FloatArray = np.array([0.01, 0.025, *(np.arange(1, 20) / 20), 0.975, 0.99])


@dataclass(frozen=True, eq=False)
class Mixture:
    """F(y) = 1/T sum_t F_t(y). `parts` must have a distribution (points have one after `with_noise`)."""

    parts: RegressionPrediction

    def __post_init__(self) -> None:
        if not self.parts.has_distribution:
            raise UserError("a mixture needs distributions; points have none without a fitted or stated noise")

    def log_density(self, observed: ArrayLike) -> FloatArray:
        """Return log 1/T sum_t f_t(y_i) of each row."""
        y, logs = self._observed(observed), np.empty(self.parts.row_count)
        for block in self._blocks(1):
            each = self.parts.rows(block).log_density(y[block])
            top = each.max(axis=0)
            with np.errstate(invalid="ignore", divide="ignore"):
                summed = top + np.log(np.mean(np.exp(each - top), axis=0))
            logs[block] = np.where(np.isfinite(top), summed, top)
        return logs

    def cdf(self, observed: ArrayLike) -> FloatArray:
        """Return F(y_i) of each row, the probability integral transform."""
        y, values = self._observed(observed), np.empty(self.parts.row_count)
        for block in self._blocks(1):
            values[block] = self.parts.rows(block).cdf(y[block]).mean(axis=0)
        return np.clip(values, 0.0, 1.0)

    def quantile(self, levels: ArrayLike) -> FloatArray:
        """Return the quantiles [L, N] of levels [L]: the smallest x with F(x) >= level, up to a probability of 1e-9.

        That of a mixture lies between the lowest and the highest of its parts: see `bench.metrics.mixture_quantiles`.
        """
        wanted = float_array(levels, "levels", (None,))
        if wanted.min() <= 0 or wanted.max() >= 1:
            raise UserError(f"levels: a quantile's level lies strictly between 0 and 1, got {wanted.tolist()}")
        found = np.empty((wanted.size, self.parts.row_count))
        single = self.parts.draw_count == 1
        for block in self._blocks(wanted.size if single else 1):
            part = self.parts.rows(block)
            found[:, block] = part.quantile(wanted)[:, 0] if single else invert(part, wanted)
        return found

    def crps(self, observed: ArrayLike) -> FloatArray:
        """Return the CRPS of each row; NaN where it does not exist.

        (F - 1[x >= y])^2 = mean_t (F_t - 1[x >= y])^2 - var_t F_t, so the score is the mean of the parts' closed forms
        minus the integral of the variance of F_t over draws.
        """
        y, scores = self._observed(observed), np.empty(self.parts.row_count)
        single = self.parts.draw_count == 1
        for block in self._blocks(1):
            part = self.parts.rows(block)
            scores[block] = part.crps(y[block]).mean(axis=0)
            if not single:
                scores[block] -= disagreement(part)
        return scores

    def _observed(self, observed: ArrayLike) -> FloatArray:
        return float_array(observed, "observed", (self.parts.row_count,))

    def _blocks(self, width: int) -> list[slice]:
        return row_blocks(self.parts.row_count, self.parts.draw_count * width)
