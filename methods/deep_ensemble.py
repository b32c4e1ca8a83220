"""Plain deep ensemble, of points or softmax: K networks from independent starts and shuffles; a draw is one of them.

    q(w) = 1/K sum_k delta(w - w_k)

Lakshminarayanan, Pritzel and Blundell 2017, "Simple and Scalable Predictive Uncertainty Estimation using Deep
Ensembles", arXiv:1612.01474, without adversarial training. In classification this is the paper's ensemble. In
regression it is not: these networks predict a point and are trained by squared error, where the paper's state a mean
and a variance; that one is `mean-variance-ensemble`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from bench.api import Look, Method


@dataclass(frozen=True)
class DeepEnsemble(Method):
    """`networks` deterministic networks side by side, none of which states a variance."""

    networks: int = 5  # K, trained for one result

    look = Look("pink", "-", "v")
    expected_failures: ClassVar[Mapping[str, str]] = {
        "variance-shrinks": "without a prior all networks of a convex problem find the same minimum"
    }

    def __post_init__(self) -> None:
        if self.networks < 1:
            raise ValueError(f"networks must be at least 1, got {self.networks}")
