"""A network that predicts a Gaussian: two outputs, the mean and, through a softplus, the variance.

loss = 1/2 log v(x) + (y - m(x))^2 / (2 v(x)),   v = softplus(second output) + 1e-6
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.api import Batch, Method, Net, NewNetwork, Problem, Tape


class GaussianHead(Method):
    """The hooks of methods whose networks state a variance."""

    def skip(self, problem: Problem) -> str | None:
        """Return why classes need no Gaussian."""
        return None if problem.task == "regression" else "a Gaussian head is for regression; a softmax has its own"

    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        """Return the suite's network with two outputs."""
        return new_network(2)

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the negative log-likelihood of a row, without its constant."""
        return gaussian_loss(self.draw(net, batch.x, tape), batch.y)

    def validate(self, net: Net, batch: Batch) -> Tensor:
        """Return the same on validation rows."""
        return gaussian_loss(moments(net(batch.x)), batch.y)

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the means and variances."""
        return moments(net(x))


def moments(outputs: Tensor) -> Tensor:
    """Return mean and variance `[rows, 2]` from the network's two outputs."""
    return torch.stack([outputs[..., 0], F.softplus(outputs[..., 1]) + 1e-6], -1)


def gaussian_loss(stated: Tensor, y: Tensor) -> Tensor:
    """Return the mean negative log-likelihood, without its constant."""
    mean, variance = stated.unbind(-1)
    return (variance.log() / 2 + (y - mean).square() / (2 * variance)).mean()
