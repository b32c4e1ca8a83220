"""Spending a level over looks: closed forms, and a simulation of what it is for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import UserError
from bench.stats.sequential import doubling, levels, spent
from bench.stats.tests import t_test


def test_linear_spending_is_proportional_to_the_pairs() -> None:
    assert levels(0.04, [5, 10, 20]) == pytest.approx((0.01, 0.01, 0.02))
    assert spent(0.05, 0.5, power=2.0) == pytest.approx(0.0125)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=6, unique=True), st.floats(0.5, 4.0))
def test_the_levels_of_all_looks_sum_to_alpha(looks: list[int], power: float) -> None:
    found = levels(0.05, sorted(looks), power)
    assert sum(found) == pytest.approx(0.05)
    assert min(found) >= 0.0


@pytest.mark.parametrize(
    ("first", "most", "expected"),
    [(3, 10, (3, 6, 10)), (5, 20, (5, 10, 20)), (5, 10, (5, 10)), (10, 10, (10,)), (12, 10, (10,)), (1, 2, (1, 2))],
)
def test_looks_double(first: int, most: int, expected: tuple[int, ...]) -> None:
    assert doubling(first, most) == expected


@pytest.mark.parametrize("looks", [[], [5, 5], [10, 5], [0, 3]])
def test_looks_must_grow(looks: list[int]) -> None:
    with pytest.raises(UserError, match="growing"):
        levels(0.05, looks)


def test_three_looks_at_spent_levels_keep_five_percent_and_naive_looks_do_not() -> None:
    d = np.random.default_rng(0).normal(size=(20_000, 20))
    looks = (5, 10, 20)
    p = np.stack([t_test(d[:, :n]) for n in looks])
    naive = (p < 0.05).any(axis=0).mean()
    spending = (p < np.array(levels(0.05, looks))[:, None]).any(axis=0).mean()
    assert naive > 0.09
    assert 0.03 < spending < 0.05
