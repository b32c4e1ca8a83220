"""A forecast compared with the exact law of its targets, row by row: what is wrong with it, and by how much."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bench.errors import UserError
from bench.metrics.arrays import FloatArray
from bench.metrics.class_predictions import ClassPrediction
from bench.metrics.law_quadrature import distances, relative_entropy
from bench.metrics.mixture import LEVELS
from bench.metrics.predictions import RegressionPrediction

if TYPE_CHECKING:
    from bench.metrics.forecast import Forecast

BINS = 10  # of rows by the model variance that is stated, within which squared errors are averaged


def gaussian_cost(stated: FloatArray, right: FloatArray) -> FloatArray:
    """Return 1/2 (log r + 1/r - 1), r = stated / right: what a wrong variance of a normal costs, in nat."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = stated / right
        cost = 0.5 * (np.log(share) + 1 / share - 1)
    return np.where(stated == right, 0.0, np.where(stated <= 0, np.inf, cost))


def honest_variance(stated: FloatArray, squared_error: FloatArray) -> FloatArray:
    """Return the mean squared error of the function among rows of about the same stated model variance.

    That is the model variance with which the rows would have been stated honestly.
    """
    order = np.argsort(stated, kind="stable")
    honest: FloatArray = np.empty(len(stated))
    if np.ptp(stated) <= 1e-12 * np.abs(stated).max(initial=0.0):
        honest[:] = squared_error.mean()
        return honest
    for rows in np.array_split(order, min(BINS, len(stated))):
        honest[rows] = squared_error[rows].mean()
    return honest


@dataclass(frozen=True, eq=False)
class LawComparison:
    """What a forecast with a known law gets wrong; arrays over rows, of a regression unless it is stated."""

    forecast: "Forecast"

    @cached_property
    def law(self) -> RegressionPrediction:
        """The law of a real target."""
        if not isinstance(self.forecast.law, RegressionPrediction):
            raise UserError("this is defined for a regression whose law is known")
        return self.forecast.law

    @cached_property
    def probabilities(self) -> FloatArray:
        """The true probabilities [N, C] of classes."""
        if not isinstance(self.forecast.law, ClassPrediction):
            raise UserError("this is defined for a classification whose law is known")
        p: FloatArray = self.forecast.law.probabilities[0].astype(np.float64)
        return p

    @cached_property
    def mean(self) -> FloatArray:
        """The mean of the law: the true function."""
        return np.asarray(self.law.centre[0])

    @cached_property
    def noise(self) -> FloatArray:
        """The variance of the law: the true noise."""
        variance = self.law.noise_variance
        assert variance is not None, "a law is all noise"
        return np.asarray(variance[0])

    @cached_property
    def log_regret(self) -> FloatArray:
        """The expected log score that the forecast loses to the law: the Kullback-Leibler divergence, in nat."""
        if self.forecast.task == "classification":
            p, q = self.probabilities, self.forecast.mean
            with np.errstate(divide="ignore", invalid="ignore"):
                parts = np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0)
            divergence: FloatArray = parts.sum(axis=1)
            return divergence
        assert self.forecast.distribution is not None, "metrics of a density are left out without one"
        return relative_entropy(self.law, self.forecast.distribution)

    @cached_property
    def distances(self) -> tuple[FloatArray, FloatArray]:
        """The expected CRPS that the forecast loses to the law, and its Wasserstein distance to it."""
        assert self.forecast.distribution is not None, "metrics of a distribution are left out without one"
        return distances(self.law, self.forecast.distribution, self.forecast.quantiles)

    @cached_property
    def coverage(self) -> FloatArray:
        """The exact probability of the central 90 % interval at each row."""
        low, high = (int(np.argmin(np.abs(LEVELS - level))) for level in (0.05, 0.95))
        quantiles = self.forecast.quantiles
        ends = (self.law.cdf(np.clip(quantiles[end], -1e300, 1e300))[0] for end in (low, high))
        below, up_to = ends
        return np.asarray(up_to - below)

    @cached_property
    def squared_error(self) -> FloatArray:
        """The squared distance of the predicted mean to the true function."""
        squared: FloatArray = np.square(self.forecast.mean - self.mean)
        return squared

    @cached_property
    def honest(self) -> FloatArray:
        """The model variance that would have been right: see `honest_variance`."""
        return honest_variance(self.forecast.model_part, self.squared_error)

    @property
    def mean_cost(self) -> FloatArray:
        """What the error of the mean costs where both variances are right, in nat."""
        return 0.5 * np.log1p(self.honest / self.noise)

    @property
    def variance_cost(self) -> FloatArray:
        """What the wrong variance costs beside that."""
        return gaussian_cost(self.forecast.total_variance, self.noise + self.honest)

    @property
    def noise_cost(self) -> FloatArray:
        """What the noise variance by itself would cost: the model variance is replaced by the right one."""
        return gaussian_cost(self.forecast.noise_part + self.honest, self.noise + self.honest)

    @property
    def model_cost(self) -> FloatArray:
        """What the model variance by itself would cost: the noise variance is replaced by the right one."""
        return gaussian_cost(self.noise + self.forecast.model_part, self.noise + self.honest)

    @cached_property
    def function_rank(self) -> FloatArray:
        """The probability that the function lies below the true one, by a normal with the stated model variance."""
        from scipy.special import ndtr

        with np.errstate(divide="ignore", invalid="ignore"):
            rank: FloatArray = ndtr((self.mean - self.forecast.mean) / np.sqrt(self.forecast.model_part))
        return rank

    @cached_property
    def posterior(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the exact posterior of the function."""
        exact = self.forecast.posterior
        assert exact is not None, "metrics of a posterior are left out without one"
        variance = exact.model_variance
        assert variance is not None, "a posterior states a model variance"
        return exact.centre[0], variance[0]
