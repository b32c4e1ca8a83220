import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.stats import Settings, adjust_p_values, benjamini_hochberg, holm


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_adjusted_p_values_are_those_of_statsmodels(size: int, oracle: Callable[[str], Any]) -> None:
    multitest = oracle("statsmodels.stats.multitest")
    p = np.random.default_rng(size).random(size) ** 3
    p[: size // 3] = p[0]  # ties
    np.testing.assert_allclose(holm(p), multitest.multipletests(p, method="holm")[1], rtol=1e-9)
    np.testing.assert_allclose(benjamini_hochberg(p), multitest.multipletests(p, method="fdr_bh")[1], rtol=1e-9)


def test_a_test_that_was_not_possible_is_no_member_of_the_family() -> None:
    found = adjust_p_values([0.01, math.nan, 0.04], "holm")
    np.testing.assert_allclose(found, [0.02, np.nan, 0.04])
    assert np.isnan(adjust_p_values([math.nan], "bh")).all()


def test_families_along_the_last_axis() -> None:
    p = np.random.default_rng(0).random((3, 4))
    np.testing.assert_array_equal(holm(p)[1], holm(p[1]))


def test_settings_say_what_would_be_right() -> None:
    with pytest.raises(UserError, match="alpha 5: expected a number between 0 and 1"):
        Settings(alpha=5)
    with pytest.raises(UserError, match="test share 1: expected 0"):
        Settings(test_share=1.0)
