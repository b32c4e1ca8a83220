"""What an author may well write, and what the harness makes of it: the right numbers, or an error that helps."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.api import Batch, Method, Net, NewNetwork, Problem
from bench.api.tape import Tape
from bench.errors import UserError
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.networks.resnet8 import ResNet8Network
from bench.training.drawing import Drawing, draw
from bench.training.limits import Limits
from bench.training.member import Fitted
from tests.fixtures.training import FitInOrder, MakeMember

Tensors = dict[str, Tensor]
BOTH = pytest.mark.parametrize("path", ["stack", "plain"])


@pytest.mark.slow
@pytest.mark.parametrize("limits", [Limits(path="plain"), Limits(path="stack"), Limits(path="stack", bytes=1)], ids=str)
def test_every_network_of_an_ensemble_is_drawn_with_its_running_statistics(
    limits: Limits, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    network = ResNet8Network()
    members = [member(Deterministic(), seed, network=network, epochs=1) for seed in range(3)]
    networks = fit_in_order(members)
    x = members[0].rows.x[:9]
    before = [{k: b.clone() for k, b in f.buffers.items()} for f in networks]
    drawn = draw(Drawing(Deterministic(), networks, "classification", x, 0, 3), limits)
    for fitted, value, buffers in zip(networks, drawn, before, strict=True):
        fitted.module.eval()
        np.testing.assert_allclose(value, fitted(x).softmax(-1).numpy(), atol=1e-5)
        assert all(torch.equal(fitted.buffers[k], b) for k, b in buffers.items())


@dataclass(frozen=True)
class LastWeights(Method):
    """Memory that is the parameters' own tensors."""

    def memory(self, net: Net, tape: Tape) -> Tensors:
        return {name: torch.zeros_like(w) for name, w in net.params.items()}

    def remember(self, net: Net, progress: Tensor, tape: Tape) -> Tensors:
        return dict(net.params)


