"""Monte Carlo noise injection with a fixed noise level.

    w~ = w + alpha * eps,   eps ~ N(0, sigma_l^2),   sigma_l = std of layer l's weights

in training and in every draw, on weights only (no biases, no normalisation). Yuan, Li and Kuruoglu, "Uncertainty
Quantification With Noise Injection in Neural Networks: A Bayesian Perspective", section III.
"""

from dataclasses import dataclass

from torch import Tensor

from bench.api import Batch, Method, Net
from bench.methods._weight_noise import with_noise
from bench.tape import Tape


@dataclass(frozen=True)
class MCNIFixed(Method):
    """Weight noise of one constant level `alpha`."""

    alpha: float = 0.05

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the data loss of one noisy network."""
        return batch.loss(with_noise(net, tape, lambda name: self.alpha)(batch.x))

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one noisy network."""
        return with_noise(net, tape, lambda name: self.alpha)(x)
