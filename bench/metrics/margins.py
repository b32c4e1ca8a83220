"""How large a change must be to matter: a share of the baseline's value, or a number in the metric's own unit.

A share is the natural margin of a positive metric (rmse, latency). A signed one (a log-likelihood, r2) crosses zero,
where a share means nothing, and a metric with a target is judged by its distance to it: both have absolute margins.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bench.errors import UserError, unknown_name
from bench.metrics.metric import Metric


@dataclass(frozen=True)
class Margin:
    """A size in the metric's unit, or as a share of the baseline's mean."""

    size: float
    relative: bool

    def of(self, mean: float) -> float:
        """Return the margin in the metric's unit."""
        return self.size * abs(mean) if self.relative else self.size

    def __str__(self) -> str:
        return f"{100.0 * self.size:g} %" if self.relative else f"{self.size:g}"


# By family: of positive metrics, of signed ones, of those with a target.
DEFAULTS: Mapping[str, tuple[Margin, Margin, Margin]] = {
    "predictive": (Margin(0.005, True), Margin(0.01, False), Margin(0.01, False)),
    "calibration": (Margin(0.05, True), Margin(0.02, False), Margin(0.01, False)),
    "selective": (Margin(0.05, True), Margin(0.02, False), Margin(0.01, False)),
    "detection": (Margin(0.01, True), Margin(0.02, False), Margin(0.01, False)),
    "truth": (Margin(0.05, True), Margin(0.02, False), Margin(0.02, False)),
    "cost": (Margin(0.2, True), Margin(0.02, False), Margin(0.01, False)),
}
DESCRIPTIVE = Margin(0.05, True)  # of values without a better: for the change points of a history, never for the gate


def read_margin(given: float | str, where: str) -> Margin:
    """Return the margin of a suite file: 0.02 in the metric's unit, or "5%" of the baseline's mean."""
    text = str(given).strip()
    number = text.removesuffix("%")
    try:
        size = float(number)
    except ValueError:
        size = math.nan
    if not (math.isfinite(size) and size > 0.0):
        raise UserError(
            f"{where}: {given!r} is not a margin; give a number above 0 in the metric's unit such as 0.02, or a share "
            'of the baseline such as "5%"'
        )
    relative = number != text
    return Margin(size / 100.0 if relative else size, relative)


def margin_of(metric: Metric, given: Mapping[str, Margin]) -> Margin:
    """Return the margin of a metric: the suite's for the metric or for its family, else the default of the family."""
    bare = metric.name.partition("@")[0]  # what comes after it is a condition
    if bare in given:
        return given[bare]
    if not metric.has_better:
        return DESCRIPTIVE
    positive, signed, target = DEFAULTS[metric.family]
    own = target if metric.direction == "target" else signed if metric.signed else positive
    family = given.get(metric.family)
    # A share given for a whole family does not apply to those of its metrics that have no natural zero.
    return family if family is not None and family.relative == own.relative else own


def read_margins(given: Mapping[str, float | str], known: Mapping[str, Metric], where: str) -> dict[str, Margin]:
    """Return the margins of a suite file, by family or metric."""
    margins = {}
    for name, text in given.items():
        if name not in known and name not in DEFAULTS:
            raise unknown_name("metric or family", name, {*known, *DEFAULTS}, where)
        margin = margins[name] = read_margin(text, f"{where}.{name}")
        metric = known.get(name)
        if metric and not metric.has_better:
            raise UserError(f"{where}.{name}: no value of {name} is better than another: it is never gated")
        if metric and margin.relative and (metric.signed or metric.direction == "target"):
            kind = "has a target" if metric.direction == "target" else "may be negative"
            raise UserError(f"{where}.{name}: {name} {kind}: give a margin in its unit such as 0.02, not {text!r}")
    return margins
