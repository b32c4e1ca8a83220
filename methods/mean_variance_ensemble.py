"""Deep ensemble of mean-variance networks, Lakshminarayanan's in regression: a mixture of K Gaussians.

    p(y | x) = 1/K sum_k N(m_k(x), v_k(x))

Lakshminarayanan, Pritzel and Blundell 2017, "Simple and Scalable Predictive Uncertainty Estimation using Deep
Ensembles", arXiv:1612.01474: its regression form, without adversarial training (`deep-ensemble` is its classification
form). The variance is the data's, mean of v_k, and the function's, variance of m_k. Regression only.
"""

from dataclasses import dataclass

from bench.api import Look
from bench.methods._gaussian_head import GaussianHead


@dataclass(frozen=True)
class MeanVarianceEnsemble(GaussianHead):
    """`networks` networks with Gaussian heads side by side."""

    networks: int = 5  # K, trained for one result

    title = "Mean-variance ensemble"
    look = Look("pink", ":", "<")

    def __post_init__(self) -> None:
        if self.networks < 1:
            raise ValueError(f"networks must be at least 1, got {self.networks}")
