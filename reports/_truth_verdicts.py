"""Names what is wrong with an uncertainty, from its metrics against the truth (means over seeds)."""

import math
from collections.abc import Mapping

TOLERANCE = 0.01  # nat: a cost below it is not named
ALSO = 0.5  # a second part is named where it costs at least this share of the first
SAME_SIZE = 1.15  # a ratio of standard deviations within this factor is the right size
GAP = 0.02  # of confidence, which is not named below


def verdict(values: Mapping[str, float]) -> str:
    """Return in words which part of the uncertainty is wrong, the costliest first; "right" where none is.

    A mean is named where a shift explains most of its error: any other error of the mean is what a model variance is
    for. Noise stated as model uncertainty, or the reverse, is named where both are wrong and their sum is not.
    """
    if "confidence_gap" in values:
        return _of_classes(values["confidence_gap"])
    noise, model = values.get("noise_cost", math.nan), values.get("model_cost", math.nan)
    noise_ratio, model_ratio = values.get("noise_ratio", math.nan), values.get("model_ratio", math.nan)
    if exchanged(values):
        if noise_ratio < 1:
            return "noise stated as model uncertainty"
        return "model uncertainty stated as noise"
    parts = {
        _fault("noise", noise_ratio): noise,
        _fault("model uncertainty", model_ratio): model,
        f"a mean that is too {'high' if values.get('mean_shift', 0.0) > 0 else 'low'}": _shift_cost(values),
    }
    known = {name: cost for name, cost in parts.items() if cost > TOLERANCE}
    if not known:
        return "right" if not math.isnan(noise) else "–"
    highest = max(known.values())
    named = [name for name, cost in sorted(known.items(), key=lambda item: -item[1]) if cost >= ALSO * highest]
    return " and ".join(named)


def exchanged(values: Mapping[str, float]) -> bool:
    """Whether noise and model variance are wrong in opposite directions, and their sum is nearly right."""
    noise, model = values.get("noise_cost", math.nan), values.get("model_cost", math.nan)
    opposite = (values.get("noise_ratio", 1.0) - 1) * (values.get("model_ratio", math.inf) - 1) < 0
    whole = values.get("variance_cost", math.inf)
    return bool(opposite and min(noise, model) > TOLERANCE and whole < ALSO / 2 * min(noise, model))


def _shift_cost(values: Mapping[str, float]) -> float:
    """Return the cost of a shifted mean; 0 where a shift explains less than half of what the mean costs."""
    cost = 0.5 * math.log1p(values.get("mean_shift", 0.0) ** 2)
    return cost if cost >= ALSO * values.get("mean_cost", math.inf) else 0.0


def _fault(what: str, ratio: float) -> str:
    """Return the fault of a part that costs something, by its ratio to the right size over all rows."""
    if 1 / SAME_SIZE <= ratio <= SAME_SIZE:
        return f"{what} of the right size in the wrong places"
    return f"too {'little' if ratio < 1 else 'much'} {what} (x{ratio:.2g})"


def _of_classes(gap: float) -> str:
    if abs(gap) <= GAP:
        return "right on average"
    return f"too confident by {gap:.2f}" if gap > 0 else f"not confident enough by {-gap:.2f}"
