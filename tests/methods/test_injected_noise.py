"""Noise on weights, inputs and activations: its law, its size, and what it is without any."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from bench.api import Array, Batch, Method, Net, Problem
from bench.api.tape import BlankTape, LiveTape, Tape, generator
from bench.methods._weight_noise import Law, standard, with_noise
from bench.methods.deterministic import Deterministic
from bench.methods.drop_connect import DropConnect
from bench.methods.mcni_fixed import MCNIFixed
from bench.methods.mcni_learned import MCNILearned
from bench.methods.pni import PNI
from bench.networks.mlp import MLP
from bench.networks.resnet8 import ResNet8Network

DRAWS = 20_000  # the relative standard error of a variance from n normal draws is sqrt(2 / n) = 1 %
X = torch.randn(30, 5, generator=torch.Generator().manual_seed(1))
Y = X.sum(1)

DISTRIBUTIONS = {
    "gaussian": stats.norm(),
    "laplace": stats.laplace(scale=0.5**0.5),
    "student-t": stats.t(5, scale=(3 / 5) ** 0.5),
    "uniform": stats.uniform(-(3**0.5), 2 * 3**0.5),
}


@pytest.mark.parametrize("law", DISTRIBUTIONS)
def test_a_law_is_the_one_it_is_called_with_variance_one(law: Law) -> None:
    numbers = standard(law, 5, (200, 100), LiveTape(generator(7))).flatten().double().numpy()
    assert DISTRIBUTIONS[law].var() == pytest.approx(1)
    assert stats.kstest(numbers, DISTRIBUTIONS[law].cdf).pvalue > 0.001
    assert numbers.mean() == pytest.approx(0, abs=0.03)
    assert numbers.var() == pytest.approx(1, abs=0.07)


def test_degrees_of_freedom_are_students() -> None:
    numbers = standard("student-t", 3, (20_000,), LiveTape(generator(8))).double().numpy()
    assert stats.kstest(numbers, stats.t(3, scale=3**-0.5).cdf).pvalue > 0.001


def test_a_uniform_of_zero_gives_a_finite_laplace() -> None:
    assert torch.isfinite(standard("laplace", 5, (2,), Tape(torch.zeros(0), torch.tensor([0.0, 0.5])))).all()


def spread(method: Method, network: Any, draws_of: Callable[..., Array]) -> Array:
    variance: Array = draws_of(method, [network], X, DRAWS)[..., 0].var(0, ddof=1)
    return variance


@pytest.mark.parametrize("law", DISTRIBUTIONS)
def test_every_law_gives_a_linear_network_the_same_variance(
    law: Law, train: Callable[..., Any], draws_of: Callable[..., Array]
) -> None:
    method = MCNIFixed(alpha=0.3, law=law)
    (network,) = train(method, X, Y, hidden=[])
    sigma2 = network.params["layers.0.weight"].var(correction=0)
    expected = 0.09 * sigma2 * X.square().sum(1)
    np.testing.assert_allclose(spread(method, network, draws_of), expected.numpy(), rtol=0.08)


def test_multiplicative_noise_weighs_each_input_by_its_weight(
    train: Callable[..., Any], draws_of: Callable[..., Array]
) -> None:
    method = MCNIFixed(alpha=0.3, multiplicative=True)
    (network,) = train(method, X, Y, hidden=[])
    expected = 0.09 * (X * network.params["layers.0.weight"]).square().sum(1)
    np.testing.assert_allclose(spread(method, network, draws_of), expected.numpy(), rtol=0.06)


def test_a_resnet8_has_a_level_for_each_of_its_eight_weight_tensors() -> None:
    """Seven convolutions and the classifier, where shortcuts have none; not for biases and batch norm."""
    network = ResNet8Network(width=4, shortcut="padding")
    module = network.build(Problem("classification", (3, 32, 32), 10), 10)
    net = Net(module, dict(module.named_parameters()), dict(module.named_buffers()))
    levels = MCNILearned(alpha=0.25, granularity="layer").init(net, BlankTape(torch.device("cpu")))
    layers = {name: m for name, m in module.named_modules() if isinstance(m, (torch.nn.Conv2d, torch.nn.Linear))}
    assert levels.keys() == {f"alpha:{name}.weight" for name in layers}
    assert len(levels) == 8
    assert all(float(level) == 0.25 for level in levels.values())


def test_the_penalty_is_half_of_a_negative_weight_decay_on_the_levels() -> None:
    """torch adds decay * alpha to a gradient: -0.3 is the gradient of -0.15 alpha^2."""
    module = MLP(5, [4], 1)
    params = {name: p.detach() for name, p in module.named_parameters()}
    batch, gradients = Batch("regression", X, Y, torch.tensor(30)), []
    levels = {f"alpha:layers.{i}.weight": torch.full(params[f"layers.{i}.weight"].shape, 0.2) for i in (0, 1)}
    for penalty in (0.0, 0.15):
        own = {name: level.clone().requires_grad_() for name, level in levels.items()}
        method = MCNILearned(alpha=0.2, penalty=penalty)
        loss = method.loss(Net(module, params | own, {}), batch, LiveTape(generator(3)))
        gradients.append(torch.autograd.grad(loss, list(own.values())))
    optimiser = torch.optim.SGD([{"params": list(own.values()), "weight_decay": -0.3}], lr=1.0)
    for level, plain in zip(own.values(), gradients[0], strict=True):
        level.grad = plain
    optimiser.step()
    for level, first, gradient in zip(own.values(), levels.values(), gradients[1], strict=True):
        torch.testing.assert_close(level.detach(), first - gradient)


@pytest.mark.parametrize("flows", [False, True])
def test_the_gradient_flows_through_sigma_where_it_is_asked_for(flows: bool) -> None:
    """L = w~ x summed, w~_j = w_j + alpha sigma z_j: dL/dw_j = x_j + alpha (w_j - mean w) / (n sigma) sum_k z_k x_k."""
    weight = torch.tensor([[1.0, -2.0, 4.0]], requires_grad=True)
    x, z, alpha = torch.tensor([0.5, 2.0, -1.0]), torch.tensor([0.3, -1.0, 2.0]), 0.3
    net = Net(MLP(3, [], 1), {"layers.0.weight": weight, "layers.0.bias": torch.zeros(1)}, {})
    noisy = with_noise(net, Tape(z, torch.zeros(0)), lambda _: alpha, sigma_gradient=flows)
    noisy(x[None]).sum().backward()
    values = weight.detach()[0]
    sigma = values.std(correction=0)
    through = alpha * (values - values.mean()) / (3 * sigma) * (z * x).sum()
    assert weight.grad is not None
    torch.testing.assert_close(weight.grad[0], x + through if flows else x)


def test_equal_weights_give_a_finite_gradient_through_sigma() -> None:
    weight = torch.full((1, 3), 2.0, requires_grad=True)
    net = Net(MLP(3, [], 1), {"layers.0.weight": weight, "layers.0.bias": torch.zeros(1)}, {})
    noisy = with_noise(net, Tape(torch.ones(3), torch.zeros(0)), lambda _: 0.3, sigma_gradient=True)
    noisy(torch.ones(1, 3)).sum().backward()
    torch.testing.assert_close(weight.grad, torch.ones(1, 3))


def test_a_channels_level_is_shared_by_the_weights_into_one_unit(
    train: Callable[..., Any], draws_of: Callable[..., Array]
) -> None:
    method = MCNILearned(alpha=0.3, granularity="channel")
    (network,) = train(method, X, Y, hidden=[7], epochs=20)
    first, last = (network.params[f"alpha:layers.{i}.weight"] for i in (0, 1))
    assert (first.shape, last.shape) == ((7, 1), (1, 1))
    assert first.unique().numel() > 1, "the levels did not learn apart"


def test_noise_only_in_training_draws_one_function_and_only_in_draws_trains_as_usual(
    train: Callable[..., Any], draws_of: Callable[..., Array]
) -> None:
    both, training, drawing = (MCNIFixed(alpha=0.3, noise_in=place) for place in ("both", "train", "test"))
    networks = {method: train(method, X, Y)[0] for method in (both, training, drawing)}
    (plain,) = train(Deterministic(), X, Y)
    for name, value in plain.params.items():
        torch.testing.assert_close(networks[drawing].params[name], value)
        torch.testing.assert_close(networks[training].params[name], networks[both].params[name])
    assert not torch.equal(networks[both].params["layers.0.weight"], plain.params["layers.0.weight"])
    assert len(draws_of(training, [networks[training]], X, 10)) == 1
    assert len(draws_of(drawing, [networks[drawing]], X, 10)) == 10


def test_drop_connect_has_the_mean_and_variance_of_bernoulli_terms(
    train: Callable[..., Any], draws_of: Callable[..., Array]
) -> None:
    method = DropConnect(rate=0.2)
    (network,) = train(method, X, Y, hidden=[])
    drawn = draws_of(method, [network], X, DRAWS)[..., 0]
    expected = 0.2 / 0.8 * (X * network.params["layers.0.weight"]).square().sum(1)
    np.testing.assert_allclose(drawn.var(0, ddof=1), expected.numpy(), rtol=0.06)
    mean = network(X)[:, 0].numpy()
    np.testing.assert_allclose(drawn.mean(0), mean, atol=4 * float((expected.max() / DRAWS).sqrt()))


def test_pni_on_inputs_has_the_variance_of_a_linear_map_of_noise(
    train: Callable[..., Any], draws_of: Callable[..., Array]
) -> None:
    method = PNI(where="inputs")
    (network,) = train(method, X, Y, hidden=[])
    weight, level = network.params["layers.0.weight"], network.params["alpha:"]
    assert level.shape == (1,)
    assert float(level[0]) != 0.25, "the level did not learn"
    expected = float(level[0] ** 2 * X.var(correction=0) * weight.square().sum())
    np.testing.assert_allclose(spread(method, network, draws_of), expected, rtol=0.06)


def test_pni_on_activations_has_the_variance_of_the_last_layer(
    train: Callable[..., Any], draws_of: Callable[..., Array]
) -> None:
    method = PNI(where="activations")
    (network,) = train(method, X, Y, hidden=[12])
    hidden = torch.relu(X @ network.params["layers.0.weight"].T + network.params["layers.0.bias"])
    level, last = network.params["alpha:"], network.params["layers.1.weight"]
    expected = float(level[0] ** 2 * hidden.var(correction=0) * last.square().sum())
    np.testing.assert_allclose(spread(method, network, draws_of), expected, rtol=0.06)


@pytest.mark.parametrize("where", ["weights", "inputs", "activations"])
def test_pni_without_noise_is_the_deterministic_network(where: Any, train: Callable[..., Any]) -> None:
    # One step: a level at zero learns from the first gradient on.
    (plain,), (noisy,) = (train(m, X, Y, epochs=1, batch=30) for m in (Deterministic(), PNI(alpha=0.0, where=where)))
    for name, value in plain.params.items():
        torch.testing.assert_close(noisy.params[name], value, atol=1e-6, rtol=1e-5)


def test_dropping_nothing_is_the_deterministic_network(train: Callable[..., Any]) -> None:
    (plain,), (thin,) = (train(m, X, Y) for m in (Deterministic(), DropConnect(rate=0.0)))
    for name, value in plain.params.items():
        torch.testing.assert_close(thin.params[name], value, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    "bad", [lambda: DropConnect(rate=1.0), lambda: MCNIFixed(degrees=2), lambda: MCNILearned(noise_in="test")]
)
def test_impossible_options_are_refused(bad: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        bad()


def test_learned_levels_are_kept_for_figures() -> None:
    module = MLP(2, [3], 1)
    params = dict(module.named_parameters())
    method = MCNILearned(alpha=0.25)
    levels = method.init(Net(module, params, {}), BlankTape(torch.device("cpu")))
    seen = method.inspect(Net(module, params | levels, {}))
    assert {name: tuple(t.shape) for name, t in seen.items()} == {
        "alpha:layers.0.weight": (3, 2),
        "alpha:layers.1.weight": (1, 3),
    }
    assert all((t == 0.25).all() for t in seen.values())
