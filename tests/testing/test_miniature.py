"""The miniature device obeys the rules of CUDA, computes what the CPU does, and shows what a real one would suffer."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import grad_and_value, vmap

from bench.api import Method, Net, Tape
from bench.plugins.registry import Registry
from bench.testing.miniature import crossings, miniature
from bench.testing.network_checks import NetworkSubject
from bench.testing.problems import ONE_STEP, PLAIN, PROBLEMS, STACK, members_of, split_of
from bench.testing.second_device import require_same_hooks
from bench.training.drawing import Drawing, Functions, draw
from bench.training.fit import fit
from bench.training.flops import measure
from bench.training.limits import Limits
from bench.training.member import Fitted, finish
from bench.training.rows import Prepared
from bench.training.tracing import trace
from tests.fixtures.training import NETWORK_METHODS

DEVICE = miniature()
# One step on all rows, whose order does not matter: an accelerator shuffles in its own way.
ON_ALL_ROWS = replace(ONE_STEP, training=replace(ONE_STEP.training, batch=120))


def there(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).to(DEVICE)


MIXED: dict[str, Callable[[Tensor], Any]] = {
    "sum": lambda x: x + torch.zeros(3, 4),
    "product": lambda x: x @ torch.zeros(4, 2),
    "layer": torch.nn.Linear(4, 2),
    "stack": lambda x: torch.stack([x[0, 0], torch.tensor(1.0)]),
    "host in place": lambda x: torch.zeros(3, 4).add_(x),
    "rows of the host": lambda x: torch.zeros(3)[x[0].long()],
    "inside vmap": lambda x: vmap(lambda row, one: row + one)(x, torch.zeros(3)),
    "generator of the host": lambda x: torch.randn(3, device=DEVICE, generator=torch.Generator()),
}


@pytest.mark.parametrize("name", MIXED)
def test_two_devices_in_one_operation_raise(name: str) -> None:
    with pytest.raises(RuntimeError, match=r"same device|type for generator"):
        MIXED[name](there(3, 4))


CROSSINGS: dict[str, tuple[Callable[[Tensor], Any], list[str]]] = {
    "computing": (lambda x: (x @ x.mT).relu().sum(0), []),
    "a number of the host": (lambda x: x * torch.tensor(2.0), []),
    "numbers of its own": (lambda x: torch.randn(3, device=DEVICE, generator=torch.Generator(DEVICE)), []),
    "item": (lambda x: x.sum().item(), ["wait"]),
    "if": (lambda x: bool((x > 0).all()), ["wait"]),
    "place by a tensor": (lambda x: x[torch.zeros((), dtype=torch.long, device=DEVICE)], ["wait"]),
    "mask": (lambda x: x[x > 0], ["wait"]),
    "rows by the host": (lambda x: x[torch.tensor([0, 1])], ["to device"]),
    "to": (lambda x: torch.zeros(3).to(DEVICE), ["to device"]),
    "new_tensor": (lambda x: x.new_tensor([1.0, 2.0]), ["to device"]),
    "cpu": (lambda x: x.cpu(), ["to host"]),
    "tolist": (lambda x: x.tolist(), ["to host"]),
    "host numbers": (lambda x: x * torch.randn(()), ["host random numbers"]),
}


@pytest.mark.parametrize("name", CROSSINGS)
def test_what_passes_between_host_and_device_is_recorded(name: str) -> None:
    call, expected = CROSSINGS[name]
    x = there(3, 4)
    with crossings() as found:
        call(x)
    assert [crossing.kind for crossing in found] == expected
    assert all(crossing.place.startswith("test_miniature.py:") for crossing in found)


def test_vmap_gradients_traces_and_modules_compute_as_on_the_cpu() -> None:
    x = there(3, 4)
    layer = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5))

    def one(row: Tensor) -> Tensor:
        return (row * row.new_tensor([1.0, 2.0, 3.0, 4.0])).tanh().sum()

    for call in (vmap(grad_and_value(one)), lambda x: trace(vmap(one), (x,))[1](x), lambda x: layer.to(x.device)(x)):
        expected, found = call(x.cpu()), call(x)
        for a, b in zip(expected, found, strict=True):
            assert b.device.type == DEVICE
            assert torch.equal(a, b.cpu())


def test_a_shape_changed_in_place_is_seen() -> None:
    x = there(1, 4)
    x.squeeze_(0)
    assert x.shape == (4,)
    assert (x @ x).cpu() == (x.cpu() @ x.cpu())


def trained(method: Method, limits: Limits, device: str = DEVICE) -> tuple[Prepared, list[Fitted], Drawing]:
    task = next(task for task, problem in PROBLEMS.items() if method.skip(problem) is None)
    split = split_of(PROBLEMS[task].task)
    data, members = members_of(method, split, ON_ALL_ROWS, device=device)
    done = dict(fit(members, limits))
    networks = [finish(member, done[number]) for number, member in enumerate(members)]
    return data, networks, Drawing(method, networks, split.task, data.test_x, 1, 3)


def forward_crossings(job: Drawing, limits: Limits) -> list[str]:
    functions = Functions(job, limits)
    with torch.no_grad(), crossings() as found:
        parts = list(functions.at(job.x))
    assert all(part.device.type == DEVICE for part in parts)
    return [str(crossing) for crossing in found]


@pytest.mark.parametrize("name", NETWORK_METHODS)
def test_every_method_trains_finishes_and_draws_there_and_its_draws_cross_nothing(name: str) -> None:
    _, networks, job = trained(NETWORK_METHODS[name], PLAIN)
    tensors = {
        f"{part}/{n}": t
        for net in networks
        for part in ("params", "buffers", "memory")
        for n, t in getattr(net, part).items()
    }
    assert {n for n, t in tensors.items() if t.device.type != DEVICE} == set()
    assert forward_crossings(job, PLAIN) == []


@pytest.mark.parametrize("name", ["deep-ensemble", "mc-dropout"])
def test_a_stack_there_gives_the_draws_of_the_cpu(name: str) -> None:
    """Generators of the miniature device give the numbers of the CPU's, so the draws are the same."""
    _, _, expected = trained(NETWORK_METHODS[name], STACK, "cpu")
    _, _, job = trained(NETWORK_METHODS[name], STACK)
    np.testing.assert_allclose(draw(job, STACK), draw(expected, STACK), rtol=1e-5, atol=1e-6)
    assert forward_crossings(job, STACK) == []


