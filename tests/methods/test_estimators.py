"""The built-in estimators against closed forms and against the library that they go through."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from bench.api import Array, Examples, Normal, Points, Probabilities, Problem
from bench.methods.gaussian_process import GaussianProcess
from bench.methods.random_forest import RandomForest


def no_network(outputs: int) -> None:
    raise AssertionError("an estimator of scikit-learn needs no network")


def regression(rows: int = 60, features: int = 3) -> Examples:
    random = np.random.default_rng(4)
    x = random.normal(size=(rows, features)).astype(np.float32)
    y = (np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] + 0.2 * random.normal(size=rows)).astype(np.float32)
    return Examples(Problem("regression", (features,), 1), x, y, no_network)  # type: ignore[arg-type]


def classes(missing: int | None = None) -> Examples:
    random = np.random.default_rng(5)
    y = random.integers(4, size=80)
    y = y if missing is None else y[y != missing]
    x = (random.normal(size=(len(y), 2)) + y[:, None]).astype(np.float32)
    return Examples(Problem("classification", (2,), 4), x, y, no_network)  # type: ignore[arg-type]


def closed_form(process: object, train: Examples, x: Array) -> tuple[Array, Array]:
    """Return mean and variance of f by the equations of the docstring, with the kernel that was found."""
    kernel = process.kernel_  # type: ignore[attr-defined]
    scale, lengths, noise = kernel.k1.k1.constant_value, kernel.k1.k2.length_scale, kernel.k2.noise_level
    own, y = train.x.astype(np.float64), train.y.astype(np.float64)

    def k(a: Array, b: Array) -> Array:
        values: Array = scale * np.exp(-0.5 * (((a[:, None] - b[None]) / lengths) ** 2).sum(-1))
        return values

    inverse = np.linalg.inv(k(own, own) + noise * np.eye(len(own)))
    mean, variance = k(x, own) @ inverse @ y, np.diag(k(x, x) - k(x, own) @ inverse @ k(own, x))
    return mean, variance


def test_the_gaussian_process_is_the_closed_form_posterior() -> None:
    train = regression()
    x = np.random.default_rng(6).normal(size=(20, 3)) * 2
    state = GaussianProcess().fit(train, None, seed=0)
    stated = GaussianProcess().predict(state, x, 10, seed=1)
    assert isinstance(stated, Normal)
    assert stated.model_variance is not None
    assert stated.noise_variance is not None
    mean, variance = closed_form(state, train, x)
    np.testing.assert_allclose(stated.mean[0], mean, atol=1e-6)
    np.testing.assert_allclose(stated.model_variance[0], variance, rtol=1e-4, atol=1e-6)
    assert (stated.noise_variance == state.kernel_.k2.noise_level).all()
    assert stated.noise_variance[0, 0] == pytest.approx(0.04, rel=0.5)  # of the data
    far = GaussianProcess().predict(state, np.full((1, 3), 1e3), 1, seed=1)
    assert isinstance(far, Normal)
    assert far.model_variance is not None
    assert far.mean[0, 0] == pytest.approx(0.0)  # the prior's
    assert far.model_variance[0, 0] == pytest.approx(state.kernel_.k1.k1.constant_value)


def test_a_gaussian_process_says_what_it_skips() -> None:
    process = GaussianProcess(most_rows=100)
    assert process.skip(Problem("regression", (2,), 1, rows=100)) is None
    assert "101 training rows are more than most_rows = 100" in str(process.skip(Problem("regression", (2,), 1, 101)))
    assert "classes" in str(process.skip(Problem("classification", (2,), 3)))
    assert "images" in str(process.skip(Problem("regression", (3, 8, 8), 1)))


def test_the_mean_of_the_trees_is_the_forest_of_scikit_learn() -> None:
    train = regression()
    method = RandomForest(trees=25, min_leaf=2, features=0.5)
    stated = method.predict(method.fit(train, None, seed=7), train.x, 100, seed=0)
    assert isinstance(stated, Points)
    assert stated.values.shape == (25, 60)  # all trees there are
    forest = RandomForestRegressor(25, min_samples_leaf=2, max_features=0.5, random_state=7).fit(train.x, train.y)
    np.testing.assert_allclose(stated.values.mean(0), forest.predict(train.x), rtol=1e-6)
    assert len({tree.tobytes() for tree in stated.values}) == 25


@pytest.mark.parametrize("missing", [None, 1, 3])
def test_the_forest_has_a_column_for_every_class(missing: int | None) -> None:
    train = classes(missing)
    method = RandomForest(trees=12)
    stated = method.predict(method.fit(train, None, seed=3), train.x, 12, seed=0)
    assert isinstance(stated, Probabilities)
    forest = RandomForestClassifier(12, max_features=1.0, random_state=3).fit(train.x, train.y)
    expected = np.zeros((len(train), 4))
    expected[:, forest.classes_] = forest.predict_proba(train.x)
    np.testing.assert_allclose(stated.values.mean(0), expected, rtol=1e-6)
