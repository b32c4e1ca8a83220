"""Networks that state a mean and a variance."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Normal

from bench.api import Array, Problem
from bench.methods._gaussian_head import gaussian_loss, moments
from bench.methods.mean_variance import MeanVariance
from bench.methods.mean_variance_ensemble import MeanVarianceEnsemble

SOURCE = torch.Generator().manual_seed(6)


def test_the_loss_is_the_gaussian_likelihood() -> None:
    outputs, y = torch.randn(9, 2, generator=SOURCE), torch.randn(9, generator=SOURCE)
    stated = moments(outputs)
    expected = -Normal(stated[:, 0], stated[:, 1].sqrt()).log_prob(y).mean() - np.log(2 * np.pi) / 2
    torch.testing.assert_close(gaussian_loss(stated, y), expected)
    assert (moments(torch.full((1, 2), -100.0))[:, 1] > 0).all()


@pytest.mark.slow
def test_noise_that_depends_on_the_input_is_recovered(
    train: Callable[..., Any], draws_of: Callable[..., Array]
) -> None:
    source = torch.Generator().manual_seed(0)
    x = torch.rand(2000, 1, generator=source) * 2 - 1
    noise = torch.where(x[:, 0] > 0, 0.6, 0.2)
    y = x[:, 0] + noise * torch.randn(2000, generator=source)
    method = MeanVariance()
    (network,) = train(method, x, y, hidden=[20], epochs=60, batch=200, learning_rate=0.02)
    at = torch.tensor([[-0.7], [-0.4], [0.4], [0.7]])
    (stated,) = draws_of(method, [network], at, 10)
    np.testing.assert_allclose(stated[:, 0], at[:, 0], atol=0.12)
    np.testing.assert_allclose(np.sqrt(stated[:, 1]), [0.2, 0.2, 0.6, 0.6], rtol=0.25)


def test_an_ensemble_is_a_mixture_of_such_networks_trained_alike(
    train: Callable[..., Any], draws_of: Callable[..., Array]
) -> None:
    x = torch.randn(40, 3, generator=SOURCE)
    one, several = MeanVariance(), MeanVarianceEnsemble(networks=3)
    networks = train(several, x, x.sum(1), seeds=3)
    mixture = draws_of(several, networks, x, 3)
    assert mixture.shape == (3, 40, 2)
    for network, stated in zip(networks, mixture, strict=True):
        np.testing.assert_allclose(draws_of(one, [network], x, 1)[0], stated, rtol=1e-5)


def test_classes_are_refused_with_a_reason() -> None:
    for method in (MeanVariance(), MeanVarianceEnsemble()):
        assert "regression" in str(method.skip(Problem("classification", (3,), 4)))
        assert method.skip(Problem("regression", (3,), 1)) is None


def test_impossible_options_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        MeanVarianceEnsemble(networks=0)
