"""Prediction sets [N, C]: which classes each row's set has. Pure functions over boolean arrays.

A set that is too small misses the label, one with all classes says nothing: size is read beside coverage, whose
nominal level is the method's own.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import BoolArray, LabelArray, label_array, numeric_array, set_array
from bench.metrics.forecast import Forecast
from bench.metrics.metric import Metric, Template

_ANGELOPOULOS = "Angelopoulos et al., Uncertainty Sets for Image Classifiers, ICLR 2021"


def mean_set_size(sets: ArrayLike) -> float:
    """Mean number of classes of a set; empty sets count as 0."""
    return float(np.count_nonzero(_checked(sets), axis=1).mean())


def set_coverage(sets: ArrayLike, labels: ArrayLike) -> float:
    """Share of rows whose set has the label."""
    return float(_covered(*_with_labels(sets, labels)).mean())


def singleton_share(sets: ArrayLike) -> float:
    """Share of rows whose set has exactly one class."""
    return float((np.count_nonzero(_checked(sets), axis=1) == 1).mean())


def size_stratified_coverage(sets: ArrayLike, labels: ArrayLike, fewest: int = 1) -> float:
    """Return the lowest coverage among rows whose sets have the same size; NaN without a size of `fewest` rows.

    The worst case of the size-stratified coverage of Angelopoulos et al., ICLR 2021: sets that are large where they
    need not be and small where they must not be may still have the right coverage on average.
    """
    if fewest < 1:
        raise UserError(f"fewest: expected at least 1, got {fewest}")
    members, y = _with_labels(sets, labels)
    sizes = np.count_nonzero(members, axis=1)
    rows = np.bincount(sizes)
    hits = np.bincount(sizes, weights=_covered(members, y))
    kept = rows >= fewest
    return float((hits[kept] / rows[kept]).min()) if kept.any() else math.nan


def _checked(sets: ArrayLike) -> BoolArray:
    array = numeric_array(sets, "sets", (None, None))
    return set_array(array, len(array), array.shape[1])


def _with_labels(sets: ArrayLike, labels: ArrayLike) -> tuple[BoolArray, LabelArray]:
    members = _checked(sets)
    rows, classes = members.shape
    return members, label_array(labels, rows, classes, "labels")


def _covered(members: BoolArray, y: LabelArray) -> BoolArray:
    covered: BoolArray = members[np.arange(y.size), y]
    return covered


def _sets_of(forecast: Forecast) -> BoolArray:
    if forecast.sets is None:
        raise UserError("sets: this forecast has none")
    return forecast.sets


_set = Template("classification", "predictive", "classes", needs="sets", only_with="set_coverage")
_describes = Template("classification", "descriptive", "probability", "none", needs="sets")
METRICS: tuple[Metric, ...] = (
    _set("set_size", "mean_i number of classes in the set of row i; read beside set_coverage", _ANGELOPOULOS).by(
        lambda f: mean_set_size(_sets_of(f))
    ),
    _describes("set_coverage", "mean_i [y_i is in the set of row i]", "Vovk, Gammerman and Shafer 2005").by(
        lambda f: set_coverage(_sets_of(f), f.observed)
    ),
    _describes(
        "set_coverage_by_size",
        "lowest coverage among the rows whose sets have the same size, of sizes with at least 20 rows",
        _ANGELOPOULOS,
    ).by(lambda f: size_stratified_coverage(_sets_of(f), f.observed, fewest=20)),
    _describes("set_singletons", "mean_i [the set of row i has exactly one class]", _ANGELOPOULOS).by(
        lambda f: singleton_share(_sets_of(f))
    ),
)
