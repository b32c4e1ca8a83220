"""The simulation of docs/gate.md on a pool whose truth is known."""

import numpy as np
import pytest

from bench.gate.values import Measured
from bench.gate.verdicts import Rules
from tools.gate_validity import Pool, alarms_of_divergence, correlation, detection, false_alarms

PLACE = ("toy", "m")


@pytest.fixture
def pool() -> Pool:
    """Two metrics; with the same split, two thirds of the variance are the same."""
    generator = np.random.default_rng(0)
    split = generator.normal(0.0, np.sqrt(2.0), (2, 400))
    first, second = (1.0 + 0.05 * (split + generator.normal(size=split.shape)) for _ in range(2))
    sides = [dict(zip(("rmse", "mae"), side, strict=True)) for side in (first, second)]
    return Pool(*(Measured(tuple(range(400)), {PLACE: side}) for side in sides))


def test_the_correlation_of_tied_runs_is_that_of_their_splits(pool: Pool) -> None:
    assert correlation(pool) == pytest.approx(2 / 3, abs=0.08)


def test_alarms_are_rare_and_a_shift_is_caught_the_better_the_pairs_are_tied(pool: Pool) -> None:
    generator = np.random.default_rng(1)
    rules = Rules()
    assert false_alarms(pool, rules, 40, 10, generator) <= 0.1
    assert false_alarms(pool, rules, 20, 10, generator, looks=(5, 10)) <= 0.1
    tight, tied, untied = (detection(pool, rules, 30, 10, kind, generator) for kind in (0.1, "splits", "seeds"))
    assert tight == 1.0
    assert tight > tied > untied


def test_a_method_that_diverges_by_chance_raises_the_alarms_of_ten_pairs_of_coins(pool: Pool) -> None:
    """A gate fails where a cell diverges that did not in the baseline: the table shows it as not promised."""
    expected = 1.0 - (1.0 - 0.05 * 0.95) ** 10
    found = alarms_of_divergence(pool, Rules(), 150, 10, 0.05, np.random.default_rng(2))
    assert found == pytest.approx(expected, abs=0.12)  # three standard errors
