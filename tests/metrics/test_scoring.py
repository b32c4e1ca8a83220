import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

import bench.metrics
from bench.errors import UserError
from bench.metrics import (
    Forecast,
    MetricError,
    Normal,
    NormalInverseGamma,
    Probabilities,
    TargetScale,
    catalogue,
    gaussian_nll,
    left_out,
    score,
)

SCALE = TargetScale(mean=0.0, std=2.0, minimum=-4.0, maximum=6.0)


def _regression(rng: np.random.Generator, draws: int = 5, **more: Any) -> Forecast:
    return Forecast("regression", rng.normal(size=40), rng.normal(size=(draws, 40)), **more)


def _classification(rng: np.random.Generator, draws: int = 5, classes: int = 7) -> Forecast:
    probabilities, sets = rng.dirichlet(np.ones(classes), size=(draws, 40)), np.tile(np.arange(classes) < 3, (40, 1))
    return Forecast("classification", rng.integers(0, classes, 40), probabilities, sets=sets)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_every_declared_metric_has_a_value_where_its_needs_are_met(
    task: Literal["regression", "classification"], rng: np.random.Generator
) -> None:
    forecast = _regression(rng, noise_variance=0.3, scale=SCALE) if task == "regression" else _classification(rng)
    if task == "regression":
        known = Normal(forecast.draws[:1] + 1, noise_variance=np.full((1, forecast.row_count), 0.5))
        forecast = replace(forecast, law=known, posterior=replace(known, model_variance=known.noise_variance))
    else:
        forecast = replace(forecast, law=Probabilities(forecast.draws[:1]))
    every = {n: m for n, m in catalogue().items() if m.compute is not None and not m.on_request}
    expected = [n for n, m in every.items() if m.task in (task, "any")]
    values = score(forecast)
    assert list(values) == expected
    assert all(isinstance(value, float) and math.isfinite(value) for value in values.values())


def test_with_one_draw_what_needs_a_variance_is_left_out(rng: np.random.Generator) -> None:
    assert set(score(_regression(rng, draws=1))) == {"rmse", "mae", "r2"}
    names = set(score(_classification(rng, draws=1)))
    assert {"accuracy", "ece", "brier", "aurc", "aurc_entropy"} <= names
    assert not {"aurc_variance", "aurc_mutual_information"} & names


def test_noise_alone_makes_one_draw_a_forecast(rng: np.random.Generator) -> None:
    forecast = _regression(rng, draws=1, noise_variance=0.5)
    values = score(forecast)
    assert values["nll"] == pytest.approx(gaussian_nll(forecast.observed, forecast.mean, 0.5))
    assert "nll_mc" not in values
    assert "picp" not in values


def test_one_draw_that_states_its_variance_is_a_forecast(rng: np.random.Generator) -> None:
    stated = rng.gamma(2.0, size=(1, 40))
    forecast = _regression(rng, draws=1, draw_variance=stated)
    values = score(forecast)
    assert {"crps", "picp", "mpiw", "winkler", "aurc_rmse", "quantile_error", "sharpness", "nll_mixture"} <= set(values)
    assert values["mpiw"] == pytest.approx(float(np.mean(6 * np.sqrt(stated))))
    assert not {"nll_mc", "crps_sample", "nll", "crps_noise"} & set(values)


def test_a_variance_that_does_not_exist_leaves_its_metrics_out_with_the_reason(rng: np.random.Generator) -> None:
    ones = np.ones((1, 40))
    heavy = NormalInverseGamma(0 * ones, ones, ones + np.arange(40) - 2e-9, ones)
    forecast = Forecast.of(heavy, rng.normal(size=40))
    values, reasons = score(forecast), left_out(forecast)
    assert {"rmse", "nll_mixture", "wis", "mace"} <= set(values)
    assert not {"crps", "picp", "ence", "dawid_sebastiani"} & set(values)
    assert "variance of 1 of 40 rows does not exist" in reasons["picp"]
    assert reasons["nll"] == "no observation noise was fitted"
    assert not values.keys() & reasons.keys()


