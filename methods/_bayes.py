"""The parts that Bayesian methods share: a likelihood, a Gaussian prior over the weights, and no other weight decay.

    U(w) / N = 1/N sum_n -log p(y_n | x_n, w) - 1/N log p(w)

Classification: p is the softmax. Regression: p(y | x, w) = N(f(x; w), noise^2) with the noise in training units (where
targets are standardised, noise = 0.5 means that a quarter of their variance cannot be predicted). A learned noise is
trained, or sampled, beside the weights, under a flat prior on its logarithm.

Prior: w ~ N(0, prior^2 / fan_in) for weights and N(0, prior^2) for biases and normalisation, so that the functions of
the prior have the same size whatever the width of the network.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from bench.api import Batch, Method, Net, Optimizer, Step, Tape, Tensors

LOG_NOISE = "noise:"  # the logarithm of a learned noise, among the trained tensors


def own(net: Net) -> dict[str, Tensor]:
    """Return the module's own parameters, without what methods train beside them."""
    return {name: w for name, w in net.params.items() if ":" not in name}


def first_noise(net: Net, noise: float, learned: bool) -> dict[str, Tensor]:
    """Return the tensor of a learned noise before the first step."""
    like = next(iter(net.params.values()))
    return {LOG_NOISE: like.new_tensor(math.log(noise))} if learned else {}


def negative_log_likelihood(net: Net, batch: Batch, outputs: Tensor, noise: float) -> Tensor:
    """Return -log p(y | x, w), mean over the rows, without its constant."""
    if batch.task == "classification":
        return batch.loss(outputs)
    log_noise = net.params[LOG_NOISE] if LOG_NOISE in net.params else torch.as_tensor(noise).log()
    return batch.loss(outputs) / (2 * (2 * log_noise).exp()) + log_noise


def prior_scale(weight: Tensor, prior: float) -> float:
    """Return the standard deviation of the prior of one tensor's entries."""
    fan_in = weight[0].numel() if weight.ndim >= 2 else 1
    return prior / math.sqrt(fan_in)


def prior_energy(net: Net, prior: float, centre: Mapping[str, Tensor] | None = None) -> Tensor:
    """Return -log p(w), without its constant, of a prior around zero or around another centre."""
    terms = []
    for name, weight in own(net).items():
        away = weight if centre is None else weight - centre[name]
        terms.append((away / prior_scale(weight, prior)).square().sum() / 2)
    return torch.stack(terms).sum()


def energy(net: Net, batch: Batch, noise: float, prior: float) -> Tensor:
    """Return U / N, estimated from one batch."""
    likelihood = negative_log_likelihood(net, batch, net(batch.x), noise)
    return likelihood + prior_energy(net, prior) / batch.rows


def without_decay(step: Step) -> Step:
    """Return the step with no weight decay of the suite's: the prior of the method is what decays."""
    return replace(step, weight_decay=torch.zeros_like(step.weight_decay))


class Bayesian(Method):
    """A method whose prior is in its loss, in place of the suite's weight decay."""

    def update(
        self, net: Net, gradient: Tensors, optimizer: Optimizer, state: Tensors, step: Step, tape: Tape
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return a step of the suite's optimiser without its weight decay, which would pull to zero."""
        return optimizer.update(net.params, gradient, state, without_decay(step))


def require_positive(**options: float) -> None:
    """Refuse options that have to be positive and are not."""
    for name, value in options.items():
        if not value > 0:
            raise ValueError(f"{name} must be above 0, got {value}")
