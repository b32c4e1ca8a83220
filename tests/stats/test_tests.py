"""Tests of paired differences beside scipy, statsmodels and baycomp, to rounding where nothing is sampled."""

import importlib
import math
from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bench.stats import (
    equivalence_test,
    permutation_test,
    sign_test,
    smallest_permutation_p,
    t_interval,
    t_test,
    trimmed_mean,
    trimmed_test,
    wilcoxon_test,
)
from bench.stats.tests import Array, signed_rank_sum

SIZES = (2, 5, 10, 20)


def some(size: int, studies: int = 4) -> Array:
    return np.random.default_rng(size).normal(0.4, 1.0, (studies, size))


@pytest.mark.parametrize("size", SIZES)
def test_the_t_test_and_its_interval_are_scipys(size: int) -> None:
    d = some(size)
    theirs = scipy.stats.ttest_1samp(d, 0.0, axis=-1)
    np.testing.assert_allclose(t_test(d), theirs.pvalue, rtol=1e-12)
    ends = theirs.confidence_interval(0.9)
    np.testing.assert_allclose(t_interval(d, 0.9), np.stack([ends.low, ends.high], -1), rtol=1e-12)


@pytest.mark.parametrize(("size", "runs"), [(10, 1), (20, 2), (20, 4)])
def test_the_corrected_t_test_is_that_of_baycomp(size: int, runs: int) -> None:
    """Without a ROPE its posterior is the sampling distribution of the corrected t: p is twice the smaller tail."""
    baycomp = importlib.import_module("baycomp")
    for d in some(size):
        tails = baycomp.CorrelatedTTest.probs(np.zeros(size), d, runs=runs)
        assert float(t_test(d, runs / size)) == pytest.approx(2 * min(tails), rel=1e-9)


def test_the_corrected_t_test_by_hand() -> None:
    """d = 1, 2, 3 and a tenth tested: mean 2, variance 1, error sqrt(1/3 + 1/9), t = 2 / (2/3) = 3 at 2 degrees."""
    assert float(t_test([1.0, 2.0, 3.0], 0.1)) == pytest.approx(2 * scipy.stats.t.sf(3.0, 2), rel=1e-12)


@pytest.mark.parametrize("size", [3, 6, 11])
def test_the_exact_permutation_test_counts_every_sign_pattern(size: int) -> None:
    d = some(size, 2)
    for row, p in zip(d, permutation_test(d, np.random.default_rng(0)), strict=True):
        theirs = scipy.stats.permutation_test((row,), np.mean, permutation_type="samples", n_resamples=np.inf)
        assert p == pytest.approx(theirs.pvalue, rel=1e-12)


def test_the_exact_permutation_test_by_hand() -> None:
    values = (1.0, 2.0, 4.0, -0.5)
    means = [abs(sum(s * v for s, v in zip(signs, values, strict=True))) for signs in product((1, -1), repeat=4)]
    assert float(permutation_test(values, np.random.default_rng(0))) == sum(m >= 6.5 for m in means) / 16


def test_the_sampled_permutation_test_is_near_the_exact_one() -> None:
    d = np.random.default_rng(3).normal(0.4, 1.0, 15)
    exact = scipy.stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
    sampled = float(permutation_test(d, np.random.default_rng(1), 20_000))
    assert sampled == pytest.approx(exact, abs=4 * math.sqrt(exact / 20_000))


def test_a_sampled_p_is_never_zero() -> None:
    d = np.full(40, 1.0) + np.arange(40) / 100
    assert float(permutation_test(d, np.random.default_rng(0), 99)) == pytest.approx(0.01)


@pytest.mark.parametrize("size", [2, 5, 6, 14])
def test_the_smallest_p_is_reached_when_all_signs_agree(size: int) -> None:
    d = np.arange(1.0, size + 1)
    smallest = smallest_permutation_p(size)
    assert float(permutation_test(d, np.random.default_rng(0))) == smallest == 2 / 2**size
    assert float(wilcoxon_test(d)) == pytest.approx(smallest)


def test_wilcoxon_is_scipys_for_every_study() -> None:
    d = some(12, 6)
    expected = [scipy.stats.wilcoxon(row).pvalue for row in d]
    np.testing.assert_allclose(wilcoxon_test(d), expected, rtol=1e-12)


@pytest.mark.parametrize("size", [8, 10, 14, 20, 51])
def test_a_tie_or_a_zero_in_one_study_changes_no_other(size: int) -> None:
    """scipy alone, study by study: exact, by permutations or approximate, as each of them needs it."""
    d = some(size, 7)
    d[1, :2] = 0.0
    d[2, 3] = -d[2, 4]
    d[3, 0], d[3, 1] = 0.0, d[3, 2]
    d[4] = 0.0
    d[5, :3] = np.inf, -np.inf, np.inf  # runs that failed: the largest ranks, tied
    alone = [1.0 if not row.any() else scipy.stats.wilcoxon(row).pvalue for row in d]
    np.testing.assert_allclose(wilcoxon_test(d), alone, rtol=1e-12)
    np.testing.assert_allclose(wilcoxon_test(d.reshape(7, 1, size))[:, 0], alone, rtol=1e-12)


def test_wilcoxon_with_ties_and_zeros_is_exact_up_to_13_pairs() -> None:
    """scipy ranks each of the 8,192 sign patterns, which takes a second: one study, with ties, a zero and a failure."""
    d = some(13, 1)[0]
    d[0], d[1], d[3], d[5] = 0.0, d[2], -d[4], np.inf
    np.testing.assert_allclose(wilcoxon_test(d), scipy.stats.wilcoxon(d).pvalue, rtol=1e-12)


