"""Monte Carlo DropConnect: Bernoulli masks on the weights, in training and in every draw.

    w~ = w * m / (1 - p),   m_ij ~ Bernoulli(1 - p)

Wan, Zeiler, Zhang, LeCun and Fergus 2013, "Regularization of Neural Networks using DropConnect" (ICML),
https://proceedings.mlr.press/v28/wan13.html, and, with masks kept for drawing, Mobiny, Yuan, Moulik, Garg, Wu and Van
Nguyen 2021, "DropConnect is effective in modeling uncertainty of Bayesian deep networks", arXiv:1906.04569. One mask
per training step and per draw, on weights only; divided by 1 - p the mask keeps the mean.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from bench.api import Batch, Look, Method, Net, Tape


@dataclass(frozen=True)
class DropConnect(Method):
    """Weights dropped with probability `rate`."""

    rate: float = 0.1  # probability of dropping a weight

    title = "MC DropConnect"
    look = Look("sky", "--", "s")
    watched = "network"  # the network of mean weights
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {"rate": (0.001, 0.005, 0.01, 0.05, 0.1, 0.2)}
    spread = "level"  # the rate is an option: the noise does not know how many rows there were

    def __post_init__(self) -> None:
        if not 0 <= self.rate < 1:
            raise ValueError(f"rate must be in [0, 1), got {self.rate}")

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the data loss of one thinned network."""
        return batch.loss(self.thinned(net, tape)(batch.x))

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one thinned network."""
        return self.thinned(net, tape)(x)

    def thinned(self, net: Net, tape: Tape) -> Net:
        """Return the network with some of its weights at zero."""
        kept = {name: (tape.uniform(w.shape) >= self.rate) / (1 - self.rate) for name, w in net.weights.items()}
        return net.with_params({name: w * kept[name] for name, w in net.weights.items()})
