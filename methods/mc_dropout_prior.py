"""MC dropout as inference in a model with a prior and a noise level: tied weight decay, and a likelihood of its own.

    loss = mean_n (y_n - f(x_n; masks))^2 + l^2 (1 - p) noise^2 / (2 N) * sum_layers ||W||^2
    p(y | x) = 1/T sum_t N(f(x; masks_t), noise^2)

Gal and Ghahramani 2016, "Dropout as a Bayesian Approximation", arXiv:1506.02142. Inputs and hidden units are dropped
with the same probability p, and the weight decay follows from p, the prior's length scale l, the variance of the noise
(1/tau in the paper) and the number of training rows N. It is the decay of the authors' experiments (net/net.py of
github.com/yaringal/DropoutUncertaintyExps), which acts on weight matrices, not on biases, and is added to the mean of
the squared error, not of half of it. Every draw states the noise: the log score of the mixture of draws is the log
likelihood of the paper, and a search can choose rate and noise together by it. Regression only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from bench.api import Batch, Look, Net, Problem, Tape
from bench.methods._bayes import Bayesian, negative_log_likelihood, require_positive
from bench.methods._dropout import keep


@dataclass(frozen=True)
class MCDropoutPrior(Bayesian):
    """Dropout of inputs and hidden units at `rate`; `noise` is a standard deviation in training units of the target."""

    rate: float = 0.05  # probability of dropping an input or a hidden unit
    noise: float = 0.3  # standard deviation of the likelihood, in training units
    length_scale: float = 0.01  # l of the prior, which the weight decay follows from

    title = "MC dropout with a prior"
    look = Look("orange", "--", "D")
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {
        "rate": (0.005, 0.01, 0.05, 0.1),
        "noise": (0.07, 0.1, 0.14, 0.2, 0.28, 0.4),
    }
    spread = "level"  # the noise sits on activations, and its rate is an option, not a posterior

    def __post_init__(self) -> None:
        if not 0 <= self.rate < 1:
            raise ValueError(f"rate must be in [0, 1), got {self.rate}")
        require_positive(noise=self.noise, length_scale=self.length_scale)

    def skip(self, problem: Problem) -> str | None:
        """Return why classes are not for this method."""
        return None if problem.task == "regression" else "its noise is that of a real target; classes have mc-dropout"

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the data loss under a fresh mask for every row, and the decay that belongs to rate, noise and rows."""
        return batch.loss(self.masked(net, batch.x, tape, slice(0, None))) + self.penalty(net, batch.rows)

    def validate(self, net: Net, batch: Batch) -> Tensor:
        """Return the negative log likelihood of the network of mean activations, without its constant."""
        return negative_log_likelihood(net, batch, net(batch.x), self.noise)

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one mask, with the variance of the noise."""
        means = self.masked(net, x, tape, slice(1, None))
        return torch.cat([means, torch.ones_like(means) * self.noise**2], -1)

    def masked(self, net: Net, x: Tensor, tape: Tape, axes: slice) -> Tensor:
        """Return the outputs under masks that have these axes of inputs and activations."""
        x = x * keep(x.shape[axes], self.rate, tape)
        return net(x, hidden=lambda h: h * keep(h.shape[axes], self.rate, tape))

    def penalty(self, net: Net, rows: Tensor) -> Tensor:
        """Return l^2 (1 - p) noise^2 / (2 N) times the sum of all squared weights."""
        squares = torch.stack([weight.square().sum() for weight in net.weights.values()]).sum()
        return self.length_scale**2 * (1 - self.rate) * self.noise**2 / (2 * rows) * squares
