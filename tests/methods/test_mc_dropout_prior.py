"""MC dropout with a tied weight decay and a noise level: penalty, masks, and the log likelihood of its authors."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import norm

from bench.api import Array, Batch, Net, Problem
from bench.api.tape import LiveTape, generator
from bench.methods.mc_dropout_prior import MCDropoutPrior
from bench.metrics import Forecast, score
from bench.networks.mlp import MLP

X = torch.randn(40, 3, generator=torch.Generator().manual_seed(3))
BATCH = Batch("regression", X[:16], X[:16].sum(1), torch.tensor(40.0))
DRAWS = 8000


def net_of(module: MLP) -> Net:
    return Net(module, {name: p.detach() for name, p in module.named_parameters()}, {})


def test_the_loss_is_the_squared_error_and_a_decay_tied_to_rate_noise_and_rows() -> None:
    method = MCDropoutPrior(rate=0.2, noise=0.5, length_scale=10.0)
    module = MLP(3, (5, 4), 1)
    outputs = method.masked(net_of(module), BATCH.x, LiveTape(generator(1)), slice(0, None))
    squares = sum(float(p.detach().square().sum()) for name, p in module.named_parameters() if "weight" in name)
    tau, rows = 1 / 0.5**2, 40  # of the whole training set, not of the batch
    decay = 10.0**2 * (1 - 0.2) / (2 * rows * tau)
    expected = float((outputs[:, 0] - BATCH.y).square().mean()) + decay * squares
    assert float(method.loss(net_of(module), BATCH, LiveTape(generator(1)))) == pytest.approx(expected, rel=1e-5)
    assert decay * squares > 0.5  # the tolerance does not hide it


def test_inputs_and_hidden_units_are_dropped_at_the_same_rate(
    train: Callable[..., Any], draws_of: Callable[..., Array]
) -> None:
    """While all hidden units are positive, the variance over masks has a closed form."""
    method = MCDropoutPrior(rate=0.3)
    (network,) = train(method, X, X.sum(1), hidden=[6])
    positive = {name: network.params[name].abs() + 0.1 for name in ("layers.0.weight", "layers.0.bias")}
    network, rows = network.with_params(positive), X[:5].abs()
    first, bias, last = (network.params[f"layers.{name}"].double() for name in ("0.weight", "0.bias", "1.weight"))
    x, odds = rows.double(), 0.3 / 0.7
    mean = x @ first.T + bias
    covariance = odds * torch.einsum("ji,ki,ni->njk", first, first, x.square())  # of hidden units
    second = mean.square() + torch.diagonal(covariance, dim1=1, dim2=2)
    v = last[0]
    expected = torch.einsum("j,njk,k->n", v, covariance, v) + odds * second @ v.square()
    drawn = draws_of(method, [network], rows, DRAWS)
    np.testing.assert_allclose(drawn[..., 0].var(0, ddof=1), expected.detach(), rtol=0.08)
    np.testing.assert_array_equal(drawn[..., 1], np.float32(0.3**2))


def test_the_mixture_log_score_of_the_draws_is_gals_log_likelihood(
    train: Callable[..., Any], draws_of: Callable[..., Array]
) -> None:
    method = MCDropoutPrior(rate=0.1, noise=0.4)
    (network,) = train(method, X, X.sum(1))
    drawn = draws_of(method, [network], X, 200)
    mean, std = 7.0, 12.0  # of the targets in original units
    y_hat, y = drawn[..., 0] * std + mean, X.sum(1).double().numpy() * std + mean
    tau = 1 / (0.4 * std) ** 2
    # As in predict() of the authors' net/net.py.
    rows = logsumexp(-0.5 * tau * (y - y_hat) ** 2, 0) - np.log(200) - 0.5 * np.log(2 * np.pi) + 0.5 * np.log(tau)
    forecast = Forecast("regression", y, y_hat, drawn[..., 1] * std**2)
    assert score(forecast, ["nll_mixture"])["nll_mixture"] == pytest.approx(-rows.mean(), rel=1e-6)


def test_early_stopping_and_search_watch_the_likelihood_so_that_they_can_choose_the_noise() -> None:
    module = MLP(3, (5,), 1)
    residuals = (net_of(module)(BATCH.x)[:, 0] - BATCH.y).double().numpy()
    for noise in (0.1, 1.0):
        found = MCDropoutPrior(noise=noise).validate(net_of(module), BATCH)
        expected = -norm.logpdf(residuals, scale=noise).mean() - math.log(2 * math.pi) / 2
        assert float(found) == pytest.approx(expected, rel=1e-5)


def test_what_it_cannot_do_is_refused_with_a_reason() -> None:
    assert "classes" in str(MCDropoutPrior().skip(Problem("classification", (3,), 4)))
    for options in ({"rate": 1.0}, {"noise": 0.0}, {"length_scale": -1.0}):
        with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
            MCDropoutPrior(**options)
