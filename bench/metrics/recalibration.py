"""Corrections of calibration that are fitted on validation predictions after the fact.

Each returns the corrected forecast at the test rows. They are fitted on rows that early stopping, or the observation
noise, has seen as well, so they are no substitute for a method that calibrates on rows of its own.
"""

from collections.abc import Callable, Collection, Mapping

import numpy as np

from bench.metrics.arrays import FloatArray
from bench.metrics.class_predictions import Probabilities, Sets
from bench.metrics.forecast import Forecast
from bench.metrics.kept import Kept
from bench.metrics.mixture import LEVELS
from bench.metrics.predictions import Normal
from bench.metrics.quantile_predictions import Quantiles

Correction = Callable[[Forecast, Forecast], Forecast | None]  # of validation and test rows
FEWEST = 20  # validation rows, below which nothing is fitted
COVERAGE = 0.95
TINY = np.finfo(np.float64).tiny
NEWTON_STEPS, FLAT = 50, 1e-6  # FLAT: the largest slope that ends the search


def variance_scaling(held: Forecast, test: Forecast) -> Forecast | None:
    """Multiply the variance by s = mean (y - m)^2 / v, which is the most likely one of normals around the means.

    Laves et al., Well-calibrated regression uncertainty in medical imaging, MIDL 2020.
    """
    own, other = held.total_variance, test.total_variance
    if not (np.isfinite(own).all() and np.isfinite(other).all() and (own > 0).all() and (other > 0).all()):
        return None
    factor = float(np.mean(np.square(held.observed - held.mean) / own))
    normal = Normal(test.mean[None], noise_variance=factor * other[None])
    return Forecast.of(normal, test.observed, None, test.scale, test.truth)


def isotonic_quantiles(held: Forecast, test: Forecast) -> Forecast | None:
    """Replace the level p of a quantile by the p-quantile of the validation rows' F(y).

    Kuleshov, Fenner and Ermon, ICML 2018: the monotone map of predicted to observed levels. Its tails are flat.
    """
    if held.distribution is None or test.distribution is None:
        return None
    levels = np.clip(np.quantile(held.pit, LEVELS, method="weibull"), 1e-6, 1 - 1e-6)
    unique, back = np.unique(levels, return_inverse=True)
    found = np.maximum.accumulate(test.distribution.quantile(unique), axis=0)[back]
    quantiles = Quantiles(LEVELS, found.T[None], point=test.mean[None])
    return Forecast.of(quantiles, test.observed, None, test.scale, test.truth)


