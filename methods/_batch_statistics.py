"""The statistics that batch norm takes of a batch, without touching the network."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from bench.api import Net


class BatchNorm(nn.Module):
    """Batch norm of rows from plain tensor operations.

    torch's kernel folds the members of a stack into its channels, which makes the last bit of one depend on the
    others; a mean over the rows does not.
    """

    def __init__(self, units: int, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(units)), nn.Parameter(torch.zeros(units))
        self.running_mean: Tensor
        self.running_var: Tensor
        self.register_buffer("running_mean", torch.zeros(units))
        self.register_buffer("running_var", torch.ones(units))
        self.momentum, self.epsilon = momentum, epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows, each unit at mean 0 and variance 1 over the batch (training) or as remembered."""
        mean, variance = self.running_mean, self.running_var
        if self.training:
            mean = x.mean(0)
            centred = x - mean
            variance = centred.square().mean(0)
            unbiased = variance.detach() * (len(x) / max(1, len(x) - 1))
            self.running_mean.copy_((1 - self.momentum) * self.running_mean + self.momentum * mean.detach())
            self.running_var.copy_((1 - self.momentum) * self.running_var + self.momentum * unbiased)
        return (x - mean) / (variance + self.epsilon).sqrt() * self.weight + self.bias


NORMS = (BatchNorm, nn.modules.batchnorm._BatchNorm)


def norms(module: nn.Module) -> dict[str, float]:
    """Return the prefix of every batch norm's tensors, and its momentum."""
    found = {f"{name}." if name else "": part for name, part in module.named_modules() if isinstance(part, NORMS)}
    return {prefix: 0.1 if part.momentum is None else part.momentum for prefix, part in found.items()}


def batch_statistics(net: Net, x: Tensor) -> dict[str, Tensor]:
    """Return mean and (unbiased) variance of every batch norm over one batch, by the names of its buffers.

    In training mode a norm writes `momentum` times the batch's statistics into what it remembers; starting from zero,
    that is all there is in it.
    """
    momenta = norms(net.module)
    zero = {name: torch.zeros_like(buffer) for name, buffer in net.buffers.items()}
    before = net.module.training
    net.module.train()
    with torch.no_grad():
        replace(net, buffers=zero)(x)
    net.module.train(before)
    statistics = ("running_mean", "running_var")
    return {prefix + s: zero[prefix + s] / momentum for prefix, momentum in momenta.items() for s in statistics}
