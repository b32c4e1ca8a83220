"""Tails, quantiles and ranks beside those of scipy.stats, which takes too long to import for a command."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

from bench.stats import distributions, tests

HEAVY = ("scipy.stats", "scipy.optimize", "seaborn", "matplotlib.pyplot", "torch")
X = np.linspace(-6.0, 6.0, 49)


@pytest.mark.parametrize("freedom", [1, 4, 9.5, 1e6])
def test_students_t(freedom: float) -> None:
    assert distributions.t_tail(X, freedom) == pytest.approx(scipy.stats.t.sf(X, freedom), rel=1e-12)
    shares = np.array([1e-4, 0.025, 0.5, 0.9])
    assert distributions.t_quantile(shares, freedom) == pytest.approx(scipy.stats.t.ppf(shares, freedom), rel=1e-9)


def test_chi_squared_and_f() -> None:
    x = np.array([-1e-17, 0.0, *X[X > 0]])
    assert distributions.chi_squared_tail(x, 3) == pytest.approx(scipy.stats.chi2.sf(x, 3), rel=1e-12)
    assert distributions.f_tail([*x, np.inf], 3, 12) == pytest.approx(scipy.stats.f.sf([*x, np.inf], 3, 12), rel=1e-12)


@pytest.mark.parametrize("count", [2, 3, 20, 60])
def test_the_range_of_normals(count: int) -> None:
    gaps = np.array([0.0, 0.3, 1.7, 3.6, 5.5, 8.0])
    expected = scipy.stats.studentized_range.sf(gaps, count, np.inf)
    assert distributions.range_tail(gaps, count) == pytest.approx(expected, abs=1e-12)
    quantile = scipy.stats.studentized_range.isf(0.05, count, np.inf)
    assert distributions.range_quantile(0.05, count) == pytest.approx(quantile, rel=1e-10)


@pytest.mark.parametrize("shape", [(1,), (6, 1), (5, 4), (2, 3, 21)])
def test_ranks_with_ties_and_nan(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    for values in (generator.normal(size=shape), generator.integers(0, 4, size=shape).astype(float)):
        values[..., 0] = np.inf
        np.testing.assert_array_equal(distributions.ranks(values), scipy.stats.rankdata(values, axis=-1))
    values[0, ...] = np.nan
    np.testing.assert_array_equal(distributions.ranks(values), scipy.stats.rankdata(values, axis=-1))


def test_skewness() -> None:
    values = np.random.default_rng(0).gamma(1.0, size=(7, 12))
    assert distributions.skewness(values) == pytest.approx(scipy.stats.skew(values, axis=-1), rel=1e-12)


@pytest.mark.parametrize("pairs", [1, 2, 13, 14, 50, 51, 80])
@pytest.mark.parametrize("kind", ["distinct", "ties", "zeros", "lost"])
def test_the_signed_rank_test_is_scipys(pairs: int, kind: str) -> None:
    d = np.random.default_rng(pairs).normal(0.3, 1.0, size=(4, pairs))
    d = np.round(2 * d) if kind == "ties" else d
    d[:, 0] = 0.0 if kind == "zeros" else np.nan if kind == "lost" else d[:, 0]
    expected = [1.0 if (row == 0.0).all() else scipy.stats.wilcoxon(row).pvalue for row in d]
    assert tests.wilcoxon_test(d) == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_scipy_stats_and_pyplot_are_not_imported(python: Callable[[str], str]) -> None:
    modules = "bench.stats.text, bench.workflow, bench.reports.paper, bench.reports.wins"
    assert python(f"import sys, {modules}\nprint([m for m in {HEAVY} if m in sys.modules])").splitlines()[-1] == "[]"
