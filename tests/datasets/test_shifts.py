import numpy as np
import pytest

from bench.api import Dataset
from bench.datasets._shifts import SHIFTS
from bench.errors import UserError
from bench.plan.cells import checked
from bench.plugins.registry import Registry


def make(name: str, **options: object) -> Dataset:
    dataset: Dataset = Registry().make("dataset", name, options)
    return dataset


@pytest.mark.parametrize("shift", SHIFTS)
def test_shifted_digits_are_pairs_of_the_clean_ones(shift: str) -> None:
    clean, other = make("digits").load(2), checked(make("digits-shifted", shift=shift).load(2))
    for field in ("train_x", "train_y", "test_y"):
        np.testing.assert_array_equal(getattr(other, field), getattr(clean, field))
    assert other.test_x.shape == clean.test_x.shape
    assert np.array_equal(other.test_x, clean.test_x) == (shift == "none")
    np.testing.assert_array_equal(other.test_x, make("digits-shifted", shift=shift).load(2).test_x)


def test_noise_alone_and_on_top() -> None:
    clean = make("digits").load(0).test_x
    noisy = make("digits-shifted", shift="none", noise=0.5).load(0).test_x
    assert (noisy - clean).std() == pytest.approx(0.5, rel=0.03)
    both = make("digits-shifted", shift="inverted", noise=0.5).load(0).test_x
    np.testing.assert_allclose(both - (1 - clean), noisy - clean, atol=1e-5)


@pytest.mark.parametrize("name", ["digits-shifted", "cifar10"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shift": "constrast"}, "did you mean contrast"),
        ({"severity": 6}, "from 1 to 5, got 6"),
        ({"noise": -1.0}, "negative"),
    ],
)
def test_options_that_mean_nothing(name: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        make(name, **options)
