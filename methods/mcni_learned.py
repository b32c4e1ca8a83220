"""Monte Carlo noise injection with learned noise levels.

    w~ = w + alpha * eps,   eps ~ N(0, sigma_l^2),   loss + penalty:  L - lambda * ||alpha||^2

alpha is trained with the weights: one for each weight (the paper), for each channel (all weights into one unit), for
each layer, or for the whole network. The optional penalty keeps alpha from vanishing; a weight decay of -d on alpha,
which adds -d alpha to the gradient, is a penalty of d / 2. Yuan, Li and Kuruoglu,
"Uncertainty Quantification With Noise Injection in Neural Networks: A Bayesian Perspective", 2025, arXiv:2501.12314,
section III.

Beyond the paper: the options of mcni-fixed. Without noise in training there would be nothing to learn alpha from, so
`noise_in` is "both" or "train".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from bench.api import Batch, Look, Net, Tape
from bench.methods._weight_noise import NoisyWeights


@dataclass(frozen=True)
class MCNILearned(NoisyWeights):
    """Weight noise whose levels start at `alpha` and are trained; `penalty` is the paper's lambda."""

    alpha: float = 0.05  # first level of the noise, in standard deviations of a layer's weights
    granularity: Literal["weight", "channel", "layer", "scalar"] = "weight"  # what has a level of its own
    penalty: float = 0.0  # the paper's lambda, which keeps levels from vanishing

    title = "MCNI (learned)"
    look = Look("green", "-", "D")
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {"alpha": (0.001, 0.005, 0.01, 0.05, 0.1)}
    spread = "level"  # without a penalty alpha is trained towards 0, where the loss is least

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise_in == "test":
            raise ValueError("noise_in must be 'both' or 'train': levels are learned from noise in training")

    def init(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return the first noise levels."""
        if self.granularity == "scalar":
            first = next(iter(net.weights.values()))
            return {"alpha:": torch.full((), self.alpha, device=first.device)}
        return {f"alpha:{name}": self.alpha * torch.ones_like(self._part(w)) for name, w in net.weights.items()}

    def _part(self, weight: Tensor) -> Tensor:
        """Return a tensor of the shape of one weight tensor's levels."""
        if self.granularity == "channel":
            return weight.flatten(1)[:, 0].view(-1, *[1] * (weight.ndim - 1))
        return weight if self.granularity == "weight" else weight.sum()

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the data loss of one noisy network, less the penalty."""
        size = sum(alpha.square().sum() for name, alpha in net.params.items() if name.startswith("alpha:"))
        return super().loss(net, batch, tape) - self.penalty * size

    def level(self, net: Net, name: str) -> Tensor | float:
        """Return the learned levels of one weight tensor."""
        return net.params["alpha:" if self.granularity == "scalar" else f"alpha:{name}"]

    def inspect(self, net: Net) -> dict[str, Tensor]:
        """Return the learned levels."""
        return {name: alpha for name, alpha in net.params.items() if name.startswith("alpha:")}
