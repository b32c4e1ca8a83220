"""Compares predictions, whatever kind they are."""

from dataclasses import fields

import numpy as np

from bench.api import Array, Prediction


def numbers_of(prediction: Prediction) -> list[Array]:
    """Return all arrays that a prediction holds."""
    values = [getattr(prediction, field.name) for field in fields(prediction)]  # type: ignore[arg-type]  # a dataclass
    return [np.asarray(value, dtype=np.float64) for value in values if isinstance(value, np.ndarray)]


def prediction_gap(one: Prediction, other: Prediction) -> float:
    """Return the largest difference of all numbers that two predictions hold; infinite if their shapes differ."""
    pairs = list(zip(numbers_of(one), numbers_of(other), strict=True))
    if any(a.shape != b.shape for a, b in pairs):
        return np.inf
    return max(float(np.abs(_bounded(a) - _bounded(b)).max()) for a, b in pairs)


def _bounded(values: Array) -> Array:
    return np.nan_to_num(values, posinf=1e30, neginf=-1e30)
