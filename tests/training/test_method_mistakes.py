"""Mistakes that an author of a method may well make: each is one error that says what is wrong, stacked or plain."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.api import Batch, Method, Net, NewNetwork, Problem
from bench.api.tape import Tape
from bench.errors import UserError
from bench.networks.resnet8 import ResNet8Network
from bench.training.drawing import Drawing, draw
from bench.training.limits import Limits
from tests.fixtures.training import FitInOrder, MakeMember

Tensors = dict[str, Tensor]
BOTH = pytest.mark.parametrize("path", ["stack", "plain"])


@dataclass(frozen=True)
class GrowingMemory(Method):
    def remember(self, net: Net, progress: Tensor, tape: Tape) -> Tensors:
        return {**net.memory, "count": torch.ones(())}


@dataclass(frozen=True)
class GrowingState(Method):
    def update(
        self, net: Net, gradient: Any, optimizer: Any, state: Mapping[str, Tensor], step: Any, tape: Tape
    ) -> Any:
        params, kept = super().update(net, gradient, optimizer, state, step, tape)
        return params, {**kept, "more": torch.ones(())}


@BOTH
@pytest.mark.parametrize("method", [GrowingMemory(), GrowingState()], ids=lambda m: type(m).__name__)
def test_tensors_that_appear_in_training_are_refused(
    path: Any, method: Method, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    with pytest.raises(UserError, match=r"(remember|update).*py:\d+.* must return the tensors it was given"):
        fit_in_order([member(method)], Limits(path=path))


class LooseModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.projection = torch.randn(8, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.head(x @ self.projection)
        return outputs


@dataclass(frozen=True)
class Loose(Method):
    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        return LooseModule()


@dataclass(frozen=True)
class NameWithoutColon(Method):
    def init(self, net: Net, tape: Tape) -> Tensors:
        return {"level": torch.ones(())}


@dataclass(frozen=True)
class GlobalInit(Method):
    def init(self, net: Net, tape: Tape) -> Tensors:
        return {"level:": torch.randn(())}


@dataclass(frozen=True)
class GlobalLoss(Method):
    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return batch.loss(net(batch.x + torch.randn(batch.x.shape)))


@dataclass(frozen=True)
class OwnGenerator(Method):
    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        source = torch.Generator().manual_seed(0)
        return batch.loss(net(batch.x + torch.randn(batch.x.shape, generator=source)))


@dataclass(frozen=True)
class InPlaceLoss(Method):
    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        net.params["layers.0.weight"].mul_(0.9)
        return batch.loss(net(batch.x))


@dataclass(frozen=True)
class InPlaceInputs(Method):
    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        x = batch.x
        x += 0.1 * tape.normal(x.shape)
        return batch.loss(net(x))


@dataclass(frozen=True)
class WrongBroadcast(Method):
    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return (net(batch.x) - batch.y).square().mean()


@dataclass(frozen=True)
class WrongMSE(Method):
    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        with warnings.catch_warnings(action="ignore"):
            return F.mse_loss(net(batch.x), batch.y)


@dataclass(frozen=True)
class OwnDropout(Method):
    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        return nn.Sequential(new_network(4), nn.Dropout(0.1), nn.Linear(4, problem.outputs))


@dataclass(frozen=True)
class OwnChannelDropout(Method):
    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        return nn.Sequential(nn.Sequential(new_network(4), nn.Dropout1d(0.1)), nn.Linear(4, problem.outputs))


@dataclass(frozen=True)
class Pairwise(Method):
    """Differences between all pairs of targets are no mistake."""

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        outputs = net(batch.x)[:, 0]
        return ((outputs[:, None] - outputs) - (batch.y[:, None] - batch.y)).square().mean()


@dataclass(frozen=True)
class NumpyLoss(Method):
    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return batch.loss(net(batch.x * float(np.random.default_rng().normal())))


@dataclass(frozen=True)
class RowLosses(Method):
    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return F.mse_loss(net(batch.x)[:, 0], batch.y, reduction="none")


@dataclass(frozen=True)
class GlobalFinish(Method):
    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        return {"noise": torch.randn(3)}


REFUSED = [
    (Loose(), "LooseModule.projection is a plain tensor; register it with register_buffer"),
    (NameWithoutColon(), r"init, test_method_mistakes.py:\d+: init returned level.*colon"),
    (GlobalInit(), "memory.* drew from torch's global generator"),
    (GlobalLoss(), "randn is not reproducible under the harness; take random numbers from the tape"),
    (OwnGenerator(), "randn is not reproducible under the harness; take random numbers from the tape"),
    (InPlaceLoss(), r"mul_ writes into net.params\['layers.0.weight'\] in place"),
    (InPlaceInputs(), r"add_ writes into batch.x in place"),
    (WrongBroadcast(), r"outputs of shape \[16, 1\] and targets of shape \[16\] broadcast to \[16, 16\]"),
    (WrongMSE(), r"outputs of shape \[16, 1\] and targets of shape \[16\] broadcast to \[16, 16\]"),
    (OwnDropout(), r"layer '1' \(Dropout\) draws random numbers of its own in training.*hidden="),
    (OwnChannelDropout(), r"layer '.*' \(Dropout1d\) draws random numbers of its own"),
    (NumpyLoss(), "loss gave two values"),
    (RowLosses(), r"loss must return one number, got a tensor of shape \(16,\)"),
    (GlobalFinish(), r"finish, test_method_mistakes.py:\d+ drew from torch's global generator"),
]


@BOTH
@pytest.mark.parametrize(("method", "reason"), REFUSED, ids=lambda v: type(v).__name__ if isinstance(v, Method) else "")
def test_mistakes_in_training_are_told(
    path: Any, method: Method, reason: str, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    with pytest.raises(UserError, match=reason):
        fit_in_order([member(method, epochs=1)], Limits(path=path))


def test_pairs_of_targets_are_no_mistake(member: MakeMember, fit_in_order: FitInOrder) -> None:
    assert fit_in_order([member(Pairwise(), epochs=1)])[0].status == "ok"


@dataclass(frozen=True)
class ProbabilityDraw(Method):
    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return net(x).softmax(-1)


@dataclass(frozen=True)
class ThreeColumns(Method):
    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return net(x).expand(-1, 3)


@dataclass(frozen=True)
class InPlaceDraw(Method):
    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        net.params["layers.0.bias"].add_(tape.normal(net.params["layers.0.bias"].shape))
        return net(x)


@dataclass(frozen=True)
class GlobalDraw(Method):
    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return net(x) + torch.randn(())


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (ProbabilityDraw(), "draw must return logits"),
        (ThreeColumns(), "got 3 columns"),
        (InPlaceDraw(), r"add_ writes into net.params\['layers.0.bias'\] in place"),
        (GlobalDraw(), "randn is not reproducible under the harness; take random numbers from the tape"),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, Method) else "",
)
def test_mistakes_in_drawing_are_told(
    method: Method, reason: str, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    images = isinstance(method, ProbabilityDraw)
    one = member(method, epochs=1, **({"network": ResNet8Network()} if images else {}))
    with pytest.raises(UserError, match=reason):
        draw(Drawing(method, fit_in_order([one]), one.problem.task, one.rows.x, 0, 3), Limits(path="plain"))
