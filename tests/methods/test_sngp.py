"""SNGP: its features, its bound on weights, and its posterior, each against a closed form."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bench.api import Array, Problem
from bench.methods._bayes import LOG_NOISE
from bench.methods.sngp import OUTPUT, ROOT, SNGP, RandomFeatures, hidden_weights
from bench.networks.conv import ConvNetwork
from bench.networks.mlp import MLP, MLPNetwork
from bench.networks.residual_mlp import ResidualMLPNetwork
from bench.training.limits import Limits
from bench.training.member import Fitted, Rows

PLAIN = Limits(path="plain")
SOURCE = torch.Generator().manual_seed(9)


def features(net: Fitted, x: Tensor) -> Array:
    with torch.no_grad():
        values: Array = net(x).double().numpy()
    return values


def test_products_of_features_approach_the_kernel() -> None:
    torch.manual_seed(1)
    module = RandomFeatures(MLP(3, [], 10_000), 10_000, 1.7, 1)
    x = torch.randn(6, 3, generator=SOURCE)
    with torch.no_grad():
        phi = module(x)
    expected = torch.exp(-torch.cdist(x, x).square() / (2 * 1.7**2))
    torch.testing.assert_close(phi @ phi.T, expected, atol=0.05, rtol=0)  # five standard errors of 10,000 features
    assert not [name for name, p in module.named_parameters() if p.requires_grad]


@pytest.mark.slow
def test_on_fixed_features_it_is_bayesian_linear_regression(
    train: Callable[..., Any], draws_of: Callable[..., Array]
) -> None:
    x, at = torch.randn(80, 2, generator=SOURCE), 2 * torch.randn(15, 2, generator=SOURCE)
    y = torch.sin(2 * x[:, 0]) + 0.3 * torch.randn(80, generator=SOURCE)
    method = SNGP(features=25, prior=0.8)
    # Without a hidden layer nothing but B and the noise is trained.
    (net,) = train(method, x, y, hidden=[], epochs=400, batch=80, learning_rate=0.1, schedule="cosine")
    phi, phi_at = features(net, x), features(net, at)
    noise2 = float(net.params[LOG_NOISE].double().exp()) ** 2
    covariance = np.linalg.inv(phi.T @ phi / noise2 + np.eye(25) / 0.8**2)
    mean = covariance @ phi.T @ y.double().numpy() / noise2
    np.testing.assert_allclose(net.params[OUTPUT][:, 0].double(), mean, atol=2e-3)
    root = net.memory[ROOT][0].double().numpy()
    np.testing.assert_allclose(root @ root.T, covariance, rtol=1e-3, atol=1e-5)
    drawn = draws_of(method, [net], at, 4000)[..., 0]
    variance = np.einsum("ni,ij,nj->n", phi_at, covariance, phi_at)
    np.testing.assert_allclose(drawn.var(0), variance, rtol=5 * np.sqrt(2 / 4000))
    np.testing.assert_allclose(drawn.mean(0), phi_at @ mean, atol=float(5 * np.sqrt(variance.max() / 4000)) + 2e-3)
    # The noise maximises the likelihood together with B.
    assert noise2 == pytest.approx(np.mean((y.double().numpy() - phi @ mean) ** 2), rel=1e-2)


def test_the_posterior_of_classes_has_the_curvature_of_each_logit(train: Callable[..., Any]) -> None:
    x = torch.randn(50, 2, generator=SOURCE)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 1).long()
    (net,) = train(SNGP(features=12, prior=2.0), x, y, hidden=[6], epochs=5)
    phi = features(net, x)
    p = torch.from_numpy(phi @ net.params[OUTPUT].double().numpy()).softmax(-1).numpy()
    for k in range(3):
        precision = np.eye(12) / 4 + sum(
            weight * np.outer(row, row) for weight, row in zip(p[:, k] * (1 - p[:, k]), phi, strict=True)
        )
        root = net.memory[ROOT][k].double().numpy()
        np.testing.assert_allclose(root @ root.T @ precision, np.eye(12), atol=1e-4)


@pytest.mark.parametrize("network", [MLPNetwork((20, 20)), ConvNetwork((6, 8))])
def test_hidden_weights_do_not_exceed_the_bound(
    network: Any, member: Callable[..., Any], fit_in_order: Callable[..., list[Fitted]]
) -> None:
    bounded, free = SNGP(bound=0.4, features=30), SNGP(bound=1e6, features=30)
    nets = [fit_in_order([member(method, network=network, epochs=10)], PLAIN)[0] for method in (bounded, free)]
    norms = [[norm(net.params[name]) for name in hidden_weights(net)] for net in nets]
    assert len(norms[0]) == 2
    assert max(norms[0]) < 0.4 * 1.05  # one step of power iteration per training step lags a little behind
    assert min(norms[1]) > 0.6


def norm(weight: Tensor) -> float:
    return float(torch.linalg.matrix_norm(weight.flatten(1), 2))


@pytest.mark.slow
@pytest.mark.parametrize("network", [MLPNetwork((30,)), ResidualMLPNetwork(30)])
def test_variance_grows_with_the_distance_from_the_data(
    network: Any, member: Callable[..., Any], fit_in_order: Callable[..., list[Fitted]], draws_of: Callable[..., Array]
) -> None:
    source = torch.Generator().manual_seed(3)
    x = torch.randn(120, 2, generator=source)
    rows = Rows("regression", x, torch.sin(x.sum(1)), torch.arange(120), torch.arange(0))
    method = SNGP(features=400)
    (net,) = fit_in_order([member(method, rows=rows, network=network, epochs=20)], PLAIN)
    circle = torch.linspace(0, 2 * torch.pi, 16)
    directions = torch.stack([circle.cos(), circle.sin()], 1)
    variances = [draws_of(method, [net], radius * directions, 200)[..., 0].var(0).mean() for radius in (0.5, 3, 6, 12)]
    assert variances[0] < 0.1 * variances[-1]
    assert (np.diff(variances) > 0).all()
    assert variances[-1] < 1.3  # the prior's is 1


def test_a_network_without_a_last_linear_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="sngp needs a network whose last layer"):
        SNGP().build(Problem("regression", (3,), 1), lambda outputs: nn.Sequential(nn.Linear(3, 4), nn.ReLU()))


def test_impossible_options_are_refused() -> None:
    with pytest.raises(ValueError, match="length_scale must be above 0"):
        SNGP(length_scale=0.0)