@dataclass(frozen=True)
class ConstantMemory(Method):
    def memory(self, net: Net, tape: Tape) -> Tensors:
        return {"started": torch.zeros(())}

    def remember(self, net: Net, progress: Tensor, tape: Tape) -> Tensors:
        return {"started": torch.ones(())}

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return batch.loss(net(batch.x)) * (1 + net.memory["started"])


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("method", [LastWeights(), ConstantMemory()], ids=lambda m: type(m).__name__)
def test_a_member_that_takes_a_slot_is_untouched_by_what_was_there(
    path: Any, method: Method, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    members = [member(method, seed, epochs=2 + seed % 3) for seed in range(4)]
    queued = fit_in_order(members, Limits(path=path, slots=2))
    for one, fitted in zip(members, queued, strict=True):
        alone = fit_in_order([one], Limits(path=path))[0]
        assert all(torch.equal(alone.params[key], fitted.params[key]) for key in alone.params)
        assert all(torch.equal(alone.memory[key], fitted.memory[key]) for key in alone.memory)


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


@dataclass(frozen=True)
class FrozenLayer(Method):
    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        module = new_network(problem.outputs)
        next(module.parameters()).requires_grad_(False)
        return module


@pytest.mark.slow
@BOTH
def test_what_an_author_froze_is_not_trained(path: Any, member: MakeMember, fit_in_order: FitInOrder) -> None:
    short, long = (
        fit_in_order([member(FrozenLayer(), weight_decay=0.1, epochs=e)], Limits(path=path))[0] for e in (1, 4)
    )
    assert torch.equal(short.buffers["layers.0.weight"], long.buffers["layers.0.weight"])
    assert not torch.equal(short.params["layers.1.weight"], long.params["layers.1.weight"])


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
    (NameWithoutColon(), r"init, test_guards.py:\d+: init returned level.*colon"),
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
    (GlobalFinish(), r"finish, test_guards.py:\d+ drew from torch's global generator"),
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


@dataclass(frozen=True)
class Scaled(Method):
    """Float options are tensors in every hook that is stacked, also where torch functions need them."""

    level: float = 0.5
    names: list[str] = field(default_factory=lambda: ["a"])

    @cached_property
    def doubled(self) -> Any:
        return 2 * self.level

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        pulled: Tensor = batch.loss(net(batch.x)) + self.doubled * net.params["layers.1.bias"].square().sum()
        return pulled

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return net(x) + torch.sqrt(self.level) * tape.normal(())  # type: ignore[arg-type]  # a tensor here


@pytest.mark.slow
def test_options_are_tensors_in_draw_and_what_is_derived_from_them_is_each_members_own(
    member: MakeMember, fit_in_order: FitInOrder
) -> None:
    members = [member(Scaled(level=level)) for level in (0.1, 5.0)]
    assert members[0].method.doubled == 0.2  # type: ignore[attr-defined]  # kept on the instance from now on
    together = fit_in_order(members)
    for one, fitted in zip(members, together, strict=True):
        alone = fit_in_order([one])[0]
        assert torch.equal(alone.params["layers.1.bias"], fitted.params["layers.1.bias"])
        assert np.isfinite(draw(Drawing(one.method, [fitted], "regression", one.rows.x, 0, 3))).all()


@dataclass(frozen=True)
class KeepsTheEnd(LastWeights):
    early_stopping = False


@pytest.mark.slow
def test_a_method_may_decline_early_stopping(member: MakeMember, fit_in_order: FitInOrder) -> None:
    settings = {"learning_rate": 0.3, "patience": 1, "epochs": 30}
    stopped, kept = fit_in_order([member(LastWeights(), **settings), member(KeepsTheEnd(), **settings)])
    assert stopped.epochs < 30
    assert kept.epochs == 30
    assert kept.validation_loss is None


def test_per_row_noise_does_not_depend_on_the_memory_limit(member: MakeMember, fit_in_order: FitInOrder) -> None:
    one = member(MCDropout(rate=0.5, per_row=True), epochs=1)
    (fitted,) = fit_in_order([one])
    x = one.rows.x.repeat(10, 1)
    job = Drawing(one.method, [fitted], "regression", x, 0, 4)
    drawn = draw(job)
    for limits in (Limits(bytes=1), Limits(bytes=20_000), Limits(path="plain")):
        np.testing.assert_allclose(draw(job, limits), drawn, atol=1e-5)
    assert not np.allclose(drawn[:, :120], drawn[:, 600:720])  # the same inputs, 600 rows later, under other masks


@pytest.mark.slow
def test_a_compiler_that_does_not_work_is_told_and_training_goes_on(
    member: MakeMember, fit_in_order: FitInOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(graph: Any, arguments: Any) -> Any:
        raise RuntimeError("no Python.h")

    monkeypatch.setattr("bench.training.stacked_calls.compiled", broken)
    expected = fit_in_order([member(Deterministic())])[0]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted = fit_in_order([member(Deterministic())], Limits(compiling=True))[0]
    assert any("no Python.h" in str(w.message) for w in told)
    assert all(torch.equal(expected.params[key], fitted.params[key]) for key in fitted.params)


def test_long_and_short_trainings_do_not_share_a_graph(member: MakeMember) -> None:
    assert member(Deterministic(), epochs=5).stack_key() == member(Deterministic(), epochs=6).stack_key()
    assert member(Deterministic(), epochs=5).stack_key() != member(Deterministic(), epochs=5000).stack_key()


@pytest.mark.slow
def test_augmentation_moves_images_in_training_only(member: MakeMember, fit_in_order: FitInOrder) -> None:
    network = ResNet8Network()

    def fitted(kind: str, black: tuple[float, ...] = ()) -> Fitted:
        one = member(Deterministic(), network=network, epochs=1, augmentation=kind)
        return fit_in_order([replace(one, rows=replace(one.rows, black=black))], Limits(path="plain"))[0]

    plain, moved = fitted("none"), fitted("crop-flip", (2.0,) * 3)
    dark, darker = (fitted("crop-flip-black", (value,) * 3) for value in (0.0, -2.0))
    assert torch.equal(dark.params["stem.conv.weight"], moved.params["stem.conv.weight"])
    assert not torch.allclose(darker.params["stem.conv.weight"], moved.params["stem.conv.weight"])
    stacked = fit_in_order(
        [member(Deterministic(), network=network, epochs=1, augmentation="crop-flip")], Limits(path="stack")
    )[0]
    kernels = [fitted.params["stem.conv.weight"] for fitted in (plain, moved, stacked)]
    assert not torch.allclose(kernels[0], kernels[1])
    torch.testing.assert_close(kernels[2], kernels[1], atol=1e-4, rtol=1e-3)
