"""Test rows of a table that are not like the training rows: how quality falls, and whether the uncertainty rises.

The networks of a cell are trained once and evaluated at the clean test rows and at shifted ones; targets stay as they
are. The same shifted rows and the same drawn functions serve all methods of a seed. Severities 1 to 5:

- `noise`: Gaussian noise on every feature, of 0.1, 0.25, 0.5, 1 or 2 standard deviations of its training values;
- `offset`: every feature moved by 0.1, 0.25, 0.5, 1 or 2 standard deviations, up or down at random for all rows alike;
- `missing`: 10, 20, 30, 50 or 70 % of the entries replaced by the mean of the feature's training values;
- `extrapolation`: only the 80, 60, 40, 20 or 10 % of the test rows that are farthest from the training mean, by the
  Euclidean distance in standardised features. These rows are not changed, so their targets are right.

Conditions of the stored metrics are those of the probe `shift`: `all:0` for the clean rows, `SHIFT:SEVERITY`, and
`all:SEVERITY` for the mean over the shifts.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from bench.api import Array, Split
from bench.errors import UserError, unknown_name
from bench.metrics import Forecast, detection_scores, entropy, score
from bench.probes._conditions import ALL, conditioned, means
from bench.probes.base import DivergedError, Finding, Probe, TrainedSubject
from bench.probes.score import forecast_of, kept_of, score_subject
from bench.spec.protocol import CLOSED

SIZES = {
    "noise": (0.1, 0.25, 0.5, 1.0, 2.0),
    "offset": (0.1, 0.25, 0.5, 1.0, 2.0),
    "missing": (0.1, 0.2, 0.3, 0.5, 0.7),
    "extrapolation": (0.8, 0.6, 0.4, 0.2, 0.1),
}
FEWEST = 2  # rows of an extrapolation
Severity = Annotated[int, Field(ge=1, le=5, strict=True)]


@dataclass(frozen=True, config=CLOSED)
class RowShift(Probe):
    """Score at the clean test rows of a table and under every shift at every severity."""

    kind = "row-shift"
    shifts: list[str] = Field(default_factory=lambda: list(SIZES))
    severities: list[Severity] = Field(default_factory=lambda: [1, 2, 3, 4, 5])

    def __post_init__(self) -> None:
        for name in self.shifts:
            if name not in SIZES:
                raise ValueError(str(unknown_name("shift", name, SIZES, "probe.shifts")))
        for key in ("shifts", "severities"):
            named = getattr(self, key)
            if not named or len(set(named)) < len(named):
                raise ValueError(f"probe.{key}: name at least one, and every one once")

    def check(self, split: Split) -> None:
        """Refuse data that are not rows of a table."""
        if split.test_x.ndim != 2:
            shape = split.test_x.shape[1:]
            raise UserError(f"probe 'row-shift' is for rows of a table, not for inputs of shape {shape}; see 'shift'")

    def rows_drawn(self, test_rows: int) -> int:
        """Return the rows of all conditions."""
        return test_rows * (1 + len(self.shifts) * len(self.severities))

    def measure(self, subject: TrainedSubject) -> Finding:
        """Score the drawn functions under every condition."""
        kept = kept_of(subject)
        clean, finding = kept.test, score_subject(subject, kept)
        metrics = dict(finding.metrics) | conditioned(finding.metrics, f"{ALL}:0")
        for severity in self.severities:
            by_shift = []
            for shift in self.shifts:
                split = shifted_rows(subject.split, shift, severity, subject.seed)
                data = replace(subject.data, test_x=subject.data.inputs(split.test_x))
                try:
                    other = forecast_of(replace(subject, split=split, data=data))
                except DivergedError as error:
                    raise DivergedError(f"{error} under {shift} of severity {severity}") from None
                values = score(other, requested=subject.requested) | dict(_detection(clean, other))
                metrics |= conditioned(values, f"{shift}:{severity}")
                by_shift.append(values)
            metrics |= conditioned(means(by_shift), f"{ALL}:{severity}")
        return replace(finding, metrics=metrics)


def shifted_rows(split: Split, shift: str, severity: int, seed: int) -> Split:
    """Return the split with shifted test rows; the same for the same seed."""
    size, x = SIZES[shift][severity - 1], np.asarray(split.test_x, dtype=np.float64)
    mean, std = (np.nanmean, np.nanstd) if split.gaps else (np.mean, np.std)  # a missing value stays missing
    centre, spread = mean(split.train_x, axis=0), std(split.train_x, axis=0)
    # One generator for all severities: a greater severity is more of the same noise.
    random = np.random.default_rng([seed, list(SIZES).index(shift)])
    if shift == "extrapolation":
        return _at(split, _farthest(x, centre, spread, math.ceil(size * len(x))))
    if shift == "noise":
        x = x + size * spread * random.normal(size=x.shape)
    elif shift == "offset":
        x = x + size * spread * random.choice([-1.0, 1.0], size=x.shape[1])
    else:
        x = np.where(random.random(x.shape) < size, centre, x)
    return replace(split, test_x=x.astype(split.test_x.dtype), test_truth=None, law=None)


def _farthest(x: Array, centre: Array, spread: Array, count: int) -> Array:
    """Return the rows that are farthest from the centre, in their own order.

    Constant features and missing values do not count.
    """
    distance = np.nansum(np.square((x - centre) / np.where(spread > 0, spread, np.inf)), axis=1)
    order = np.argsort(distance, kind="stable")
    return np.sort(order[-max(count, FEWEST) :])


def _at(split: Split, rows: Array) -> Split:
    truth = None if split.test_truth is None else split.test_truth[rows]
    return replace(split, test_x=split.test_x[rows], test_y=split.test_y[rows], test_truth=truth, test_groups=None)


def _detection(own: Forecast, other: Forecast) -> Iterator[tuple[str, float]]:
    """Yield how well the uncertainty separates shifted rows (the positives) from the clean test rows."""
    if own.task == "classification":
        yield from detection_scores(entropy(own.mean), entropy(other.mean)).items()
    elif not np.isnan(own.variance).any():
        yield from detection_scores(own.variance, other.variance, by="_variance").items()
