"""Monte Carlo dropout: Bernoulli masks on the hidden activations, in training and in every draw.

    h~ = h * m / (1 - p),   m_j ~ Bernoulli(1 - p)

Gal and Ghahramani 2016, "Dropout as a Bayesian Approximation", arXiv:1506.02142. In training every row has its own
mask, as in ordinary dropout. A draw is one function: one mask, shared by all rows (`per_row = true` gives every row of
a draw its own mask instead, as a plain forward pass in training mode does). `input_rate` drops inputs, too, as the
experiments of the paper do; without it no input is dropped. Which activations are hidden is the network's matter: in
residual networks its option `noise_at` chooses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from bench.api import Batch, Look, Method, Net, Tape
from bench.methods._dropout import keep


@dataclass(frozen=True)
class MCDropout(Method):
    """Dropout that stays on; `rate` is the probability of dropping a hidden unit, `input_rate` of dropping an input."""

    rate: float = 0.1  # probability of dropping a hidden unit
    per_row: bool = False  # whether every row of a draw has its own mask
    input_rate: float | None = None  # probability of dropping an input; None: inputs are kept

    title = "MC dropout"
    look = Look("orange", "-", "s")
    watched = "network"  # the network of mean activations, as in ordinary dropout
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {"rate": (0.001, 0.005, 0.01, 0.05, 0.1, 0.2)}
    spread = "level"  # the noise sits on hidden activations, and its rate is an option, not a posterior

    def __post_init__(self) -> None:
        for name, rate in (("rate", self.rate), ("input_rate", self.input_rate)):
            if rate is not None and not 0 <= rate < 1:
                raise ValueError(f"{name} must be in [0, 1), got {rate}")

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the data loss under a fresh mask for every row."""
        return batch.loss(self.masked(net, batch.x, tape, slice(0, None)))

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one mask."""
        return self.masked(net, x, tape, slice(0 if self.per_row else 1, None))

    def masked(self, net: Net, x: Tensor, tape: Tape, axes: slice) -> Tensor:
        """Return the outputs under a mask that has these axes of the activations."""
        if self.input_rate is not None:
            x = x * keep(x.shape[axes], self.input_rate, tape)
        return net(x, hidden=lambda h: h * self.mask(h.shape[axes], tape))

    def mask(self, shape: Sequence[int], tape: Tape) -> Tensor:
        """Return a mask of hidden units."""
        return keep(shape, self.rate, tape)