@pytest.mark.parametrize("size", [4, 20])
def test_wilcoxon_of_ties_and_an_unknown_difference_is_unknown(size: int) -> None:
    assert np.isnan(wilcoxon_test(np.r_[np.nan, np.ones(size)]))


def test_wilcoxon_of_nothing_but_ties() -> None:
    np.testing.assert_array_equal(wilcoxon_test(np.zeros((2, 5))), 1.0)
    assert float(wilcoxon_test([0.0, 0.0, 1.0, 2.0, 3.0])) == 0.25  # three pairs are left


@pytest.mark.parametrize("size", [10, 11, 13, 14, 20, 50])
def test_yuens_test_is_scipys_of_two_samples_one_of_which_does_not_vary(size: int) -> None:
    d = some(size)
    zeros = np.zeros_like(d)
    theirs = scipy.stats.ttest_ind(d, zeros, equal_var=False, trim=0.2, axis=-1).pvalue
    np.testing.assert_allclose(trimmed_test(d), theirs, rtol=1e-9)
    np.testing.assert_allclose(trimmed_mean(d), scipy.stats.trim_mean(d, 0.2, axis=-1), rtol=1e-12)


def test_the_interval_of_a_trimmed_mean_is_that_of_another_formula_for_many_pairs() -> None:
    """scipy's `trimmed_mean_ci` divides by n where Yuen divides by what is kept: the same for many pairs."""
    d = some(2_000, 1)[0] - 0.36
    low, high = scipy.stats.mstats.trimmed_mean_ci(d, limits=(0.2, 0.2), alpha=float(trimmed_test(d)))
    assert min(abs(low), abs(high)) < 2e-4 < max(abs(low), abs(high))


def test_yuens_test_of_overlapping_splits_has_the_variance_of_the_corrected_t_test() -> None:
    d = some(20, 1)[0]
    plain, corrected = (scipy.stats.t.isf(float(trimmed_test(d, share)) / 2, 11) for share in (0.0, 0.2))
    assert plain / corrected == pytest.approx(np.sqrt(20 * (1 / 20 + 0.25)))


def test_what_yuens_test_cannot_test() -> None:
    assert np.isnan(trimmed_test(some(9))).all()  # too few pairs to keep its level
    assert np.isnan(float(trimmed_test([0.0] * 8 + [-5.0, 7.0])))  # what is kept does not vary
    d = np.stack([np.r_[some(10, 1)[0, :8], np.inf, np.inf], np.r_[some(10, 1)[0, :7], [np.inf] * 3]])
    assert np.isnan(trimmed_test(d)).tolist() == [False, True]


def test_the_sum_of_signed_ranks() -> None:
    assert float(signed_rank_sum([0.5, -1.0, 3.0])) == 1 - 2 + 3
    statistic = scipy.stats.wilcoxon(some(9, 1)[0]).statistic
    assert abs(float(signed_rank_sum(some(9, 1)[0]))) == 9 * 10 / 2 - 2 * statistic
    # Zeros are left out; with them the ranks of the others grow, and their sum has the other sign.
    d = np.array([1.0, 2.0, 3.0, -4.0, -5.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert float(signed_rank_sum(d)) == 1 + 2 + 3 - 4 - 5


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("margin", [0.3, 1.5])
def test_equivalence_is_that_of_statsmodels(size: int, margin: float) -> None:
    weightstats = importlib.import_module("statsmodels.stats.weightstats")
    for d in some(size):
        theirs = weightstats.ttost_paired(d, np.zeros(size), -margin, margin)[0]
        assert float(equivalence_test(d, margin)) == pytest.approx(theirs, rel=1e-9)


def test_differences_without_variance() -> None:
    generator = np.random.default_rng(0)
    assert float(t_test(np.zeros(5))) == 1.0
    assert math.isnan(t_test(np.full(5, 0.1 + 0.2)))
    assert math.isnan(t_test(np.array([1.3, 2.3, 7.3]) - np.array([1.0, 2.0, 7.0])))  # the same but for rounding
    assert float(permutation_test(np.zeros(5), generator)) == 1.0
    assert float(permutation_test(np.full(5, 0.3), generator)) == 2 / 32
    assert float(equivalence_test(np.full(5, 0.3), 0.5)) == 0.0
    assert float(equivalence_test(np.full(5, 0.3), 0.2)) == 1.0


@settings(max_examples=25, deadline=None)
@given(arrays(np.float64, 7, elements=st.floats(-10, 10, width=32)), st.floats(0.01, 100.0))
def test_direction_and_unit_change_no_p(d: Array, scale: float) -> None:
    for test in (t_test, lambda x: permutation_test(x, np.random.default_rng(0))):
        p = float(test(d))
        np.testing.assert_allclose([float(test(-d)), float(test(scale * d))], p, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("size", SIZES)
def test_the_sign_test_is_scipys_binomial_test_of_the_signs(size: int) -> None:
    d = some(size, 12).round()  # with zeros
    p = [
        scipy.stats.binomtest(int((row > 0).sum()), int((row != 0).sum())).pvalue if (row != 0).any() else 1.0
        for row in d
    ]
    np.testing.assert_allclose(sign_test(d), p)
    np.testing.assert_allclose(sign_test(np.expm1(d)), p)  # signs alone count