def conformal_intervals(held: Forecast, test: Forecast) -> Forecast | None:
    """Return 95 % intervals m +- q s, with q of the validation rows' |y - m| / s at the level of split conformal.

    Lei et al., Distribution-free predictive inference for regression, JASA 2018, section 5.2.
    """
    own, other = np.sqrt(held.total_variance), np.sqrt(test.total_variance)
    if not (np.isfinite(own).all() and np.isfinite(other).all() and (own > 0).all()):
        return None
    factor = _conformal_quantile(np.abs(held.observed - held.mean) / own)
    ends = np.stack([test.mean - factor * other, test.mean + factor * other], axis=-1)
    sides = np.array([(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return Forecast.of(Quantiles(sides, ends[None], point=test.mean[None]), test.observed, None, test.scale, test.truth)


def _conformal_quantile(scores: FloatArray) -> float:
    """Return the ceil((n + 1) 95 %)-th smallest score, or the largest where there are too few rows."""
    rank = int(np.ceil((len(scores) + 1) * COVERAGE))
    return float(np.sort(scores)[min(rank, len(scores)) - 1])


def temperature(held: Forecast, test: Forecast) -> Forecast | None:
    """Return p^(1/t), made to sum to 1, with the t of the highest likelihood (Guo et al., ICML 2017)."""
    from scipy.optimize import minimize_scalar

    logs = _logs(held)
    found = minimize_scalar(lambda log: _surprise(logs * np.exp(-log), held), bounds=(-4.0, 4.0), method="bounded")
    return _of_logits(_logs(test) * float(np.exp(-found.x)), test)


def vector_scaling(held: Forecast, test: Forecast) -> Forecast | None:
    """Return the softmax of w_c log p_c + b_c with the w and b of the highest likelihood (Guo et al., ICML 2017).

    They are pulled to 1 and 0 by the weight of one row: else they would be infinite where some w and b separate the
    classes of the validation rows, as they do of a good network and few rows.
    """
    weights, offsets = _vector_fit(held)
    return _of_logits(_logs(test) * weights + offsets, test)


def _vector_fit(held: Forecast) -> tuple[FloatArray, FloatArray]:
    """Return w and b by Newton's method, which takes about ten steps where a quasi-Newton method takes a hundred."""
    logs = _logs(held)
    rows, classes = logs.shape
    targets = np.eye(classes)[held.observed]
    identity = np.concatenate([np.ones(classes), np.zeros(classes)])

    def loss(parameters: FloatArray) -> float:
        pull = np.square(parameters - identity).sum() / (2 * rows)
        return _surprise(logs * parameters[:classes] + parameters[classes:], held) + float(pull)

    found = identity
    for _ in range(NEWTON_STEPS):
        shares = _softmax(logs * found[:classes] + found[classes:])
        gaps = (shares - targets) / rows
        slope = np.concatenate([(gaps * logs).sum(0), gaps.sum(0)]) + (found - identity) / rows
        if np.abs(slope).max() < FLAT:
            break
        both = np.concatenate([shares * logs, shares], axis=1)
        own = np.diag((both[:, :classes] * logs).sum(0)), np.diag(both[:, :classes].sum(0)), np.diag(shares.sum(0))
        curvature = (np.block([[own[0], own[1]], [own[1], own[2]]]) - both.T @ both) / rows
        step = np.linalg.solve(curvature + np.eye(2 * classes) / rows, slope)
        before, gain, length = loss(found), float(slope @ step), 1.0
        while loss(found - length * step) > before - 1e-4 * length * gain and length > 1e-6:
            length /= 2
        found = found - length * step
    return found[:classes], found[classes:]


def isotonic_classes(held: Forecast, test: Forecast) -> Forecast | None:
    """Map each class's probability by isotonic regression on whether it is the label, and make them sum to 1.

    Zadrozny and Elkan, KDD 2002.
    """
    from scipy.optimize import isotonic_regression

    columns = []
    for label in range(test.mean.shape[1]):
        x, hits = held.mean[:, label], (held.observed == label).astype(np.float64)
        values, place, counts = np.unique(x, return_inverse=True, return_counts=True)
        shares = np.bincount(place, hits) / counts
        fitted = isotonic_regression(shares, weights=counts).x
        columns.append(np.interp(test.mean[:, label], values, fitted))
    shares = np.maximum(np.stack(columns, axis=1), 1 / (10 * len(held.observed)))  # no class is impossible
    return Forecast.of(Probabilities((shares / shares.sum(1, keepdims=True))[None]), test.observed)


def conformal_sets(held: Forecast, test: Forecast) -> Forecast | None:
    """Return the sets of classes whose 1 - p is at most the 95 % quantile of the labels' (Sadinle et al. 2019)."""
    scores = 1 - held.mean[np.arange(held.row_count), held.observed]
    members = 1 - test.mean <= _conformal_quantile(scores)
    return Forecast.of(Sets(members, Probabilities(test.mean[None])), test.observed)


def _logs(forecast: Forecast) -> FloatArray:
    return np.log(np.maximum(forecast.mean, TINY))


def _softmax(logits: FloatArray) -> FloatArray:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return shares


def _surprise(logits: FloatArray, forecast: Forecast) -> float:
    shares = _softmax(logits)[np.arange(forecast.row_count), forecast.observed]
    return float(-np.log(np.maximum(shares, TINY)).mean())


def _of_logits(logits: FloatArray, test: Forecast) -> Forecast:
    return Forecast.of(Probabilities(_softmax(logits)[None]), test.observed)


REGRESSION: Mapping[str, Correction] = {
    "variance scaling": variance_scaling,
    "isotonic": isotonic_quantiles,
    "conformal": conformal_intervals,
}
CLASSIFICATION: Mapping[str, Correction] = {
    "temperature": temperature,
    "vector scaling": vector_scaling,
    "isotonic": isotonic_classes,
    "conformal": conformal_sets,
}
RAW = "raw"


def recalibrated(kept: Kept, without: Collection[str] = ()) -> dict[str, Forecast]:
    """Return the forecast at the test rows: `raw`, and after every correction that can be fitted; empty if none can.

    `without` names corrections that are left out.
    """
    held, test = kept.validation, kept.test
    if held is None or held.row_count < FEWEST:
        return {}
    corrections = CLASSIFICATION if test.task == "classification" else REGRESSION
    chosen = {name: correct for name, correct in corrections.items() if name not in without}
    found = {name: forecast for name, correct in chosen.items() if (forecast := correct(held, test)) is not None}
    return {RAW: test, **found} if found else {}
