"""Bootstrap intervals beside scipy's: equal to within the noise of 50,000 resamples."""

import numpy as np
import pytest
import scipy.stats

from bench.stats import bca_interval, cut_interval, hull, percentile_interval
from bench.stats.bootstrap import small_sample_tail


@pytest.mark.parametrize("size", [12, 20])
@pytest.mark.parametrize("small_sample", [True, False])
def test_bca_is_scipys(size: int, small_sample: bool) -> None:
    x = np.random.default_rng(size).exponential(size=size)
    tail = small_sample_tail(0.025, size) if small_sample else 0.025
    theirs = scipy.stats.bootstrap(
        (x,), np.mean, n_resamples=50_000, confidence_level=1 - 2 * tail, method="BCa", rng=np.random.default_rng(0)
    ).confidence_interval
    ours = bca_interval(x, np.random.default_rng(1), resamples=50_000, small_sample=small_sample)
    np.testing.assert_allclose(ours, [theirs.low, theirs.high], atol=0.12 * x.std() / np.sqrt(size))


def test_small_sample_tails_make_a_normal_bootstrap_as_wide_as_t() -> None:
    """A bootstrap mean is about normal with variance s^2 (n - 1) / n^2: its quantile must be that of t times s."""
    tail = small_sample_tail(0.025, 10)
    width = scipy.stats.norm.isf(tail) * np.sqrt(9 / 100)
    assert width == pytest.approx(scipy.stats.t.isf(0.025, 9) / np.sqrt(10), rel=1e-12)


def test_many_samples_at_once_are_the_same_as_one_by_one() -> None:
    x = np.random.default_rng(0).normal(size=(3, 120, 7))
    together = bca_interval(x, np.random.default_rng(5), resamples=500)
    alone = bca_interval(x[2, 110], np.random.default_rng(5), resamples=500)
    assert together.shape == (3, 120, 2)
    np.testing.assert_allclose(together[2, 110], alone, rtol=1e-12)


def test_the_interval_moves_and_grows_with_the_values() -> None:
    x = np.random.default_rng(0).normal(size=12)
    ends = bca_interval(x, np.random.default_rng(1), resamples=999)
    np.testing.assert_allclose(bca_interval(5 + 3 * x, np.random.default_rng(1), resamples=999), 5 + 3 * ends)


def test_overlapping_splits_widen_the_interval_about_the_mean() -> None:
    """By sqrt(1 + n share / (1 - share)): 20 splits with a tenth tested, sqrt(1 + 20 / 9)."""
    x = np.random.default_rng(0).normal(size=20)
    plain = bca_interval(x, np.random.default_rng(1), resamples=999) - x.mean()
    wide = bca_interval(x, np.random.default_rng(1), resamples=999, test_share=0.1) - x.mean()
    np.testing.assert_allclose(wide, plain * np.sqrt(1 + 20 / 9), rtol=1e-9)


def test_equal_values_have_an_interval_of_one_point() -> None:
    np.testing.assert_array_equal(bca_interval(np.full((2, 5), 0.25), np.random.default_rng(0)), 0.25)


def test_percentiles_and_hull() -> None:
    np.testing.assert_allclose(percentile_interval(np.arange(101.0), 0.9), [5.0, 95.0])
    np.testing.assert_array_equal(hull(np.array([[0.0, 2.0]]), np.array([[-1.0, 1.0]])), [[-1.0, 2.0]])


def test_intervals_end_where_values_end_unless_a_mean_is_beyond() -> None:
    ends = [[0.8, 1.1], [-0.1, 0.3], [1.1, 1.3], [np.nan, np.nan]]
    cut = cut_interval(ends, [0.95, 0.1, 1.2, 0.5], (0.0, 1.0))
    np.testing.assert_array_equal(cut, [[0.8, 1.0], [0.0, 0.3], [1.1, 1.3], [np.nan, np.nan]])
    np.testing.assert_array_equal(cut_interval(ends, 0.5, (-np.inf, np.inf)), ends)
