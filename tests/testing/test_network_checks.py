"""Perceptrons: a healthy network, and one broken network for every check."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bench.api import Hidden, Network, Problem, unchanged
from bench.testing import network_checks, verify


class Perceptron(nn.Module):
    """One hidden layer."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(features, 6), nn.Linear(6, outputs)

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        outputs: Tensor = self.last(hidden(self.first(x.flatten(1)).relu()))
        return outputs


@dataclass(frozen=True)
class Healthy(Network):
    """A perceptron that is healthy."""

    module: ClassVar[type[nn.Module]] = Perceptron

    def skip(self, problem: Problem) -> str | None:
        return "is for tables" if len(problem.inputs) > 1 else None

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        return self.module(problem.inputs[0], outputs)


@dataclass(frozen=True)
class NoDefault(Healthy):
    """A perceptron without default."""

    units: int


@dataclass(frozen=True)
class NoVersion(Healthy):
    """A perceptron without version."""

    version: ClassVar[Any] = 1


@dataclass(frozen=True)
class BadExcuse(Healthy):
    """A perceptron with an excuse."""

    expected_failures: ClassVar[Mapping[str, str]] = {"shaps": "they are what they are"}


@dataclass(frozen=True)
class BadReason(Healthy):
    """A perceptron with two lines of reasons."""

    def skip(self, problem: Problem) -> str | None:
        return "too\nlong" if len(problem.inputs) > 1 else None


@dataclass(frozen=True)
class OneOutput(Healthy):
    """A perceptron that ignores the number of outputs."""

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        return super().build(problem, problem.outputs)


class PlainTensor(Perceptron):
    """Has a tensor that is no buffer."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__(features, outputs)
        self.scale = torch.ones(1)


@dataclass(frozen=True)
class Constant(Healthy):
    """A perceptron that sets its own seed."""

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        torch.manual_seed(0)
        return super().build(problem, outputs)


@dataclass(frozen=True)
class Numpy(Healthy):
    """A perceptron with numbers of numpy."""

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        np.random.rand()  # noqa: NPY002
        return super().build(problem, outputs)


class Counting(Perceptron):
    """Counts its calls."""

    calls: Tensor

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__(features, outputs)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        with torch.no_grad():
            self.calls.add_(1)
        return super().forward(x, hidden)


class Centred(Perceptron):
    """Subtracts the mean over the rows."""

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        outputs = super().forward(x, hidden)
        return outputs - 0.5 * outputs.mean(0)


class Deaf(Perceptron):
    """Calls hidden and does not use its value."""

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        hidden(self.first(x).relu())
        return super().forward(x)


class Unused(Perceptron):
    """Has a layer that nothing depends on."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__(features, outputs)
        self.spare = nn.Linear(2, 2)


class OnHost(Perceptron):
    """Adds a tensor that lies on the host."""

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        return super().forward(x, hidden) + torch.zeros(1)


class Looking(Perceptron):
    """Looks at its values."""

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        return super().forward(x, hidden) * (1.0 if x.abs().sum().item() < 1e9 else 2.0)


def with_module(module: type[nn.Module]) -> type[Network]:
    """Return a network of that module."""

    @dataclass(frozen=True)
    class Broken(Healthy):
        """A perceptron that is not healthy."""

    Broken.module = module
    return Broken


BROKEN: dict[str, type[Network]] = {
    "options": NoDefault,
    "version": NoVersion,
    "expected-failures": BadExcuse,
    "skip": BadReason,
    "shapes": OneOutput,
    "tensors": with_module(PlainTensor),
    "seeded": Constant,
    "global-randomness": Numpy,
    "pure": with_module(Counting),
    "rows-apart": with_module(Centred),
    "hidden": with_module(Deaf),
    "learns": with_module(Unused),
    "second-device": with_module(OnHost),
    "stack": with_module(Looking),
}
# What cannot be started cannot be trained either, and who looks at a value waits for it.
ALSO = {"tensors": {"learns", "second-device", "stack"}, "seeded": {"learns"}, "stack": {"second-device"}}


def failed(network: Network) -> set[str]:
    return {verdict.check for verdict in verify(network) if verdict.state == "failed"}


@pytest.mark.slow
def test_a_healthy_network_passes_every_check() -> None:
    verdicts = list(verify(Healthy()))
    assert [str(v) for v in verdicts if v.state != "ok"] == []
    assert [v.check for v in verdicts] == [check.name for check in network_checks()]


@pytest.mark.slow
@pytest.mark.parametrize("check", BROKEN)
def test_a_broken_network_fails_its_check(check: str) -> None:
    broken = BROKEN[check]
    network = broken(3) if check == "options" else broken()  # type: ignore[call-arg]
    found = failed(network)
    assert check in found
    assert found <= {check} | ALSO.get(check, set())


def test_every_check_has_a_network_that_fails_it() -> None:
    assert {check.name for check in network_checks()} - {"docstring"} == set(BROKEN)


@pytest.mark.slow
def test_a_network_that_trains_alone_or_has_no_place_for_noise_is_told() -> None:
    @dataclass(frozen=True)
    class Alone(Healthy):
        """A perceptron that trains alone."""

        stackable = False
        module = Looking

    @dataclass(frozen=True)
    class Placeless(Healthy):
        """A perceptron without hidden."""

        def build(self, problem: Problem, outputs: int) -> nn.Module:
            return nn.Sequential(nn.Linear(problem.inputs[0], 4), nn.Tanh(), nn.Linear(4, outputs))

    states = {v.check: v.state for v in verify(Alone())}
    assert states.pop("stack") == "not applicable"
    assert set(states.values()) == {"ok"}
    verdicts = {v.check: v for v in verify(Placeless(), ["hidden", "stack"])}
    assert verdicts["stack"].state == "ok"
    assert verdicts["hidden"].state == "not applicable"
    assert "no nn.Dropout layer" in verdicts["hidden"].message
