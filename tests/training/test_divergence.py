"""A training that diverges names the first value that was not finite."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.api import Batch, Method, Net, Split, Tape
from bench.methods.deterministic import Deterministic
from bench.run.job import Job
from bench.run.jobs import outcomes
from bench.spec.cell import Outcome
from bench.spec.plugin import PluginSpec
from bench.spec.protocol import Protocol, Training
from bench.training.divergence import STEPS, first_not_finite
from bench.training.member import Fitted
from tests.fixtures.training import FitInOrder, MakeMember


@dataclass(frozen=True)
class LogOfZero(Method):
    """The loss is not finite once the training has reached the share `start`."""

    def memory(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        return {"epochs": torch.zeros(())}

    def remember(self, net: Net, progress: Tensor, tape: Tape) -> dict[str, Tensor]:
        return {"epochs": net.memory["epochs"] + 1}

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return batch.loss(net(batch.x)) + 0 * (2 - net.memory["epochs"]).log()


@dataclass(frozen=True)
class RootOfZero(Method):
    """A loss that is finite, with a gradient that is not."""

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        bias = net.params["layers.1.bias"]
        return batch.loss(net(batch.x)) + (bias - bias.detach()).square().sum().sqrt()


@dataclass(frozen=True)
class BadUpdate(Method):
    def update(self, net: Net, gradient: Any, optimizer: Any, state: Any, step: Any, tape: Tape) -> Any:
        params, state = optimizer.update(net.params, gradient, state, step)
        return {**params, "layers.0.bias": params["layers.0.bias"] / (step.progress < 0.35)}, state


@dataclass(frozen=True)
class BadMemory(LogOfZero):
    def remember(self, net: Net, progress: Tensor, tape: Tape) -> dict[str, Tensor]:
        return {"epochs": net.memory["epochs"] / 0}


@dataclass(frozen=True)
class BadLayer(Method):
    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        huge = {"layers.0.weight": net.params["layers.0.weight"] * 1e30 * 1e30}
        return batch.loss(net.with_params(huge)(batch.x))


# Six steps in an epoch of 100 rows at batch 16: the 12th of 30 is the first with 11 / 30 >= 0.35 done. Memory counts
# from 0, so log(2 - 2) is that of the third epoch.
CASES = [
    (LogOfZero(), "epoch 3, step 1: the loss, though all layers had finite outputs"),
    (RootOfZero(), r"epoch 1, step 1: the gradient of layers.1.bias, though the loss was [0-9.]+$"),
    (BadUpdate(), r"epoch 2, step 6: layers.0.bias after update"),
    (BadMemory(), r"after epoch 1, step 6: the result of remember"),
    (BadLayer(), r"epoch 1, step 1: the outputs of layer 'layers.0' \(Dense\)"),
]


@pytest.mark.parametrize(("method", "place"), CASES, ids=lambda v: type(v).__name__ if isinstance(v, Method) else "")
def test_the_first_value_is_named(method: Method, place: str, member: MakeMember, fit_in_order: FitInOrder) -> None:
    one = member(method, patience=2)
    (fitted,) = fit_in_order([one])
    assert fitted.status == "diverged"
    found = first_not_finite(one, fitted)
    assert re.match(place, found), found


def test_a_training_that_was_long_is_not_repeated(member: MakeMember) -> None:
    one = member(RootOfZero(), epochs=10**6)
    assert first_not_finite(one, Fitted(one.new_network(1), {}, {}, epochs=STEPS)) == ""


X = np.linspace(0, 1, 40)[:, None]
SPLIT = Split("regression", X, X[:, 0], np.array([[0.0], [0.5], [1.0]]), np.zeros(3))


def outcome_of(method: Method, **training: Any) -> Outcome:
    settings = Training(**{"epochs": 3, "batch": 8, **training})
    ((_, outcome),) = outcomes(
        [Job(method, Protocol(settings, PluginSpec("mlp", options={"hidden": [4]}), draws=5), SPLIT, 0)]
    )
    return outcome


def test_the_outcome_tells_it() -> None:
    outcome = outcome_of(Deterministic(), optimizer="sgd", learning_rate=1e20)
    assert outcome.status == "diverged"
    assert outcome.message.startswith(
        "the loss of the network was not finite in epoch 1; first not finite: epoch 1, step "
    )


@dataclass(frozen=True)
class BadFinish(Method):
    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        return {"spread": train.y.mean().log() - train.y.mean().log() + torch.tensor(torch.nan)}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return net(x) + net.memory["spread"]


@dataclass(frozen=True)
class BadDraw(Method):
    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        middle = x.abs() < 0.2  # in training units
        return net(x) + tape.normal(()) + torch.where(middle, torch.nan, 0.0)


def test_predictions_that_are_not_finite_are_named() -> None:
    first = "a prediction at the test rows was not finite; first not finite: "
    told = outcome_of(BadFinish())
    assert (told.status, told.message) == (
        "diverged",
        first + "memory['spread'] of network 0 after the fit (see finish and remember)",
    )
    told = outcome_of(BadDraw())
    assert (told.status, told.message) == ("diverged", first + "draw 0 at row 1 (5 of 15 values; see draw)")
