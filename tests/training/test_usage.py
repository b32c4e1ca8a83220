"""The count of training steps, against the epochs of the results."""

import pytest

from bench.methods.deterministic import Deterministic
from bench.training.limits import Limits
from bench.training.usage import counted
from tests.fixtures.training import FitInOrder, MakeMember


@pytest.mark.slow
@pytest.mark.parametrize("path", ["stack", "plain"])
def test_member_steps_are_the_epochs_of_all_members(member: MakeMember, fit_in_order: FitInOrder, path: str) -> None:
    members = [member(Deterministic(), seed, epochs=1 + seed % 4) for seed in range(7)]
    with counted() as outer:
        fit_in_order(members[:1], Limits(path=path))  # type: ignore[arg-type]
        with counted() as usage:
            fitted = fit_in_order(members, Limits(path=path, slots=3))  # type: ignore[arg-type]
    fit_in_order(members[:1], Limits(path=path))  # type: ignore[arg-type]
    steps = members[0].steps_per_epoch
    assert usage.member_steps == sum(result.epochs for result in fitted) * steps
    assert outer.member_steps == usage.member_steps + steps
    # One plain network at a time leaves no slot idle; three slots do, once fewer than three members are left.
    assert (usage.share == 1) == (path == "plain")
    assert 0.5 < usage.share <= 1
