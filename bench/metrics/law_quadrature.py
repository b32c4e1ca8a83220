"""Integrals over an exact law: expectations under it, and distances between it and a forecast."""

from itertools import pairwise

import numpy as np

from bench.errors import UserError
from bench.metrics.arrays import FloatArray
from bench.metrics.mixture import Mixture
from bench.metrics.normal_mixture import NormalMixture
from bench.metrics.predictions import Normal, NormalInverseGamma, RegressionPrediction
from bench.metrics.quantile_predictions import Quantiles

HERMITE, JACOBI = 40, 60  # nodes of the rules for normals, and for one side of a Student t
TAIL = np.array([1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.05])
LEVELS = np.concatenate([TAIL, np.arange(1, 10) / 10, 1 - TAIL[::-1]])  # of the law, between which is integrated
BEYOND = np.array([0.5, 1.5, 4.0])  # places outside a forecast's outermost quantiles, in their distance to the median
GAUSS, FINE = 3, 8  # nodes between two quantiles, of distribution functions and of densities


def expectation_rule(law: RegressionPrediction) -> tuple[FloatArray, FloatArray]:
    """Return nodes [Q, N] and weights [Q] of E[g(Y_i)] = sum_q w_q g(y_qi), exact for quadratic functions g.

    Gauss-Hermite for normals and their mixtures. A Student t has Y^2 / (nu + Y^2) ~ Beta(1/2, nu/2): Gauss-Jacobi, with
    one factor of its weight left to the function, because the squared target has a pole there.
    """
    if isinstance(law, Normal | NormalMixture):
        parts = law.normals() if isinstance(law, NormalMixture) else law
        nodes, weights = np.polynomial.hermite_e.hermegauss(HERMITE)
        places = parts.mean[:, None] + parts.std[:, None] * nodes[:, None]
        share = np.tile(weights / weights.sum(), parts.draw_count) / parts.draw_count
        return places.reshape(-1, law.row_count), share
    if isinstance(law, NormalInverseGamma):
        from scipy.special import roots_jacobi

        degrees = float(law.degrees.flat[0])
        if degrees <= 2 or (law.degrees != degrees).any():
            raise UserError("law: a Student t needs the same degrees of freedom, above 2, at all rows")
        roots, weights = roots_jacobi(JACOBI, degrees / 2 - 2, -0.5)
        share = weights * (1 - roots) / np.sum(weights * (1 - roots)) / 2
        size = np.sqrt(degrees * (1 + roots) / (1 - roots))
        nodes = np.concatenate([-size, size])
        return law.mean + law.scale * nodes[:, None], np.concatenate([share, share])
    raise UserError(f"law: no rule is known for a {type(law).__name__}; state Normal, NormalMixture or a Student t")


def relative_entropy(law: RegressionPrediction, forecast: Mixture) -> FloatArray:
    """Return E[log p(Y) - log q(Y)] under the law p at each row: what the forecast q loses in expected log score."""
    if isinstance(forecast.parts, Quantiles):
        return _piecewise_entropy(law, forecast, forecast.parts)
    nodes, weights = expectation_rule(law)
    own = Mixture(law)
    regret: FloatArray = np.zeros(law.row_count)
    for places, weight in zip(nodes, weights, strict=True):
        regret += weight * (own.log_density(places) - forecast.log_density(places))
    return regret


def _piecewise_entropy(law: RegressionPrediction, forecast: Mixture, stated: Quantiles) -> FloatArray:
    """Return the same where the forecast's density jumps at its quantiles: by Gauss's rule between them."""
    own = Mixture(law)
    jumps = np.moveaxis(stated.values, -1, 1).reshape(-1, law.row_count)
    knots = np.sort(np.concatenate([law.quantile(LEVELS)[:, 0], jumps]), axis=0)
    nodes, weights = np.polynomial.legendre.leggauss(FINE)
    regret: FloatArray = np.zeros(law.row_count)
    for low, high in pairwise(knots):
        half = (high - low) / 2
        for node, weight in zip(nodes, weights, strict=True):
            places = low + half * (1 + node)
            logs = own.log_density(places)
            regret += half * weight * np.exp(logs) * (logs - forecast.log_density(places))
    return regret


def distances(law: RegressionPrediction, forecast: Mixture, quantiles: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the integrals over y of (F - G)^2 and of |F - G| at each row, G the law.

    The first is what the forecast loses in expected CRPS, the second the Wasserstein distance of order 1. Gauss's rule
    between the quantiles of both; `quantiles` [L, N] are those of the forecast. NaN where one of them is infinite.
    """
    knots = _knots(law, quantiles)
    own = Mixture(law)
    nodes, weights = np.polynomial.legendre.leggauss(GAUSS)
    squared, absolute = np.zeros((2, law.row_count))
    for low, high in pairwise(knots):
        half = (high - low) / 2
        for node, weight in zip(nodes, weights, strict=True):
            places = low + half * (1 + node)
            gap = forecast.cdf(places) - own.cdf(places)
            squared += half * weight * np.square(gap)
            absolute += half * weight * np.abs(gap)
    infinite = ~np.isfinite(quantiles).all(axis=0)
    squared[infinite] = absolute[infinite] = np.nan
    return squared, absolute


def _knots(law: RegressionPrediction, quantiles: FloatArray) -> FloatArray:
    """Return the places [K, N], ascending, between which both distribution functions are smooth."""
    own = law.quantile(LEVELS)[:, 0]
    stated = np.where(np.isfinite(quantiles), quantiles, own[len(LEVELS) // 2])
    middle = stated[len(stated) // 2]
    below = stated[0] - BEYOND[:, None] * (middle - stated[0])
    above = stated[-1] + BEYOND[:, None] * (stated[-1] - middle)
    return np.sort(np.concatenate([own, below, stated, above]), axis=0)
