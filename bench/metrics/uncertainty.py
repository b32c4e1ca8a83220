"""Uncertainty scores of classification draws [T, N, C], one number per row: larger means less certain.

Their means over rows are stored as metrics that describe a forecast. No value of them is better: a forecast of low
entropy may be right or overconfident. All three are biased in T: with few draws the entropy of their mean, the share
that disagrees and their disagreement are underestimated.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, numeric_array, probability_array, require_distributions, row_blocks
from bench.metrics.class_predictions import ClassPrediction
from bench.metrics.forecast import Forecast
from bench.metrics.metric import Metric, Template


def entropy(probabilities: ArrayLike) -> FloatArray:
    """Return -sum_c p_c log p_c of each row of [N, C], in nat, with 0 log 0 = 0."""
    return _entropy_rows(probability_array(probabilities))


def predictive_entropy(draws: ArrayLike) -> FloatArray:
    """Return the entropy of the mean over draws, H[mean_t p_t]: the total uncertainty, in nat."""
    mean: FloatArray = _checked(draws).mean(axis=0, dtype=np.float64)
    return _entropy_rows(mean)


def expected_entropy(draws: ArrayLike) -> FloatArray:
    """Return the mean over draws of the entropy, mean_t H[p_t]: the part no draw can resolve (aleatoric), in nat."""
    array = _checked(draws)
    total: FloatArray = np.zeros(array.shape[1])
    # One draw at a time, so that the float64 copy is of one draw and not of all.
    for draw in array:
        total += _entropy_rows(draw.astype(np.float64, copy=False))
    total /= array.shape[0]
    return total


def mutual_information(draws: ArrayLike) -> FloatArray:
    """Return H[mean_t p_t] - mean_t H[p_t], never below 0: the disagreement between draws (epistemic), in nat.

    Houlsby et al., Bayesian Active Learning for Classification and Preference Learning, 2011. With one draw it would
    be 0 for every row, which is meaningless: that is an error.
    """
    array = _checked(draws)
    _require_two(array)
    gap: FloatArray = np.maximum(predictive_entropy(array) - expected_entropy(array), 0.0)
    return gap


def model_information(forecast: Forecast) -> FloatArray:
    """Return the mutual information between function and class, with what draws state by themselves (a Dirichlet)."""
    if not isinstance(forecast.stated, ClassPrediction) or not forecast.states_model:
        return mutual_information(forecast.draws)
    gap: FloatArray = np.maximum(entropy(forecast.mean) - forecast.stated.expected_entropy.mean(axis=0), 0.0)
    return gap


def model_variance(forecast: Forecast) -> FloatArray:
    """Return the variance of the probabilities, summed over classes: that over draws plus what they state."""
    if not isinstance(forecast.stated, ClassPrediction) or not forecast.states_model:
        return total_variance(forecast.draws)
    stated: FloatArray = forecast.stated.model_variance.sum(-1).mean(axis=0)
    return stated if forecast.draw_count == 1 else stated + total_variance(forecast.draws)


def variation_ratio(draws: ArrayLike) -> FloatArray:
    """Return the share of draws whose most probable class is not the one that most draws have.

    Freeman, Elementary Applied Statistics, 1965; for draws of a network Gal, Uncertainty in Deep Learning, 2016. Of
    equally probable classes in a draw the first counts. With one draw it would be 0 for every row: that is an error.
    """
    array = _checked(draws)
    _require_two(array)
    count, rows, classes = array.shape
    votes = np.zeros(rows * classes, dtype=np.int64)
    first = np.arange(rows) * classes
    for draw in array:
        votes[first + draw.argmax(axis=1)] += 1  # one vote per row: no index occurs twice
    share: FloatArray = 1.0 - votes.reshape(rows, classes).max(axis=1) / count
    return share


def total_variance(draws: ArrayLike) -> FloatArray:
    """Return sum_c of the unbiased (T - 1) variance of p_c over draws, the trace of their covariance.

    The paper sorts by predicted variance without saying how it combines classes; this is our reading.
    """
    array = _checked(draws)
    _require_two(array)
    count, rows, _ = array.shape
    # Two passes, a draw at a time: memory of one draw. Measured from the first draw, equal draws have exactly 0.
    first = array[0].astype(np.float64)
    centre: FloatArray = np.zeros_like(first)
    for draw in array:
        centre += draw - first
    centre /= count
    total: FloatArray = np.zeros(rows)
    for draw in array:
        deviation = draw - first - centre
        total += np.einsum("nc,nc->n", deviation, deviation)
    total /= count - 1
    return total


def _checked(draws: ArrayLike) -> NDArray[Any]:
    array = numeric_array(draws, "draws", (None, None, None))
    require_distributions(array, "draws")
    return array


def _require_two(array: NDArray[Any]) -> None:
    if array.shape[0] < 2:
        raise UserError("draws: the disagreement between draws needs at least 2 of them, got 1")


def _entropy_rows(p: FloatArray) -> FloatArray:
    rows = np.empty(p.shape[0])
    smallest = np.finfo(np.float64).tiny
    for block in row_blocks(*p.shape):
        part = p[block]
        rows[block] = -np.einsum("nc,nc->n", part, np.log(np.maximum(part, smallest)))
    # Probabilities whose sum is 1 + 1e-7 may have an entropy of -1e-7 when one of them is all.
    np.maximum(rows, 0.0, out=rows)
    return rows


_describes = Template("classification", "descriptive", "nat", "none", "probabilities draws", biased_in_draws=True)
METRICS: tuple[Metric, ...] = (
    _describes(
        "predictive_entropy",
        "mean_i H[p_i], p_i the mean over draws; H[p] = -sum_c p_c log p_c",
        "Shannon, Bell System Technical Journal 1948; Gal 2016",
        needs="probabilities",
    ).by(lambda f: float(entropy(f.mean).mean())),
    _describes(
        "mutual_information",
        "mean_i (H[mean_t p_it] - mean_t H[p_it]), between draws and class, never below 0; of a Dirichlet, its mean H",
        "Houlsby et al. 2011; Malinin and Gales 2018",
        needs="probabilities disagreement",
    ).by(lambda f: float(model_information(f).mean())),
    _describes(
        "variation_ratio",
        "mean_i (1 - share of draws that have the most frequent of the draws' top classes)",
        "Freeman 1965; Gal 2016",
        unit="probability",
    ).by(lambda f: float(variation_ratio(f.draws).mean())),
)
