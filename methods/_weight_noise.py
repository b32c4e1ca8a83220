"""Noise on weights, scaled by each layer's own spread (equation 4 of the MCNI paper), and its variations.

    w~ = w + alpha * eps,   eps = sigma_l * z,   z of mean 0 and variance 1

The paper's z is a standard normal. The other laws are exact transformations of the tape's numbers, scaled to variance 1
so that only their shape differs: Laplace by inversion of a uniform, Student's t as a normal over a chi of independent
normals, and the uniform itself.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from bench.api import Batch, Method, Net, Tape

Law = Literal["gaussian", "laplace", "student-t", "uniform"]


def standard(law: Law, degrees: int, shape: Sequence[int], tape: Tape) -> Tensor:
    """Return numbers of mean 0 and variance 1; `degrees` of freedom are Student's."""
    if law == "uniform":
        return (tape.uniform(shape) - 0.5) * math.sqrt(12)
    if law == "laplace":
        centred = tape.uniform(shape) - 0.5
        # The uniform may be 0, whose logarithm is infinite; its next value is 2^-24.
        return -centred.sign() * (1 - 2 * centred.abs()).clamp(min=2**-24).log() / math.sqrt(2)
    if law == "student-t":
        chi2 = tape.normal((degrees, *shape)).square().sum(0).clamp(min=1e-12)
        return tape.normal(shape) * ((degrees - 2) / chi2).sqrt()
    return tape.normal(shape)


def with_noise(
    net: Net,
    tape: Tape,
    level: Callable[[str], Tensor | float],
    law: Law = "gaussian",
    degrees: int = 5,
    multiplicative: bool = False,
    sigma_gradient: bool = False,
) -> Net:
    """Return the network with w~ = w + alpha * eps, eps ~ N(0, sigma_l^2), on its weights only.

    sigma_l is the (population) standard deviation of layer l's current weights, or with `multiplicative` each weight's
    own size. It is a scale, not a path for the gradient: the noise should not teach the weights to shrink. With
    `sigma_gradient` it is such a path.
    """
    noisy = {}
    for name, weight in net.weights.items():
        scale = weight if sigma_gradient else weight.detach()
        sigma = scale.abs() if multiplicative else _spread(scale, sigma_gradient)
        noisy[name] = weight + level(name) * (sigma * standard(law, degrees, weight.shape, tape))
    return net.with_params(noisy)


def _spread(weight: Tensor, differentiable: bool) -> Tensor:
    """Return the standard deviation; for equal weights its gradient is infinite, that of the differentiable form 0."""
    return weight.var(correction=0).clamp(min=1e-24).sqrt() if differentiable else weight.std(correction=0)


@dataclass(frozen=True)
class NoisyWeights(Method):
    """Noise on the weights in training and in every draw, of a level that subclasses define."""

    law: Law = "gaussian"  # of the noise; all have the same variance
    degrees: int = 5  # of freedom, of Student's t
    multiplicative: bool = False  # scaled by each weight's size instead of its layer's spread
    noise_in: Literal["both", "train", "test"] = "both"  # in training and draws, or in one of them only
    sigma_gradient: bool = False  # whether the gradient flows through sigma, too

    later = frozenset({"sigma_gradient"})
    watched = "network"  # the network without noise, as in the paper

    def __post_init__(self) -> None:
        if self.degrees <= 2:
            raise ValueError(f"degrees must be above 2, where Student's t has a variance, got {self.degrees}")

    def level(self, net: Net, name: str) -> Tensor | float:
        """Return alpha of one weight tensor."""
        raise NotImplementedError

    def noisy(self, net: Net, tape: Tape) -> Net:
        """Return one noisy network."""
        options = (self.law, self.degrees, self.multiplicative, self.sigma_gradient)
        return with_noise(net, tape, lambda name: self.level(net, name), *options)

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the data loss of one noisy network."""
        return batch.loss((net if self.noise_in == "test" else self.noisy(net, tape))(batch.x))

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one noisy network."""
        return (net if self.noise_in == "train" else self.noisy(net, tape))(x)
