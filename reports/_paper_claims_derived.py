"""Quantities of claims that are no metrics: computed from the arrays that cells keep."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.api import CellSpec, Curves, Results, risk_coverage_curve, sort_by_score
from bench.reports._paper_claims_held import Claim, Derive

Values = Mapping[str, float]
NONE: Values = {}


def _distance_to_truth(results: Results, key: str, spec: CellSpec, claim: Claim) -> Values:
    """Root mean squared distance of the predicted mean to the noise-free function."""
    curves = results.curves(key)
    if curves is None or curves.truth is None:
        return NONE
    return {"": float(np.sqrt(np.mean(np.square(curves.mean - curves.truth))))}


def _risk(results: Results, key: str, spec: CellSpec, claim: Claim) -> Values:
    """Risk of the half of the rows that has the lowest predicted variance, and of all rows."""
    curves = results.curves(key)
    risk = None if curves is None else risks(curves)
    if risk is None:
        return NONE
    half, whole = claim["conditions"]
    return {half: float(risk[(len(risk) + 1) // 2 - 1]), whole: float(risk[-1])}


def risks(curves: Curves) -> Any:
    """Return the selective risk of the k rows of lowest predicted variance, k = 1..N; None where there is no variance.

    Of classes, the variances of their probabilities are summed (section V-B of the paper sorts by predicted variance).
    """
    if not np.isfinite(curves.variance).all():
        return None
    if curves.mean.ndim == 2:
        loss = (curves.mean.argmax(axis=1) != curves.observed).astype(float)
        return risk_coverage_curve(sort_by_score(curves.variance.sum(axis=1), loss)).risk
    return risk_coverage_curve(sort_by_score(curves.variance, np.square(curves.mean - curves.observed)), root=True).risk


def _softmax(results: Results, key: str) -> Any:
    """Return the outputs of the true class and of its rival `[levels, draws, 2]`; None where none are stored."""
    found = results.arrays(key).get("softmax")
    return None if found is None or np.ndim(found) != 3 else np.asarray(found, dtype=float)


def _dispersion(results: Results, key: str, spec: CellSpec, claim: Claim) -> Values:
    """Standard deviation over draws of the true class: mean over levels, or at the lowest and the highest."""
    softmax = _softmax(results, key)
    if softmax is None or softmax.shape[1] < 2:
        return NONE
    spread = softmax[:, :, 0].std(axis=1, ddof=1)
    if "conditions" not in claim:
        return {"": float(spread.mean())}
    least, most = claim["conditions"]
    return {least: float(spread[0]), most: float(spread[-1])}


def _first_wrong_level(results: Results, key: str, spec: CellSpec, claim: Claim) -> Values:
    """Lowest noise level at which the rival's mean output is above that of the true class; infinite: at none."""
    softmax = _softmax(results, key)
    if softmax is None:
        return NONE
    mean = softmax.mean(axis=1)
    wrong = np.flatnonzero(mean[:, 1] > mean[:, 0])
    return {"": float(results.arrays(key)["levels"][wrong[0]]) if len(wrong) else math.inf}


def _becomes_class(results: Results, key: str, spec: CellSpec, claim: Claim) -> Values:
    """1 where the image is taken for the claim's class once it is misclassified, 0 for another; NaN: it never is."""
    flip, classes = _first_wrong_level(results, key, spec, claim), results.arrays(key).get("classes")
    if not flip or classes is None:
        return NONE
    return {"": math.nan if math.isinf(flip[""]) else float(classes[1] == claim["class"])}


def _noise_levels(results: Results, key: str, spec: CellSpec, claim: Claim) -> Values:
    """Mean size of the noise levels that were learned without a penalty, and the value they started from."""
    front = "inspect/"
    found = [np.abs(np.ravel(array)) for name, array in results.arrays(key).items() if name.startswith(front)]
    start = spec.method.options.get("alpha")
    if not found or not isinstance(start, int | float) or spec.method.options.get("penalty"):
        return NONE
    learned, first = claim["conditions"]
    return {learned: float(np.concatenate(found).mean()), first: float(start)}


DERIVED: Mapping[str, Derive] = {
    "truth": _distance_to_truth,
    "risk": _risk,
    "dispersion": _dispersion,
    "flip": _first_wrong_level,
    "class": _becomes_class,
    "levels": _noise_levels,
}
