"""Draw at the test rows and score: the probe of every suite that names no other."""

from dataclasses import dataclass as plain_dataclass
from dataclasses import replace

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from bench.api import Array, ClassPrediction, Prediction, Split
from bench.metrics import Forecast, fit_noise_variance, reasons_without_value, score, score_by_group
from bench.probes._conditions import conditioned
from bench.probes.base import Finding, Probe, TrainedSubject
from bench.spec.protocol import CLOSED, Draws


@dataclass(frozen=True, config=CLOSED)
class Score(Probe):
    """Draw at the test rows and score; also the first so many draws alone, under the conditions `T=...`."""

    kind = "test"
    draws: list[Draws] = Field(default_factory=list)

    def __post_init__(self) -> None:
        if len(set(self.draws)) < len(self.draws):
            raise ValueError("probe.draws: name every number of draws once")

    def measure(self, subject: TrainedSubject) -> Finding:
        """Score the drawn functions by every metric that applies, and the first of them alone as the options say."""
        drawn = _draw(subject)
        finding = finding_of(subject.split, drawn.forecast(subject), subject.requested)
        metrics = dict(finding.metrics)
        # Draw t is the same function whatever T is, so a run of fewer draws would have had the first of these.
        for first in self.draws:
            if first <= drawn.test.draw_count:  # a method may have fewer functions: as many as networks
                fewer = score(drawn.forecast(subject, first), requested=subject.requested)
                metrics |= conditioned(fewer, f"T={first}")
        return replace(finding, metrics=metrics)


def finding_of(split: Split, forecast: Forecast, requested: frozenset[str]) -> Finding:
    """Return the score of a forecast, also within the groups that the split names, and what figures are drawn from."""
    values = score(forecast, requested=requested)
    record = {"draws": forecast.draw_count, "left_out": reasons_without_value(forecast, values, requested)}
    by_group = {} if split.test_groups is None else score_by_group(forecast, split.test_groups, requested)
    return Finding(values | by_group, _curves(split, forecast), record)


def forecast_of(subject: TrainedSubject) -> Forecast:
    """Return the forecast at the test rows in original units."""
    return _draw(subject).forecast(subject)


def held_out_forecast(subject: TrainedSubject) -> Forecast:
    """Return the forecast at the validation rows, with the observation noise that is the best there.

    To choose the options with the best of these is to choose options and noise together, as Gal and Ghahramani (ICML
    2016) do on a grid.
    """
    held = subject.data.rows.validation
    observed = subject.split.train_y[held.numpy()]
    drawn = subject.predict(subject.data.rows.x[held], "held out")
    return Forecast.of(drawn, observed, _noise(observed, drawn), subject.data.scale)


@plain_dataclass(frozen=True, eq=False)
class _Draws:
    """Predictions at the test rows and, for the noise of a regression, at held-out rows; in original units."""

    test: Prediction
    validation: Prediction | None

    def forecast(self, subject: TrainedSubject, first: int | None = None) -> Forecast:
        """Return the forecast of the draws, or of the first of them."""
        split, data = subject.split, subject.data
        noise = None
        if self.validation is not None:
            noise = _noise(split.train_y[data.rows.calibrating.numpy()], self.validation.draws(first))
        return Forecast.of(self.test.draws(first), split.test_y, noise, data.scale, split.test_truth)


def _noise(observed: Array, prediction: Prediction) -> float | None:
    """Return the observation noise that fits best beside the variance that is stated; None where it has none."""
    if isinstance(prediction, ClassPrediction):
        return None
    stated = prediction.variance
    if stated is not None and not np.isfinite(stated).all():
        return None
    return fit_noise_variance(observed, prediction.centre, stated)


def _draw(subject: TrainedSubject) -> _Draws:
    data, held = subject.data, subject.data.rows.calibrating
    test = subject.predict(data.test_x, "test")
    fits_noise = subject.split.task == "regression" and len(held) > 0
    return _Draws(test, subject.predict(data.rows.x[held], "validation") if fits_noise else None)


def _curves(split: Split, forecast: Forecast) -> dict[str, Array]:
    """Return what figures are drawn from; inputs only where they are one number per row and can be an axis."""
    arrays = {"observed": np.asarray(split.test_y), "mean": forecast.mean, "variance": forecast.variance}
    if split.test_x.ndim == 2 and split.test_x.shape[1] == 1:
        arrays["x"] = np.asarray(split.test_x)
    if split.test_truth is not None:
        arrays["truth"] = np.asarray(split.test_truth)
    return arrays
