"""Monte Carlo noise injection with a fixed noise level.

    w~ = w + alpha * eps,   eps ~ N(0, sigma_l^2),   sigma_l = std of layer l's weights

in training and in every draw, on weights only (no biases, no normalisation). Yuan, Li and Kuruoglu, "Uncertainty
Quantification With Noise Injection in Neural Networks: A Bayesian Perspective", 2025, arXiv:2501.12314, section III.

Beyond the paper: another `law` of the noise (laplace, uniform, student-t with `degrees` of freedom, all of the same
variance), noise in proportion to each weight (`multiplicative`), noise only in training or only in draws (`noise_in`),
and a gradient that flows through sigma_l, too (`sigma_gradient`); the paper does not say whether it does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from bench.api import Look, Net
from bench.methods._weight_noise import NoisyWeights


@dataclass(frozen=True)
class MCNIFixed(NoisyWeights):
    """Weight noise of one constant level `alpha`."""

    alpha: float = 0.05  # level of the noise, in standard deviations of a layer's weights

    title = "MCNI (fixed)"
    look = Look("blue", "-", "^")
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {"alpha": (0.001, 0.005, 0.01, 0.05, 0.1)}
    spread = "level"  # alpha is an option: the noise does not know how many rows there were

    def level(self, net: Net, name: str) -> Tensor | float:
        """Return alpha."""
        return self.alpha
