"""How much noise a prediction withstands."""

import math

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import float_array, probability_array
from bench.metrics.metric import PAPER, Metric, Template


def flip_level(levels: ArrayLike, probabilities: ArrayLike, true: int) -> float:
    """Return the noise level at which the true class stops being the most probable; NaN if it never does.

    `probabilities` is [levels, classes] at ascending levels. The margin is the probability of the true class minus the
    highest of the others; it is interpolated linearly between the last level where it is 0 or more and the next. An
    image that is misclassified at the first level flips there.
    """
    p = probability_array(probabilities)
    at = float_array(levels, "levels", (len(p),))
    if (np.diff(at) <= 0).any():
        raise UserError("levels: expected ascending values")
    if not 0 <= true < p.shape[1]:
        raise UserError(f"true: expected a class from 0 to {p.shape[1] - 1}, got {true}")
    margin = p[:, true] - np.delete(p, true, axis=1).max(axis=1)
    wrong = np.flatnonzero(margin < 0)
    if not len(wrong):
        return math.nan
    first = int(wrong[0])
    if first == 0:
        return float(at[0])
    before, after = margin[first - 1], margin[first]
    return float(at[first - 1] + (at[first] - at[first - 1]) * before / (before - after))


METRICS: tuple[Metric, ...] = (
    Template("classification", "predictive", "input unit", "higher")(
        "flip_level",
        "noise std at which mean p of the true class falls below another, interpolated; none if it never does",
        f"{PAPER}, section V-C",
    ).by_probe(),
)
