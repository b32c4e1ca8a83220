"""Invariants of every declared metric, whichever it is: order of rows, bounds, units, monotonicity."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bench.metrics import (
    Forecast,
    TargetScale,
    area_under_generalised_risk,
    area_under_risk_coverage,
    auroc,
    catalogue,
    crps_fair,
    crps_gaussian,
    excess_area_under_risk_coverage,
    expected_calibration_error,
    gaussian_nll,
    maximum_calibration_error,
    risk_coverage_curve,
    score,
    sort_by_score,
)

# The load of the machine decides how long an example takes, not the code under test.
PATIENT = settings(deadline=None, max_examples=60)
SEEDS = st.integers(0, 2**32 - 1)
PROBABILITY_METRICS = [name for name, metric in catalogue().items() if metric.unit == "probability"]


def _regression(seed: int, rows: int, draws: int, tied: bool) -> Forecast:
    rng = np.random.default_rng(seed)
    values = rng.normal(3, 2, (draws, rows)) * rng.gamma(1.0, size=rows)
    observed = values.mean(axis=0) + rng.normal(size=rows)
    if tied:
        values, observed = np.round(values), np.round(observed)
    scale = TargetScale(mean=3.0, std=2.5, minimum=-5.0, maximum=11.0)
    return Forecast("regression", observed, values, noise_variance=float(rng.gamma(1.0)), scale=scale)


def _classification(seed: int, rows: int, draws: int, tied: bool) -> Forecast:
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(2, 9))
    probabilities = rng.dirichlet(np.full(classes, 0.5), size=(draws, rows))
    if tied:
        # Only rows out of few different ones: most uncertainties are then shared by several rows.
        probabilities = probabilities[:, rng.integers(0, min(3, rows), rows)]
    return Forecast("classification", rng.integers(0, classes, rows), probabilities)


def _forecasts(tied: st.SearchStrategy[bool]) -> st.SearchStrategy[Forecast]:
    return st.builds(
        lambda make, **size: make(**size),
        st.sampled_from([_regression, _classification]),
        seed=SEEDS,
        rows=st.integers(1, 60),
        draws=st.integers(1, 6),
        tied=tied,
    )


FORECASTS = _forecasts(st.booleans())


def _close(a: dict[str, float], b: dict[str, float]) -> None:
    assert a.keys() == b.keys()
    for name, value in a.items():
        # A quantile at the end of a plateau moves by more than the rounding of the plateau's height.
        rel = 1e-6 if catalogue()[name].needs == {"distribution"} else 1e-9
        assert b[name] == pytest.approx(value, rel=rel, abs=1e-11), name


@PATIENT
@given(forecast=FORECASTS, seed=SEEDS)
def test_the_order_of_rows_does_not_matter(forecast: Forecast, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(forecast.row_count)
    shuffled = replace(forecast, observed=forecast.observed[order], draws=forecast.draws[:, order])
    _close(score(forecast), score(shuffled))


# Summed in another order, two equal variances may come to differ in the last bit: what is a tie depends on that.
@PATIENT
@given(forecast=_forecasts(st.just(False)), seed=SEEDS)
def test_the_order_of_draws_does_not_matter(forecast: Forecast, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(forecast.draw_count)
    _close(score(forecast), score(replace(forecast, draws=forecast.draws[order])))


@PATIENT
@given(forecast=FORECASTS)
def test_doubling_every_row_changes_only_what_depends_on_the_number_of_rows(forecast: Forecast) -> None:
    # Means over rows keep their value; curves over k = 1..N and bins of equal counts are finer with 2N rows, and twice
    # the rows have half the bias.
    twice = replace(
        forecast,
        observed=np.tile(forecast.observed, 2),
        draws=np.tile(forecast.draws, (1, 2) + (1,) * (forecast.draws.ndim - 2)),
    )
    families = {name: metric.family for name, metric in catalogue().items()}
    kept = [
        n for n in score(forecast) if families[n] != "selective" and n not in ("ece_adaptive", "ece_debiased", "ence")
    ]
    _close(score(forecast, kept), score(twice, kept))


@PATIENT
@given(forecast=FORECASTS)
def test_values_stay_within_bounds(forecast: Forecast) -> None:
    values = score(forecast)
    for name in PROBABILITY_METRICS:
        if name in values:
            assert -1e-12 <= values[name] <= 1 + 1e-9, name
    signed = {name for name, metric in catalogue().items() if metric.signed} | {"crps_sample"}
    assert all(value >= 0 for name, value in values.items() if name not in signed)
    assert all(value <= catalogue()[name].value_range[1] + 1e-9 for name, value in values.items())
    if "mce" in values:
        assert values["ece"] <= values["mce"] + 1e-12
        assert values["ece_adaptive"] >= abs(values["accuracy"] - forecast.confidence.mean()) - 1e-12
        assert values["ece"] >= abs(values["accuracy"] - forecast.confidence.mean()) - 1e-12
        assert values["accuracy_top5"] >= values["accuracy"] if "accuracy_top5" in values else True
    if "rmse" in values:
        assert values["mae"] <= values["rmse"] * (1 + 1e-12)


@PATIENT
@given(seed=SEEDS, factor=st.floats(1e-3, 1e3), offset=st.floats(-100, 100), tied=st.booleans())
def test_a_change_of_unit_changes_each_metric_as_its_unit_says(
    seed: int, factor: float, offset: float, tied: bool
) -> None:
    forecast = _regression(seed, rows=30, draws=4, tied=tied)
    assert forecast.scale is not None
    assert forecast.noise_variance is not None
    scale = forecast.scale
    changed = Forecast(
        "regression",
        forecast.observed * factor + offset,
        forecast.draws * factor + offset,
        noise_variance=forecast.noise_variance * factor**2,
        scale=TargetScale(
            scale.mean * factor + offset,
            scale.std * factor,
            scale.minimum * factor + offset,
            scale.maximum * factor + offset,
        ),
    )
    by_unit = {"target unit": factor, "target unit^2": factor**2}
    # Rounding in the new unit may merge or split ties, move a row over an interval's bound, or make 0 variance 1e-30.
    fragile = {"nll_mc", "picp", "picp95", "picp95_noise", "coverage95", "coverage_at_half_std", "quantile_error"}
    fragile |= {"quantile_error_noise", "mace", "mace_central", "rmsce", "miscalibration_area", "ence"}
    fragile = fragile if tied else set()
    before, after = score(forecast), score(changed)
    for name, value in before.items():
        metric = catalogue()[name]
        if name in fragile or (tied and metric.family == "selective"):
            continue
        expected = value * by_unit.get(metric.unit, 1.0)
        if metric.unit == "nat" and name != "msll_rw":
            expected = value + math.log(factor) * (2 if name == "dawid_sebastiani" else 1)
        assert after[name] == pytest.approx(expected, rel=1e-5, abs=1e-5 * max(1.0, factor)), name


@PATIENT
@given(seed=SEEDS)
def test_selective_values_depend_only_on_the_order_of_uncertainty(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, losses = rng.integers(0, 8, 40).astype(float), rng.gamma(1.0, size=40)
    np.testing.assert_allclose(sort_by_score(np.exp(scores) - 5, losses), sort_by_score(scores, losses), rtol=1e-12)
    below, above = rng.integers(0, 8, 20).astype(float), rng.integers(2, 10, 20).astype(float)
    assert auroc(np.exp(below), np.exp(above)) == auroc(below, above)
    assert auroc(below, above) + auroc(above, below) == pytest.approx(1.0, abs=1e-15)


@PATIENT
@given(seed=SEEDS)
def test_no_order_beats_the_true_one_and_none_is_worse_than_its_reverse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    losses, scores = rng.gamma(0.5, size=30), rng.normal(size=30)
    best, worst = sort_by_score(losses, losses), sort_by_score(-losses, losses)
    for measure in (area_under_risk_coverage, area_under_generalised_risk):
        assert measure(best) <= measure(sort_by_score(scores, losses)) + 1e-12
        assert measure(sort_by_score(scores, losses)) <= measure(worst) + 1e-12
    assert excess_area_under_risk_coverage(sort_by_score(scores, losses), losses) >= 0
    risk = risk_coverage_curve(best).risk
    assert (np.diff(risk) >= -1e-12).all()


@PATIENT
@given(seed=SEEDS, worse=st.floats(1.01, 10))
def test_larger_errors_never_improve_a_score(seed: int, worse: float) -> None:
    rng = np.random.default_rng(seed)
    mean, variance, residual = rng.normal(size=20), rng.gamma(1.0, size=20) + 0.01, rng.normal(size=20)
    near, far = mean + residual, mean + worse * residual
    assert gaussian_nll(near, mean, variance) <= gaussian_nll(far, mean, variance)
    assert crps_gaussian(near, mean, variance) <= crps_gaussian(far, mean, variance) + 1e-12
    draws = mean + np.sqrt(variance) * np.array([[-1.0], [0.0], [1.0]])
    assert crps_fair(near, draws) <= crps_fair(far, draws) + 1e-12


@PATIENT
@given(confidence=st.lists(st.floats(0, 1), min_size=1, max_size=50), bins=st.integers(1, 40), data=st.data())
def test_calibration_errors_equal_a_plain_loop(confidence: list[float], bins: int, data: Any) -> None:
    correct = data.draw(st.lists(st.booleans(), min_size=len(confidence), max_size=len(confidence)))
    edges: NDArray[np.float64] = np.linspace(0, 1, bins + 1)
    groups: dict[int, list[int]] = {}
    for row, value in enumerate(confidence):
        groups.setdefault(max(b for b in range(bins + 1) if edges[b] <= value), []).append(row)
    gaps = {
        b: abs(np.mean([confidence[r] for r in rows]) - np.mean([correct[r] for r in rows]))
        for b, rows in groups.items()
    }
    expected = sum(gap * len(groups[b]) / len(confidence) for b, gap in gaps.items())
    assert expected_calibration_error(confidence, correct, bins) == pytest.approx(expected, abs=1e-12)
    assert maximum_calibration_error(confidence, correct, bins) == pytest.approx(max(gaps.values()), abs=1e-12)
