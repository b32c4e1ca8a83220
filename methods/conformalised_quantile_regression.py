"""Conformalised quantile regression: the quantiles of a method, moved until they cover held-out rows as they should.

    C(x) = [q(x; alpha / 2) - r, q(x; 1 - alpha / 2) + r]
    r = the k-th smallest of max(q(x_i; alpha / 2) - y_i, y_i - q(x_i; 1 - alpha / 2)),   k = ceil((n + 1) (1 - alpha))

Romano, Patterson and Candès 2019, "Conformalized Quantile Regression", arXiv:1905.03222. q are the quantiles of the
wrapped method's prediction, which may state them or a distribution that has them; intervals are as wide as the data
need at x, and r may be negative. An interval that a smaller coverage leaves, or that would be empty, is widened. Over
exchangeable calibration and test rows, coverage is at least 1 - alpha. Regression only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.api import Array, HeldOut, Look, Mixture, PluginSpec, Prediction, Problem, UserError, Wrapper
from bench.methods import _conformal as conformal


@dataclass(frozen=True)
class Calibration:
    """The distance by which the interval of each coverage moves, and the number of rows that it is from."""

    radii: Array
    rows: int


@dataclass(frozen=True)
class ConformalisedQuantileRegression(Wrapper):
    """Central intervals of several coverages at once, each valid by itself."""

    look = Look("green", "-.", "D")

    method: PluginSpec = PluginSpec("quantile-regression")  # the method that is wrapped
    coverages: tuple[float, ...] = conformal.COVERAGES  # of the central intervals, ascending

    def __post_init__(self) -> None:
        conformal.check_coverages(self.coverages)

    def skip(self, problem: Problem) -> str | None:
        """Return why classes have no quantiles."""
        return None if problem.task == "regression" else "quantiles are of numbers, not of classes"

    def calibrate(self, held: Sequence[HeldOut], generator: np.random.Generator) -> Calibration:
        """Return how far the interval of each coverage has to move."""
        low, _, high = self._quantiles(held[0].prediction)
        observed = held[0].observed[:, None]
        scores = np.maximum(low - observed, observed - high)
        radii = [conformal.radii(own, [coverage])[0] for own, coverage in zip(scores.T, self.coverages, strict=True)]
        return Calibration(np.asarray(radii), len(scores))

    def predict(
        self, state: Calibration, predictions: Sequence[Prediction], generator: np.random.Generator
    ) -> Prediction:
        """Return the moved quantiles."""
        low, median, high = self._quantiles(predictions[0])
        mean = conformal.regression(predictions[0]).centre.mean(axis=0)
        return conformal.as_quantiles(low - state.radii, median, high + state.radii, mean, self.coverages)

    def doubts(self, state: Calibration) -> Sequence[str]:
        """Say for which coverages the calibration rows are too few."""
        return conformal.too_few(state.rows, self.coverages)

    def _quantiles(self, prediction: Prediction) -> tuple[Array, Array, Array]:
        """Return the lower bounds `[N, coverages]`, the median `[N]` and the upper bounds of the wrapped method."""
        inner, count = conformal.regression(prediction), len(self.coverages)
        if not inner.has_distribution:
            raise UserError("conformalised quantile regression needs a method that states quantiles or a variance")
        tail = (1 - np.asarray(self.coverages)) / 2
        found = Mixture(inner).quantile(np.concatenate([tail, [0.5], 1 - tail])).T
        return found[:, :count], found[:, count], found[:, count + 1 :]
