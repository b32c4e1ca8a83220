"""Gaussian noise on weights, scaled by each layer's own spread (equation 4 of the MCNI paper)."""

from collections.abc import Callable

from torch import Tensor

from bench.api import Net
from bench.tape import Tape


def with_noise(net: Net, tape: Tape, level: Callable[[str], Tensor | float]) -> Net:
    """Return the network with w~ = w + alpha * eps, eps ~ N(0, sigma_l^2), on its weights only.

    sigma_l is the (population) standard deviation of layer l's current weights. It is a scale, not a path for the
    gradient: the noise should not teach the weights to shrink.
    """
    noisy = {}
    for name, weight in net.weights.items():
        sigma = weight.detach().std(correction=0)
        noisy[name] = weight + level(name) * (sigma * tape.normal(weight.shape))
    return net.with_params(noisy)
