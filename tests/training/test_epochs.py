"""What happens within and between epochs: the last partial batch, and evaluation every few epochs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError
from torch import Tensor

from bench.api import Batch, Method, Net
from bench.api.tape import Tape, generator
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.networks.mlp import MLPNetwork
from bench.networks.resnet8 import ResNet8Network
from bench.spec.protocol import Training
from bench.training.fit import fit
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, start
from tests.fixtures.training import FitInOrder, MakeMember

paths = pytest.mark.parametrize("path", ["stack", "plain"])


def loop(one: Member, loss: Callable[[Tensor, Tensor], Tensor]) -> tuple[torch.nn.Module, list[float]]:
    """Train the ordinary way, over all rows in every epoch; return the module and the mean loss of each epoch."""
    module, rows, training = start(one).module.requires_grad_(True), one.rows, one.training
    optimizer = torch.optim.SGD(module.parameters(), lr=training.learning_rate, momentum=training.momentum)
    shuffles = generator(one.seed, "shuffle")
    module.train()
    means = []
    for _ in range(training.epochs):
        order, total = rows.train[torch.randperm(len(rows.train), generator=shuffles)], 0.0
        for batch in order.split(training.batch):
            optimizer.zero_grad()
            value = loss(module(rows.x[batch]), rows.y[batch])
            value.backward()
            optimizer.step()
            total += float(value.detach()) * len(batch)
        means.append(total / len(order))
    return module, means


def assert_trained_alike(fitted: Fitted, module: torch.nn.Module, tolerance: float = 2e-6) -> None:
    tensors = {**fitted.params, **fitted.buffers}
    for key, value in module.state_dict().items():
        torch.testing.assert_close(tensors[key], value.detach(), rtol=1e-4, atol=tolerance)


@pytest.mark.slow
@paths
def test_a_partial_batch_trains_as_an_ordinary_loop_over_all_rows(
    path: Any, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    # 100 rows: 3 batches of 32, and one of 4.
    network = MLPNetwork((20,), activation="tanh")
    settings = {"network": network, "batch": 32, "epochs": 6, "optimizer": "sgd", "partial_batch": True}
    members = [member(Deterministic(), seed, **settings) for seed in range(3)]
    assert [one.steps_per_epoch for one in members] == [4, 4, 4]
    for one, fitted in zip(members, fit_in_order(members, Limits(path=path)), strict=True):
        module, means = loop(one, lambda outputs, y: F.mse_loss(outputs[:, 0], y))
        assert_trained_alike(fitted, module)
        assert [loss for loss, _ in fitted.history] == pytest.approx(means, rel=1e-5)
    (dropped,) = fit_in_order([member(Deterministic(), 0, **{**settings, "partial_batch": False})], Limits(path=path))
    assert [loss for loss, _ in dropped.history] != pytest.approx(means, rel=1e-3)


@pytest.mark.slow
@paths
def test_batch_norm_sees_the_rows_of_a_partial_batch_alone(
    path: Any, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    # 40 images: two batches of 16, and one of 8.
    settings = {"optimizer": "sgd", "learning_rate": 0.001, "partial_batch": True, "epochs": 2}
    members = [member(Deterministic(), seed, network=ResNet8Network(), **settings) for seed in range(2)]
    for one, fitted in zip(members, fit_in_order(members, Limits(path=path)), strict=True):
        module, _ = loop(one, F.cross_entropy)
        assert_trained_alike(fitted, module, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("method", [MCDropout(), MCDropout(per_row=True)], ids=["mask", "mask of each row"])
def test_a_partial_batch_leaves_a_member_its_own_bits_and_its_own_noise(
    method: Method, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    members = [member(method, seed, batch=32, epochs=3 + seed, partial_batch=True) for seed in range(5)]
    together = fit_in_order(members, Limits(slots=2))
    plain = fit_in_order(members[2:3], Limits(path="plain"))[0]
    for one, fitted in zip(members, together, strict=True):
        alone = fit_in_order([one])[0]
        assert all(torch.equal(alone.params[key], fitted.params[key]) for key in alone.params)
    for key, value in plain.params.items():
        torch.testing.assert_close(together[2].params[key], value, atol=1e-5, rtol=1e-4)


def test_where_nothing_is_left_over_a_partial_batch_changes_nothing(
    member: MakeMember, fit_in_order: FitInOrder
) -> None:
    plain = Limits(path="plain")
    for batch in (25, 1000):
        kept, dropped = (member(Deterministic(), batch=batch, partial_batch=keep) for keep in (True, False))
        assert kept.stack_key() == dropped.stack_key()
        one, other = fit_in_order([kept], plain)[0], fit_in_order([dropped], plain)[0]
        assert all(torch.equal(one.params[key], other.params[key]) for key in one.params)


@pytest.mark.slow
@paths
@pytest.mark.parametrize("every", [1, 3])
def test_patience_counts_evaluations(every: int, path: Any, member: MakeMember, fit_in_order: FitInOrder) -> None:
    rates = [0.3, 0.02, 0.1]
    settings = {"epochs": 50, "batch": 1000, "patience": 2, "evaluate_every": every}
    members = [member(Deterministic(), 1, learning_rate=rate, **settings) for rate in rates]
    for one, fitted in zip(members, fit_in_order(members, Limits(path=path)), strict=True):
        module, rows = start(one).module.requires_grad_(True), one.rows
        optimizer = torch.optim.Adam(module.parameters(), lr=one.training.learning_rate)
        best, best_state, since, epochs = math.inf, {}, 0, 0
        while epochs < 50 and since < 2:
            optimizer.zero_grad()
            F.mse_loss(module(rows.x[rows.train])[:, 0], rows.y[rows.train]).backward()
            optimizer.step()
            epochs += 1
            if epochs % every and epochs < 50:
                continue
            since += 1
            with torch.no_grad():
                held = float(F.mse_loss(module(rows.x[rows.validation])[:, 0], rows.y[rows.validation]))
            if held < best:
                best, since = held, 0
                best_state = {k: v.clone() for k, v in module.state_dict().items()}
        assert fitted.epochs == epochs
        assert fitted.validation_loss == pytest.approx(best, rel=1e-4)
        evaluated = [epoch for epoch, (_, held) in enumerate(fitted.history, start=1) if not math.isnan(held)]
        assert evaluated == [epoch for epoch in range(1, epochs + 1) if epoch % every == 0 or epoch == 50]
        for key, value in best_state.items():
            torch.testing.assert_close(fitted.params[key], value, atol=1e-4, rtol=1e-3)


@pytest.mark.slow
def test_an_evaluation_of_one_slot_draws_no_noise_of_another(member: MakeMember, fit_in_order: FitInOrder) -> None:
    # Members of other lengths share two slots, so their evaluations fall into different epochs of the stack.
    settings = {"patience": 40, "evaluate_every": 3, "validate": "noisy"}
    members = [member(MCDropout(), seed, epochs=4 + seed, **settings) for seed in range(5)]
    for one, fitted in zip(members, fit_in_order(members, Limits(slots=2)), strict=True):
        alone = fit_in_order([one])[0]
        np.testing.assert_array_equal(fitted.history, alone.history)
        assert all(torch.equal(alone.params[key], fitted.params[key]) for key in alone.params)


@dataclass(frozen=True)
class Blows(Deterministic):
    """A method whose validation loss is not finite."""

    def validate(self, net: Net, batch: Batch) -> Tensor:
        return super().validate(net, batch) * math.nan


def test_a_validation_loss_that_is_not_finite_is_found_at_its_evaluation(member: MakeMember) -> None:
    one = member(Blows(), epochs=5, patience=1, evaluate_every=2)
    ((_, fitted),) = fit([one], Limits(path="plain"))
    assert (fitted.status, fitted.epochs) == ("diverged", 2)


@dataclass(frozen=True)
class Counts(Deterministic):
    """A method that reads as many numbers as its batch has rows."""

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        noise = tape.normal((len(batch.x),))
        return F.mse_loss(net(batch.x)[..., 0] + 0.0 * noise, batch.y)


def test_the_tape_of_a_partial_batch_is_as_long_as_its_rows_need(member: MakeMember) -> None:
    from bench.training.flops import measure

    cost = measure(member(Counts(), batch=32, partial_batch=True))
    assert (cost.step.normals, cost.last_step.normals) == (32, 4)
    assert measure(member(Counts(), batch=32)).last_step.total == 0


@pytest.mark.parametrize("settings", [{}, {"optimizer": "adam"}, {"optimizer": "sgd", "momentum": 0.0}])
def test_nesterov_needs_sgd_with_momentum(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"training.nesterov is for optimizer = .sgd. with a momentum above 0"):
        Training(nesterov=True, **settings)
    assert Training(nesterov=True, optimizer="sgd").momentum == 0.9