def test_the_formula_of_a_metric_names_the_variance_it_uses() -> None:
    symbols = {"s_i^2", "v_i", "v_i + 1/tau", "u_i", "F_i", "q_i(", "aurc_rmse", "nll_mc", "as mace", "x_ti"}
    for name, metric in catalogue().items():
        if metric.task == "regression" and metric.needs & {"draws", "variance", "noise", "distribution", "density"}:
            assert any(symbol in metric.formula for symbol in symbols), name


def test_units_are_separate_metrics(rng: np.random.Generator) -> None:
    values = score(_regression(rng, scale=SCALE))
    assert values["rmse_std"] == pytest.approx(values["rmse"] / 2.0)
    assert values["rmse_minmax"] == pytest.approx(values["rmse"] / 10.0)
    assert values["mae_std"] == pytest.approx(values["mae"] / 2.0)
    assert values["mae_minmax"] == pytest.approx(values["mae"] / 10.0)


def test_nll_mc_uses_the_spread_of_draws_alone(rng: np.random.Generator) -> None:
    draws, y = rng.normal(size=(5, 40)), rng.normal(size=40)
    plain = score(Forecast("regression", y, draws))
    more = score(Forecast("regression", y, draws, draw_variance=np.ones((5, 40)), noise_variance=2.0))
    mean, spread = draws.mean(axis=0), draws.var(axis=0, ddof=1)
    assert more["nll_mc"] == plain["nll_mc"] == pytest.approx(gaussian_nll(y, mean, spread))
    assert more["nll"] == pytest.approx(gaussian_nll(y, mean, spread + 1.0 + 2.0))
    assert more["mpiw"] == pytest.approx(float(np.mean(6 * np.sqrt(spread + 1.0))))


def test_zero_variance_is_infinite_nll_and_no_warning() -> None:
    values = score(Forecast("regression", np.array([1.0, 2.0]), np.full((3, 2), 1.5), noise_variance=0.0, scale=SCALE))
    assert values["nll_mc"] == values["nll"] == math.inf
    assert values["picp"] == 0.0
    assert values["mpiw"] == 0.0
    assert values["crps"] == values["crps_sample"] == 0.5


def test_undefined_values_are_left_out() -> None:
    right = Forecast("classification", np.array([0, 1]), np.array([[[0.9, 0.1], [0.2, 0.8]]]))
    names = set(score(right))
    assert not {"error_auroc", "error_aupr", "error_fpr95", "ause", "accuracy_top5"} & names
    constant = TargetScale(mean=1.0, std=0.0, minimum=1.0, maximum=1.0)
    flat = Forecast("regression", np.ones(3), np.array([[1.0, 2.0, 3.0]]), noise_variance=1.0, scale=constant)
    assert not {"r2", "rmse_std", "rmse_minmax", "msll_rw", "coverage_at_half_std"} & set(score(flat))


def test_only_named_metrics_and_a_hint_for_a_misspelt_one(rng: np.random.Generator) -> None:
    assert list(score(_regression(rng), ["rmse", "crps", "accuracy"])) == ["crps", "rmse"]
    with pytest.raises(UserError, match="unknown metric 'rmsee'; did you mean rmse"):
        score(_regression(rng), ["rmsee"])


def test_targets_are_the_levels_of_the_intervals() -> None:
    metrics = catalogue()
    assert metrics["picp"].target == 0.9973
    assert metrics["picp95"].target == metrics["picp95_noise"].target == 0.95
    assert metrics["msll"].relative_to == "nll_mc"


def test_every_exported_name_exists_and_is_documented() -> None:
    assert bench.metrics.__all__ == sorted(bench.metrics.__all__, key=lambda n: (n[0].islower(), n))
    for name in bench.metrics.__all__:
        assert getattr(bench.metrics, name).__doc__, name


def test_a_metric_that_fails_names_itself(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    forecast = _regression(rng)
    monkeypatch.setitem(forecast.__dict__, "mean", "not an array")
    with pytest.raises(MetricError, match=r"metric 'rmse': .* \(\w+\.py, line \d+\)"):
        score(forecast, ["rmse"])
