"""Functions drawn from a Gaussian process, with an exact posterior; every split has its own function (generated).

    y = f(x) + noise e,   f ~ GP(0, k),   k(x, x') = 1/d sum_j exp(-(x_j - x'_j)^2 / (2 length^2)),   e ~ N(0, 1)

The kernel is a Fourier series with a period of 12 + 8 lengths, which differs from the squared exponential by less
than 1e-12 here, so that f has finitely many Gaussian weights, a value everywhere, and a posterior in closed form
(Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapter 2). x and gap are those of known-noise.
"""

from dataclasses import dataclass

import numpy as np

from bench.api import Array, Split
from bench.datasets._laws import GaussianWeights, KnownLaw, inputs_for, known_split


@dataclass(frozen=True)
class KnownProcess(KnownLaw):
    """A regression problem whose law and posterior are known exactly."""

    length: float = 0.6
    noise: float = 0.2
    gap: bool = False

    task = "regression"
    positive = ("length", "noise")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length < 0.05:
            raise ValueError(f"length must be at least 0.05, got {self.length}")

    def load(self, split: int) -> Split:
        """Return a function and samples of its own for every split."""
        random = np.random.default_rng([1618, split])
        frequencies, sizes = fourier_series(self.length)
        weights = random.normal(size=2 * len(sizes) * self.inputs)
        law = GaussianWeights(weights, self.noise, frequencies, sizes)
        x, test_x, groups = inputs_for(random, self.rows, self.test_rows, self.inputs, self.gap)
        return known_split(law, x, test_x, random, groups)


def fourier_series(length: float) -> tuple[Array, Array]:
    """Return the frequencies of the squared exponential kernel of variance 1, and the deviation of each wave."""
    period = 12 + 8 * length
    count = int(np.ceil(7.5 * period / (2 * np.pi * length)))  # the next has a variance of exp(-7.5^2 / 2) of the first
    frequencies = 2 * np.pi * np.arange(count + 1) / period
    power = np.sqrt(2 * np.pi) * length / period * np.exp(-np.square(frequencies * length) / 2)
    power[1:] *= 2
    return frequencies, np.sqrt(power)
