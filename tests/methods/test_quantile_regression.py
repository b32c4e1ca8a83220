"""Quantile regression: simulated quantiles are found, and none cross."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import mean_pinball_loss

from bench.api import Array, Batch, Net, Problem, Quantiles
from bench.api.tape import BlankTape
from bench.methods.quantile_regression import LEVELS, QuantileRegression
from bench.networks.mlp import MLP

SOURCE = torch.Generator().manual_seed(11)


def some_network(method: QuantileRegression, scale: float = 1.0) -> Net:
    module = MLP(2, [8], len(method.levels))
    net = Net(module, {name: scale * p.detach() for name, p in module.named_parameters()}, {})
    return replace(net, memory=method.memory(net, BlankTape()))


def test_the_loss_is_that_of_every_level() -> None:
    method = QuantileRegression(levels=(0.1, 0.4, 0.9))
    net, x, y = some_network(method), torch.randn(25, 2, generator=SOURCE), torch.randn(25, generator=SOURCE)
    q = method.draw(net, x, BlankTape())
    loss = method.loss(net, Batch("regression", x, y, torch.tensor(25.0)), BlankTape())
    expected = [mean_pinball_loss(y, q[:, k], alpha=level) for k, level in enumerate(method.levels)]
    assert float(loss) == pytest.approx(np.mean(expected), rel=1e-5)


def test_quantiles_never_cross_and_outputs_of_zero_are_the_normals() -> None:
    method, x = QuantileRegression(), torch.randn(200, 2, generator=SOURCE)
    q = method.draw(some_network(method, 30.0), x, BlankTape())
    assert (q.diff(dim=-1) >= 0).all()
    zero = method.draw(some_network(method, 0.0), x[:1], BlankTape())[0]
    torch.testing.assert_close(zero, torch.special.ndtri(torch.tensor(LEVELS)), atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_simulated_quantiles_are_found(train: Callable[..., Any], draws_of: Callable[..., Array]) -> None:
    # Gumbel noise whose scale depends on the input: P(y < q | x) = exp(-exp(-(q - x) / s(x))).
    source = torch.Generator().manual_seed(0)
    x = torch.rand(6000, 1, generator=source) * 4 - 2
    noise = -(-torch.rand(6000, generator=source).log()).log()
    y = x[:, 0] + (0.4 + 0.15 * x[:, 0]) * noise
    method = QuantileRegression()
    (net,) = train(method, x, y, hidden=[20], epochs=15, batch=100, learning_rate=0.01, schedule="cosine")
    at, levels = torch.linspace(-1.8, 1.8, 20).double(), np.array(LEVELS)
    (found,) = draws_of(method, [net], at[:, None].float(), 1)
    scale = (0.4 + 0.15 * at).numpy()[:, None]
    reached = np.exp(-np.exp(-(found - at.numpy()[:, None]) / scale))
    assert np.abs(reached - levels).max() < 0.08
    assert np.abs((reached - levels).mean(0)).max() < 0.02
    prediction = method.predict(found[None], "regression")
    assert isinstance(prediction, Quantiles)
    np.testing.assert_allclose(prediction.quantile(levels)[:, 0].T, found)
    assert prediction.has_density
    assert not QuantileRegression(tails="flat").predict(found[None], "regression").has_density  # type: ignore[union-attr]


def test_classes_and_impossible_options_are_refused() -> None:
    assert "no order" in str(QuantileRegression().skip(Problem("classification", (3,), 4)))
    for levels in ((0.5,), (0.5, 0.4), (0.0, 0.5), (0.5, 1.0)):
        with pytest.raises(ValueError, match="levels must be at least 2, ascending"):
            QuantileRegression(levels=levels)
