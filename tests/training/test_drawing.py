from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.api import Method, Net, Problem
from bench.api.tape import Tape, TapeLength, generator, numbers
from bench.methods.deep_ensemble import DeepEnsemble
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.networks.resnet8 import ResNet8Network
from bench.training import drawing
from bench.training.drawing import Drawing, Functions, draw
from bench.training.limits import Limits
from bench.training.member import Fitted, Member
from tests.fixtures.training import NETWORK_METHODS, FitInOrder, MakeMember, image_rows

PLAIN = Limits(path="plain")  # the quickest way to a network: here it is only drawn from


def job(one: Member, networks: list[Fitted], draws: int) -> Drawing:
    return Drawing(one.method, networks, one.problem.task, one.rows.x, 7, draws)


METHODS = NETWORK_METHODS
REGRESSION = [name for name, method in METHODS.items() if not method.skip(Problem("regression", (8,), 1))]
STATED = {"mean-variance": 2, "mean-variance-ensemble": 2, "evidential-regression": 4, "quantile-regression": 23}
COLUMNS = {**STATED, "mc-dropout-prior": 2}
IN_ONE_PRODUCT = {"laplace", "sngp"}  # all draws of a call, so that few draws are rounded in another way
ONE_FUNCTION = {"deterministic", "deep-ensemble", "anchored-ensemble", *STATED}  # of each network


