"""Scores of quantiles against scikit-learn, scoringrules and uncertainty-toolbox."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import (
    Forecast,
    Mixture,
    Normal,
    central_values,
    interval_score,
    miscalibration_area,
    pinball_loss,
    pit_values,
    quantile_calibration_error,
    root_mean_squared_quantile_error,
    score,
    weighted_interval_score,
)
from bench.metrics.mixture import LEVELS


def _quantiles(rng: np.random.Generator, rows: int = 50) -> tuple[Any, Any]:
    return rng.normal(size=rows), np.sort(rng.normal(size=(LEVELS.size, rows)), axis=0)


def test_pinball_equals_scikit_learn(oracle: Callable[[str], Any], rng: np.random.Generator) -> None:
    y, q = _quantiles(rng)
    theirs = [
        oracle("sklearn.metrics").mean_pinball_loss(y, row, alpha=level) for row, level in zip(q, LEVELS, strict=True)
    ]
    assert pinball_loss(y, q, LEVELS) == pytest.approx(np.mean(theirs), rel=1e-12)


def test_interval_scores_equal_scoringrules(oracle: Callable[[str], Any], rng: np.random.Generator) -> None:
    y, q = _quantiles(rng)
    rules = oracle("scoringrules")
    assert interval_score(y, q[1], q[-2], 0.95) == pytest.approx(rules.interval_score(y, q[1], q[-2], 0.05).mean())
    half = LEVELS.size // 2
    # Their weighted score (0.10) adds the median where the definition has its distance to y, so only its parts serve.
    alpha = 2 * LEVELS[:half]
    intervals = sum(alpha[k] / 2 * rules.interval_score(y, q[k], q[-1 - k], alpha[k]) for k in range(half))
    theirs = (np.abs(y - q[half]) / 2 + intervals) / (half + 0.5)
    assert weighted_interval_score(y, q, LEVELS) == pytest.approx(theirs.mean(), rel=1e-12)


def test_calibration_errors_equal_uncertainty_toolbox(oracle: Callable[[str], Any], rng: np.random.Generator) -> None:
    m, s = rng.normal(size=500), rng.gamma(2.0, size=500)
    y = rng.normal(m + 0.3, 0.7 * s)
    toolbox, pit = oracle("uncertainty_toolbox.metrics_calibration"), pit_values(y, m, s**2)
    for kind, values in (("quantile", pit), ("interval", central_values(pit))):
        for ours, theirs in (
            (quantile_calibration_error, toolbox.mean_absolute_calibration_error),
            (root_mean_squared_quantile_error, toolbox.root_mean_squared_calibration_error),
            (miscalibration_area, toolbox.miscalibration_area),
        ):
            assert ours(values) == pytest.approx(theirs(m, s, y, vectorized=True, prop_type=kind), abs=1e-9), kind


def test_metrics_of_one_normal_are_those_of_its_own_quantiles(
    oracle: Callable[[str], Any], rng: np.random.Generator
) -> None:
    m, v, y = rng.normal(size=60), rng.gamma(2.0, size=60), rng.normal(size=60)
    values = score(Forecast("regression", y, m[None], v[None]))
    q = oracle("scipy.stats").norm(m, np.sqrt(v)).ppf(LEVELS[:, None])
    assert values["wis"] == pytest.approx(weighted_interval_score(y, q, LEVELS), rel=1e-9)
    assert values["pinball"] == pytest.approx(pinball_loss(y, q[3:20:2], np.arange(1, 10) / 10), rel=1e-9)
    assert values["interval_score95"] == pytest.approx(values["winkler95"], rel=1e-9)
    assert values["coverage95"] == values["picp95"]
    assert values["width95"] == pytest.approx(values["mpiw95"], rel=1e-9)
    assert values["crps_mixture"] == pytest.approx(values["crps"], rel=1e-9)
    assert values["mace"] == pytest.approx(values["quantile_error"], abs=1e-9)
    assert values["nll_mixture"] == pytest.approx(-oracle("scipy.stats").norm(m, np.sqrt(v)).logpdf(y).mean())


def test_pinball_over_all_levels_is_half_the_crps(rng: np.random.Generator) -> None:
    shape = (4, 6)
    one = Mixture(Normal(rng.normal(size=shape), noise_variance=rng.gamma(2.0, size=shape)))
    y, levels = rng.normal(size=6), (np.arange(4000) + 0.5) / 4000
    assert 2 * pinball_loss(y, one.quantile(levels), levels) == pytest.approx(one.crps(y).mean(), rel=1e-3)


def test_infinite_bounds_cover_everything_at_an_infinite_price() -> None:
    assert interval_score([0.0], [-np.inf], [np.inf], 0.9) == np.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pinball_loss([0.0], [[1.0], [0.0]], [0.1, 0.9]), "they cross"),
        (lambda: pinball_loss([0.0], [[1.0]], [1.0]), "strictly between 0 and 1"),
        (lambda: weighted_interval_score([0.0], [[0.0], [1.0]], [0.1, 0.9]), "the median and pairs"),
        (lambda: interval_score([0.0], [0.0], [1.0], 1.0), "coverage level"),
    ],
)
def test_mistakes_are_told_in_one_line(make: Callable[[], object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make()
