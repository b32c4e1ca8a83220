"""Draw at the test rows and score: the probe of every suite that names no other."""

import numpy as np

from bench.api import Array, Split
from bench.metrics import Forecast, fit_noise_variance, score
from bench.probes.subject import Finding, Subject


def find(subject: Subject) -> Finding:
    """Score the drawn functions by every metric that applies."""
    forecast = forecast_of(subject)
    if isinstance(forecast, str):
        return Finding(diverged=forecast)
    return finding_of(subject.split, forecast)


def finding_of(split: Split, forecast: Forecast) -> Finding:
    """Return the score of a forecast and what its figures are drawn from."""
    return Finding(score(forecast), _curves(split, forecast))


def forecast_of(subject: Subject) -> Forecast | str:
    """Return the forecast at the test rows in original units, or why there is none."""
    split, data = subject.split, subject.data
    draws = subject.draws(data.test_x, "test")
    held = data.rows.validation
    watched = split.task == "regression" and len(held) > 0
    held_draws = subject.draws(data.rows.x[held], "validation") if watched else None
    if not np.isfinite(draws).all() or (held_draws is not None and not np.isfinite(held_draws).all()):
        return "a drawn prediction was not finite"
    if split.task == "classification":
        return Forecast("classification", split.test_y, draws)
    means, stated = data.original(draws)
    noise = None
    if held_draws is not None:
        held_means, held_stated = data.original(held_draws)
        noise = fit_noise_variance(split.train_y[held.numpy()], held_means, held_stated)
    return Forecast("regression", split.test_y, means, stated, noise, data.scale)


def _curves(split: Split, forecast: Forecast) -> dict[str, Array]:
    """Return what figures are drawn from; inputs only where they are one number a row and can be an axis."""
    arrays = {"observed": np.asarray(split.test_y), "mean": forecast.mean, "variance": forecast.variance}
    if split.test_x.ndim == 2 and split.test_x.shape[1] == 1:
        arrays["x"] = np.asarray(split.test_x)
    if split.test_truth is not None:
        arrays["truth"] = np.asarray(split.test_truth)
    return arrays
