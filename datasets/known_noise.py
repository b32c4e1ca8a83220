"""A known function with noise of a known law: constant, growing, skewed, heavy-tailed or bimodal (generated).

    y = f(x) + s(x) e,   f(x) = 1/sqrt(d) sum_j (sin 2 x_j + x_j / 2),   x ~ U[-2, 2]^d,   E e = 0,   var e = 1

e is normal, a mixture of four normals with the skewness 1.3, a Student t of 3 degrees, or a mixture of two
separate normals. s is `size`; of growing noise it is `size` times 3^(x_1 / 2), from a third to three times of it. With
a gap the training rows have |x_1| in [0.6, 2] and the test rows x_1 in [-3, 3], in the groups data, gap and beyond.
"""

from dataclasses import dataclass

import numpy as np

from bench.api import Split
from bench.datasets._laws import KnownLaw, Noise, NoisyFunction, inputs_for, known_split


@dataclass(frozen=True)
class KnownNoise(KnownLaw):
    """A regression problem whose law of the targets is known exactly."""

    noise: Noise = "constant"
    rows: int = 200
    size: float = 0.3
    gap: bool = False

    task = "regression"
    positive = ("size",)

    def load(self, split: int) -> Split:
        """Return samples of its own for every split."""
        random = np.random.default_rng([3141, split])
        x, test_x, groups = inputs_for(random, self.rows, self.test_rows, self.inputs, self.gap)
        return known_split(NoisyFunction(self.noise, self.size), x, test_x, random, groups)
