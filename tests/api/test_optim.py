from collections.abc import Callable
from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bench.api import Method
from bench.api.optim import SCHEDULES, epoch_rates
from bench.methods.deterministic import Deterministic
from bench.networks.mlp import MLPNetwork
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, start

RATES = [(0.003, 0.0), (0.002, 0.1), (0.001, 0.001)]


def reference(
    member: Member, optimizer: torch.optim.Optimizer, module: nn.Module, factor: Callable[[int], float]
) -> None:
    """Train a module the ordinary way, on all rows at once."""
    rows = member.rows
    rate = optimizer.param_groups[0]["lr"]
    for step in range(200):
        optimizer.param_groups[0]["lr"] = rate * factor(step)
        optimizer.zero_grad()
        F.mse_loss(module(rows.x[rows.train])[:, 0], rows.y[rows.train]).backward()
        optimizer.step()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["stack", "plain"])
@pytest.mark.parametrize("name", ["adam", "sgd", "nesterov"])
@pytest.mark.parametrize("schedule", ["constant", "cosine", "step"])
def test_200_steps_equal_torch_optim_with_rates_that_differ_in_the_stack(
    member: Callable[..., Member],
    fit_in_order: Callable[..., list[Fitted]],
    path: Literal["stack", "plain"],
    name: str,
    schedule: Literal["constant", "cosine", "step"],
) -> None:
    members = [
        # tanh: at the kinks of a relu, differences of rounding grow without bound
        member(
            Deterministic(),
            0,
            network=MLPNetwork((20,), activation="tanh"),
            optimizer="adam" if name == "adam" else "sgd",
            nesterov=name == "nesterov",
            learning_rate=lr,
            weight_decay=wd,
            epochs=200,
            batch=1000,
            momentum=0.8,
            schedule=schedule,
        )
        for lr, wd in RATES
    ]
    for one, fitted in zip(members, fit_in_order(members, Limits(path=path)), strict=True):
        first = start(one)
        module = first.module.requires_grad_(True)
        settings: dict[str, Any] = {"lr": one.training.learning_rate, "weight_decay": one.training.weight_decay}
        torch_optimizer: torch.optim.Optimizer = (
            torch.optim.Adam(module.parameters(), betas=(0.8, 0.999), **settings)
            if name == "adam"
            else torch.optim.SGD(module.parameters(), momentum=0.8, nesterov=name == "nesterov", **settings)
        )
        reference(one, torch_optimizer, module, lambda step: SCHEDULES[schedule](step / 200))
        assert fitted.epochs == 200
        for key, value in module.named_parameters():
            torch.testing.assert_close(fitted.params[key], value.detach(), rtol=1e-4, atol=2e-6)


def test_only_the_networks_own_tensors_decay(
    member: Callable[..., Member], fit_in_order: Callable[..., list[Fitted]]
) -> None:
    class Extra(Deterministic):
        def init(self, net: Any, tape: Any) -> dict[str, torch.Tensor]:
            return {"level:": torch.ones(())}

    method: Method = Extra()
    (fitted,) = fit_in_order([member(method, optimizer="sgd", weight_decay=0.5, learning_rate=0.1, epochs=3)])
    assert float(fitted.params["level:"]) == 1.0


def test_the_cosine_schedule_starts_at_one_and_ends_at_zero() -> None:
    assert SCHEDULES["cosine"](0.0) == 1.0
    assert SCHEDULES["cosine"](0.5) == pytest.approx(0.5)
    assert SCHEDULES["cosine"](1.0) == pytest.approx(0.0)


def test_160_epochs_of_the_step_schedule_are_torchs_with_milestones_80_and_120() -> None:
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [80, 120], 0.1)
    for epoch in range(160):
        rates = epoch_rates("step", (0.0, 0.0), epoch, 391, 160)[:, 0]
        assert set(rates) == {rates[0]}
        assert rates[0] == pytest.approx(schedule.get_last_lr()[0])
        optimiser.step()
        schedule.step()


def test_the_step_schedule_is_that_of_he_et_al() -> None:
    # 64,000 steps: the rate falls by ten after 32,000 and after 48,000.
    rates = epoch_rates("step", (0.0, 0.0), 0, 64, 1)[:, 0]
    assert list(rates) == [1.0] * 32 + [0.1] * 16 + [0.01] * 16
