"""Out of memory on a device: training goes on with half the stack, drawing with half the chunk; the numbers stay.

The exception is planted: it is what a GPU raises, at the same places.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.errors import UserError
from bench.methods.deep_ensemble import DeepEnsemble
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.training import stack as stacks
from bench.training.drawing import Drawing, Functions, draw
from bench.training.fit import fit
from bench.training.limits import Limits
from bench.training.member import Team
from tests.fixtures.training import FitInOrder, MakeMember

TRACED = Limits(compiling=False)


def no_memory_above(slots: int, monkeypatch: pytest.MonkeyPatch, after: int = 0) -> list[int]:
    """Let turns of a stack with more slots raise, once so many turns were trained; return the slots of all turns."""
    real, turns = stacks.Stack._train_turn, list[int]()

    def train(stack: Any) -> Any:
        turns.append(len(stack.slots))
        if len(stack.slots) > slots and len(turns) > after:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
        return real(stack)

    monkeypatch.setattr(stacks.Stack, "_train_turn", train)
    return turns


@pytest.mark.parametrize("after", [0, 1])
def test_a_stack_is_halved_until_it_fits_and_ends_in_the_same_networks(
    after: int, member: MakeMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [member(MCDropout(), seed, epochs=2 + seed) for seed in range(8)]
    whole = dict(fit(members, TRACED))
    turns = no_memory_above(3, monkeypatch, after)
    with pytest.warns(UserWarning, match=r"out of memory with [84] networks: training goes on with half as many"):
        parts = dict(fit(members, TRACED))
    assert list(dict.fromkeys(turns)) == [8, 4, 2]
    assert parts.keys() == whole.keys()
    for number, fitted in parts.items():
        assert all(torch.equal(fitted.params[name], tensor) for name, tensor in whole[number].params.items())
        assert fitted.history == whole[number].history


def test_what_ended_before_is_not_trained_again(member: MakeMember, monkeypatch: pytest.MonkeyPatch) -> None:
    members = [member(MCDropout(), seed, epochs=1 if seed < 2 else 30) for seed in range(4)]
    no_memory_above(3, monkeypatch, after=1)
    with pytest.warns(UserWarning, match="out of memory"):
        ended = [number for number, _ in fit(members, TRACED)]
    assert sorted(ended) == [0, 1, 2, 3]


def test_two_networks_that_do_not_fit_are_an_error_in_one_line(
    member: MakeMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_memory_above(0, monkeypatch)
    with (
        pytest.warns(UserWarning, match="half"),
        pytest.raises(UserError, match="cannot train 2 networks at once") as raised,
    ):
        list(fit([member(MCDropout(), seed) for seed in range(4)], TRACED))
    assert "\n" not in str(raised.value)
    with pytest.raises(UserError, match="cannot train one network at once"):
        list(fit([member(MCDropout())], Limits(path="plain", compiling=False)))


def test_a_team_is_not_parted(member: MakeMember, monkeypatch: pytest.MonkeyPatch) -> None:
    members = [replace(member(MCDropout(), seed, patience=3), team=Team("a", 4)) for seed in range(4)]
    no_memory_above(3, monkeypatch)
    with pytest.raises(UserError, match="cannot train 4 networks at once"):
        list(fit(members, TRACED))


def limited(job: Drawing, most: int, limits: Limits = Limits()) -> tuple[Functions, list[tuple[int, int]]]:
    """Return functions whose calls raise above so many draws times rows, and the sizes of all calls."""
    calls: list[tuple[int, int]] = []

    def evaluate(numbers: Any, call: Any, tensors: Any, x: Tensor, normals: Tensor, uniforms: Tensor) -> Tensor:
        draws = normals.shape[0] * normals.shape[1]
        calls.append((draws, len(x)))
        if draws * len(x) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        value: Tensor = call(tensors, x, normals, uniforms)
        return value

    return Functions(job, limits).evaluated_by(evaluate), calls


@pytest.mark.parametrize("networks", [1, 5])
def test_chunks_of_draws_then_of_rows_are_halved(networks: int, member: MakeMember, fit_in_order: FitInOrder) -> None:
    one = member(DeepEnsemble() if networks > 1 else MCNIFixed(), epochs=1)
    job = Drawing(one.method, fit_in_order([one] * networks, TRACED), "regression", one.rows.x, 7, 5)
    functions, calls = limited(job, 70)
    with torch.no_grad(), pytest.warns(UserWarning, match="goes on in calls of half the size"):
        values = torch.cat(list(functions.at(one.rows.x)), dim=1)
    assert calls[:4] == [(5, 120), (3, 120), (2, 120), (1, 120)]
    assert set(calls[4:]) == {(1, 60)}
    np.testing.assert_allclose(values.numpy(), draw(job), atol=1e-6)


def test_noise_of_rows_is_not_cut_otherwise(member: MakeMember, fit_in_order: FitInOrder) -> None:
    one = member(MCDropout(per_row=True), epochs=1)
    job = Drawing(one.method, fit_in_order([one], TRACED), "regression", one.rows.x, 7, 4)
    functions, _ = limited(job, 60)
    with (
        torch.no_grad(),
        pytest.warns(UserWarning, match="half"),
        pytest.raises(UserError, match="none for one draw at 120 rows") as raised,
    ):
        list(functions.at(one.rows.x))
    assert "\n" not in str(raised.value)
