"""Scores of class probabilities [N, C] against integer labels [N]. Pure functions, float64 inside."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, LabelArray, label_array, probability_array, row_blocks
from bench.metrics.bins import bin_index
from bench.metrics.forecast import Forecast
from bench.metrics.metric import PAPER, Metric, Template


class BrierSplit(NamedTuple):
    """The parts of the Brier score: reliability - resolution + uncertainty + within_bin is the score itself."""

    reliability: float
    resolution: float
    uncertainty: float
    within_bin: float


def accuracy(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Share of rows whose most probable class is the label; of equally probable classes the first counts."""
    p, y = _checked(probabilities, labels)
    return float(np.mean(p.argmax(axis=1) == y))


def top_k_accuracy(probabilities: ArrayLike, labels: ArrayLike, k: int = 5) -> float:
    """Share of rows whose label is among the k most probable classes.

    Of equally probable classes the one of lower index ranks first, so that k = 1 is the accuracy.
    """
    p, y = _checked(probabilities, labels)
    if k < 1:
        raise UserError(f"k: expected at least 1, got {k}")
    of_label = _of_label(p, y)
    inside = np.count_nonzero(p >= of_label[:, None], axis=1) <= k
    # Rows that are not inside yet are counted again with ties resolved; the others are inside with any order of ties.
    rest = np.flatnonzero(~inside)
    others, own = p[rest], of_label[rest, None]
    before = np.arange(p.shape[1]) < y[rest, None]
    inside[rest] = np.count_nonzero((others > own) | ((others == own) & before), axis=1) < k
    return float(np.mean(inside))


def categorical_nll(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Mean of -log p(label), in nat; +inf where a label was given probability 0, nothing is clipped."""
    with np.errstate(divide="ignore"):
        return float(-np.mean(np.log(_of_label(*_checked(probabilities, labels)))))


def brier_score(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Mean over rows of sum_c (p_c - [c is the label])^2, between 0 and 2.

    Brier, Verification of Forecasts Expressed in Terms of Probability, Monthly Weather Review 1950: summed over
    classes, so that for two classes it is twice the score of the positive class alone.
    """
    p, y = _checked(probabilities, labels)
    of_label = _of_label(p, y)
    others = np.einsum("nc,nc->n", p, p) - np.square(of_label)
    # Rounding of the difference may leave -1e-17 where the label has all the probability.
    return float(np.mean(np.maximum(others, 0.0) + np.square(1.0 - of_label)))


def brier_split(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> BrierSplit:
    """Split the Brier score into reliability, resolution, uncertainty, and what binning leaves.

    Murphy, A New Vector Partition of the Probability Score, Journal of Applied Meteorology 1973, for each class on
    `bins` equal bins of its probability, summed over classes. Murphy's three terms are exact when all forecasts in a
    bin are equal; the rest is the variance within bins minus twice their covariance with the outcome (Stephenson,
    Coelho and Jolliffe, Two Extra Components in the Brier Score Decomposition, Weather and Forecasting 2008).
    """
    p, y = _checked(probabilities, labels)
    rows, classes = p.shape
    cells = bin_index(p, bins) + np.arange(classes) * (bins + 1)
    size = classes * (bins + 1)
    hit_cells = cells[np.arange(rows), y]
    of_label = _of_label(p, y)
    count = np.bincount(cells.ravel(), minlength=size)
    filled = count > 0
    n = count[filled]
    total = np.bincount(cells.ravel(), weights=p.ravel(), minlength=size)[filled]
    squares = np.bincount(cells.ravel(), weights=np.square(p).ravel(), minlength=size)[filled]
    hits = np.bincount(hit_cells, minlength=size)[filled]
    products = np.bincount(hit_cells, weights=of_label, minlength=size)[filled]
    base = np.bincount(y, minlength=classes) / rows
    cell_base = np.repeat(base, bins + 1)[filled]
    return BrierSplit(
        reliability=float(np.sum(np.square(total - hits) / n) / rows),
        resolution=float(np.sum(n * np.square(hits / n - cell_base)) / rows),
        uncertainty=float(np.sum(base * (1.0 - base))),
        within_bin=float(np.sum(squares - np.square(total) / n - 2.0 * (products - total * hits / n)) / rows),
    )


def class_wise_calibration_error(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> float:
    """Mean over classes c of the calibration error of p_c against [label is c], on `bins` equal bins.

    sum_b |sum_{i in b} (p_ic - [y_i is c])| / N for each class: Kull et al., Beyond Temperature Scaling, NeurIPS 2019
    (the static calibration error of Nixon et al. 2019). Bins as in `expected_calibration_error`.
    """
    p, y = _checked(probabilities, labels)
    rows, classes = p.shape
    offsets = np.arange(classes) * (bins + 1)
    size = classes * (bins + 1)
    gaps = np.zeros(size)
    for block in row_blocks(rows, classes):
        part = p[block]
        cells = bin_index(part, bins) + offsets
        gaps += np.bincount(cells.ravel(), weights=part.ravel(), minlength=size)
        gaps -= np.bincount(_at_label(cells, y[block]), minlength=size)
    return float(np.abs(gaps).sum() / (rows * classes))


def _checked(probabilities: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, LabelArray]:
    p = probability_array(probabilities)
    return p, label_array(labels, p.shape[0], p.shape[1], "labels")


def _of_label(p: FloatArray, y: LabelArray) -> FloatArray:
    return p[np.arange(y.size), y]


def _at_label(cells: LabelArray, y: LabelArray) -> LabelArray:
    return cells[np.arange(y.size), y]


def _top_five(f: Forecast) -> float:
    # Of five classes every label is among the first five: that says nothing about the method.
    return top_k_accuracy(f.mean, f.observed, k=5) if f.mean.shape[1] > 5 else math.nan


_share = Template("classification", "predictive", "probability", "higher", needs="probabilities")
_error = Template("classification", "calibration", "probability", needs="probabilities")
METRICS: tuple[Metric, ...] = (
    _share("accuracy", "mean_i [argmax_c p_ic = y_i], the first class of equal ones", PAPER).by(
        lambda f: float(f.correct.mean())
    ),
    _share(
        "accuracy_top5",
        "mean_i [y_i among the 5 highest p_ic], with more than 5 classes",
        "Russakovsky et al., IJCV 2015",
    ).by(_top_five),
    _error("nll_categorical", "mean_i -log p_i(y_i)", "Good, Rational Decisions, JRSS-B 1952", unit="nat").by(
        lambda f: categorical_nll(f.mean, f.observed)
    ),
    _error(
        "brier", "mean_i sum_c (p_ic - [y_i = c])^2, between 0 and 2", "Brier, Monthly Weather Review 1950", unit="1"
    )
    .up_to(2.0)
    .by(lambda f: brier_score(f.mean, f.observed)),
    _error(
        "ece_classwise",
        "mean over classes c of sum_b (n_b / N) abs(frequency_b of c - mean p_c in b), 15 equal bins of p_c",
        "Kull et al., NeurIPS 2019",
    ).by(lambda f: class_wise_calibration_error(f.mean, f.observed)),
)
