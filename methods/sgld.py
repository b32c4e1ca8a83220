"""Stochastic gradient Langevin dynamics: samples of the posterior along one noisy training.

    w <- w - step * g + sqrt(2 step / N) eps,   g = grad U(w) / N from one batch

Welling and Teh 2011, "Bayesian Learning via Stochastic Gradient Langevin Dynamics" (ICML),
https://icml.cc/2011/papers/398_icmlpaper.pdf. `preconditioned` scales every coordinate by the size of its gradients
(Li, Chen, Carlson and Carin 2016, "Preconditioned Stochastic Gradient Langevin Dynamics for Deep Neural Networks",
arXiv:1512.07666, without the term in the derivative of G, as there):

    V <- 0.99 V + 0.01 g^2,   G = 1.1 r / (sqrt(V) + 0.1 r),   r = root of the mean of V over the network

(scaled by r, so that `step` means the same with and without). The first share `burn_in` of the training goes to the
posterior's mode with the suite's optimiser, the rest samples with a constant `step`; `samples` of it are kept, evenly
spaced. The step is that of the dynamics, not the suite's learning rate: too large, and the variance is too large (by
about step * curvature / 2, and by the noise of small batches); too small, and the samples do not leave the mode.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from bench.api import Batch, Look, Method, Net, Optimizer, Step, Tape, Tensors
from bench.methods._bayes import energy, first_noise, own, require_positive, without_decay
from bench.methods._langevin import first_samples, kept_samples, langevin, sampled


@dataclass(frozen=True)
class SGLD(Method):
    """Langevin samples from the second part of the training."""

    step: float = 0.01  # of the dynamics
    burn_in: float = 0.5  # share of the training before the first sample
    samples: int = 30  # kept, evenly spaced
    preconditioned: bool = False  # whether steps are scaled by the size of gradients
    prior: float = 3.0  # standard deviation of the prior of a weight, times 1 / sqrt(inputs of its unit)
    noise: float = 0.5  # first standard deviation of the likelihood in regression, in training units
    learn_noise: bool = True  # whether the noise of the likelihood is learned, or stays at `noise`

    title = "SGLD"
    look = Look("red", "--", ">")
    watched = "network"  # the present sample
    early_stopping = False  # the samples come from the end of the training
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {
        "step": (0.002, 0.01, 0.05),
        "preconditioned": (False, True),
        "prior": (1.0, 3.0, 10.0),
    }

    def __post_init__(self) -> None:
        require_positive(step=self.step, prior=self.prior, noise=self.noise, samples=self.samples)
        if not 0 <= self.burn_in < 1:
            raise ValueError(f"burn_in must be in [0, 1), got {self.burn_in}")

    def init(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return a learned noise, and V: kept among the trained tensors, since those are what a step may change."""
        second = {f"second:{name}": torch.zeros_like(w) for name, w in own(net).items()} if self.preconditioned else {}
        return second | first_noise(net, self.noise, self.learn_noise)

    def memory(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return room for the samples."""
        return first_samples(net, self.samples)

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return U / N, estimated from one batch."""
        return energy(net, batch, self.noise, self.prior)

    def update(
        self, net: Net, gradient: Tensors, optimizer: Optimizer, state: Tensors, step: Step, tape: Tape
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return a step of the suite's optimiser, or after the burn-in one of the dynamics."""
        optimised, state = optimizer.update(net.params, gradient, state, without_decay(step))
        second = self.second_moments(net, gradient)
        moved = langevin(net, gradient, self.step, step, tape, _preconditioner(second) if second else None)
        sampling = step.progress >= self.burn_in
        params = {name: torch.where(sampling, moved[name], optimised[name]) for name in net.params}
        return params | {f"second:{name}": v for name, v in second.items()}, state

    def second_moments(self, net: Net, gradient: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return V after this gradient; empty without a preconditioner."""
        if not self.preconditioned:
            return {}
        return {name: 0.99 * net.params[f"second:{name}"] + 0.01 * gradient[name].square() for name in own(net)}

    def remember(self, net: Net, progress: Tensor, tape: Tape) -> dict[str, Tensor]:
        """Return the samples with the present one."""
        return kept_samples(net, progress, 1, self.samples, self.burn_in)

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one sample."""
        return sampled(net, tape)(x)


def _preconditioner(second: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return G: 1 where gradients are as large as the network's root mean square, at most 11 where they vanish."""
    total = torch.stack([v.sum() for v in second.values()]).sum()
    root = (total / sum(v.numel() for v in second.values())).sqrt() + 1e-12
    return {name: 1.1 * root / (v.sqrt() + 0.1 * root) for name, v in second.items()}
