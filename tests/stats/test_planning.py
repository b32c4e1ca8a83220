"""Power and sizes beside statsmodels, and what the planner must not promise."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

from bench.stats import detectable_difference, pairs_needed, power, variance_factor

Oracle = Callable[[str], Any]


@pytest.mark.parametrize("pairs", [3, 5, 10, 20, 60])
@pytest.mark.parametrize("effect", [0.0, 0.25, 0.5, 1.0])
def test_power_is_that_of_statsmodels(effect: float, pairs: int, oracle: Oracle) -> None:
    expected = oracle("statsmodels.stats.power").TTestPower().power(effect, pairs, 0.05)
    assert power(3 * effect, 3.0, pairs) == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("effect", [0.3, 0.6, 1.2])
def test_the_pairs_needed_are_those_of_statsmodels(effect: float, oracle: Oracle) -> None:
    exact = oracle("statsmodels.stats.power").TTestPower().solve_power(effect, power=0.9, alpha=0.01)
    assert pairs_needed(effect, 1.0, target=0.9, alpha=0.01) == int(np.ceil(exact))


@pytest.mark.parametrize("estimated_from", [None, 8])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_the_smallest_difference_has_the_power_it_is_named_for(share: float, estimated_from: int | None) -> None:
    smallest = detectable_difference(2.0, 8, target=0.8, test_share=share, estimated_from=estimated_from)
    assert power(smallest, 2.0, 8, test_share=share, estimated_from=estimated_from) == pytest.approx(0.8, abs=1e-4)
    found = pairs_needed(smallest * 1.001, 2.0, test_share=share, estimated_from=estimated_from)
    assert found == 8


def test_overlapping_splits_have_a_limit() -> None:
    """With a tenth tested the error never falls below s / 3, so the effect must be above (1.96 + 0.84) / 3 = 0.934."""
    limit = (scipy.stats.norm.isf(0.025) + scipy.stats.norm.isf(0.2)) * np.sqrt(variance_factor(10**9, 0.1))
    assert pairs_needed(0.99 * limit, 1.0, test_share=0.1) is None
    assert pairs_needed(1.01 * limit, 1.0, test_share=0.1) is not None
    assert pairs_needed(0.99 * limit, 1.0) == 12  # independent repeats


def test_a_deviation_that_was_estimated_asks_for_more() -> None:
    known, from_ten, from_five = (pairs_needed(0.5, 1.0, estimated_from=n) for n in (None, 10, 5))
    assert known is not None
    assert from_ten is not None
    assert from_five is not None
    assert known < from_ten < from_five


def test_an_estimated_deviation_averages_over_what_it_may_be() -> None:
    """The average of the power over sigma^2 = nu s^2 / chi^2_nu, by plain sampling."""
    freedom = 2 / (2 / 4 + 2.4 / 5)  # of s^2 of 5 values with an excess kurtosis of 2.4
    sigmas = np.sqrt(freedom / np.random.default_rng(0).chisquare(freedom, 1_000))
    sampled = np.mean([power(0.8, float(sigma), 12) for sigma in sigmas])
    assert power(0.8, 1.0, 12, estimated_from=5) == pytest.approx(sampled, abs=0.03)


def test_edges() -> None:
    assert power(1.0, 1.0, 1) == 0.0
    assert power(1.0, 0.0, 5) == 1.0
    assert power(50.0, 1.0, 5, alpha=1e-4) == pytest.approx(1.0)
    assert detectable_difference(1.0, 1) == np.inf
    assert detectable_difference(0.0, 5) == 0.0
    assert pairs_needed(0.0, 1.0) is None
    assert pairs_needed(1e-6, 1.0) is None
