"""BatchEnsemble: its members are what the paper's formula says, all of them are trained, and all are drawn."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bench.api import Array, Net
from bench.api.tape import LiveTape
from bench.methods.batch_ensemble import BatchEnsemble, member
from bench.networks.conv import SmallConvolutional
from bench.networks.mlp import MLP

SOURCE = torch.Generator().manual_seed(8)


def network(module: torch.nn.Module, members: int) -> Net:
    """A network whose factors and biases are any numbers."""
    net = Net(module, dict(module.named_parameters()), {})
    first = BatchEnsemble(members).init(net, LiveTape(SOURCE))
    own = {name: torch.randn(tensor.shape, generator=SOURCE) for name, tensor in first.items()}
    return Net(module, {**net.params, **own}, {})


def test_a_member_scales_the_inputs_and_outputs_of_every_layer() -> None:
    net, x = network(MLP(3, [5], 2), 4), torch.randn(7, 3, generator=SOURCE)
    for k in range(4):
        h = x
        for layer in (0, 1):
            weight = f"layers.{layer}.weight"
            scaled = (h * net.params[f"s:{weight}"][k]) @ net.params[weight].T * net.params[f"r:{weight}"][k]
            h = scaled + net.params[f"own:layers.{layer}.bias"][k]
            h = h.relu() if layer == 0 else h
        torch.testing.assert_close(member(net, k)(x), h)


def test_the_factors_of_a_convolution_belong_to_channels() -> None:
    module = SmallConvolutional((2, 4, 4), [3], 5)
    net, x = network(module, 2), torch.randn(6, 2, 4, 4, generator=SOURCE)
    s, r = net.params["s:layers.0.weight"][1], net.params["r:layers.0.weight"][1]
    convolved = F.conv2d(x * s[:, None, None], net.params["layers.0.weight"], padding=1) * r[:, None, None]
    convolved = convolved + net.params["own:layers.0.bias"][1][:, None, None]
    h = F.max_pool2d(convolved.relu(), 2).flatten(1)
    scaled = (h * net.params["s:head.weight"][1]) @ net.params["head.weight"].T * net.params["r:head.weight"][1]
    torch.testing.assert_close(member(net, 1)(x), scaled + net.params["own:head.bias"][1])


@pytest.mark.slow
def test_every_member_learns_and_is_drawn(train: Callable[..., Any], draws_of: Callable[..., Array]) -> None:
    x = torch.randn(200, 2, generator=SOURCE)
    y = x[:, 0] - x[:, 1]
    method = BatchEnsemble(members=3)
    (net,) = train(method, x, y, epochs=60, batch=50, learning_rate=0.02)
    with torch.no_grad():
        functions = [member(net, k)(x)[:, 0].double().numpy() for k in range(3)]
    for values in functions:
        assert np.mean((values - y.numpy()) ** 2) < 0.05 * float(y.var())
    drawn = draws_of(method, [net], x, 60)[..., 0]
    which = [int(np.argmin([np.abs(values - f).max() for f in functions])) for values in drawn]
    for k, values in zip(which, drawn, strict=True):
        np.testing.assert_allclose(values, functions[k], atol=1e-5)
    assert min(np.bincount(which, minlength=3)) >= 8  # below with probability 3e-4


def test_early_stopping_watches_the_members(train: Callable[..., Any]) -> None:
    x = torch.randn(60, 2, generator=SOURCE)
    y = x.sum(1)
    (net,) = train(BatchEnsemble(), x, y, held=20, epochs=10, patience=3, learning_rate=0.02)
    with torch.no_grad():
        losses = [F.mse_loss(member(net, k)(x[40:])[:, 0], y[40:]) for k in range(4)]
    assert net.validation_loss == pytest.approx(float(torch.stack(losses).mean()), rel=1e-4)


def test_impossible_options_are_refused() -> None:
    with pytest.raises(ValueError, match="members must be above 0"):
        BatchEnsemble(members=0)
