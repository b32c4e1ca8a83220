import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from bench.errors import UserError
from bench.metrics import flip_level


@given(st.floats(0.05, 0.95), st.integers(2, 40))
def test_a_margin_that_is_a_line_is_found_exactly(zero: float, count: int) -> None:
    levels = np.linspace(0, 1, count)
    true = 0.5 + 0.4 * (zero - levels)
    p = np.stack([0.9 * (1 - true), true, 0.1 * (1 - true)], axis=1)
    # Where p_true = 0.9 (1 - p_true) the margin is 0.
    expected = brentq(lambda level: 1.9 * (0.5 + 0.4 * (zero - level)) - 0.9, -2, 2)
    found = flip_level(levels, p, 1)
    if expected >= 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(max(expected, 0.0), abs=1e-9)


def test_the_first_of_several_flips_counts_whichever_class_it_is_to() -> None:
    p = [[0.8, 0.1, 0.1], [0.4, 0.2, 0.4], [0.3, 0.6, 0.1], [0.9, 0.1, 0.0], [0.1, 0.1, 0.8]]
    assert flip_level([0, 1, 2, 3, 4], p, 0) == 1.0  # a tie is no flip, but the zero is there
    assert flip_level([0, 1, 2, 3, 4], p, 2) == 0.0  # mistaken from the beginning
    assert math.isnan(flip_level([0, 1], p[:2], 0))


def test_bad_input() -> None:
    p = np.full((2, 2), 0.5)
    with pytest.raises(UserError, match="ascending"):
        flip_level([1.0, 1.0], p, 0)
    with pytest.raises(UserError, match="levels: expected shape"):
        flip_level([1.0], p, 0)
    with pytest.raises(UserError, match="a class from 0 to 1, got 2"):
        flip_level([0.0, 1.0], p, 2)
