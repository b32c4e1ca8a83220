"""Draw at the test rows and score: the probe of every suite that names no other."""

from dataclasses import dataclass, replace

import numpy as np

from bench.api import Array, Split
from bench.metrics import Forecast, fit_noise_variance, score
from bench.probes.base import Finding, Subject
from bench.spec.protocol import TestProbe


def find(subject: Subject) -> Finding:
    """Score the drawn functions by every metric that applies, and the first of them alone where that is asked for."""
    drawn = _drawn(subject)
    if isinstance(drawn, str):
        return Finding(diverged=drawn)
    found = finding_of(subject.split, drawn.forecast(subject))
    metrics, probe = dict(found.metrics), subject.protocol.probe
    # Draw t is the same function whatever T is, so a run of fewer draws would have had the first of these.
    for first in probe.draws if isinstance(probe, TestProbe) else ():
        if first <= len(drawn.test):  # a method may have fewer functions: as many as networks
            fewer = score(drawn.forecast(subject, first))
            metrics |= {f"{name}@T={first}": value for name, value in fewer.items()}
    return replace(found, metrics=metrics)


def finding_of(split: Split, forecast: Forecast) -> Finding:
    """Return the score of a forecast and what its figures are drawn from."""
    return Finding(score(forecast), _curves(split, forecast))


def forecast_of(subject: Subject) -> Forecast | str:
    """Return the forecast at the test rows in original units, or why there is none."""
    drawn = _drawn(subject)
    return drawn if isinstance(drawn, str) else drawn.forecast(subject)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Functions at the test rows and, for the noise of a regression, at the validation rows; in training units."""

    test: Array
    held: Array | None

    def forecast(self, subject: Subject, first: int | None = None) -> Forecast:
        """Return what the draws say, or the first of them."""
        split, data = subject.split, subject.data
        if split.task == "classification":
            return Forecast("classification", split.test_y, self.test[:first])
        means, stated = data.original(self.test[:first])
        noise = None
        if self.held is not None:
            held_means, held_stated = data.original(self.held[:first])
            noise = fit_noise_variance(split.train_y[data.rows.validation.numpy()], held_means, held_stated)
        return Forecast("regression", split.test_y, means, stated, noise, data.scale)


def _drawn(subject: Subject) -> _Drawn | str:
    """Return the draws, or why there is no forecast."""
    data, held = subject.data, subject.data.rows.validation
    watched = subject.split.task == "regression" and len(held) > 0
    drawn = _Drawn(
        subject.draws(data.test_x, "test"), subject.draws(data.rows.x[held], "validation") if watched else None
    )
    if not np.isfinite(drawn.test).all() or (drawn.held is not None and not np.isfinite(drawn.held).all()):
        return "a drawn prediction was not finite"
    return drawn


def _curves(split: Split, forecast: Forecast) -> dict[str, Array]:
    """Return what figures are drawn from; inputs only where they are one number a row and can be an axis."""
    arrays = {"observed": np.asarray(split.test_y), "mean": forecast.mean, "variance": forecast.variance}
    if split.test_x.ndim == 2 and split.test_x.shape[1] == 1:
        arrays["x"] = np.asarray(split.test_x)
    if split.test_truth is not None:
        arrays["truth"] = np.asarray(split.test_truth)
    return arrays
