"""Networks that stop together: the folds of a configuration, judged by the mean of their validation losses."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from bench.errors import UserError
from bench.methods.deterministic import Deterministic
from bench.methods.mcni_fixed import MCNIFixed
from bench.training.limits import Limits
from bench.training.member import Member, Rows, Team
from bench.training.validator import Validator
from tests.fixtures.training import FitInOrder, MakeMember, sine_rows

SETTINGS = {"epochs": 30, "batch": 24, "learning_rate": 0.02}


def folds(count: int) -> list[Rows]:
    """Return the same rows with another part held out in each."""
    rows, held = sine_rows(120), 20
    parts = [torch.arange(k * held, (k + 1) * held) for k in range(count)]
    return [
        replace(rows, train=torch.tensor([i for i in range(120) if i not in set(part.tolist())]), validation=part)
        for part in parts
    ]


def team(
    member: MakeMember, key: int, method: object = Deterministic(), size: int = 3, **training: object
) -> list[Member]:
    settings = {**SETTINGS, "patience": 2, **training}
    members = [member(method, seed, rows=rows, **settings) for seed, rows in enumerate(folds(size))]
    return [replace(one, team=Team(key, size)) for one in members]


def judged_by_hand(losses: Sequence[float], patience: int) -> tuple[int, float]:
    """Return the epoch in which a training stops by these validation losses, and the best of them."""
    best, since = math.inf, 0
    for epoch, loss in enumerate(losses, 1):
        best, since = (loss, 0) if loss < best else (best, since + 1)
        if since == patience:
            return epoch, best
    return len(losses), best


def test_a_team_stops_by_the_mean_of_what_its_members_have_alone(member: MakeMember, fit_in_order: FitInOrder) -> None:
    together = team(member, 0)
    alone = fit_in_order([replace(one, team=None, training=replace(one.training, patience=1000)) for one in together])
    means = [sum(losses) / 3 for losses in zip(*([v for _, v in one.history] for one in alone), strict=True)]
    stopped, best = judged_by_hand(means, 2)
    by_themselves = {judged_by_hand([v for _, v in one.history], 2)[0] for one in alone}
    assert by_themselves != {stopped}, "members that stop in the same epoch anyway show nothing"
    for fitted in fit_in_order(together):
        assert fitted.epochs == stopped
        assert fitted.validation_loss == pytest.approx(best, rel=1e-6)
        assert [v for _, v in fitted.history] == pytest.approx(means[:stopped], rel=1e-6)


@pytest.mark.parametrize("method", [Deterministic(), MCNIFixed(alpha=0.1)], ids=str)
def test_teams_wait_for_room_for_all_their_members(
    method: object, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    """Four slots are room for one team of three, 128 for all of them: no result depends on it."""
    members = [
        one
        for key, rate in enumerate((0.2, 0.05, 0.01))
        for one in team(member, key, method, learning_rate=rate, validate="mean:4")
    ]
    few, many = (fit_in_order(members, Limits(slots=slots)) for slots in (4, 128))
    for one, other in zip(few, many, strict=True):
        assert (one.epochs, one.validation_loss, one.history) == (other.epochs, other.validation_loss, other.history)
        assert all(torch.equal(one.params[name], other.params[name]) for name in one.params)
    assert all(len({few[3 * key + k].epochs for k in range(3)}) == 1 for key in range(3))
    assert len({one.epochs for one in few}) > 1


def test_a_team_of_which_one_diverges_has_diverged(member: MakeMember, fit_in_order: FitInOrder) -> None:
    bad, *others = team(member, 0, evaluate_every=5)
    spoilt = replace(bad, rows=replace(bad.rows, y=bad.rows.y * 1e38))  # its squared error is infinite
    found = fit_in_order([spoilt, *others])
    assert [one.status for one in found] == ["diverged"] * 3
    assert [one.epochs for one in found] == [1, 5, 5]


def test_networks_that_train_one_by_one_cannot_stop_together(member: MakeMember, fit_in_order: FitInOrder) -> None:
    with pytest.raises(UserError, match="stop_together is for networks that are trained side by side"):
        fit_in_order(team(member, 0), Limits(path="plain"))


AT_INTERVALS: dict[str, Any] = {"validate": "mean:100", "evaluate_every": 5, "evaluate_from": 1, "epochs": 80}


def test_teams_that_begin_later_are_evaluated_at_the_same_time(
    member: MakeMember, fit_in_order: FitInOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A validation is of all slots: teams that begin whenever one is free would pay it in every epoch."""
    members = [
        one
        for key, rate in enumerate((0.3, 0.002, 0.1, 0.001, 0.2, 0.05, 0.15, 0.01))
        for one in team(member, key, MCNIFixed(alpha=0.1), learning_rate=rate, **AT_INTERVALS)
    ]
    calls: list[int] = []
    original = Validator.losses

    def counted(self: Validator, *arguments: Any) -> torch.Tensor:
        calls.append(1)
        return original(self, *arguments)

    monkeypatch.setattr(Validator, "losses", counted)
    monkeypatch.setattr(Validator, "waiting_pays", lambda self, epochs: False)
    at_any_time = fit_in_order(members, Limits(slots=9))
    before = len(calls)
    monkeypatch.undo()
    calls.clear()
    monkeypatch.setattr(Validator, "losses", counted)
    fitted = fit_in_order(members, Limits(slots=9))
    assert len(calls) < 0.8 * before
    for one, other in zip(fitted, at_any_time, strict=True):
        assert (one.epochs, one.history) == (other.epochs, other.history)
        assert all(torch.equal(one.params[name], other.params[name]) for name in one.params)