@dataclass(frozen=True)
class Planted(Method):
    """A method whose draw does one thing that it should not."""

    fault: str = "none"

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        outputs = net(x) + tape.normal((1,))
        if self.fault == "item":
            return outputs * (1.0 if outputs.sum().item() < torch.inf else 0.0)
        if self.fault == "host numbers":
            return outputs + torch.randn(outputs.shape, generator=torch.Generator().manual_seed(1)).to(x.device)
        if self.fault == "host number":
            return outputs + torch.randn((), generator=torch.Generator().manual_seed(1))
        if self.fault == "constant":
            return outputs + outputs.new_tensor([0.5])
        return outputs


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        ("none", set()),
        ("item", {"wait"}),
        ("host numbers", {"host random numbers", "to device"}),
        ("host number", {"host random numbers"}),
        ("constant", {"to device"}),
    ],
)
def test_planted_faults_of_draws_are_found_with_their_line(fault: str, kinds: set[str]) -> None:
    _, members = members_of(Planted(fault), split_of("regression"), ON_ALL_ROWS)
    found = require_same_hooks(members[0], DEVICE)
    assert {crossing.kind for crossing in found} == kinds
    assert all(crossing.place.startswith("test_miniature.py:") for crossing in found)


SMALL = {"resnet18": {"width": 4}, "resnet8": {"width": 4}}


THOROUGH = bool(os.environ.get("UQBENCH_THOROUGH"))  # every method with every network takes minutes


@pytest.mark.parametrize("network", Registry().plugins("network") if THOROUGH else ["resnet8"])
@pytest.mark.parametrize("name", NETWORK_METHODS if THOROUGH else ["mc-dropout", "mcni-fixed"])
def test_every_method_works_there_with_every_network(name: str, network: str) -> None:
    built, method = Registry().make("network", network, SMALL.get(network, {})), NETWORK_METHODS[name]
    split = NetworkSubject(built).split
    if method.skip(split.problem) is not None:
        pytest.skip("the method skips the task of the network")
    few = replace(split, train_x=split.train_x[:8], train_y=split.train_y[:8])
    _, members = members_of(method, few, ON_ALL_ROWS, network=built)
    try:
        measure(members[0])
    except (ValueError, RuntimeError) as error:  # mc-batch-norm: no hidden layer to normalise, sequences
        pytest.skip(f"not on the CPU either: {error}")
    assert require_same_hooks(members[0], DEVICE) == []
