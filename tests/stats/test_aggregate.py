import numpy as np
import pytest
import scipy.stats

from bench.stats import (
    improvement_probabilities,
    improvement_probability,
    interquartile_mean,
    interquartile_mean_interval,
    performance_profile,
    superiority,
)


def test_the_interquartile_mean_by_hand() -> None:
    assert interquartile_mean([100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -100.0]) == (2 + 3 + 4 + 5) / 4


def test_the_stratified_bootstrap_resamples_within_datasets() -> None:
    """Runs that are alike within every dataset have no uncertainty, however much the datasets differ."""
    found = interquartile_mean_interval([np.full(5, 1.0), np.full(5, 3.0), np.full(4, 90.0)], np.random.default_rng(0))
    assert found.value == pytest.approx((2 * 1 + 5 * 3 + 90) / 8)  # of 14 values the middle 8
    assert (found.low, found.high) == pytest.approx((found.value, found.value))


def test_the_interval_of_one_dataset_is_scipys() -> None:
    x = np.random.default_rng(0).normal(size=30)
    ours = interquartile_mean_interval([x], np.random.default_rng(1), resamples=20_000)
    theirs = scipy.stats.bootstrap(
        (x,),
        lambda v, axis: scipy.stats.trim_mean(v, 0.25, axis=axis),
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(2),
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.015)


@pytest.mark.parametrize("sizes", [(1,), (2, 3), (5, 5, 4), (50,) * 10, (300, 7)])
def test_the_means_of_resamples_are_those_of_the_drawn_values(sizes: tuple[int, ...]) -> None:
    """Ties included: values are rounded."""
    values = [np.round(np.random.default_rng(size).normal(size=size), 1) for size in sizes]
    ours = interquartile_mean_interval(values, np.random.default_rng(3), resamples=500)
    generator = np.random.default_rng(3)
    drawn = [x[generator.integers(0, len(x), size=(500, len(x)))] for x in values]
    means = scipy.stats.trim_mean(np.concatenate(drawn, axis=1), 0.25, axis=1)
    assert (ours.low, ours.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=1e-12)


def test_an_outlier_without_bounds_is_left_out_of_all_resamples() -> None:
    values = np.append(np.random.default_rng(0).normal(size=99), np.inf)
    found = interquartile_mean_interval([values], np.random.default_rng(0))
    assert np.isfinite([found.value, found.low, found.high]).all()


def test_the_probability_of_improvement_is_the_mean_over_datasets() -> None:
    generator = np.random.default_rng(0)
    a, b = list(generator.normal(size=(3, 6))), list(generator.normal(0.5, 1.0, size=(3, 6)))
    found = improvement_probability(a, b, generator)
    assert found.value == pytest.approx(np.mean([float(superiority(y, x)) for x, y in zip(a, b, strict=True)]))
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    mirrored = improvement_probability(b, a, generator)
    assert mirrored.value == pytest.approx(1 - found.value)


def test_methods_without_overlap_win_always() -> None:
    found = improvement_probability([[1.0, 2.0]], [[3.0, 4.0]], np.random.default_rng(0))
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)


def test_many_pairs_at_once_are_the_pairs_one_by_one() -> None:
    tables = [np.random.default_rng(dataset).normal(size=(4, runs)) for dataset, runs in enumerate((6, 5, 9))]
    pairs = [(0, 1), (2, 1), (3, 0)]
    together = improvement_probabilities(tables, pairs, np.random.default_rng(7))
    for (i, j), found in zip(pairs, together, strict=True):
        alone = improvement_probability([t[i] for t in tables], [t[j] for t in tables], np.random.default_rng(7))
        assert (found.value, found.low, found.high) == pytest.approx((alone.value, alone.low, alone.high))


def test_the_interval_of_improvement_is_that_of_resampled_pairs() -> None:
    """By hand: pairs of runs drawn with replacement, and the share of wins among all runs drawn."""
    a, b = np.random.default_rng(3).normal(size=(2, 8))
    generator = np.random.default_rng(4)
    drawn = generator.integers(0, 8, size=(20_000, 8))
    shares = (a[drawn][:, :, None] < b[drawn][:, None, :]).mean(axis=(1, 2))
    found = improvement_probability([a], [b], generator, resamples=20_000)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(shares, [0.025, 0.975])), abs=0.02)


def test_a_performance_profile_is_a_distribution_function() -> None:
    profile = performance_profile([[1.0, 2.0], [1.0, 3.0, 5.0, 7.0]], [0.0, 1.5, 4.0, 9.0], np.random.default_rng(0))
    np.testing.assert_allclose(profile.share, [0.0, (0.5 + 0.25) / 2, (1.0 + 0.5) / 2, 1.0])
    assert (profile.low <= profile.share).all()
    assert (profile.share <= profile.high).all()
    assert (profile.low[[0, 3]] == profile.high[[0, 3]]).all()
