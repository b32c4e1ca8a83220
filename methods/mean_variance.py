"""Mean-variance network: one network that states a mean and a variance for every row.

    p(y | x) = N(m(x), v(x)),   loss = 1/2 log v(x) + (y - m(x))^2 / (2 v(x))

Nix and Weigend 1994, "Estimating the Mean and Variance of the Target Probability Distribution" (ICNN),
doi:10.1109/ICNN.1994.374138. The variance is that of the data (aleatoric); the function itself is a point. Regression
only.
"""

from dataclasses import dataclass

from bench.api import Look
from bench.methods._gaussian_head import GaussianHead


@dataclass(frozen=True)
class MeanVariance(GaussianHead):
    """One network with a Gaussian head."""

    title = "Mean-variance network"
    look = Look("grey", "--", "X")
    spread = "aleatoric"  # it is one function: its variance is that of the data, not of the weights
