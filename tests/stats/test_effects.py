import importlib

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bench.stats import cliffs_delta, paired_superiority, pooled_deviation, standardised_difference, superiority
from bench.stats.tests import Array

few_values = arrays(np.float64, st.integers(2, 9), elements=st.sampled_from([0.0, 0.5, 1.0, 2.0]))


@settings(max_examples=25, deadline=None)
@given(few_values, few_values)
def test_superiority_is_the_mann_whitney_statistic(a: Array, b: Array) -> None:
    u = scipy.stats.mannwhitneyu(a, b, method="asymptotic").statistic if np.ptp(np.r_[a, b]) else len(a) * len(b) / 2
    assert float(superiority(a, b)) == pytest.approx(u / (len(a) * len(b)), abs=1e-12)
    assert float(cliffs_delta(a, b)) == pytest.approx(-float(cliffs_delta(b, a)), abs=1e-12)


def test_paired_superiority_counts_pairs_where_a12_counts_all_values() -> None:
    hard = np.arange(8.0)  # of the repeats, the same for both methods
    assert float(paired_superiority(hard + 0.1, hard)) == 1.0
    assert float(superiority(hard + 0.1, hard)) == pytest.approx(36 / 64)
    a, b = np.random.default_rng(1).integers(0, 3, size=(2, 3, 9)).astype(float)
    signs = [
        scipy.stats.binomtest(int((x > y).sum()), 9).statistic + 0.5 * (x == y).mean()
        for x, y in zip(a, b, strict=True)
    ]
    np.testing.assert_allclose(paired_superiority(a, b), signs)
    np.testing.assert_allclose(paired_superiority(a, b) + paired_superiority(b, a), 1.0)


def test_effect_sizes_are_those_of_autorank() -> None:
    util = importlib.import_module("autorank._util")
    a, b = np.random.default_rng(0).normal(size=(2, 9)).round(1)
    assert float(cliffs_delta(a, b)) == pytest.approx(util._cliffs_delta(a, b), abs=1e-12)
    assert float(standardised_difference(a, b)) == pytest.approx(util._cohen_d(a, b), rel=1e-12)
    assert float(pooled_deviation(a, b)) == pytest.approx(util._pooled_std(a, b), rel=1e-12)


def test_nothing_varies() -> None:
    assert np.isnan(standardised_difference([1.0, 1.0], [2.0, 2.0]))
    assert float(cliffs_delta([1.0, 1.0], [2.0, 2.0])) == -1.0
