"""Bayes by Backprop and the Langevin methods: what their parts compute."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from bench.api import Array, Batch, Net
from bench.api.tape import LiveTape, generator
from bench.methods._langevin import first_samples, kept_samples
from bench.methods.bayes_by_backprop import BayesByBackprop, sampled_outputs, spread
from bench.methods.cyclical_sgmcmc import CyclicalSGMCMC
from bench.methods.deterministic import Deterministic
from bench.methods.sgld import SGLD
from bench.methods.swag import SWAG

SOURCE = torch.Generator().manual_seed(3)
X = torch.randn(40, 4, generator=SOURCE)
Y = X.sum(1).sin()


def linear_posterior(units: int = 3) -> tuple[BayesByBackprop, Net]:
    method = BayesByBackprop(prior=0.8, noise=0.5, temperature=0.3)
    module = nn.Sequential(nn.Linear(4, units))
    params = {n: p.detach().clone() for n, p in module.named_parameters()}
    net = Net(module, params, {})
    beside = method.init(net, LiveTape(generator(0)))
    wide = {n: p + 0.3 * torch.randn(p.shape, generator=SOURCE) + 3 for n, p in beside.items() if n.startswith("rho:")}
    return method, Net(module, params | beside | wide, {})


def test_the_divergence_is_that_of_two_gaussians() -> None:
    method, net = linear_posterior()
    expected = torch.zeros(())
    for name, fan_in in (("0.weight", 4), ("0.bias", 1)):
        posterior = Normal(net.params[name], spread(net, name))
        expected = expected + kl_divergence(posterior, Normal(0.0, 0.8 / fan_in**0.5)).sum()
    torch.testing.assert_close(method.divergence(net), expected)


def test_the_first_spread_is_the_stated_share_of_the_priors() -> None:
    module = nn.Linear(9, 2)
    net = Net(module, dict(module.named_parameters()), {})
    method = BayesByBackprop(prior=1.5, initial=0.2)
    begun = Net(module, dict(net.params) | method.init(net, LiveTape(generator(0))), {})
    torch.testing.assert_close(spread(begun, "weight"), torch.full((2, 9), 0.2 * 1.5 / 3))
    torch.testing.assert_close(spread(begun, "bias"), torch.full((2,), 0.2 * 1.5))


def test_sampled_outputs_have_the_moments_of_sampled_weights() -> None:
    _, net = linear_posterior()
    x, tape = X[:5], LiveTape(generator(1))
    with torch.no_grad():
        values = []
        for _ in range(1500):
            with sampled_outputs(net, tape) as sampled:
                values.append(sampled(x))
    drawn = torch.stack(values)
    variance = x.square() @ spread(net, "0.weight").square().T + spread(net, "0.bias").square()
    torch.testing.assert_close(drawn.var(0), variance, rtol=0.2, atol=0)
    torch.testing.assert_close(drawn.mean(0), net(x), atol=4 * float((variance.max() / 1500).sqrt()), rtol=0)
    assert not any(part._forward_hooks for part in net.module.modules()), "hooks were left behind"


def test_rows_have_noise_of_their_own_where_outputs_are_sampled() -> None:
    _, net = linear_posterior()
    with torch.no_grad(), sampled_outputs(net, LiveTape(generator(1))) as sampled:
        twice = sampled(X[:1].repeat(2, 1))
    assert not torch.equal(twice[0], twice[1])


def test_the_loss_is_the_bound_of_a_row() -> None:
    method, net = linear_posterior(1)
    narrow = Net(net.module, {n: p - 40 if n.startswith("rho:") else p for n, p in net.params.items()}, {})
    batch = Batch("regression", X, Y, torch.tensor(40.0))
    noise = narrow.params["noise:"].exp()
    likelihood = -Normal(narrow(X)[:, 0], noise).log_prob(Y).mean() - np.log(2 * np.pi) / 2
    expected = likelihood + 0.3 * method.divergence(narrow) / 40
    torch.testing.assert_close(method.loss(narrow, batch, LiveTape(generator(2))), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("epochs", "cycles", "each", "exploration"), [(40, 4, 3, 0.7), (7, 1, 5, 0.5), (3, 2, 4, 0.0)])
def test_samples_stand_in_their_places(epochs: int, cycles: int, each: int, exploration: float) -> None:
    module = nn.Linear(1, 1, bias=False)
    memory = first_samples(Net(module, {"weight": torch.full((1, 1), -1.0)}, {}), cycles * each)
    expected = [-1.0] * (cycles * each)
    for epoch in range(1, epochs + 1):
        net = Net(module, {"weight": torch.full((1, 1), float(epoch))}, {}, memory)
        memory = kept_samples(net, torch.tensor(epoch / epochs), cycles, each, exploration)
        cycle = -(-epoch * cycles // epochs) - 1
        within = (epoch * cycles / epochs - cycle - exploration) / (1 - exploration)
        place = cycle * each + max(0, int(np.ceil(within * each - 1e-3)) - 1)
        place = 0 if epoch == 1 else place
        expected[place:] = [float(epoch)] * (len(expected) - place)
    assert memory["weight"].flatten().tolist() == expected
    assert expected[-1] == epochs
    assert -1.0 not in expected


def updated(method: SGLD | CyclicalSGMCMC, progress: float, gradient: float = 1.0) -> tuple[float, float]:
    """Return mean and standard deviation of the change of many weights in one step from zero."""
    from bench.api.optim import SGD, Step

    module = nn.Linear(1, 50_000, bias=False)
    params: dict[str, Tensor] = {"weight": torch.zeros(50_000, 1)}
    net = Net(module, params, {})
    net = Net(module, params | method.init(net, LiveTape(generator(0))), {})
    gradients = {name: torch.full_like(p, gradient) for name, p in net.params.items()}
    optimizer = SGD(momentum=0.0)
    numbers = [torch.tensor(v) for v in (0.1, 7.0, 1.0, 1.0, progress, 200.0)]
    new, _ = method.update(
        net, gradients, optimizer, optimizer.init(net.params), Step(*numbers), LiveTape(generator(4))
    )
    return float(new["weight"].mean()), float(new["weight"].std())


def test_langevin_noise_has_the_variance_two_steps_over_n() -> None:
    mean, std = updated(SGLD(step=0.02, burn_in=0.5), 0.5)
    assert mean == pytest.approx(-0.02, rel=0.02)
    assert std == pytest.approx((2 * 0.02 / 200) ** 0.5, rel=0.02)


def test_equal_gradients_need_no_preconditioner() -> None:
    plain = updated(SGLD(step=0.02, burn_in=0.0), 0.5)
    scaled = updated(SGLD(step=0.02, burn_in=0.0, preconditioned=True), 0.5)
    assert scaled == pytest.approx(plain, rel=1e-3)


def test_before_sampling_the_suites_optimiser_takes_the_step() -> None:
    assert updated(SGLD(burn_in=0.5), 0.49) == pytest.approx((-0.1, 0.0), abs=1e-6)


@pytest.mark.parametrize("cycle", [0, 2])
def test_the_step_of_a_cycle_follows_the_cosine(cycle: int) -> None:
    method = CyclicalSGMCMC(cycles=4, exploration=0.5, step=0.04)
    explored = updated(method, (cycle + 0.25) / 4)
    assert explored == pytest.approx((-0.1 * (1 + np.cos(np.pi / 4)) / 2, 0.0), abs=1e-6)
    size = 0.04 * (1 + np.cos(0.75 * np.pi)) / 2
    mean, std = updated(method, (cycle + 0.75) / 4)
    assert std == pytest.approx((2 * size / 200) ** 0.5, rel=0.02)
    assert mean == pytest.approx(-size, rel=0.1)


def test_swag_keeps_the_moments_of_the_iterates(train: Callable[..., Any], draws_of: Callable[..., Array]) -> None:
    method = SWAG(start=0.5, rank=4)
    (fitted,) = train(method, X, Y, epochs=12)
    # The training is the deterministic one, so shorter ones end at the iterates that were averaged.
    ends = [train(Deterministic(), X, Y, epochs=epoch)[0].params for epoch in range(7, 13)]
    for name, memory in fitted.params.items():
        iterates = torch.stack([end[name] for end in ends])
        torch.testing.assert_close(fitted.memory[f"mean:{name}"], iterates.mean(0), atol=1e-6, rtol=1e-5)
        variance = fitted.memory[f"square:{name}"] / fitted.memory["count"]
        torch.testing.assert_close(variance, iterates.var(0, correction=0), atol=1e-9, rtol=1e-3)
        running = torch.stack([iterates[: k + 1].mean(0) for k in range(6)])
        deviations = (iterates - running)[-4:]
        torch.testing.assert_close(fitted.memory[f"deviations:{name}"], deviations, atol=1e-6, rtol=1e-4)
        assert memory.shape == deviations.shape[1:]
    nothing = SWAG(start=0.5, rank=4, scale=0.0)
    alone = draws_of(nothing, [fitted], X, 3)
    assert np.ptp(alone, axis=0).max() == 0


@pytest.mark.parametrize(
    "bad",
    [
        lambda: BayesByBackprop(prior=0.0),
        lambda: SGLD(burn_in=1.0),
        lambda: SGLD(step=0.0),
        lambda: SGLD(samples=0),
        lambda: CyclicalSGMCMC(exploration=1.0),
        lambda: CyclicalSGMCMC(cycles=0),
        lambda: SWAG(rank=1),
        lambda: SWAG(start=1.0),
        lambda: SWAG(scale=-1.0),
    ],
)
def test_impossible_options_are_refused(bad: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        bad()
