"""Monte Carlo batch norm, and the batch norm it is made of."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bench.api import Array, Net
from bench.methods._batch_statistics import BatchNorm, batch_statistics
from bench.methods.mc_batch_norm import MCBatchNorm
from bench.networks._residual import ResidualNetwork

SOURCE = torch.Generator().manual_seed(4)
X = torch.randn(60, 5, generator=SOURCE)
Y = X.sum(1).sin()


def test_our_batch_norm_is_torchs() -> None:
    ours, theirs = BatchNorm(5), nn.BatchNorm1d(5)
    for _ in range(3):
        x = torch.randn(12, 5, generator=SOURCE) * 3 + 1
        torch.testing.assert_close(ours(x), theirs(x), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    torch.testing.assert_close(ours.eval()(X), theirs.eval()(X), atol=1e-5, rtol=1e-5)


def test_statistics_of_a_batch_are_those_that_reproduce_training_mode() -> None:
    module = ResidualNetwork(3, 4, (16, 32, 64))
    net = Net(module, dict(module.named_parameters()), dict(module.named_buffers()))
    before = {name: b.clone() for name, b in net.buffers.items()}
    images = torch.randn(16, 3, 8, 8, generator=SOURCE)
    module.eval()
    seen = batch_statistics(net, images)
    first = nn.functional.conv2d(images, net.params["stem.conv.weight"], padding=1)
    torch.testing.assert_close(seen["stem.norm.running_mean"], first.mean((0, 2, 3)), atol=1e-5, rtol=1e-4)
    variance = first.transpose(0, 1).flatten(1).var(1)
    torch.testing.assert_close(seen["stem.norm.running_var"], variance, atol=1e-4, rtol=1e-4)
    assert not module.training
    assert all(torch.equal(before[name], b) for name, b in net.buffers.items()), "the network was changed"
    # A module in training mode normalises by the biased variance, so they differ by 1 / (number of values).
    drawn = Net(module, net.params, dict(net.buffers) | seen)(images)
    module.train()
    torch.testing.assert_close(drawn, module(images), atol=0.05, rtol=0.05)


def test_batches_of_all_rows_give_one_function(train: Callable[..., Any], draws_of: Callable[..., Array]) -> None:
    method = MCBatchNorm(batch=60, batches=4)
    (network,) = train(method, X, Y, batch=20)
    drawn = draws_of(method, [network], X, 6)
    np.testing.assert_allclose(drawn, np.broadcast_to(drawn[0], drawn.shape), atol=1e-5)


def test_smaller_batches_spread_more(train: Callable[..., Any], draws_of: Callable[..., Array]) -> None:
    spreads = []
    for size in (30, 6):
        method = MCBatchNorm(batch=size, batches=40)
        (network,) = train(method, X, Y, batch=20)
        spreads.append(draws_of(method, [network], X, 80).var(0).mean())
    assert spreads[1] > 3 * spreads[0] > 0


def test_the_network_starts_as_the_suites(train: Callable[..., Any]) -> None:
    (network,) = train(MCBatchNorm(), X, Y, epochs=1, batch=20)
    assert set(network.params) == {
        "layers.0.0.weight",
        "layers.0.0.bias",
        "layers.0.1.weight",
        "layers.0.1.bias",
        "layers.1.weight",
        "layers.1.bias",
    }


def test_a_network_without_hidden_layers_is_refused(train: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="needs a hidden layer"):
        train(MCBatchNorm(), X, Y, hidden=[])


def test_impossible_options_are_refused() -> None:
    with pytest.raises(ValueError, match="must be"):
        MCBatchNorm(batch=1)
