import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import crps_fair, crps_fair_rows, crps_gaussian, crps_gaussian_rows

Oracle = Callable[[str], Any]


def test_gaussian_equals_scoringrules_and_uncertainty_toolbox(oracle: Oracle, rng: np.random.Generator) -> None:
    y, m, v = rng.normal(size=400), rng.normal(size=400), rng.gamma(1.0, size=400)
    expected = oracle("scoringrules").crps_normal(y, m, np.sqrt(v))
    np.testing.assert_allclose(crps_gaussian_rows(y, m, v), expected, rtol=0, atol=1e-9)
    toolbox = oracle("uncertainty_toolbox.metrics_scoring_rule").crps_gaussian(m, np.sqrt(v), y)
    assert crps_gaussian(y, m, v) == pytest.approx(toolbox, abs=1e-9)


def test_gaussian_of_no_variance_is_the_absolute_error_and_its_limit() -> None:
    rows = crps_gaussian_rows([1.0, 1.0, 1.0], [4.0, 4.0, 1.0], [0.0, 1e-320, 0.0])
    np.testing.assert_allclose(rows, [3.0, 3.0, 0.0], rtol=1e-12)


@pytest.mark.parametrize("count", [2, 3, 10, 101])
def test_fair_form_equals_scoringrules(count: int, oracle: Oracle, rng: np.random.Generator) -> None:
    draws, y = rng.normal(3, 2, (count, 200)), rng.normal(3, 2, 200)
    expected = oracle("scoringrules").crps_ensemble(y, draws, m_axis=0, estimator="fair", backend="numpy")
    np.testing.assert_allclose(crps_fair_rows(y, draws), expected, rtol=0, atol=1e-9)


def test_fair_form_equals_its_double_sum(rng: np.random.Generator) -> None:
    draws, y = rng.integers(0, 4, (7, 40)).astype(float), rng.integers(0, 4, 40).astype(float)
    pairs = np.abs(draws[:, None] - draws[None]).sum(axis=(0, 1)) / (2 * 7 * 6)
    np.testing.assert_allclose(crps_fair_rows(y, draws), np.abs(draws - y).mean(axis=0) - pairs, rtol=0, atol=1e-14)


def test_fair_form_relates_to_the_torchmetrics_form(oracle: Oracle, rng: np.random.Generator) -> None:
    # torchmetrics divides the double sum by 2 T^2, the fair form by 2 T (T - 1).
    torch = oracle("torch")
    draws, y = rng.normal(size=(20, 100)), rng.normal(size=100)
    functional = oracle("torchmetrics.functional.regression")
    theirs = float(functional.continuous_ranked_probability_score(torch.tensor(draws.T), torch.tensor(y)))
    absolute = float(np.abs(draws - y).mean())
    assert crps_fair(y, draws) == pytest.approx(absolute - (absolute - theirs) * 20 / 19, abs=1e-9)


def test_fair_form_keeps_its_digits_beside_a_large_offset(rng: np.random.Generator) -> None:
    draws, y = rng.integers(0, 100, (9, 50)).astype(float), rng.integers(0, 100, 50).astype(float)
    np.testing.assert_allclose(crps_fair_rows(y + 1e12, draws + 1e12), crps_fair_rows(y, draws), rtol=0, atol=1e-9)


def test_fair_form_is_unbiased_where_the_plain_form_is_not(rng: np.random.Generator) -> None:
    # 3 draws of the observation's own distribution N(0, 1): the expected CRPS is 1 / sqrt(pi).
    draws, y = rng.normal(size=(3, 200_000)), rng.normal(size=200_000)
    assert crps_fair(y, draws) == pytest.approx(1 / np.sqrt(np.pi), abs=0.006)


def test_fair_form_needs_two_draws() -> None:
    with pytest.raises(UserError, match="at least 2 draws"):
        crps_fair([1.0], [[1.0]])


def test_fair_form_takes_memory_linear_in_rows_and_draws(rng: np.random.Generator) -> None:
    draws, y = rng.normal(size=(200, 5_000)), rng.normal(size=5_000)
    tracemalloc.start()
    crps_fair(y, draws)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * draws.nbytes  # N x T x T would be 200 times the draws
