"""Methods that work on a trained network: their networks are the deterministic ones, their tuning is the best."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import minimize_scalar

from bench.api import Array, Batch, Method, Problem
from bench.api.tape import LiveTape, Tape, generator
from bench.methods._tuning import choose, predictive_loss
from bench.methods.deterministic import Deterministic
from bench.methods.laplace import Laplace
from bench.methods.pep import PEP
from bench.methods.temperature_scaling import TemperatureScaling
from bench.methods.test_time_augmentation import TestTimeAugmentation as Augmentation  # pytest collects Test...
from bench.methods.weight_noise import WeightNoise

SOURCE = torch.Generator().manual_seed(2)
X = torch.randn(160, 4, generator=SOURCE)
Y = X.sum(1).sin() + 0.3 * torch.randn(160, generator=SOURCE)
CLASSES = ((X.sum(1) + 0.8 * torch.randn(160, generator=SOURCE)) > 0).long() + (X[:, 0] > 1).long()
POST_HOC = [Laplace(), PEP(), WeightNoise(), WeightNoise(where="activations"), Augmentation(), TemperatureScaling()]
TRAINING_HOOKS = ("build", "init", "memory", "loss", "update", "remember", "validate", "early_stopping")

Fit = Callable[..., Any]
Draws = Callable[..., Array]


@pytest.mark.parametrize("method", POST_HOC, ids=str)
def test_training_is_the_ordinary_one_and_may_be_shared(method: Method) -> None:
    assert all(getattr(type(method), hook) is getattr(Method, hook) for hook in TRAINING_HOOKS)


@pytest.mark.parametrize("method", POST_HOC, ids=str)
def test_no_validation_rows_are_needed(method: Method, train: Fit, draws_of: Draws) -> None:
    y = Y if method.skip(Problem("regression", (4,), 1)) is None else CLASSES
    (network,) = train(method, X, y, batch=40)
    assert np.isfinite(draws_of(method, [network], X, 3, y is CLASSES)).all()


@pytest.mark.slow
def test_the_temperature_is_the_best_on_validation_rows_and_keeps_the_classes(train: Fit, draws_of: Draws) -> None:
    method = TemperatureScaling()
    (network,) = train(method, X, CLASSES, held=60, epochs=60)
    held, right = X[-60:], CLASSES[-60:]
    logits = network(held).double()
    best = minimize_scalar(
        lambda t: float(F.cross_entropy(logits / t, right)),
        bounds=(0.05, 20),
        method="bounded",
        options={"xatol": 1e-6},
    )
    assert float(network.memory["temperature"]) == pytest.approx(best.x, rel=1e-3)
    assert best.x > 1.05, "this network should be too sure of itself"
    scaled = draws_of(method, [network], held, 1, classify=True)[0]
    np.testing.assert_array_equal(scaled.argmax(1), logits.argmax(1).numpy())
    np.testing.assert_allclose(scaled, (logits / best.x).softmax(1).numpy(), atol=1e-4)


def test_numbers_have_no_temperature() -> None:
    assert "regression" in str(TemperatureScaling().skip(Problem("regression", (4,), 1)))
    assert TemperatureScaling().skip(Problem("classification", (4,), 3)) is None


def test_the_chosen_level_is_that_of_the_data() -> None:
    """Targets that scatter by 0.5 |x| around zero are the most likely under draws that do the same."""
    x = torch.linspace(-3, 3, 2000)[:, None]
    y = 0.5 * x[:, 0].abs() * torch.randn(2000, generator=torch.Generator().manual_seed(0))
    batch = Batch("regression", x, y, torch.tensor(2000.0))
    levels = (0.05, 0.2, 0.5, 1.5)
    assert choose(levels, lambda level, x, tape: level * x * tape.normal((1,)), batch, LiveTape(generator(0))) == 0.5


def test_the_predictive_loss_is_that_of_the_mean_prediction() -> None:
    draws = torch.randn(7, 160, 3, generator=SOURCE)
    batch = Batch("classification", X, CLASSES, torch.tensor(160.0))
    expected = F.nll_loss(draws.double().softmax(-1).mean(0).log(), CLASSES)
    assert predictive_loss(batch, draws) == pytest.approx(float(expected))
    # Draws without spread leave the mean square error as the noise: the best Gaussian around them.
    alone = predictive_loss(Batch("regression", X, Y, torch.tensor(160.0)), torch.zeros(2, 160, 1))
    assert alone == pytest.approx(float(Y.double().square().mean().log() / 2 + 0.5))


@pytest.mark.parametrize(
    ("method", "variance"),
    [
        (PEP(level=0.3), lambda w: 0.09 * (X.square().sum(1) + 1)),
        (WeightNoise(level=0.3), lambda w: 0.09 * w.var(correction=0) * X.square().sum(1)),
        (Augmentation(level=0.3), lambda w: 0.09 * w.square().sum().expand(160)),
    ],
    ids=["pep", "weight-noise", "test-time-augmentation"],
)
def test_the_variance_of_a_linear_network_is_the_noises(
    method: Method, variance: Callable[[torch.Tensor], torch.Tensor], train: Fit, draws_of: Draws
) -> None:
    (network,) = train(method, X, Y, hidden=[], batch=40)
    drawn = draws_of(method, [network], X, 20_000)[..., 0]
    np.testing.assert_allclose(drawn.var(0, ddof=1), variance(network.params["layers.0.weight"]).numpy(), rtol=0.06)


@pytest.mark.slow
def test_noise_on_activations_is_in_proportion_to_them(train: Fit, draws_of: Draws) -> None:
    method = WeightNoise(where="activations", level=0.3)
    (network,) = train(method, X, Y, batch=40)
    hidden = torch.relu(X @ network.params["layers.0.weight"].T + network.params["layers.0.bias"])
    expected = 0.09 * hidden.var(correction=0) * network.params["layers.1.weight"].square().sum()
    drawn = draws_of(method, [network], X, 20_000)[..., 0]
    np.testing.assert_allclose(drawn.var(0, ddof=1), float(expected), rtol=0.06)


def test_a_linear_network_has_no_activations_for_noise(train: Fit) -> None:
    with pytest.raises(ValueError, match="no hidden activations"):
        train(WeightNoise(where="activations"), X, Y, hidden=[])


@pytest.mark.parametrize(
    "bad", [lambda: PEP(levels=()), lambda: WeightNoise(level=-1.0), lambda: Laplace(prior_precision=0.0)]
)
def test_impossible_options_are_refused(bad: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        bad()


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("structure", ["diagonal", "kronecker", "last-layer"])
@pytest.mark.filterwarnings("ignore")  # those of the other library
def test_the_posterior_is_that_of_laplace_torch(
    structure: Any, task: str, train: Fit, oracle: Callable[[str], Any]
) -> None:
    library = oracle("laplace")
    y = Y if task == "regression" else CLASSES
    method = Laplace(structure=structure, prior_precision=0.7, noise=0.6)
    (network,) = train(method, X, y, epochs=20, batch=40, hidden=[6])
    # A draw's change of the weights is a linear map of its normals: unit vectors for them give the map's columns.
    count = sum(value.numel() for name, value in network.memory.items() if name.startswith("scale:"))
    tapes = [Tape(unit, torch.zeros(0)) for unit in torch.eye(count)]
    changes = [method.change(network, network.memory, tape) for tape in tapes]
    module = network.module
    module.load_state_dict({name: p.clone() for name, p in network.params.items()})
    module.requires_grad_(True)
    chosen = {"last-layer": ("last_layer", "full"), "kronecker": ("all", "kron"), "diagonal": ("all", "diag")}
    subset, hessian = chosen[structure]
    targets = y[:, None] if task == "regression" else y
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, targets), batch_size=160)
    options = {"sigma_noise": 0.6} if task == "regression" else {}
    other = library.Laplace(
        module, task, subset_of_weights=subset, hessian_structure=hessian, prior_precision=0.7, **options
    )
    other.fit(data)
    if structure == "last-layer":
        covariance = other.posterior_covariance
    elif structure == "diagonal":
        covariance = torch.diag(other.posterior_variance)
    else:
        covariance = other.posterior_precision.to_matrix().inverse()
    order = [name for name in network.params if name in changes[0]]
    flat = torch.stack([torch.cat([change[name].flatten() for name in order]) for change in changes]).double()
    ours = flat.T @ flat
    scale = covariance.double().diag().sqrt()
    np.testing.assert_allclose(ours / scale[:, None] / scale, covariance / scale[:, None] / scale, atol=1e-4)


@pytest.mark.parametrize("structure", ["diagonal", "kronecker", "last-layer"])
@pytest.mark.filterwarnings("ignore")
def test_the_prior_precision_maximises_the_marginal_likelihood_of_laplace_torch(
    structure: Any, train: Fit, oracle: Callable[[str], Any]
) -> None:
    library = oracle("laplace")
    precisions = [0.01, 0.1, 1.0, 10.0, 100.0]
    made = {
        p: train(Laplace(structure=structure, prior_precision=p, noise=0.6), X, Y, batch=40, hidden=[6])[0]
        for p in precisions
    }
    (tuned,) = train(Laplace(structure=structure, precisions=precisions, noise=0.6), X, Y, batch=40, hidden=[6])
    module = tuned.module
    module.load_state_dict({name: p.clone() for name, p in tuned.params.items()})
    module.requires_grad_(True)
    subset, hessian = {"last-layer": ("last_layer", "full"), "kronecker": ("all", "kron"), "diagonal": ("all", "diag")}[
        structure
    ]
    other = library.Laplace(module, "regression", subset_of_weights=subset, hessian_structure=hessian, sigma_noise=0.6)
    other.fit(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y[:, None]), batch_size=160))
    evidence = {p: float(other.log_marginal_likelihood(prior_precision=torch.tensor(p))) for p in precisions}
    best = made[max(evidence, key=lambda p: evidence[p])]
    assert all(torch.equal(best.memory[name], value) for name, value in tuned.memory.items())


def test_the_linearised_draw_is_a_draw_of_the_linearised_network(train: Fit) -> None:
    method = Laplace(structure="diagonal", prior_precision=1.0)
    (network,) = train(method, X, Y, batch=40)
    net, tape = network, LiveTape(generator(5))
    change = method.change(net, network.memory, LiveTape(generator(5)))
    outputs = method.draw(net, X, tape)
    small = 1e-3
    nearby = net.with_params({name: net.params[name] + small * change[name] for name in change})
    slope = (nearby(X) - net(X)) / small
    torch.testing.assert_close(outputs, net(X) + slope, atol=0.02, rtol=0.02)


def test_deterministic_and_post_hoc_weights_are_the_same(train: Fit) -> None:
    (plain,), (other,) = train(Deterministic(), X, Y), train(PEP(), X, Y)
    assert all(torch.equal(plain.params[name], value) for name, value in other.params.items())
