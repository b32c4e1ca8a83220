"""Two moons: two interleaved half circles with noise, two classes in the plane (generated).

    class 0: (cos t, sin t),   class 1: (1 - cos t, 1/2 - sin t),   t ~ U[0, pi],   plus noise N(0, noise^2)

Every split is a fresh sample of training rows and another of test rows.
"""

from dataclasses import dataclass

import numpy as np

from bench.api import Array, Dataset, Split


@dataclass(frozen=True)
class TwoMoons(Dataset):
    """A two-dimensional classification problem whose boundary can be drawn."""

    rows: int = 300  # of the training set
    test_rows: int = 1000  # rows of the test set
    noise: float = 0.2  # standard deviation of the points around their moon

    task = "classification"
    repeats = "independent"
    source = "generated"
    licence = "none needed"

    def __post_init__(self) -> None:
        if min(self.rows, self.test_rows) < 2:
            raise ValueError(f"rows and test_rows must be at least 2, got {self.rows} and {self.test_rows}")
        if self.noise < 0:
            raise ValueError(f"noise must not be negative, got {self.noise}")

    def load(self, split: int) -> Split:
        """Return samples of its own for every split."""
        random = np.random.default_rng([2718, split])
        x, y = self._sample(random, self.rows)
        test_x, test_y = self._sample(random, self.test_rows)
        return Split("classification", x, y, test_x, test_y, classes=2)

    def _sample(self, random: np.random.Generator, rows: int) -> tuple[Array, Array]:
        y = np.arange(rows) % 2  # as many of one class as of the other
        angle = random.uniform(0, np.pi, rows)
        side = 1 - 2 * y
        x = np.column_stack([y + side * np.cos(angle), y / 2 + side * np.sin(angle)])
        return x + random.normal(0, self.noise, x.shape), y
