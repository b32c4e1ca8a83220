import math

import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import dawid_sebastiani_score, gaussian_nll, normalised_calibration_error


def test_ence_by_its_definition(rng: np.random.Generator) -> None:
    m, v = rng.normal(size=103), rng.gamma(2.0, size=103)
    y = rng.normal(m, np.sqrt(v))
    order = np.argsort(v)
    terms = []
    for b in range(10):
        rows = order[b * 103 // 10 : (b + 1) * 103 // 10]
        predicted, found = np.sqrt(v[rows].mean()), np.sqrt(np.square(y - m)[rows].mean())
        terms.append(abs(predicted - found) / predicted)
    assert normalised_calibration_error(y, m, v) == pytest.approx(np.mean(terms), rel=1e-12)


def test_ence_of_a_calibrated_variance_is_small_and_of_a_quarter_of_it_is_1(rng: np.random.Generator) -> None:
    v = rng.gamma(2.0, size=200_000)
    y = rng.normal(0.0, np.sqrt(v))
    assert normalised_calibration_error(y, np.zeros_like(y), v) < 0.02
    assert normalised_calibration_error(y, np.zeros_like(y), v / 4) == pytest.approx(1.0, abs=0.03)


def test_ence_of_equal_variances_does_not_depend_on_the_order_of_rows(rng: np.random.Generator) -> None:
    y = rng.normal(size=50)
    one = normalised_calibration_error(y, np.zeros(50), 1.0)
    assert one == pytest.approx(normalised_calibration_error(np.sort(y), np.zeros(50), 1.0), rel=1e-12)
    assert one == pytest.approx(abs(1 - np.sqrt(np.square(y).mean())), rel=1e-12)


def test_dawid_sebastiani_is_a_linear_function_of_the_normal_nll(rng: np.random.Generator) -> None:
    y, m, v = rng.normal(size=30), rng.normal(size=30), rng.gamma(1.0, size=30)
    expected = 2 * gaussian_nll(y, m, v) - math.log(2 * math.pi)
    assert dawid_sebastiani_score(y, m, v) == pytest.approx(expected, rel=1e-12)


def test_no_variance_is_infinitely_wrong() -> None:
    assert normalised_calibration_error([1.0], [1.0], 0.0) == math.inf
    assert dawid_sebastiani_score([1.0], [1.0], 0.0) == math.inf
    with pytest.raises(UserError, match="bins"):
        normalised_calibration_error([1.0], [1.0], 1.0, bins=0)
