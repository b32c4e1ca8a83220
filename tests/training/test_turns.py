"""Short epochs are trained several at once: no result depends on how many."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from bench.api import Method
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.methods.swag import SWAG
from bench.training import stack
from bench.training.flops import measure
from bench.training.limits import Limits
from bench.training.member import Fitted
from bench.training.usage import counted
from tests.fixtures.training import FitInOrder, MakeMember

pytestmark = pytest.mark.slow

RATES = (0.3, 0.01, 0.03, 0.1, 0.02)


def same(one: Fitted, other: Fitted) -> bool:
    if (one.status, one.epochs, one.validation_loss) != (other.status, other.epochs, other.validation_loss):
        return False
    if repr(one.history) != repr(other.history):  # NaN is not equal to itself
        return False
    parts = ((getattr(one, part), getattr(other, part)) for part in ("params", "buffers", "memory"))
    return all(torch.equal(a[name], b[name]) or not a[name].isfinite().all() for a, b in parts for name in a)


@pytest.mark.parametrize(
    ("method", "training"),
    [
        (Deterministic(), {"patience": 4}),
        (MCDropout(), {"patience": 4}),
        (MCDropout(), {"patience": 3, "validate": "noisy"}),
        (MCNIFixed(), {"patience": 2, "evaluate_every": 3}),
        (MCNIFixed(), {"schedule": "cosine"}),
        (MCNIFixed(), {"patience": 4, "partial_batch": True}),
        (Deterministic(), {"patience": 4, "partial_batch": True, "batch": 1000}),
        (SWAG(), {"patience": 4}),
    ],
    ids=str,
)
def test_any_number_of_epochs_in_a_turn_gives_the_same_networks(
    method: Method,
    training: dict[str, Any],
    member: MakeMember,
    fit_in_order: FitInOrder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {"epochs": 23, "batch": 24, **training}
    members = [member(method, seed, learning_rate=rate, **settings) for seed, rate in enumerate(RATES)]
    found: list[list[Fitted]] = []
    for epochs in (1, 3, 16):
        monkeypatch.setattr(stack, "EPOCHS_AT_ONCE", epochs)
        found.append(fit_in_order(members, Limits(slots=3)))
    for other in found[1:]:
        assert all(map(same, found[0], other))
    ends = {fitted.epochs for fitted in found[0]}
    assert len(ends) > 1 or "patience" not in training or not method.early_stopping, (
        "members that stop in one epoch show little"
    )


def test_a_network_that_diverges_within_a_turn_is_reported_at_that_epoch(
    member: MakeMember, fit_in_order: FitInOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [
        member(Deterministic(), 0, learning_rate=rate, epochs=20, batch=24, optimizer="sgd") for rate in (40.0, 0.01)
    ]
    found: list[Sequence[Fitted]] = []
    for epochs in (1, 8):
        monkeypatch.setattr(stack, "EPOCHS_AT_ONCE", epochs)
        found.append(fit_in_order(members))
    assert [fitted.status for fitted in found[0]] == ["diverged", "ok"]
    assert found[0][0].epochs < 8
    assert not math.isfinite(found[0][0].train_loss)
    assert all(map(same, *found))


def test_epochs_after_the_end_of_a_member_are_not_counted(member: MakeMember, fit_in_order: FitInOrder) -> None:
    members = [member(Deterministic(), seed, epochs=11 + seed, batch=24, patience=50) for seed in range(3)]
    with counted() as usage:
        fitted = fit_in_order(members)
    steps = members[0].steps_per_epoch
    assert usage.member_steps == sum(result.epochs for result in fitted) * steps == (11 + 12 + 13) * steps
    assert usage.slot_steps == 16 * 3 * steps  # one turn of sixteen


def test_memory_bounds_the_epochs_of_a_turn(member: MakeMember) -> None:
    members = [member(Deterministic(), seed, epochs=5, batch=24, patience=50) for seed in range(3)]
    cost = measure(members[0])
    sizes = [stack.Stack(members, cost, False, Limits(bytes=k * cost.step_bytes)).epochs_at_once for k in (3, 7, 1000)]
    assert sizes == [1, 2, stack.EPOCHS_AT_ONCE]
