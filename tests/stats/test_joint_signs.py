"""Many methods against one over datasets."""

import itertools

import numpy as np
import pytest
import scipy.stats

from bench.stats.joint_signs import joint_sign_test, smallest_joint_p
from bench.stats.tests import Array
from tools.simulated_studies import repeated_runs

RNG = np.random.default_rng(4)


def t_statistics(d: Array) -> Array:
    return np.asarray(np.abs(d.mean(axis=0) / d.std(axis=0, ddof=1)))


@pytest.mark.parametrize("datasets", [5, 9])
def test_one_method_is_the_exact_sign_flip_test(datasets: int) -> None:
    for shift in (0.0, 0.5, 2.0):
        d = RNG.normal(shift, size=(datasets, 1))
        expected = scipy.stats.permutation_test((d[:, 0],), np.mean, permutation_type="samples", n_resamples=np.inf)
        assert joint_sign_test(d, RNG) == pytest.approx([expected.pvalue])


def test_the_step_down_is_that_of_the_definition() -> None:
    """Every pattern of signs, t statistics, the maximum over the methods that are left, never below the one before."""
    raised = 0
    for _ in range(30):
        d = RNG.normal([0.0, 0.7, -1.5, 0.2], size=(6, 4))
        observed = t_statistics(d)
        patterns = [t_statistics(np.array(signs)[:, None] * d) for signs in itertools.product((-1, 1), repeat=6)]
        expected, so_far = {}, 0.0
        left = list(np.argsort(-observed))
        while left:
            first = left[0]
            own = float(np.mean([one[left].max() >= observed[first] - 1e-9 for one in patterns]))
            raised += own < so_far
            expected[first] = so_far = max(so_far, own)
            left.pop(0)
        assert joint_sign_test(d, RNG) == pytest.approx([expected[i] for i in range(4)])
    assert raised  # the order of p-values is not that of statistics by itself


def test_eight_datasets_can_decide_on_twenty_methods() -> None:
    d = RNG.normal(size=(8, 19))
    d[:, 4] = RNG.normal(-1.0, 0.2, size=8)  # better on every dataset by a similar amount
    p = joint_sign_test(d, RNG)
    assert smallest_joint_p(8) == 2 / 256 <= p[4] < 0.05
    assert scipy.stats.wilcoxon(d[:, 4]).pvalue * 19 > 0.05  # Holm's correction could not


def test_many_datasets_are_sampled_and_no_p_is_zero() -> None:
    d = np.abs(RNG.normal(size=(25, 2)))
    assert joint_sign_test(d, RNG) == pytest.approx([1 / 10_000] * 2)


def test_no_methods() -> None:
    assert joint_sign_test(np.empty((8, 0)), RNG).shape == (0,)


def test_the_level_holds_for_twenty_methods() -> None:
    generator = np.random.default_rng(5)
    values = repeated_runs("skewed", (300, 8, 5), 20, generator).mean(axis=-1)
    found = [joint_sign_test((study[1:] - study[0]).T, generator).min() < 0.05 for study in np.moveaxis(values, 1, 0)]
    assert np.mean(found) < 0.09  # of 300 studies
