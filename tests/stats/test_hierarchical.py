"""The hierarchical model of differences over datasets."""

import numpy as np
import pytest
import scipy.stats

from bench.stats.hierarchical import next_dataset

MEANS = np.array([-0.8, -0.3, 0.2, -0.6, -1.1, -0.2])
ERRORS = np.array([0.2, 0.4, 0.3, 0.1, 0.5, 0.3])


def test_it_is_the_posterior_by_brute_force() -> None:
    """Importance sampling of mu and tau from the likelihood itself, then a new dataset."""
    random = np.random.default_rng(0)
    mu, tau = random.normal(-0.4, 1.5, 400_000), random.uniform(0.0, 6.0, 400_000)
    density = scipy.stats.norm.logpdf(MEANS[:, None], mu, np.sqrt(ERRORS[:, None] ** 2 + tau**2)).sum(axis=0)
    weight = np.exp(density - scipy.stats.norm.logpdf(mu, -0.4, 1.5))
    new = random.normal(mu, tau)
    expected = [np.average(part, weights=weight) for part in (new < -0.1, np.abs(new) <= 0.1, new > 0.1)]
    found = next_dataset(MEANS, ERRORS, 0.1)
    assert [found.below, found.within, found.above] == pytest.approx(expected, abs=0.01)


def test_probabilities_sum_to_one_and_follow_the_sign() -> None:
    found, mirrored = next_dataset(MEANS, ERRORS, 0.1), next_dataset(-MEANS, ERRORS, 0.1)
    assert found.below + found.within + found.above == pytest.approx(1.0)
    assert (found.below, found.above) == pytest.approx((mirrored.above, mirrored.below))
    assert found.below > 0.75


def test_datasets_that_disagree_leave_the_next_one_open() -> None:
    agree = next_dataset([-1.0] * 6, [0.2] * 6, 0.1)
    disagree = next_dataset([-3.0, 1.0] * 3, [0.2] * 6, 0.1)  # the same mean
    assert agree.below > 0.97
    assert disagree.below < 0.75


def test_differences_without_noise_have_an_answer() -> None:
    assert next_dataset([-1.0] * 5, [0.0] * 5, 0.1).below == pytest.approx(1.0)
    assert next_dataset([0.0] * 5, [0.0] * 5, 0.1).within == pytest.approx(1.0, abs=0.2)
