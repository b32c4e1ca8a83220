"""What early stopping watches (the mean of draws, at which epochs), and batches in the order of the rows."""

import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor, nn

from bench.api import Batch, Method, Net, Tape
from bench.errors import UserError
from bench.methods.deterministic import Deterministic
from bench.methods.mcni_fixed import MCNIFixed
from bench.methods.mean_variance import MeanVariance
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, start
from bench.training.validation import held_out_loss, loss_of_mean, validates_squared_error
from tests.fixtures.training import FitInOrder, MakeMember


@dataclass(frozen=True)
class Raised(Method):
    """A network whose draws are raised by a number between 0 and 1, the same for all rows."""

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the loss of the network as it is."""
        return batch.loss(net(batch.x))

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function, raised."""
        outputs: Tensor = net(x) + tape.uniform(())
        return outputs


def raised_error(member: Member, fitted: Fitted) -> float:
    """Return the squared error of the mean of infinitely many draws."""
    held = member.rows.batch(member.rows.validation)
    return float((fitted(held.x)[:, 0] + 0.5 - held.y).square().mean())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler meets its own deprecations
@pytest.mark.parametrize("compiling", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_loss_of_a_mean_is_that_of_the_limit_for_many_draws(
    compiling: bool, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    one = member(Raised(), epochs=1, patience=5, validate="mean:4000")
    (fitted,) = fit_in_order([one], Limits(compiling=compiling))
    expected = raised_error(one, fitted)
    # The mean of 4,000 numbers has a standard deviation of 0.0046. Single draws have 0.29, their mean loss 1/12 more.
    assert fitted.validation_loss == pytest.approx(expected, abs=0.02)
    without = replace(fitted, validation_loss=None)
    assert held_out_loss(one, without) == pytest.approx(expected, abs=0.02)
    single = replace(one, training=replace(one.training, validate="clean"))
    assert abs(held_out_loss(single, without) - expected) > 0.02, "a few draws, one by one, are something else"


def test_draws_that_are_all_the_same_are_drawn_once(member: MakeMember, fit_in_order: FitInOrder) -> None:
    clean, mean = (
        fit_in_order([member(Deterministic(), epochs=8, patience=3, validate=how)])[0] for how in ("clean", "mean:500")
    )
    assert clean.history == mean.history


def test_the_mean_does_not_depend_on_neighbours(member: MakeMember, fit_in_order: FitInOrder) -> None:
    members = [
        member(
            MCNIFixed(alpha=0.3), seed, epochs=9, patience=2, evaluate_every=2, validate="mean:7", learning_rate=rate
        )
        for seed, rate in ((0, 0.2), (0, 0.01), (1, 0.1))
    ]
    together, alone = fit_in_order(members), [fit_in_order([one])[0] for one in members]
    # NaN, of epochs that are not evaluated, is not equal to itself.
    assert [repr(one.history) for one in together] == [repr(one.history) for one in alone]
    assert all(torch.equal(a.params[n], b.params[n]) for a, b in zip(together, alone, strict=True) for n in a.params)


def test_classes_are_judged_by_the_log_score_of_mean_probabilities(member: MakeMember) -> None:
    logits = torch.randn(5, 6, 3, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    mean = logits.softmax(-1).mean(0)
    one = replace(member(Deterministic()), problem=replace(member(Deterministic()).problem, task="classification"))
    found = loss_of_mean(one, nn.Identity(), (torch.zeros(6, 8), y), torch.tensor(1.0), mean)
    assert float(found) == pytest.approx(float(nn.functional.nll_loss(mean.log(), y)), rel=1e-6)


def test_draws_that_are_distributions_have_no_mean_to_judge(member: MakeMember, fit_in_order: FitInOrder) -> None:
    with pytest.raises(UserError, match="is for methods whose draws are points: those of MeanVariance"):
        fit_in_order([member(MeanVariance(), epochs=2, patience=1, validate="mean:10")])


def test_which_validation_losses_are_squared_errors(member: MakeMember) -> None:
    training = member(Deterministic()).training
    assert validates_squared_error(MCNIFixed(), training)
    assert validates_squared_error(MeanVariance(), replace(training, validate="mean:9"))
    assert not validates_squared_error(MeanVariance(), training)
    assert not validates_squared_error(Deterministic(), replace(training, validate="noisy"))
    assert not validates_squared_error(Raised(), training)


@pytest.mark.parametrize(("first", "expected"), [(0, [4, 8, 11]), (1, [1, 5, 9, 11]), (6, [6, 10, 11])])
def test_the_epochs_that_are_evaluated(
    first: int, expected: list[int], member: MakeMember, fit_in_order: FitInOrder
) -> None:
    one = member(Deterministic(), epochs=11, patience=100, evaluate_every=4, evaluate_from=first)
    (fitted,) = fit_in_order([one])
    assert [epoch for epoch, (_, loss) in enumerate(fitted.history, 1) if not math.isnan(loss)] == expected


def test_batches_in_the_order_of_the_rows(member: MakeMember, fit_in_order: FitInOrder) -> None:
    """An ordinary loop over consecutive rows gives the same network; a shuffled one does not."""
    settings = {"optimizer": "sgd", "momentum": 0.0, "learning_rate": 0.1, "epochs": 3, "batch": 16}
    one = member(Deterministic(), partial_batch=True, shuffle=False, **settings)
    first = start(one)
    module = one.new_network(1)
    module.load_state_dict({**first.params, **first.buffers})
    rule = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(3):
        for rows in one.rows.train.split(16):
            rule.zero_grad()
            (module(one.rows.x[rows])[:, 0] - one.rows.y[rows]).square().mean().backward()
            rule.step()
    (fitted,) = fit_in_order([one])
    (shuffled,) = fit_in_order([member(Deterministic(), partial_batch=True, **settings)])
    for name, weight in module.named_parameters():
        assert torch.allclose(fitted.params[name], weight, atol=1e-6)
        assert not torch.allclose(shuffled.params[name], weight, atol=1e-4)
