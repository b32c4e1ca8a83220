"""The MCNI paper's toy function (section IV): 200 points of a sine with noise that grows away from zero.

    x ~ U[-2, 2],   y = 0.3 sin(pi x) + 0.2 eps,   eps ~ N(0, x^2)

Every split is a fresh sample. The paper measures coverage on the points it trained on, and so does `test = "same"`;
`test = "fresh"` measures on a second sample of the same size.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bench.api import Array, Dataset, Split


def truth(x: Array) -> Array:
    """Return the function without its noise."""
    return 0.3 * np.sin(np.pi * x)


@dataclass(frozen=True)
class Toy(Dataset):
    """A one-dimensional regression problem with known truth."""

    rows: int = 200
    test: Literal["same", "fresh"] = "same"

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

    def load(self, split: int) -> Split:
        """Return a sample of its own for every split."""
        random = np.random.default_rng([2024, split])
        x, y = self._sample(random)
        test_x, test_y = (x, y) if self.test == "same" else self._sample(random)
        return Split("regression", x, y, test_x, test_y, test_truth=truth(test_x[:, 0]))

    def _sample(self, random: np.random.Generator) -> tuple[Array, Array]:
        x = random.uniform(-2, 2, self.rows)
        y = truth(x) + 0.2 * random.normal(0, np.abs(x))
        return x[:, None], y
