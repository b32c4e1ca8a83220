import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from bench.api import Dataset, Split
from bench.errors import UserError
from bench.plan.cells import checked
from bench.plugins.registry import Registry


def make(name: str, **options: object) -> Dataset:
    dataset: Dataset = Registry().make("dataset", name, options)
    return dataset


def rows(split: Split) -> list[tuple[float, ...]]:
    x, y = np.concatenate([split.train_x, split.test_x]), np.concatenate([split.train_y, split.test_y])
    return sorted(map(tuple, np.column_stack([x, y]).tolist()))


@pytest.mark.parametrize(
    ("name", "load", "shape", "classes"),
    [("breast-cancer", load_breast_cancer, (512, 30), 2), ("wine", load_wine, (160, 13), 3)],
)
def test_scikit_learns_tables_are_complete(name: str, load: object, shape: tuple[int, int], classes: int) -> None:
    assert callable(load)
    x, y = load(return_X_y=True)
    for number in range(2):
        split = checked(make(name).load(number))
        assert (split.train_x.shape, split.classes) == (shape, classes)
        assert rows(split) == sorted(map(tuple, np.column_stack([x, y]).tolist()))


def test_two_moons_without_noise_are_the_half_circles_of_the_formula() -> None:
    split = checked(make("two-moons", noise=0.0, rows=1000).load(0))
    x, y = split.train_x, split.train_y
    np.testing.assert_array_equal(np.bincount(y), [500, 500])
    upper, lower = x[y == 0], x[y == 1]
    np.testing.assert_allclose(np.hypot(upper[:, 0], upper[:, 1]), 1)
    np.testing.assert_allclose(np.hypot(lower[:, 0] - 1, lower[:, 1] - 0.5), 1)
    assert upper[:, 1].min() >= 0
    assert lower[:, 1].max() <= 0.5


def test_two_moons_noise_has_the_given_deviation() -> None:
    quiet, loud = make("two-moons", noise=0.0, rows=20_000).load(0), make("two-moons", noise=0.3, rows=20_000).load(0)
    noise = loud.train_x - quiet.train_x  # the same angles: they are drawn first
    assert noise.std() == pytest.approx(0.3, rel=0.02)
    assert noise.mean() == pytest.approx(0, abs=0.01)
    assert not np.isin(loud.test_x[:, 0], loud.train_x[:, 0]).any()


@pytest.mark.parametrize("options", [{"rows": 1}, {"test_rows": 0}, {"noise": -0.1}])
def test_two_moons_refuses_what_cannot_be_sampled(options: dict[str, object]) -> None:
    with pytest.raises(UserError, match=next(iter(options))):
        make("two-moons", **options)
