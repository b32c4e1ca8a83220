"""A stack takes the graph of an earlier one only if it would trace the same."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import bench.api.optim
from bench.api import Batch, Method, Net, NewNetwork, Problem, Tape
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.training import stacked_calls, tracing
from bench.training.member import Fitted
from tests.fixtures.training import FitInOrder, MakeMember


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Return the functions that were traced so far, of none that another test left behind."""
    made: list[Any] = []

    def counted(call: Any, columns: Any) -> Any:
        made.append(call)
        return tracing.trace(call, columns)

    monkeypatch.setattr(stacked_calls, "trace", counted)
    with stacked_calls.graphs_remembered():
        yield made


class Scaled(nn.Module):
    """A network whose outputs are multiplied by a number that is no tensor, and another one for each seed."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.factor = inner, 1.0 + torch.rand(()).item()

    def forward(self, x: Tensor) -> Tensor:
        """Return the scaled outputs."""
        outputs: Tensor = self.factor * self.inner(x)
        return outputs


@dataclass(frozen=True)
class RandomScale(Method):
    """Holds a random number outside its tensors."""

    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        """Return the scaled network."""
        return Scaled(new_network(problem.outputs))


def remembered() -> dict[Any, Any]:
    assert stacked_calls._remembered is not None
    return stacked_calls._remembered


def forget() -> None:
    remembered().clear()


def same(one: Fitted, other: Fitted) -> bool:
    return all(torch.equal(one.params[name], other.params[name]) for name in one.params)


def test_the_next_stack_of_the_same_shapes_traces_nothing(
    member: MakeMember, fit_in_order: FitInOrder, traced: list[Any]
) -> None:
    first = fit_in_order([member(MCDropout(), seed) for seed in range(3)])
    count = len(traced)
    again = fit_in_order([member(MCDropout(rate=0.2), seed) for seed in range(3, 6)])
    assert count > 0
    assert len(traced) == count
    forget()
    fresh = fit_in_order([member(MCDropout(rate=0.2), seed) for seed in range(3, 6)])
    assert all(map(same, again, fresh))
    assert not same(first[0], again[0])


@pytest.mark.parametrize(
    "changed",
    [{"batch": 8}, {"optimizer": "sgd"}, {"validate": "noisy", "patience": 3}, {"precision": "bfloat16"}],
    ids=str,
)
def test_another_rule_of_training_is_traced_anew(
    changed: dict[str, Any], member: MakeMember, fit_in_order: FitInOrder, traced: list[Any]
) -> None:
    fit_in_order([member(MCDropout(), seed) for seed in range(3)])
    count = len(traced)
    beside = fit_in_order([member(MCDropout(), seed, **changed) for seed in range(3)])
    assert len(traced) > count
    forget()
    assert all(map(same, beside, fit_in_order([member(MCDropout(), seed, **changed) for seed in range(3)])))


def test_what_a_network_holds_besides_its_tensors_is_its_own(
    member: MakeMember, fit_in_order: FitInOrder, traced: list[Any]
) -> None:
    fit_in_order([member(RandomScale(), 0)])
    after = fit_in_order([member(RandomScale(), 1)])[0]
    forget()
    assert same(after, fit_in_order([member(RandomScale(), 1)])[0])


def test_a_hook_that_was_replaced_is_traced_anew(
    member: MakeMember, fit_in_order: FitInOrder, traced: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fit_in_order([member(Deterministic(), 0)])[0]

    def loss(self: Deterministic, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return 10 * batch.loss(net(batch.x))

    monkeypatch.setattr(Deterministic, "loss", loss)
    assert fit_in_order([member(Deterministic(), 0)])[0].train_loss > 2 * before.train_loss


def test_few_graphs_are_remembered(
    member: MakeMember, fit_in_order: FitInOrder, traced: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacked_calls, "GRAPHS_REMEMBERED", 2)
    for batch in (4, 8, 12, 16):
        fit_in_order([member(Deterministic(), seed, batch=batch, epochs=1) for seed in range(2)])
    assert len(remembered()) == 2


def test_nothing_is_remembered_between_two_runs(
    member: MakeMember, fit_in_order: FitInOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code may change between them, in a notebook or by hand, in a function that no key knows."""
    with stacked_calls.graphs_remembered():
        before = fit_in_order([member(Deterministic(), 0, weight_decay=0.5)])[0]
    monkeypatch.setattr(bench.api.optim, "decayed", lambda name, param, gradient, step: gradient)
    with stacked_calls.graphs_remembered():
        assert not same(before, fit_in_order([member(Deterministic(), 0, weight_decay=0.5)])[0])
    assert stacked_calls._remembered is None
