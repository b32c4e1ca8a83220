"""Cyclical SG-MCMC: a step size that falls from high to low again and again; every cycle samples another mode.

    step_t = step / 2 * (cos(pi * r_t) + 1),   r_t = share of the present cycle that is done

Zhang, Li, Zhang, Chen and Wilson 2020, "Cyclical Stochastic Gradient MCMC for Bayesian Deep Learning",
arXiv:1902.03932 (cSGLD). In the first share `exploration` of a cycle there is no noise: the suite's optimiser, with its
learning rate on the same cosine, looks for a mode. In the rest Langevin dynamics samples around it, and `samples` of
every cycle are kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from bench.api import Batch, Look, Method, Net, Optimizer, Step, Tape, Tensors
from bench.methods._bayes import energy, first_noise, require_positive, without_decay
from bench.methods._langevin import first_samples, kept_samples, langevin, sampled


@dataclass(frozen=True)
class CyclicalSGMCMC(Method):
    """`cycles` warm restarts, `samples` kept from the end of each."""

    cycles: int = 4  # warm restarts of the step size
    samples: int = 8  # kept from the end of each cycle
    exploration: float = 0.7  # share of a cycle without noise
    step: float = 0.05  # largest step of the dynamics
    prior: float = 3.0  # standard deviation of the prior of a weight, times 1 / sqrt(inputs of its unit)
    noise: float = 0.5  # first standard deviation of the likelihood in regression, in training units
    learn_noise: bool = True  # whether the noise of the likelihood is learned, or stays at `noise`

    title = "Cyclical SG-MCMC"
    look = Look("orange", "--", "p")
    watched = "network"  # the present sample
    early_stopping = False  # the samples come from all cycles
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {
        "step": (0.01, 0.05, 0.2),
        "cycles": (2, 4),
        "prior": (1.0, 3.0, 10.0),
    }
    expected_failures: ClassVar[Mapping[str, str]] = {
        "variance-shrinks": "four cycles of 80 steps do not come to rest; with four times the steps it passes"
    }

    def __post_init__(self) -> None:
        require_positive(step=self.step, prior=self.prior, noise=self.noise, cycles=self.cycles, samples=self.samples)
        if not 0 <= self.exploration < 1:
            raise ValueError(f"exploration must be in [0, 1), got {self.exploration}")

    def init(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return a learned noise."""
        return first_noise(net, self.noise, self.learn_noise)

    def memory(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return room for the samples."""
        return first_samples(net, self.cycles * self.samples)

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return U / N, estimated from one batch."""
        return energy(net, batch, self.noise, self.prior)

    def update(
        self, net: Net, gradient: Tensors, optimizer: Optimizer, state: Tensors, step: Step, tape: Tape
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return a step of the suite's optimiser, or near the end of a cycle one of the dynamics."""
        position = step.progress * self.cycles
        done = position - position.floor()
        # Sixteen equal numbers: a vector of full width, whose cosine does not depend on the place in a stack.
        factor = (torch.cos(torch.pi * done.expand(16).clone())[0] + 1) / 2
        slower = replace(without_decay(step), learning_rate=step.learning_rate * factor)
        optimised, state = optimizer.update(net.params, gradient, state, slower)
        moved = langevin(net, gradient, self.step * factor, step, tape)
        sampling = done >= self.exploration
        return {name: torch.where(sampling, moved[name], optimised[name]) for name in net.params}, state

    def remember(self, net: Net, progress: Tensor, tape: Tape) -> dict[str, Tensor]:
        """Return the samples with the present one."""
        return kept_samples(net, progress, self.cycles, self.samples, self.exploration)

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one sample."""
        return sampled(net, tape)(x)
