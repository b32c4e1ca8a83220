"""Simulated studies whose true difference is known, on which error rates are measured.

Noise has mean 0 and variance 1, so that effects are in standard deviations of one method over seeds.
"""

from typing import Literal, get_args

import numpy as np
import scipy.stats

from bench.stats.tests import Array

Noise = Literal["gaussian", "skewed", "heavy-tailed"]
NOISES: tuple[Noise, ...] = get_args(Noise)


def noise(kind: Noise, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Return noise of mean 0 and variance 1: normal, exponential, or Student t with 3 degrees of freedom."""
    if kind == "gaussian":
        return generator.normal(size=shape)
    if kind == "skewed":
        return generator.exponential(size=shape) - 1.0
    return np.asarray(generator.standard_t(3.0, size=shape) / np.sqrt(3.0))


def repeated_runs(kind: Noise, shape: tuple[int, ...], methods: int, generator: np.random.Generator) -> Array:
    """Return values `[methods, *shape]` of methods that do not differ: a part that pairs share, and noise of their own.

    `shape` ends with the pairs. The methods are exchangeable, which is what "no difference" means.
    """
    return noise(kind, shape, generator) + noise(kind, (methods, *shape), generator)


def lopsided_differences(shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Return differences of mean 0 whose noise is skewed: one method is steady, the other has rare bad runs.

    Equal means, but not exchangeable: tests of means are not designed for this with few pairs.
    """
    return noise("skewed", shape, generator)


def unusual_differences(
    kind: str, shape: tuple[int, ...], generator: np.random.Generator
) -> tuple[Array, float, float]:
    """Return differences whose mean and median differ, with both: lognormal noise, or 2 % of runs that fail badly."""
    if kind == "lognormal":
        return generator.lognormal(size=shape), float(np.exp(0.5)), 1.0
    share, size = 0.02, 20.0
    d = generator.normal(size=shape) + size * (generator.random(shape) < share)
    # The failures lie far beyond the median, so half of all is what share / (1 - share) more of the others leave.
    return d, share * size, float(scipy.stats.norm.ppf(0.5 / (1.0 - share)))


def overlapping_splits(
    kind: Noise, studies: int, splits: int, generator: np.random.Generator, test_share: float = 0.1
) -> Array:
    """Return differences `[studies, splits]` of test error between two equally good regressions on random splits.

    Every study has one table of 100 rows, a share of which is held out at random again and again. Least
    squares sees the first 5 features or the last 5, which matter alike; the target has noise of the given kind.
    """
    rows, features = 100, 5
    tested = round(test_share * rows)
    found = np.empty((studies, splits))
    for start in range(0, studies, 100):
        count = min(100, studies - start)
        x = generator.normal(size=(count, rows, 2 * features))
        y = x.sum(axis=-1) + noise(kind, (count, rows), generator)
        order = np.argsort(generator.random((count, splits, rows)), axis=-1)
        test = np.zeros((count, splits, rows))
        np.put_along_axis(test, order[..., :tested], 1.0, axis=-1)
        errors = [_test_error(x[..., part], y, test) for part in (slice(features), slice(features, None))]
        found[start : start + count] = errors[0] - errors[1]
    return found


def shared_splits(
    studies: int, splits: int, seeds: int, seed_noise: float, generator: np.random.Generator, *, overlap: bool
) -> Array:
    """Return differences `[studies, splits, seeds]` without a true difference: of the splits, and of seeds on them.

    The differences of splits are those of `overlapping_splits` or independent, with a standard deviation of 1 within a
    study on average; that of seeds on one split is `seed_noise`.
    """
    if overlap:
        of_splits = overlapping_splits("gaussian", studies, splits, generator)
        of_splits /= of_splits.std(axis=-1, ddof=1).mean()
    else:
        of_splits = generator.normal(size=(studies, splits))
    return of_splits[..., None] + seed_noise * generator.normal(size=(studies, splits, seeds))


def _test_error(x: Array, y: Array, test: Array) -> Array:
    """Mean squared error on the test rows of least squares on the others, for every study and split."""
    studies, rows, features = x.shape
    products = (x[..., :, None] * x[..., None, :]).reshape(studies, rows, features**2)
    gram = ((1.0 - test) @ products).reshape(*test.shape[:2], features, features)
    moment = (1.0 - test) @ (x * y[..., None])
    coefficients = np.linalg.solve(gram, moment[..., None])[..., 0]
    residual = y[:, None, :] - coefficients @ np.swapaxes(x, -1, -2)
    return np.asarray((np.square(residual) * test).sum(axis=-1) / test.sum(axis=-1))