@pytest.mark.parametrize("name", REGRESSION)
def test_draw_t_is_the_same_function_whatever_t_is_and_however_the_work_is_cut(
    name: str, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    one = member(METHODS[name], epochs=1)
    networks = fit_in_order([one] * one.method.networks, PLAIN)
    many = draw(job(one, networks, 20))
    functions = one.method.networks if name in ONE_FUNCTION else 20
    assert many.shape == (functions, len(one.rows.x), COLUMNS.get(name, 1))
    np.testing.assert_allclose(draw(job(one, networks, 7)), many[:7], atol=5e-6)
    for cut in (Limits(bytes=20_000), Limits(path="plain")):
        np.testing.assert_allclose(draw(job(one, networks, 20), cut), many, atol=5e-6)
    few = replace(job(one, networks, 7), x=one.rows.x[:10])  # every draw and every row by itself
    np.testing.assert_allclose(draw(few, Limits(bytes=1)), draw(few), atol=5e-6)


@pytest.mark.parametrize("name", REGRESSION)
def test_recorded_parts_give_the_bits_of_calls_of_vmap(
    name: str, member: MakeMember, fit_in_order: FitInOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = member(METHODS[name], epochs=1)
    networks = fit_in_order([one] * one.method.networks, PLAIN)
    for count in (20, 21):  # of 21 draws one is made twice: all parts have the same size
        whole = draw(job(one, networks, count))
        monkeypatch.setattr(drawing, "BYTES_IN_CACHE", 1)
        functions = Functions(job(one, networks, count))
        monkeypatch.undo()
        assert functions.cuts.recorded == (name not in ONE_FUNCTION)
        with torch.no_grad():
            in_parts = torch.cat(list(functions.at(one.rows.x)), dim=1).numpy()
        assert functions.cuts.recorded == (name not in ONE_FUNCTION | IN_ONE_PRODUCT)
        np.testing.assert_array_equal(in_parts, whole)


@pytest.mark.parametrize("networks", [1, 2])
@pytest.mark.parametrize("method", [MCDropout(), MCDropout(per_row=True), MCNIFixed()], ids=str)
def test_recorded_parts_of_classifiers_and_of_ensembles_give_the_same_bits(
    method: Method, networks: int, member: MakeMember, fit_in_order: FitInOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = member(method, rows=image_rows(), epochs=1)
    fitted = fit_in_order([one] * networks, PLAIN)
    monkeypatch.setattr(drawing, "ROWS_AT_ONCE", 30)
    whole = draw(job(one, fitted, 40))
    monkeypatch.setattr(drawing, "BYTES_IN_CACHE", 1)
    assert Functions(job(one, fitted, 40)).cuts.recorded
    np.testing.assert_array_equal(draw(job(one, fitted, 40)), whole)


@pytest.mark.parametrize(("rows", "repeated"), [(120, True), (117, False)])
def test_folded_draws_are_repeated_where_no_row_is_rounded_in_another_way(
    rows: int, repeated: bool, member: MakeMember, fit_in_order: FitInOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = member(MCDropout(), epochs=1)
    task = replace(job(one, fit_in_order([one], PLAIN), 20), x=one.rows.x[:rows])
    whole = draw(task)
    monkeypatch.setattr(drawing, "BYTES_IN_CACHE", 1)
    functions = Functions(task)
    with torch.no_grad():
        np.testing.assert_array_equal(torch.cat(list(functions.at(task.x)), dim=1).numpy(), whole)
    assert functions.cuts.recorded == repeated


def test_a_draw_that_would_be_alone_in_its_call_keeps_its_bits(
    member: MakeMember, fit_in_order: FitInOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = member(MCNIFixed(), epochs=1)
    networks = fit_in_order([one], PLAIN)
    functions = Functions(job(one, networks, 21))
    limits = Limits(bytes=20 * (len(one.rows.x) * functions._per_row + functions._fixed))
    assert Functions(job(one, networks, 21), limits).cuts.draws == 20
    whole = draw(job(one, networks, 21), limits)
    monkeypatch.setattr(drawing, "BYTES_IN_CACHE", 1)
    assert Functions(job(one, networks, 21), limits).cuts.recorded
    np.testing.assert_array_equal(draw(job(one, networks, 21), limits), whole)


SCRATCH = torch.zeros(1)


class WritesElsewhere(MCNIFixed):
    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        SCRATCH.copy_(x[0, 0])
        return super().draw(net, x + SCRATCH, tape)


def test_what_cannot_be_repeated_is_drawn_by_vmap(
    member: MakeMember, fit_in_order: FitInOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = member(WritesElsewhere(), epochs=1)
    networks = fit_in_order([one], PLAIN)
    whole = draw(job(one, networks, 20))
    monkeypatch.setattr(drawing, "BYTES_IN_CACHE", 1)
    functions = Functions(job(one, networks, 20))
    assert functions.cuts.recorded
    with torch.no_grad():
        np.testing.assert_array_equal(torch.cat(list(functions.at(one.rows.x)), dim=1).numpy(), whole)
    assert functions.cuts.draws == 20
    assert not functions.cuts.recorded


@pytest.mark.parametrize("method", [MCDropout(), MCDropout(per_row=True), MCNIFixed()], ids=str)
def test_drawing_equals_a_naive_loop_over_the_draws(
    method: Method, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    one = member(method, epochs=1)
    (fitted,) = fit_in_order([one], PLAIN)
    rows = len(one.rows.x)
    uniforms = 0 if isinstance(method, MCNIFixed) else 20 * (rows if method == MCDropout(per_row=True) else 1)
    length = TapeLength(0 if uniforms else 8 * 20 + 20, uniforms)
    salt = (0,) if uniforms > 20 else ()
    for number, drawn in enumerate(draw(job(one, [fitted], 5))):
        normals, chances = numbers(generator(7, "draw", number, *salt), 1, length)
        fitted.module.eval()
        by_hand = method.draw(fitted, one.rows.x, Tape(normals[0], chances[0]))
        np.testing.assert_allclose(drawn, by_hand.numpy(), atol=1e-5)


def test_per_row_noise_differs_between_the_chunks_of_rows(member: MakeMember, fit_in_order: FitInOrder) -> None:
    one = member(MCDropout(rate=0.5, per_row=True), epochs=1)
    (fitted,) = fit_in_order([one], PLAIN)
    same = one.rows.x[:1].expand(40, -1)
    drawn = draw(Drawing(one.method, [fitted], "regression", same, 7, 1), Limits(bytes=6_000))[0, :, 0]
    assert len(np.unique(drawn)) > 30
    shared = draw(Drawing(MCDropout(rate=0.5), [fitted], "regression", same, 7, 1), Limits(bytes=6_000))[0, :, 0]
    assert len(np.unique(shared.round(5))) == 1


def test_draws_of_an_ensemble_take_turns(member: MakeMember, fit_in_order: FitInOrder) -> None:
    networks = fit_in_order([member(Deterministic(), seed, epochs=1) for seed in range(3)])
    one = member(DeepEnsemble(networks=3))
    drawn = draw(job(one, networks, 100))
    assert drawn.shape[0] == 3
    for number, fitted in enumerate(networks):
        np.testing.assert_allclose(drawn[number], fitted(one.rows.x).numpy(), atol=1e-6)


@dataclass(frozen=True)
class NoisyEnsemble(MCNIFixed):
    networks: int = 3


def test_a_stochastic_ensemble_draws_from_each_network_in_turn(member: MakeMember, fit_in_order: FitInOrder) -> None:
    networks = fit_in_order([member(MCNIFixed(), seed, epochs=1) for seed in range(3)])
    one = member(NoisyEnsemble(alpha=0.0))
    drawn = draw(job(one, networks, 10))
    assert drawn.shape[0] == 10
    for number in range(10):
        np.testing.assert_allclose(drawn[number], networks[number % 3](one.rows.x).numpy(), atol=1e-6)


def test_class_draws_are_probabilities(member: MakeMember, fit_in_order: FitInOrder) -> None:
    one = member(MCDropout(), network=ResNet8Network(), epochs=1)
    drawn = draw(job(one, fit_in_order([one]), 4))
    assert drawn.shape == (4, 48, 4)
    np.testing.assert_allclose(drawn.sum(-1), 1, atol=1e-5)
    assert (drawn >= 0).all()


def test_drawing_changes_no_state(member: MakeMember, fit_in_order: FitInOrder) -> None:
    one = member(MCDropout(), network=ResNet8Network(), epochs=1)
    (fitted,) = fit_in_order([one], PLAIN)
    before = {k: v.clone() for k, v in {**fitted.params, **fitted.buffers}.items()}
    state = torch.random.get_rng_state()
    first = draw(job(one, [fitted], 3))
    assert np.array_equal(first, draw(job(one, [fitted], 3)))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(value, {**fitted.params, **fitted.buffers}[key]) for key, value in before.items())


def test_a_single_row_can_be_drawn_at(member: MakeMember, fit_in_order: FitInOrder) -> None:
    one: Any = member(MCDropout(), epochs=1)
    drawn = draw(Drawing(one.method, fit_in_order([one]), "regression", one.rows.x[:1], 0, 6))
    assert drawn.shape == (6, 1, 1)
