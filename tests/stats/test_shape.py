"""Skewness and outliers of differences, with the cuts of Gaussian samples."""

import numpy as np
import pytest
import scipy.stats

from bench.stats.shape import shape


@pytest.mark.parametrize("size", [5, 10, 20])
def test_about_one_per_cent_of_gaussian_samples_are_called_unusual(size: int) -> None:
    samples = np.random.default_rng(0).normal(size=(2_000, size))
    found = [shape(sample) for sample in samples]
    assert np.mean([abs(one.skewness) > one.skewness_cut for one in found]) == pytest.approx(0.01, abs=0.008)
    assert np.mean([one.outliers > 0 for one in found]) == pytest.approx(0.01, abs=0.008)


def test_the_cut_of_many_is_that_of_the_normal_approximation() -> None:
    n = 200
    error = np.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))  # of the skewness of Gaussian samples
    assert shape(np.arange(float(n))).skewness_cut == pytest.approx(2.576 * error, rel=0.08)


def test_skewness_is_scipys_and_outliers_are_counted() -> None:
    d = np.random.default_rng(1).normal(size=20)
    d[:3] += 100.0
    found = shape(d)
    assert found.skewness == pytest.approx(scipy.stats.skew(d))
    assert found.outliers == 3
    assert "3 of 20 differences are outliers" in "; ".join(found.problems)
    assert shape(-7.0 * d).skewness == pytest.approx(-found.skewness)  # whatever the unit
    assert shape(-7.0 * d).outliers == 3


@pytest.mark.parametrize("values", [[0.0] * 8, [0.1] * 8, [0.0] * 6 + [1.0, -1.0]])
def test_differences_that_are_mostly_equal_have_no_outliers(values: list[float]) -> None:
    assert shape(values).problems == []
