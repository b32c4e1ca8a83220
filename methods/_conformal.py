"""The mathematics that conformal methods share: the rank of a quantile, radii, sets, and intervals as quantiles.

n scores of calibration rows and that of a new row, all exchangeable and without ties: the new one is at most the k-th
smallest of the n with probability k / (n + 1). So a set of coverage 1 - alpha takes the k-th smallest score with

    k = ceil((n + 1) (1 - alpha)),   and is everything where k > n

Vovk, Gammerman and Shafer 2005, "Algorithmic Learning in a Random World"; Lei, G'Sell, Rinaldo, Tibshirani and
Wasserman 2018, "Distribution-Free Predictive Inference for Regression", arXiv:1604.04173. Given the calibration rows,
coverage follows Beta(k, n + 1 - k) (Vovk 2012, "Conditional validity of inductive conformal predictors").
"""

import math
from collections.abc import Sequence

import numpy as np

from bench.api import (
    Array,
    Dirichlet,
    Logits,
    Prediction,
    Probabilities,
    Quantiles,
    RegressionPrediction,
    Sets,
    UserError,
)

# The central intervals that metrics of intervals and quantiles look at.
COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SMALLEST_DEVIATION = 1e-6  # in training units: draws that agree by chance would divide by 0


def rank(rows: int, coverage: float) -> int:
    """Return k = ceil((n + 1) coverage); above n: no score is large enough."""
    # (n + 1) coverage may be above a whole number by rounding alone.
    return math.ceil((rows + 1) * coverage - 1e-9)


def smallest(scores: Array, ranks: Sequence[int]) -> Array:
    """Return the k-th smallest of the scores `[..., n]` for each rank k, `[..., ranks]`; infinity above n."""
    rows = scores.shape[-1]
    inside = [k for k in ranks if k <= rows]
    ordered = np.partition(scores, [k - 1 for k in inside], axis=-1) if inside else scores
    found = np.full((*scores.shape[:-1], len(ranks)), np.inf)
    for place, k in enumerate(ranks):
        if k <= rows:
            found[..., place] = ordered[..., k - 1]
    return found


def radii(scores: Array, coverages: Sequence[float]) -> Array:
    """Return the score that a new row does not exceed with each probability, `[..., coverages]`."""
    return smallest(scores, [rank(scores.shape[-1], coverage) for coverage in coverages])


def cross_intervals(means: Array, residuals: Array, coverages: Sequence[float]) -> tuple[Array, Array]:
    """Return the bounds `[N, coverages]` of CV+ from n residuals, and the mean `[N, n]` of the fold of each of them.

    The lower bound is the floor((n + 1) alpha)-th smallest of mean - residual: as far from the largest as the upper
    bound, the ceil((n + 1) (1 - alpha))-th smallest of mean + residual, is from the smallest.
    """
    return -radii(residuals - means, coverages), radii(means + residuals, coverages)


def as_quantiles(lower: Array, middle: Array, upper: Array, point: Array, coverages: Sequence[float]) -> Quantiles:
    """Return central intervals `[N, coverages]`, by ascending coverage, around a median `[N]` as quantiles.

    An interval that is not within the next larger one, or not around the median, is widened until it is.
    """
    lower = np.minimum.accumulate(np.minimum(lower, middle[:, None]), axis=1)
    upper = np.maximum.accumulate(np.maximum(upper, middle[:, None]), axis=1)
    tail = np.round((1 - np.asarray(coverages)) / 2, 12)  # 0.025, not the number next to it
    levels = np.concatenate([tail[::-1], [0.5], np.round(1 - tail, 12)])
    values = np.concatenate([lower[:, ::-1], middle[:, None], upper], axis=1)
    return Quantiles(levels, values[None], point[None])


def adaptive_scores(probabilities: Array, uniform: Array, penalty: float = 0.0, free: int = 0) -> Array:
    """Return the score `[..., C]` of each class as if it were the label: how far down the ranking it lies.

    The probability of all classes that are more likely, plus a random share of its own, plus the penalty times how
    many places it lies below the first `free` ones. `uniform` `[...]` holds one number from 0 to 1 per row.
    """
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    ordered = np.take_along_axis(probabilities, order, -1)
    above = np.cumsum(ordered, -1) - ordered
    places = np.arange(1, ordered.shape[-1] + 1)
    ordered = above + uniform[..., None] * ordered + penalty * np.maximum(places - free, 0)
    scores: Array = np.empty_like(ordered)
    np.put_along_axis(scores, order, ordered, -1)
    return scores


def regression(prediction: Prediction) -> RegressionPrediction:
    """Return the prediction of numbers that a wrapper of numbers is given."""
    assert isinstance(prediction, RegressionPrediction), "skip refuses classes"
    return prediction


def classes(prediction: Prediction) -> Probabilities | Logits | Dirichlet:
    """Return the prediction of classes that a wrapper of classes is given, without sets that it may state."""
    beside = prediction.beside if isinstance(prediction, Sets) else prediction
    assert isinstance(beside, Probabilities | Logits | Dirichlet), "skip refuses numbers"
    return beside


def deviation(prediction: RegressionPrediction) -> Array:
    """Return the standard deviation `[N]` that draws have and state together; raises where there is none."""
    parts = [] if prediction.draw_count == 1 else [prediction.centre.var(axis=0, ddof=1)]
    parts += [] if prediction.variance is None else [prediction.variance.mean(axis=0)]
    if not parts:
        raise UserError("scaled = true needs a method that states a variance, or draws several functions")
    found: Array = np.sqrt(np.sum(parts, axis=0))
    if not np.isfinite(found).all():
        raise UserError("scaled = true needs a variance in every row; this method's does not exist in some")
    return np.maximum(found, SMALLEST_DEVIATION)


def check_coverages(coverages: Sequence[float]) -> None:
    """Raise for coverages that are not ascending, or not between 0 and 1."""
    if not coverages or not all(0 < c < 1 for c in coverages) or list(coverages) != sorted(set(coverages)):
        raise ValueError(f"coverages must ascend and lie between 0 and 1, got {list(coverages)}")


def too_few(rows: int, coverages: Sequence[float], what: str = "its intervals are infinite") -> list[str]:
    """Return a line about the coverages for which there are too few calibration rows."""
    lost = [coverage for coverage in coverages if rank(rows, coverage) > rows]
    if not lost:
        return []
    least = min(lost)
    needed = math.ceil(1 / (1 - least) - 1 - 1e-9)
    text = " and ".join(f"{coverage:.4g}" for coverage in lost)
    return [f"{rows} calibration rows are too few for coverage {text}: {what} ({least:.4g} needs {needed})"]
