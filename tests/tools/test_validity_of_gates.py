"""The simulation of docs/gate.md, in short: tests keep their level, the rule of outliers needs the same seeds."""

import numpy as np

from tools.validity_of_gates import NOISE, false_alarms


def test_skew_fails_gates_by_outliers_and_never_by_tests() -> None:
    generator = np.random.default_rng(0)
    rates = {name: false_alarms(draw, 15, generator, comparisons=20) for name, draw in NOISE.items()}
    assert max(by_test for _, by_test in rates.values()) <= 1 / 15
    assert rates["gaussian"][0] <= 1 / 15
    assert rates["lognormal, sigma 2 (no promise)"][0] > 0.2
