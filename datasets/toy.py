"""The MCNI paper's toy function (section IV): 200 points of a sine with noise that grows away from zero.

    x ~ U[-2, 2],   y = 0.3 sin(pi x) + 0.2 eps,   eps ~ N(0, x^2)

Every split is a fresh sample. The paper measures coverage on the points it trained on, and so does `test = "same"`;
`test = "fresh"` measures on a second sample of the same size. `x = "even"` has the points at equal distances, both ends
included. With a `sample` all splits are one and the same sample, that of numpy's legacy generator with this seed:
repeats then differ in initial weights and noise alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bench.api import Array, Dataset, Split

Generator = np.random.Generator | np.random.RandomState


def truth(x: Array) -> Array:
    """Return the function without its noise."""
    return 0.3 * np.sin(np.pi * x)


@dataclass(frozen=True)
class Toy(Dataset):
    """A one-dimensional regression problem with known truth."""

    rows: int = 200  # points of a sample
    test: Literal["same", "fresh"] = "same"  # at the training points, or at a second sample
    x: Literal["uniform", "even"] = "uniform"  # where the points are: at random, or at equal distances from -2 to 2
    sample: int | None = None  # the legacy seed of the one sample that all splits are; None: a sample for each

    later = frozenset({"x", "sample"})
    task = "regression"
    repeats = "independent"
    source = "generated"
    licence = "none needed"
    notes = ("with test = 'same' the test points are the training points, as in the paper",)
    expected_failures: ClassVar[Mapping[str, str]] = {
        "disjoint": "the paper measures coverage on the points it trained on; test = 'fresh' does not"
    }

    def __post_init__(self) -> None:
        if self.rows < 2:
            raise ValueError(f"rows must be at least 2, got {self.rows}")
        if self.test == "fresh":
            object.__setattr__(self, "notes", ())
        if self.sample is not None:
            if not 0 <= self.sample < 2**32:
                raise ValueError(
                    f"sample must be from 0 to 2^32 - 1, the seeds of numpy's generator, got {self.sample}"
                )
            object.__setattr__(self, "repeats", "seeds")  # the same rows in every split

    def load(self, split: int) -> Split:
        """Return a sample of its own for every split, or the one sample."""
        random: Generator = np.random.default_rng([2024, split])
        if self.sample is not None:
            random = np.random.RandomState(self.sample)
        x, y = self._sample(random)
        test_x, test_y = (x, y) if self.test == "same" else self._sample(random)
        return Split("regression", x, y, test_x, test_y, test_truth=truth(test_x[:, 0]))

    def _sample(self, random: Generator) -> tuple[Array, Array]:
        x = np.linspace(-2, 2, self.rows) if self.x == "even" else random.uniform(-2, 2, self.rows)
        y = truth(x) + 0.2 * random.normal(0, np.abs(x))
        return x[:, None], y
