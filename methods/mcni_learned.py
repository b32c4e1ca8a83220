"""Monte Carlo noise injection with learned noise levels.

    w~ = w + alpha * eps,   eps ~ N(0, sigma_l^2),   loss + penalty:  L - lambda * ||alpha||^2

alpha is trained with the weights: one for each weight (the paper), one for each layer, or one for the whole network.
The optional penalty keeps alpha from vanishing. Yuan, Li and Kuruoglu, "Uncertainty Quantification With Noise
Injection in Neural Networks: A Bayesian Perspective", section III.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from bench.api import Batch, Method, Net
from bench.methods._weight_noise import with_noise
from bench.tape import Tape


@dataclass(frozen=True)
class MCNILearned(Method):
    """Weight noise whose levels start at `alpha` and are trained; `penalty` is the paper's lambda."""

    alpha: float = 0.05
    granularity: Literal["weight", "layer", "scalar"] = "weight"
    penalty: float = 0.0

    def init(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return the first noise levels."""
        if self.granularity == "scalar":
            first = next(iter(net.weights.values()))
            return {"alpha:": torch.full((), self.alpha, device=first.device)}
        return {
            f"alpha:{name}": torch.full_like(w, self.alpha)
            if self.granularity == "weight"
            else w.new_tensor(self.alpha)
            for name, w in net.weights.items()
        }

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the data loss of one noisy network, less the penalty."""
        size = sum(alpha.square().sum() for name, alpha in net.params.items() if name.startswith("alpha:"))
        return batch.loss(self.noisy(net, tape)(batch.x)) - self.penalty * size

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one noisy network."""
        return self.noisy(net, tape)(x)

    def noisy(self, net: Net, tape: Tape) -> Net:
        """Return the network with noise of the learned levels."""
        shared = self.granularity == "scalar"
        return with_noise(net, tape, lambda name: net.params["alpha:" if shared else f"alpha:{name}"])
