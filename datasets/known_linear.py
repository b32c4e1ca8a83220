"""Linear functions with Gaussian weights: conjugate Bayesian linear regression (generated).

    y = w_0 + sum_j w_j x_j + noise e,   w ~ N(0, I),   x ~ N(0, I),   e ~ N(0, 1)

Every split has its own weights. Posterior and predictive are normal, in closed form (Bishop, Pattern Recognition and
Machine Learning, 2006, section 3.3).
"""

from dataclasses import dataclass

import numpy as np

from bench.api import Split
from bench.datasets._laws import GaussianWeights, KnownLaw, known_split


@dataclass(frozen=True)
class KnownLinear(KnownLaw):
    """A regression problem whose law and posterior are known exactly."""

    inputs: int = 10
    noise: float = 1.0

    task = "regression"
    positive = ("noise",)

    def load(self, split: int) -> Split:
        """Return weights and samples of its own for every split."""
        random = np.random.default_rng([1414, split])
        law = GaussianWeights(random.normal(size=1 + self.inputs), self.noise)
        x, test_x = (random.normal(size=(rows, self.inputs)) for rows in (self.rows, self.test_rows))
        return known_split(law, x, test_x, random)
