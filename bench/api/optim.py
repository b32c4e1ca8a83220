"""Optimisers of one network as pure functions of its tensors, so that `vmap` makes them optimisers of a stack.

They follow `torch.optim.Adam` and `torch.optim.SGD` (weight decay added to the gradient), with learning rate and
weight decay as tensors that may differ for each member. Only the network's own tensors decay: what a method trains
beside them (names with a colon, such as noise levels) does not.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol

import numpy as np
from torch import Tensor, zeros_like

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Step:
    """What changes from step to step; scalars (tensors inside a stack).

    The corrections come from the host in double precision: a power computed on the device depends in its last bit on
    the place of the member in its stack.
    """

    learning_rate: Tensor
    weight_decay: Tensor
    correction1: Tensor  # 1 - beta1^t
    correction2: Tensor  # 1 - beta2^t
    progress: Tensor  # share of the planned training that is done, 0 at the first step
    rows: Tensor  # how many rows the whole training set has: the N of a posterior


class Optimizer(Protocol):
    """Turns a gradient into new tensors."""

    @property
    def betas(self) -> tuple[float, float]:
        """Decay rates of the two moments that `Step` corrects for."""
        ...

    def init(self, params: Tensors) -> dict[str, Tensor]:
        """Return the state before the first step."""
        ...

    def update(
        self, params: Tensors, gradient: Tensors, state: Tensors, step: Step
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the tensors and the state after one step."""
        ...


def decayed(name: str, param: Tensor, gradient: Tensor, step: Step) -> Tensor:
    """Return the gradient with the weight decay of the network's own tensors added."""
    return gradient if ":" in name else gradient + step.weight_decay * param


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), with weight decay as in `torch.optim.Adam`."""

    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8

    def init(self, params: Tensors) -> dict[str, Tensor]:
        """Return zero first and second moments."""
        return {f"{moment}.{name}": zeros_like(p) for moment in ("first", "second") for name, p in params.items()}

    def update(
        self, params: Tensors, gradient: Tensors, state: Tensors, step: Step
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the tensors and the state after one step."""
        beta1, beta2 = self.betas
        new_params, new_state = {}, {}
        for name, param in params.items():
            g = decayed(name, param, gradient[name], step)
            first = beta1 * state[f"first.{name}"] + (1 - beta1) * g
            second = beta2 * state[f"second.{name}"] + (1 - beta2) * (g * g)
            scale = (second / step.correction2).sqrt() + self.epsilon
            new_params[name] = param - (step.learning_rate / step.correction1) * (first / scale)
            new_state[f"first.{name}"], new_state[f"second.{name}"] = first, second
        return new_params, new_state


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent with momentum, as in `torch.optim.SGD` (no dampening); `nesterov` looks ahead."""

    momentum: float = 0.9
    nesterov: bool = False
    betas: tuple[float, float] = (0.0, 0.0)

    def init(self, params: Tensors) -> dict[str, Tensor]:
        """Return zero velocities."""
        return {f"velocity.{name}": zeros_like(p) for name, p in params.items()}

    def update(
        self, params: Tensors, gradient: Tensors, state: Tensors, step: Step
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the tensors and the state after one step."""
        new_params, new_state = {}, {}
        for name, param in params.items():
            g = decayed(name, param, gradient[name], step)
            # torch starts the velocity at the first gradient; starting at zero is the same number.
            velocity = self.momentum * state[f"velocity.{name}"] + g
            direction = g + self.momentum * velocity if self.nesterov else velocity
            new_params[name] = param - step.learning_rate * direction
            new_state[f"velocity.{name}"] = velocity
        return new_params, new_state


OptimizerName = Literal["adam", "sgd"]
ScheduleName = Literal["constant", "cosine", "step"]


def make_optimizer(name: OptimizerName, momentum: float, nesterov: bool = False) -> Optimizer:
    """Return the optimiser of that name; momentum is Adam's first beta or SGD's momentum."""
    return Adam(betas=(momentum, 0.999)) if name == "adam" else SGD(momentum, nesterov)


SCHEDULES: dict[ScheduleName, Callable[[float], float]] = {
    "constant": lambda progress: 1.0,
    "cosine": lambda progress: 0.5 * (1 + math.cos(math.pi * progress)),
    # He et al. 2016 on CIFAR-10: 32,000 and 48,000 of 64,000 steps.
    "step": lambda progress: 1.0 if progress < 0.5 else 0.1 if progress < 0.75 else 0.01,
}


@lru_cache(maxsize=4096)  # the slots of a stack are in different epochs
def epoch_rates(
    name: ScheduleName, betas: tuple[float, float], epoch: int, steps: int, epochs: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return learning-rate factor, Adam's two corrections and progress for the steps of one epoch: `[steps, 4]`."""
    # Plain Python floats: numpy's vectorised power may differ in the last bit with the length of the array.
    rows = []
    for i in range(epoch * steps, (epoch + 1) * steps):
        progress = i / (epochs * steps)
        rows.append((SCHEDULES[name](progress), 1 - betas[0] ** (i + 1), 1 - betas[1] ** (i + 1), progress))
    return np.array(rows)
