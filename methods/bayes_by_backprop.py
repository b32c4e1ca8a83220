"""Bayes by Backprop: a Gaussian over every weight, trained by the evidence lower bound.

    q(w) = N(mu, s^2),  s = softplus(rho),   loss = 1/N [ E_q(-log p(y | x, w)) + temperature * KL(q || p) ]

Blundell, Cornebise, Kavukcuoglu and Wierstra 2015, "Weight Uncertainty in Neural Networks", arXiv:1505.05424, with a
Gaussian prior, whose KL is a closed form, in place of the paper's scale mixture. `local_reparameterization` samples the
outputs of linear layers instead of their weights in training (Kingma, Salimans and Welling 2015, "Variational Dropout
and the Local Reparameterization Trick", arXiv:1506.02557): row by row, z ~ N(x mu, x^2 s^2), the same expectation with
a smaller variance of the gradient. A draw always samples weights: it is one function.

`temperature = 1` is the evidence lower bound. On few rows a wide network's bound is best where q is near the prior and
the data are ignored (Coker, Bruinsma, Burt, Pan and Doshi-Velez 2022, "Wide Mean-Field Bayesian Neural Networks Ignore
the Data", arXiv:2202.11670; on the toy dataset longer training makes it more so), which is why the default is colder: a
posterior as if of ten times the data.

In regression the likelihood's noise decides how much the data weigh against the prior. It is learned, starting at
`noise`, or kept there with `learn_noise = false`. It is not part of a draw: draws hold the uncertainty of the function.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.api import Batch, Look, Net, Tape
from bench.methods._bayes import Bayesian, first_noise, negative_log_likelihood, own, prior_scale, require_positive


@dataclass(frozen=True)
class BayesByBackprop(Bayesian):
    """A mean-field Gaussian posterior; `initial` is its first standard deviation as a share of the prior's."""

    prior: float = 3.0  # standard deviation of the prior of a weight, times 1 / sqrt(inputs of its unit)
    initial: float = 0.01  # first standard deviation of the posterior, as a share of the prior's
    noise: float = 0.5  # first standard deviation of the likelihood in regression, in training units
    learn_noise: bool = True  # whether the noise of the likelihood is learned, or stays at `noise`
    temperature: float = 0.1  # weight of the divergence from the prior; 1: the evidence lower bound
    local_reparameterization: bool = True  # whether training samples outputs of layers instead of weights

    title = "Bayes by Backprop"
    look = Look("red", "-", "P")
    watched = "network"  # the network of the means
    early_stopping = False  # the mean is best long before its spread has grown to that of the posterior
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {"prior": (1.0, 3.0, 10.0), "temperature": (0.01, 0.1, 1.0)}

    def __post_init__(self) -> None:
        require_positive(prior=self.prior, initial=self.initial, noise=self.noise, temperature=self.temperature)

    def init(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return the first spreads."""
        first = {}
        for name, w in own(net).items():
            s = self.initial * prior_scale(w, self.prior)
            first[f"rho:{name}"] = torch.full_like(w, math.log(math.expm1(s)))  # softplus(rho) = s
        return first | first_noise(net, self.noise, self.learn_noise)

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the negative evidence lower bound of one row."""
        if self.local_reparameterization:
            with sampled_outputs(net, tape) as sampled:
                outputs = sampled(batch.x)
        else:
            outputs = self.sample(net, tape)(batch.x)
        divergence = self.temperature * self.divergence(net) / batch.rows
        return negative_log_likelihood(net, batch, outputs, self.noise) + divergence

    def divergence(self, net: Net) -> Tensor:
        """Return KL(q || p): the sum over weights of log(p/s) + (s^2 + mu^2) / (2 p^2) - 1/2."""
        terms = []
        for name, mean in own(net).items():
            scale = prior_scale(mean, self.prior)
            ratio = spread(net, name) / scale
            terms.append(((ratio.square() + (mean / scale).square() - 1) / 2 - ratio.log()).sum())
        return torch.stack(terms).sum()

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one sample of the weights."""
        return self.sample(net, tape)(x)

    def sample(self, net: Net, tape: Tape) -> Net:
        """Return the network with weights drawn from q."""
        return net.with_params({name: w + spread(net, name) * tape.normal(w.shape) for name, w in own(net).items()})


def spread(net: Net, name: str) -> Tensor:
    """Return the standard deviations of q for one tensor."""
    return F.softplus(net.params[f"rho:{name}"])


@contextmanager
def sampled_outputs(net: Net, tape: Tape) -> Iterator[Net]:
    """Give the network with linear layers whose outputs are sampled; the weights of all others are."""
    linear = {f"{prefix}." if prefix else "": m for prefix, m in net.module.named_modules() if isinstance(m, nn.Linear)}
    inside = {prefix + name for prefix, layer in linear.items() for name, _ in layer.named_parameters()}
    others = {n: w + spread(net, n) * tape.normal(w.shape) for n, w in own(net).items() if n not in inside}
    hooks = [layer.register_forward_hook(partial(_noisy, net, tape, prefix)) for prefix, layer in linear.items()]
    try:
        yield net.with_params(others)
    finally:
        for hook in hooks:
            hook.remove()


def _noisy(net: Net, tape: Tape, prefix: str, layer: nn.Module, inputs: tuple[Tensor, ...], outputs: Tensor) -> Tensor:
    """Add to a layer's mean outputs the noise that its weights' noise makes of them."""
    variance = F.linear(inputs[0].square(), spread(net, f"{prefix}weight").square())
    if f"{prefix}bias" in net.params:
        variance = variance + spread(net, f"{prefix}bias").square()
    return outputs + variance.sqrt() * tape.normal(outputs.shape)
