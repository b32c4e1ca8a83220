"""Draw at the test rows and score: the probe of every suite that names no other."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass as plain_dataclass
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from bench.api import Array, ClassPrediction, Prediction, RegressionPrediction, Split
from bench.metrics import Forecast, catalogue, fit_noise_variance, reasons_without_value
from bench.metrics.kept import Kept
from bench.metrics.truth import rows_against_law
from bench.probes.base import DivergedError, Finding, Probe, TrainedSubject
from bench.spec.keep import MOMENTS, What
from bench.spec.protocol import CLOSED, Draws

MOST_HELD_OUT = 1000  # rows of a classification at which draws are made for nothing but to be kept


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
        return score_subject(subject, kept_of(subject, self.draws))


def score_subject(subject: TrainedSubject, kept: Kept) -> Finding:
    """Return the scores of the predictions of a trained subject, and what it asks to keep."""
    return finding_of(subject.split, kept, subject.requested, subject.keep.what)


def finding_of(split: Split, kept: Kept, requested: Collection[str] = (), keep: What = "moments") -> Finding:
    """Return the scores of predictions, also within the groups that the split names, and the arrays of figures."""
    values = kept.scores(requested)
    left_out = reasons_without_value(kept.test, values, requested)
    record: dict[str, Any] = {"draws": kept.test.draw_count, "left_out": left_out}
    # Most metrics have their first version, which need not be said.
    if later := {name: m.version for name, m in catalogue().items() if m.version > 1 and m.compute is not None}:
        record["metric_versions"] = later
    arrays = {} if keep == "none" else _curves(split, kept.test)
    return Finding(values, arrays, record, kept=kept if keep == "predictions" else None)


def forecast_of(subject: TrainedSubject) -> Forecast:
    """Return the forecast at the test rows in original units."""
    return kept_of(replace(subject, keep=MOMENTS)).test


def kept_of(subject: TrainedSubject, fewer: Sequence[int] = ()) -> Kept:
    """Return the predictions at the test rows, and at held-out rows where they are kept, in original units.

    `fewer`: also the observation noise that fits the first so many draws alone. Draw t is the same function whatever T
    is, so a run of fewer draws would have had the first of these.
    """
    drawn, data = _draw(subject), subject.data
    test, validation = drawn.forecast(subject), None
    if drawn.validation is not None and subject.keep.what == "predictions":
        observed = subject.split.train_y[drawn.held]
        validation = Forecast.of(drawn.validation, observed, test.noise_variance, data.scale)
    # A method may have fewer functions than draws were wanted: as many as networks.
    few = {first: drawn.noise(subject, first) for first in fewer if first <= drawn.test.draw_count}
    return Kept(test, validation, (data.target_mean, data.target_std), subject.split.test_groups, few)


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
    """Predictions at the test rows and at held-out rows, in original units."""

    test: Prediction
    validation: Prediction | None  # for the noise of a regression, or to be kept
    held: Array  # the held-out rows among the training data

    def forecast(self, subject: TrainedSubject) -> Forecast:
        """Return the forecast of the draws."""
        split = subject.split
        known = (split.test_truth, *_known(split, subject.data.rows.train.numpy(force=True)))
        return Forecast.of(self.test, split.test_y, self.noise(subject), subject.data.scale, *known)

    def noise(self, subject: TrainedSubject, first: int | None = None) -> float | None:
        """Return the observation noise that fits the draws best, or the first of them."""
        if self.validation is None:
            return None
        return _noise(subject.split.train_y[self.held], self.validation.draws(first))


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
    if subject.split.task == "regression":
        return _Draws(test, subject.predict(data.rows.x[held], "validation") if len(held) else None, held.numpy())
    held, validation = held[:MOST_HELD_OUT], None
    if len(held) and subject.keep.what == "predictions":
        with suppress(DivergedError):  # no metric needs them
            validation = subject.predict(data.rows.x[held], "validation")
    return _Draws(test, validation, held.numpy())


def _known(split: Split, train: Array) -> tuple[Prediction | None, RegressionPrediction | None]:
    """Return the law at the test rows and the exact posterior given the training rows, where the dataset has them."""
    if split.law is None:
        return None, None
    exact = split.law.given(split.train_x[train], split.train_y[train])
    posterior = None if exact is None else exact.at(split.test_x)
    return split.law.at(split.test_x), posterior if isinstance(posterior, RegressionPrediction) else None


def _curves(split: Split, forecast: Forecast) -> dict[str, Array]:
    """Return what figures are drawn from; inputs only where they are one number per row and can be an axis."""
    arrays = {"observed": np.asarray(split.test_y), "mean": forecast.mean, "variance": forecast.variance}
    if split.test_x.ndim == 2 and split.test_x.shape[1] == 1:
        arrays["x"] = np.asarray(split.test_x)
    if split.test_truth is not None:
        arrays["truth"] = np.asarray(split.test_truth)
    if forecast.task == "regression" and forecast.noise_variance is not None:
        arrays["noise"] = np.array([forecast.noise_variance])
    return arrays | (rows_against_law(forecast) if forecast.law is not None else {})
