"""A method is a distribution over functions: prediction is `f(x; w_t)` with `w_t ~ q(w)`, `t = 1..T`.

Its author writes one ordinary network's code (how it is built, what its loss is, how one function is drawn); the
harness does stacking, seeds, T, chunks, devices and early stopping.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from bench.api.base_method import BaseMethod
from bench.api.dataset import Array, Problem, Task
from bench.api.optim import Optimizer, Step, Tensors
from bench.api.tape import Tape
from bench.metrics import Normal, Points, Prediction, Probabilities


@dataclass(frozen=True)
class Batch:
    """Rows of data as a method sees them: inputs and targets in training units."""

    task: Task
    x: Tensor  # `[rows, features]`, or images `[rows, channels, height, width]`
    y: Tensor  # `[rows]`, without an axis for outputs: numbers, or whole numbers that name classes from 0
    rows: Tensor  # how many rows the whole training set has: the N of an ELBO or a posterior

    def loss(self, outputs: Tensor) -> Tensor:
        """Mean squared error (regression) or cross-entropy (classification) of a network's outputs."""
        if self.task == "regression":
            return F.mse_loss(outputs[..., 0], self.y)
        # Spelled out because `cross_entropy` has no batching rule for class indices that is as fast.
        return -F.log_softmax(outputs, -1).gather(-1, self.y.unsqueeze(-1)).mean()


@dataclass(frozen=True)
class Net:
    """One network as a pure function: a module's code, with its tensors beside it.

    `params` are trained. Names with a colon (`alpha:layers.0.weight`) are a method's own and never reach the module;
    all others are the module's. `memory` is what a method keeps from the fit for drawing (moments, samples, ...).
    """

    module: nn.Module
    params: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]
    memory: Mapping[str, Tensor] = field(default_factory=dict)

    def __call__(self, x: Tensor, **arguments: Any) -> Tensor:
        """Return the network's outputs `[rows, outputs]`; arguments go to the module's `forward`."""
        own = {name: tensor for name, tensor in self.params.items() if ":" not in name}
        outputs: Tensor = functional_call(self.module, own | dict(self.buffers), (x,), arguments)
        return outputs

    def with_params(self, changed: Mapping[str, Tensor]) -> Self:
        """Return the same network with some parameters replaced."""
        if unknown := changed.keys() - self.params.keys():
            raise KeyError(
                f"the network has no parameter {', '.join(sorted(unknown))}; it has {', '.join(self.params)}"
            )
        return replace(self, params={**self.params, **changed})

    @property
    def weights(self) -> dict[str, Tensor]:
        """The module's weight matrices and kernels: no biases, no normalisation."""
        return {name: p for name, p in self.params.items() if ":" not in name and p.ndim >= 2}


NewNetwork = Callable[[int], nn.Module]


class Method(BaseMethod):
    """How one network is trained and how one function is drawn.

    Subclass it as a frozen dataclass whose fields are the hyper-parameters. **Float fields may differ between the
    members of a stack**: inside `loss`, `update`, `remember`, `validate` and `draw` they are scalar tensors, so write
    arithmetic with them, not `if self.rate > 0`. Fields of other types are the same throughout a stack.

    All hooks are pure: they return new tensors and change nothing. `loss`, `update`, `remember` and `validate` are
    recorded once and replayed, so a counter or a random number of Python's inside them would stand still.

    A search (`search_space`) minimises the validation loss, so an option that acts only after the fit, such as a prior
    or a level of test noise, is tuned in `finish` instead.

    Early stopping and search watch `validate`. A method that overrides `loss` but not `validate` is watched by the loss
    of its own draws, because `net(x)` need not be what it trains; `watched = "network"` declares that `net(x)`, without
    noise, is what they should watch. Where `predict` is overridden, too, what a draw states has no loss that the
    harness knows, and they watch the method's own `loss` on the validation rows.

    `spread` declares what the variance of the draws stands for: "posterior", what is not known about the function,
    which falls with more data (`uqbench verify` checks that); "level", noise of a level that is an option, tuned or
    trained; "aleatoric", the noise of the data, or nothing, because there is one function.
    """

    early_stopping: ClassVar[bool] = True  # False: train all epochs, where the end of the training is what is kept
    watched: ClassVar[Literal["network", "draw"] | None] = None  # by early stopping and search; None: see above
    networks: int = 1  # independently trained networks of one cell; draw t comes from network t mod networks

    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        """Return one freshly initialised network; `new_network(outputs)` makes the suite's architecture."""
        return new_network(problem.outputs)

    def init(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return tensors to train beside the module's own; their names contain a colon."""
        return {}

    def memory(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return what the method keeps beside the parameters, as it is before the first step."""
        return {}

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the scalar that a training step makes smaller."""
        return batch.loss(net(batch.x))

    def update(
        self, net: Net, gradient: Tensors, optimizer: Optimizer, state: Tensors, step: Step, tape: Tape
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return parameters and optimiser state after a step (Langevin methods add their noise here)."""
        return optimizer.update(net.params, gradient, state, step)

    def remember(self, net: Net, progress: Tensor, tape: Tape) -> dict[str, Tensor]:
        """Return the memory after an epoch that ended at this share of the training (weight averages, samples)."""
        return dict(net.memory)

    def validate(self, net: Net, batch: Batch) -> Tensor:
        """Return the validation loss that early stopping and selection watch; the default is the loss of `net(x)`.

        The default is used where `loss` is the default, too, or where `watched` is "network"; see `watched`.
        """
        return batch.loss(net(batch.x))

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        """Return the memory after the fit (a Hessian, a tuned level); called once for each network, outside vmap.

        `validation` has rows that did not train: the suite's calibration rows, or where it sets none aside those that
        early stopping watched; None if the suite holds out no rows.
        """
        return dict(net.memory)

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return one function of q at x: logits `[rows, classes]`, means `[rows, 1]`, or means and variances.

        A method that overrides `predict` returns the columns that it reads there. A draw that reads nothing from its
        tape is the same every time: then a network has one function. The tape may hold noise that all rows share or
        noise of each row, not both.
        """
        return net(x)

    def predict(self, drawn: Array, task: Task) -> Prediction:
        """Return what T drawn functions `[T, rows, columns]` state about their rows, in training units.

        By default one column is a point, two are the mean and the noise variance of a normal, and the columns of a
        classification are probabilities, the softmax of what `draw` returned. A method that overrides this gets the
        columns as `draw` returned them. Called outside vmap; each row depends on its own values alone.
        """
        if task == "classification":
            return Probabilities(drawn)
        if drawn.shape[-1] == 1:
            return Points(drawn[..., 0])
        return Normal(drawn[..., 0], noise_variance=drawn[..., 1])

    def inspect(self, net: Net) -> dict[str, Tensor]:
        """Return tensors of a trained network to store for figures (noise levels, ...)."""
        return {}


def as_float32(array: Array) -> Tensor:
    """Return an array as a float32 tensor that shares nothing with it."""
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)).clone()
