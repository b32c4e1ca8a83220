"""What an author may well write, and what the harness makes of it: the right numbers."""

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bench.api import Batch, Method, Net, NewNetwork, Problem
from bench.api.tape import Tape
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
