"""What early stopping and search watch of a method that has a loss of its own."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bench.api import Batch, Method, Net, NewNetwork, Problem, Tape
from bench.errors import UserError
from bench.plugins.registry import Registry
from bench.training.limits import Limits
from bench.training.member import training_form, watches_draws
from bench.training.validation import held_out_loss
from tests.fixtures.training import FitInOrder, MakeMember

BOTH = pytest.mark.parametrize("path", ["stack", "plain"])


@dataclass(frozen=True)
class Shifted(Method):
    """A method as a newcomer writes it: what it trains and draws is not `net(x)`, and `validate` is forgotten."""

    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        module = new_network(problem.outputs)
        module.register_parameter("shift:", nn.Parameter(torch.zeros(())))
        return module

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return batch.loss(self.draw(net, batch.x, tape))

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return net(x) + 10 + net.params["shift:"]


@dataclass(frozen=True)
class WatchesTheNetwork(Shifted):
    watched = "network"


@BOTH
def test_the_draws_are_watched(path: Any, member: MakeMember, fit_in_order: FitInOrder) -> None:
    """The outputs start 10 too high: while draws come near the targets, net(x) goes away from them."""
    settings = {"patience": 3, "epochs": 40, "learning_rate": 0.05}
    members = [member(method, **settings) for method in (Shifted(), WatchesTheNetwork())]
    own, network = fit_in_order(members, Limits(path=path))
    assert network.epochs <= 5  # the silent fault: the best network was that of the first epoch
    assert own.epochs > 10
    x, y = members[0].rows.x, members[0].rows.y
    held = members[0].rows.validation
    errors = [(Shifted().draw(net, x[held], None)[:, 0] - y[held]).square().mean() for net in (own, network)]  # type: ignore[arg-type]
    assert errors[0] < errors[1] / 10
    assert own.validation_loss == pytest.approx(float(errors[0]), rel=1e-4)


@dataclass(frozen=True)
class NoisyOutput(Method):
    """Noise of a known size on the outputs, whose expected loss is the network's plus its variance."""

    level: float = 2.0

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return batch.loss(net(batch.x))

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return net(x) + self.level * tape.normal((len(x), 1))


def test_a_search_watches_the_draws_too(member: MakeMember, fit_in_order: FitInOrder) -> None:
    one = member(NoisyOutput())
    (fitted,) = fit_in_order([one])
    held = one.rows.validation
    plain = float((fitted(one.rows.x[held])[:, 0] - one.rows.y[held]).square().mean())
    # Four draws at 20 rows: the mean of 80 squares of N(e, 4) differs from 4 by about 0.6.
    assert held_out_loss(one, fitted) - plain == pytest.approx(4, abs=3)


@dataclass(frozen=True)
class StatesVariance(NoisyOutput):
    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return torch.cat([net(x), torch.full((len(x), 1), 3.0)], 1)


def test_a_stated_variance_is_part_of_the_loss(member: MakeMember, fit_in_order: FitInOrder) -> None:
    one = member(StatesVariance())
    (fitted,) = fit_in_order([one])
    held = one.rows.validation
    errors = fitted(one.rows.x[held])[:, 0] - one.rows.y[held]
    law = torch.distributions.Normal(0.0, math.sqrt(3.0))
    expected = -law.log_prob(errors).mean() - math.log(2 * math.pi) / 2
    assert held_out_loss(one, fitted) == pytest.approx(float(expected), rel=1e-5)


@dataclass(frozen=True)
class NeedsFinish(NoisyOutput):
    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        return {"spread": train.y.std()}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return net(x) + net.memory["spread"] * tape.normal(())


@BOTH
def test_draws_that_need_finish_cannot_be_watched(path: Any, member: MakeMember, fit_in_order: FitInOrder) -> None:
    with pytest.raises(UserError, match=r"need 'spread' of finish.*write validate, or watched = 'network'"):
        fit_in_order([member(NeedsFinish(), patience=2)], Limits(path=path))


def test_a_method_that_is_watched_by_its_draws_has_a_training_of_its_own() -> None:
    @dataclass(frozen=True)
    class PostHoc(Method):
        watched = "draw"

    assert training_form(PostHoc())[1] == PostHoc()
    assert training_form(Method())[0] is training_form(Registry().make("method", "pep", {}))[0]


NOISY = ("mc-dropout", "mcni-fixed", "mcni-learned", "drop-connect", "pni")
SAMPLED = ("bayes-by-backprop", "sgld", "cyclical-sgmcmc", "anchored-ensemble", "batch-ensemble", "sngp")
EVIDENTIAL = ("evidential-regression", "evidential-classification")


@pytest.mark.parametrize("name", [*NOISY, *SAMPLED, "mean-variance", "mean-variance-ensemble", *EVIDENTIAL])
def test_methods_with_a_loss_of_their_own_declare_what_is_watched(name: str) -> None:
    """The network without noise, or a `validate` of their own."""
    assert not watches_draws(Registry().make("method", name, {}))


@dataclass(frozen=True)
class WrongShape(Method):
    """Draws without the axis of the outputs, or with too many columns."""

    columns: int = 0

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return batch.loss(net(batch.x))

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return torch.cat([net(x)] * self.columns, -1) if self.columns else net(x)[:, 0]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (0, r"draw must return \[rows, outputs\], got shape \[\d+\]"),
        (3, "draw must return means, or means and variances, got 3 columns"),
    ],
)
def test_watched_draws_of_a_wrong_shape_are_told(
    columns: int, reason: str, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    with pytest.raises(UserError, match=rf"^draw, test_watched\.py:\d+: {reason}"):
        fit_in_order([member(WrongShape(columns), patience=3, epochs=2)])
