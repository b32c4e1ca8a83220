"""Conformal methods have the coverage that theory promises, over simulated exchangeable rows."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bench.api import Array, HeldOut, Normal, Points, Prediction, Probabilities, Quantiles, Sets, UserError, Wrapper
from bench.methods import _conformal as conformal
from bench.methods.adaptive_sets import AdaptiveSets
from bench.methods.conformalised_quantile_regression import ConformalisedQuantileRegression
from bench.methods.cv_plus import CVPlus
from bench.methods.split_conformal import SplitConformal

COVERAGES = (0.5, 0.8, 0.9)
ROWS = 19  # the ranks of these coverages among 20 are whole numbers: coverage is exact
SETS = 2000  # simulated data sets
ALARM = 1e-4  # probability of a false alarm; the seeds are fixed

Sample = tuple[Prediction, Array]  # of rows: what a fixed, imperfect model says, and what is observed


def _points(rows: int, random: np.random.Generator) -> Sample:
    x = random.normal(size=rows)
    return Points(np.stack([0.9 * x, 1.1 * x + 0.2])), x + (0.3 + np.abs(x)) * random.standard_t(4, size=rows)


def _normals(rows: int, random: np.random.Generator) -> Sample:
    points, observed = _points(rows, random)
    assert isinstance(points, Points)
    return Normal(points.values, noise_variance=0.1 + np.square(points.values)), observed


def _one_normal(rows: int, random: np.random.Generator) -> Sample:
    normals, observed = _normals(rows, random)
    assert isinstance(normals, Normal)
    return normals.draws(1), observed


def _quantiles(rows: int, random: np.random.Generator) -> Sample:
    points, observed = _points(rows, random)
    assert isinstance(points, Points)
    values = points.values[:1]
    low, high = values - 0.2, values + 0.1 + np.abs(values)
    return Quantiles(np.array([0.1, 0.9]), np.stack([low, high], axis=-1)), observed


def _labels(rows: int, random: np.random.Generator) -> Sample:
    probabilities = random.dirichlet(np.full(5, 0.7), size=rows)
    labels = (random.random((rows, 1)) > np.cumsum(probabilities, axis=1)).sum(1).clip(max=4)
    wrong = 0.8 * probabilities + 0.2 / 5  # the model is less sure than it should be
    return Probabilities(wrong[None]), labels


def _covers(prediction: Prediction, observed: Array) -> Array:
    """Return which coverages of the prediction have the observed value, [rows, coverages]."""
    if isinstance(prediction, Sets):
        return prediction.members[np.arange(len(observed)), observed][:, None]
    assert isinstance(prediction, Quantiles)
    count = len(prediction.levels) // 2
    low, high = prediction.values[0, :, :count][:, ::-1], prediction.values[0, :, count + 1 :]
    return (low <= observed[:, None]) & (observed[:, None] <= high)


Simulate = Callable[[int, np.random.Generator], Sample]
SPLIT: list[tuple[str, Wrapper, Simulate, tuple[float, ...]]] = [
    ("absolute", SplitConformal(coverages=COVERAGES), _points, COVERAGES),
    ("scaled by draws", SplitConformal(coverages=COVERAGES, scaled=True), _points, COVERAGES),
    ("scaled as stated", SplitConformal(coverages=COVERAGES, scaled=True), _normals, COVERAGES),
    ("quantiles of one draw", ConformalisedQuantileRegression(coverages=(0.8,)), _quantiles, (0.8,)),
    ("quantiles of a normal", ConformalisedQuantileRegression(coverages=(0.9,)), _one_normal, (0.9,)),
    ("adaptive sets", AdaptiveSets(coverage=0.8), _labels, (0.8,)),
    ("regularised sets", AdaptiveSets(coverage=0.8, penalty=0.2, free=2), _labels, (0.8,)),
]


def _covered(wrapper: Wrapper, simulate: Simulate, rows: int, sets: int, test_rows: int) -> Array:
    """Return which test rows of each simulated data set are covered, [sets, test_rows, coverages]."""
    random, own = np.random.default_rng(3), np.random.default_rng(4)
    states = [wrapper.calibrate([HeldOut(*simulate(rows, random))], own) for _ in range(sets)]
    # One prediction for all data sets: each row has the radii or the threshold of its own.
    name = "threshold" if isinstance(wrapper, AdaptiveSets) else "radii"
    values = np.stack([np.atleast_1d(getattr(state, name)) for state in states]).repeat(test_rows, axis=0)
    prediction, observed = simulate(sets * test_rows, random)
    predicted = wrapper.predict(replace(states[0], **{name: values}), [prediction], own)
    return _covers(predicted, observed).reshape(sets, test_rows, -1)


@pytest.mark.parametrize(("wrapper", "simulate", "coverages"), [s[1:] for s in SPLIT], ids=[s[0] for s in SPLIT])
def test_coverage_of_one_new_row_is_exact(wrapper: Wrapper, simulate: Simulate, coverages: tuple[float, ...]) -> None:
    covered = _covered(wrapper, simulate, ROWS, SETS, 1)[:, 0]
    for found, coverage in zip(covered.sum(0), coverages, strict=True):
        exact = conformal.rank(ROWS, coverage) / (ROWS + 1)
        assert exact == pytest.approx(coverage)
        low, high = stats.binom.interval(1 - ALARM, SETS, coverage)
        assert low <= found <= high, (found / SETS, coverage)


@pytest.mark.slow
@pytest.mark.parametrize(("wrapper", "simulate"), [s[1:3] for s in SPLIT[::2]], ids=[s[0] for s in SPLIT[::2]])
def test_coverage_given_the_calibration_rows_follows_a_beta_law(wrapper: Wrapper, simulate: Simulate) -> None:
    rows, coverage = 59, wrapper.coverage if isinstance(wrapper, AdaptiveSets) else wrapper.coverages[-1]  # type: ignore[attr-defined]
    k = round((rows + 1) * coverage)
    shares = _covered(wrapper, simulate, rows, 300, 1000)[..., -1].mean(1)
    assert stats.kstest(shares, stats.beta(k, rows + 1 - k).cdf).pvalue > ALARM
    for wrong in (k - 1, k + 1):  # a rank that is off by one would be seen
        assert stats.kstest(shares, stats.beta(wrong, rows + 1 - wrong).cdf).pvalue < 0.01


def test_cross_validated_intervals_cover_at_least_what_is_guaranteed() -> None:
    """Lines through the origin, fitted to 40 rows without one of 5 folds."""
    folds, rows, coverages = 5, 40, (0.8, 0.9)
    random = np.random.default_rng(5)
    x = random.normal(size=(SETS, rows + 1))
    y = x + random.standard_t(4, size=x.shape)
    fold = np.arange(rows) % folds
    kept = fold != np.arange(folds)[:, None]
    slopes = np.stack([(x * y)[:, :-1][:, k].sum(1) / np.square(x)[:, :-1][:, k].sum(1) for k in kept], axis=1)
    residuals = np.abs(y[:, :-1] - slopes[:, fold] * x[:, :-1])
    lower, upper = conformal.cross_intervals(slopes[:, fold] * x[:, -1:], residuals, coverages)
    covered = (lower <= y[:, -1:]) & (y[:, -1:] <= upper)
    for found, coverage in zip(covered.sum(0), coverages, strict=True):
        assert found >= stats.binom.ppf(ALARM, SETS, 1 - 2 * (1 - coverage))
        assert abs(found / SETS - coverage) < 0.04  # in practice it is near the nominal one


def test_cross_validation_takes_the_mean_of_each_rows_own_fold() -> None:
    """With the networks of two folds that predict 0 and 10, and residuals of 1 and 2."""
    wrapper, random = CVPlus(folds=2, coverages=(0.5,)), np.random.default_rng(0)
    held = [HeldOut(Points(np.zeros((1, 3))), np.ones(3)), HeldOut(Points(np.full((1, 3), 10.0)), np.full(3, 8.0))]
    state = wrapper.calibrate(held, random)
    predicted = wrapper.predict(state, [Points(np.zeros((1, 2))), Points(np.full((1, 2), 10.0))], random)
    assert isinstance(predicted, Quantiles)
    # mean - residual: three times -1 and three times 8; the 3rd smallest. mean + residual: 1 and 12; the 4th.
    np.testing.assert_array_equal(predicted.values, [[[-1.0, 5.0, 12.0]] * 2])
    np.testing.assert_array_equal(predicted.centre, [[5.0, 5.0]])


def test_cross_validated_intervals_are_those_of_the_paper() -> None:
    random = np.random.default_rng(1)
    means, residuals = random.normal(size=(3, 19)), np.abs(random.normal(size=19))
    lower, upper = conformal.cross_intervals(means, residuals, [0.8, 0.99])
    ordered = np.sort(means - residuals, axis=1), np.sort(means + residuals, axis=1)
    np.testing.assert_array_equal(lower[:, 0], ordered[0][:, 4 - 1])  # floor(20 * 0.2)
    np.testing.assert_array_equal(upper[:, 0], ordered[1][:, 16 - 1])  # ceil(20 * 0.8)
    assert (lower[:, 1] == -np.inf).all()
    assert (upper[:, 1] == np.inf).all()


def test_ranks_are_not_moved_by_rounding() -> None:
    for rows in range(1, 400):
        for percent in range(1, 100):
            assert conformal.rank(rows, percent / 100) == -(-(rows + 1) * percent // 100), (rows, percent)


def test_too_few_rows_give_infinite_intervals_and_a_line_that_says_so() -> None:
    wrapper = SplitConformal(coverages=(0.5, 0.95, 0.99))
    state = wrapper.calibrate([HeldOut(*_points(19, np.random.default_rng(0)))], np.random.default_rng(0))
    predicted = wrapper.predict(state, [_points(7, np.random.default_rng(1))[0]], np.random.default_rng(0))
    assert isinstance(predicted, Quantiles)
    assert np.isinf(predicted.values[..., [0, -1]]).all()
    assert np.isfinite(predicted.values[..., 1:-1]).all()
    (line,) = wrapper.doubts(state)
    assert line.startswith("19 calibration rows are too few for coverage 0.99: ")
    assert "needs 99" in line
    sets = AdaptiveSets(coverage=0.96)
    threshold = sets.calibrate([HeldOut(*_labels(19, np.random.default_rng(0)))], np.random.default_rng(0))
    everything = sets.predict(threshold, [_labels(7, np.random.default_rng(1))[0]], np.random.default_rng(0))
    assert isinstance(everything, Sets)
    assert everything.members.all()
    assert sets.doubts(threshold)
    assert not AdaptiveSets(coverage=0.95).doubts(threshold)


def test_adaptive_scores_by_hand() -> None:
    probabilities, uniform = np.array([[0.2, 0.5, 0.3]]), np.array([0.5])
    np.testing.assert_allclose(conformal.adaptive_scores(probabilities, uniform), [[0.9, 0.25, 0.65]])
    penalised = conformal.adaptive_scores(probabilities, uniform, penalty=0.1, free=1)
    np.testing.assert_allclose(penalised, [[1.1, 0.25, 0.75]])


def test_moved_quantiles_stay_in_order() -> None:
    """Far too wide quantiles of the wrapped method are moved inwards past each other."""
    wrapper = ConformalisedQuantileRegression(coverages=(0.2, 0.5, 0.9))
    random = np.random.default_rng(2)
    wide = Normal(np.zeros((1, 200)), noise_variance=np.full((1, 200), 100.0))
    state = wrapper.calibrate([HeldOut(wide, random.normal(size=200))], random)
    assert (state.radii < 0).all()
    predicted = wrapper.predict(state, [wide], random)
    assert isinstance(predicted, Quantiles)
    assert (np.diff(predicted.values, axis=-1) >= 0).all()


def test_what_a_wrapper_needs_of_a_prediction_is_said() -> None:
    random = np.random.default_rng(0)
    one = [HeldOut(Points(np.zeros((1, 3))), np.ones(3))]
    with pytest.raises(UserError, match="scaled = true needs a method that states a variance"):
        SplitConformal(scaled=True).calibrate(one, random)
    with pytest.raises(UserError, match="needs a method that states quantiles or a variance"):
        ConformalisedQuantileRegression().calibrate(one, random)
    with pytest.raises(ValueError, match="coverages must ascend"):
        SplitConformal(coverages=(0.9, 0.5))
