"""The Bayesian tests beside baycomp: closed form to rounding, samples to their noise."""

import importlib

import numpy as np
import pytest

from bench.stats import Posterior, correlated_t_test, signed_rank


@pytest.mark.parametrize("rope", [0.05, 0.5])
@pytest.mark.parametrize("runs", [1, 2])
def test_correlated_t_is_baycomps(rope: float, runs: int) -> None:
    baycomp = importlib.import_module("baycomp")
    x, y = np.random.default_rng(1).normal(size=(2, 20))
    ours = correlated_t_test(y - x, rope, runs / 20)
    theirs = baycomp.CorrelatedTTest.probs(x, y, rope, runs)
    assert (ours.below, ours.within, ours.above) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize(("shift", "rope"), [(0.0, 0.2), (0.3, 0.1), (0.25, 0.25)])
def test_signed_rank_is_baycomps(shift: float, rope: float) -> None:
    baycomp = importlib.import_module("baycomp")
    d = np.random.default_rng(2).normal(shift, 0.4, size=9)
    ours = signed_rank(d, rope, np.random.default_rng(0), samples=20_000)
    theirs = baycomp.SignedRankTest.probs(np.zeros(9), d, rope, nsamples=4_000, random_state=1)
    # 4,000 samples of a probability: a standard deviation of at most 0.008.
    assert (ours.below, ours.within, ours.above) == pytest.approx(theirs, abs=0.032)


def test_differences_without_variance_are_certain() -> None:
    assert correlated_t_test(np.full(5, 0.3), 0.1) == Posterior(0.0, 0.0, 1.0)
    assert correlated_t_test(np.full(5, -0.3), 0.5) == Posterior(0.0, 1.0, 0.0)
    assert signed_rank(np.zeros(6), 0.1, np.random.default_rng(0)) == Posterior(0.0, 1.0, 0.0)
