"""Borrowed modules: their dropout layers are where methods change hidden activations."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bench.api import Array, Hidden, Network, Problem, unchanged
from bench.errors import UserError
from bench.machine.torchvision_compat import import_torchvision
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.networks.mlp import MLPNetwork
from bench.training.draw_cache import cached_layers
from bench.training.drawing import Drawing, draw
from bench.training.limits import Limits, is_large
from bench.training.member import Fitted
from bench.training.network_factory import WithHidden, network_factory, runs_alone, with_hidden
from tests.fixtures.training import FitInOrder, MakeMember

ROWS = Problem("regression", (8,), 1)


@dataclass(frozen=True)
class Borrowed(Network):
    """A perceptron as one writes it without this harness."""

    rate: float = 0.7

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 20), nn.ReLU(), nn.Dropout(self.rate), nn.Linear(20, outputs))


@dataclass(frozen=True)
class Bare(Network):
    """A perceptron without any place for noise."""

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 20), nn.ReLU(), nn.Linear(20, outputs))


@dataclass(frozen=True)
class Branching(Network):
    """A network that looks at its values, which vmap cannot."""

    stackable = False

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        return _Branches(8, outputs)


@dataclass(frozen=True)
class BranchingInAStack(Branching):
    """The same, not declared."""

    stackable = True


class _Branches(nn.Linear):
    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        outputs = super().forward(hidden(x))
        return -outputs if x.sum().item() > 1e6 else outputs


def torchvision_models() -> Any:
    """Return torchvision's models, or skip the test where it is not installed."""
    try:
        return import_torchvision().models
    except UserError as error:
        pytest.skip(str(error))


def draws(fitted: Fitted, rate: float = 0.3, limits: Limits = Limits()) -> Array:
    x = torch.randn(6, 8, generator=torch.Generator().manual_seed(1))
    return draw(Drawing(MCDropout(rate), [fitted], "regression", x, 3, 5), limits)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["stack", "plain"])
def test_mc_dropout_on_a_borrowed_module_is_mc_dropout_on_ours(
    path: str, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    """To the last bit: the same initial weights, masks at the same place, and its own rate plays no part."""
    limits = Limits(path=path)  # type: ignore[arg-type]
    found = [
        fit_in_order([member(MCDropout(0.3), seed, network=network) for seed in range(2)], limits)[0]
        for network in (Borrowed(), MLPNetwork((20,)))
    ]
    for mine, theirs in zip(found[0].params.values(), found[1].params.values(), strict=True):
        assert torch.equal(mine, theirs)
    np.testing.assert_array_equal(draws(found[0], limits=limits), draws(found[1], limits=limits))
    assert draws(found[0], limits=limits).std(0).min() > 0


def test_a_method_without_noise_sees_no_dropout(member: MakeMember, fit_in_order: FitInOrder) -> None:
    ours, theirs = (
        fit_in_order([member(Deterministic(), network=network)], Limits(path="plain"))[0]
        for network in (MLPNetwork((20,)), Borrowed())
    )
    assert ours.train_loss == theirs.train_loss


def test_a_module_without_a_place_is_told_clearly(member: MakeMember, fit_in_order: FitInOrder) -> None:
    assert fit_in_order([member(Deterministic(), network=Bare())], Limits(path="plain"))[0].status == "ok"
    reason = "no place for noise on hidden activations: Sequential.forward has no argument 'hidden' .* nn.Dropout"
    with pytest.raises(UserError, match=reason):
        fit_in_order([member(MCDropout(), network=Bare())])


def test_dropout_anywhere_in_a_module_is_a_place_and_a_shared_layer_several() -> None:
    shared = nn.Dropout(0.5)
    inner = nn.Sequential(nn.Linear(3, 3), shared, nn.Sequential(nn.Tanh(), shared, nn.Dropout1d()))
    module = with_hidden(nn.Sequential(inner, nn.Linear(3, 2)))
    calls: list[Tensor] = []

    def look(h: Tensor) -> Tensor:
        calls.append(h)
        return h

    module.train()
    x = torch.randn(4, 3)
    torch.testing.assert_close(module(x, hidden=look), module(x))
    assert isinstance(module, WithHidden)
    assert len(calls) == module.places == 3


def test_a_module_with_the_argument_is_used_as_it_is() -> None:
    module = network_factory(MLPNetwork(), ROWS)(1)
    assert next(name for name, _ in module.named_parameters()) == "layers.0.weight"
    assert with_hidden(module) is module


@pytest.mark.parametrize("training", [True, False])
def test_hidden_reaches_the_layers_of_torchs_transformer(training: bool) -> None:
    """Also in evaluation, where torch has a fused kernel that leaves them out."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.4, batch_first=True)
    module = with_hidden(nn.Sequential(nn.Unflatten(1, (1, 8)), layer, nn.Flatten(), nn.Linear(8, 1)))
    module.train(training)
    x = torch.randn(5, 8)
    with torch.no_grad():
        plain, again, changed = module(x), module(x), module(x, hidden=torch.zeros_like)
    assert torch.equal(plain, again)  # neither these layers nor the attention drop anything by themselves
    assert not torch.equal(plain, changed)
    assert torch.backends.mha.get_fastpath_enabled()


def test_cached_layers_do_not_hide_the_noise() -> None:
    """The module inside gets the same rows in every draw, but not the same `hidden`."""
    module = network_factory(Borrowed(), ROWS)(1).eval()
    x, computed = torch.randn(4, 8), []
    first = module.get_submodule("module.0")
    plain = first.forward

    def counted(h: Tensor) -> Tensor:
        computed.append(h)
        outputs: Tensor = plain(h)
        return outputs

    first.forward = counted
    with torch.no_grad():
        expected = [module(x, hidden=lambda h, k=k: h * k) for k in range(3)]
        computed.clear()
        with cached_layers([module]):
            found = [module(x, hidden=lambda h, k=k: h * k) for k in range(3)]
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)
    assert len(computed) == 1  # what comes before the noise is computed once


def test_a_network_that_declares_it_trains_and_draws_alone(member: MakeMember, fit_in_order: FitInOrder) -> None:
    limits = Limits(path="stack", compiling=False)
    (fitted,) = fit_in_order([member(MCDropout(0.3), network=Branching(), epochs=1)], limits)
    assert fitted.status == "ok"
    assert runs_alone(fitted.module)
    assert is_large(1.0, limits, alone=True)
    assert draws(fitted, limits=limits).std(0).min() > 0
    with pytest.raises(Exception, match=r"(?i)item|vmap"):
        fit_in_order([member(MCDropout(0.3), network=BranchingInAStack(), epochs=1)], limits)


def test_torchvisions_networks_work_without_surgery() -> None:
    models = torchvision_models()
    with_dropout = with_hidden(models.mobilenet_v2(num_classes=3)).eval()
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        assert not torch.equal(with_dropout(x), with_dropout(x, hidden=torch.zeros_like))
        without = with_hidden(models.resnet18(num_classes=3)).eval()
        assert without(x).shape == (2, 3)
        with pytest.raises(UserError, match=r"ResNet\.forward has no argument 'hidden'"):
            without(x, hidden=unchanged)
