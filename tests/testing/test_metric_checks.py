"""Every check of a metric finds its fault and no other, and every built-in metric passes all of them."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench.metrics import Forecast, Metric
from bench.metrics.discovery import BUILT_IN
from bench.testing import metric_checks, run_check, verify
from bench.testing.metric_checks import MetricSubject


def metric(compute: Callable[[Forecast], Any], **changes: Any) -> Metric:
    fields: dict[str, Any] = {
        **{"name": "own_metric", "task": "regression", "family": "predictive", "direction": "lower", "target": None},
        **{"unit": "1", "needs": frozenset(), "formula": "mean_i |m_i - y_i|", "source": "test", "compute": compute},
    }
    return Metric(**{**fields, **changes})


def error(forecast: Forecast) -> float:
    return float(np.abs(forecast.mean - forecast.observed).mean())


_calls = itertools.count()


def changing(forecast: Forecast) -> float:
    value = error(forecast)
    forecast.draws[0, 0] += 1e-3
    forecast.draws[0, 0] -= 2e-3
    return value


def sloppy(forecast: Forecast) -> float:
    """Add the first error once more."""
    return error(forecast) + float(abs(forecast.mean[0] - forecast.observed[0]))


def drawn(forecast: Forecast) -> float:
    np.random.random()  # noqa: NPY002  # the mistake
    return error(forecast)


BROKEN = {
    "declaration": metric(error, formula="?"),
    "direction": metric(error, direction="higher"),
    "finite": metric(lambda f: error(f) if f.row_count < 10 or f.noise_variance != 0.5 else float("nan")),
    "needs": metric(lambda f: error(f) * (1.0 + f.noise_variance)),  # type: ignore[operator]
    "unusual": metric(lambda f: error(f) if f.row_count > 1 else error(f) / [0.0][f.row_count]),
    "pure": metric(lambda f: error(f) + 1e-6 * next(_calls)),
    "row-order": metric(sloppy),
    "global-randomness": metric(drawn),
}


@pytest.mark.parametrize("name", BROKEN)
def test_every_check_finds_its_fault_and_no_other(name: str) -> None:
    failed = [verdict.check for verdict in verify(BROKEN[name]) if verdict.state == "failed"]
    # A value that changes from call to call also differs with the order of rows.
    assert failed == ([name, "row-order"] if name == "pure" else [name])


def test_there_is_a_broken_metric_for_every_check() -> None:
    assert set(BROKEN) == {check.name for check in metric_checks()}


def test_a_metric_that_writes_into_its_forecast_is_found() -> None:
    (pure,) = (check for check in metric_checks() if check.name == "pure")
    with pytest.raises(AssertionError, match="changed the forecast"):
        pure.function(MetricSubject(metric(changing)))


@pytest.mark.parametrize("own", BUILT_IN, ids=lambda own: own.name)
def test_a_built_in_metric_conforms(own: Metric) -> None:
    assert [str(verdict) for verdict in verify(own) if verdict.state == "failed"] == []
    run_check(next(metric_checks()), own)
