"""Monte Carlo dropout: Bernoulli masks on the hidden activations, in training and in every draw.

    h~ = h * m / (1 - p),   m_j ~ Bernoulli(1 - p)

Gal and Ghahramani 2016, "Dropout as a Bayesian Approximation", arXiv:1506.02142. In training every row has its own
mask, as in ordinary dropout. A draw is one function: one mask, shared by all rows (`per_row = true` gives every row of
a draw its own mask instead, as a plain forward pass in training mode does).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from bench.api import Batch, Look, Method, Net, Tape


@dataclass(frozen=True)
class MCDropout(Method):
    """Dropout that stays on; `rate` is the probability of dropping a unit."""

    rate: float = 0.1
    per_row: bool = False

    look = Look("orange", "-", "s")
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {"rate": (0.001, 0.005, 0.01, 0.05, 0.1, 0.2)}
    expected_failures: ClassVar[Mapping[str, str]] = {
        "variance-shrinks": "the noise sits on hidden activations, and its rate is an option, not a posterior"
    }

    def __post_init__(self) -> None:
        if not 0 <= self.rate < 1:
            raise ValueError(f"rate must be in [0, 1), got {self.rate}")

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the data loss under a fresh mask for every row."""
        return batch.loss(net(batch.x, hidden=lambda h: h * self.mask(h.shape, tape)))

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one mask."""
        rows = slice(0, None) if self.per_row else slice(1, None)
        return net(x, hidden=lambda h: h * self.mask(h.shape[rows], tape))

    def mask(self, shape: tuple[int, ...], tape: Tape) -> Tensor:
        """Return a mask that keeps the mean."""
        return (tape.uniform(shape) >= self.rate) / (1 - self.rate)
