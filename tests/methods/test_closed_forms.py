"""What the methods' equations say about simple networks."""

import numpy as np
import pytest
import torch

from bench.api import Array, Method, Problem, Split
from bench.methods.deep_ensemble import DeepEnsemble
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.methods.mcni_learned import MCNILearned
from bench.networks.mlp import MLPNetwork
from bench.networks.resnet8 import ResNet8Network
from bench.run.job import Job
from bench.run.jobs import outcomes
from bench.spec.protocol import Protocol, Training
from bench.training.drawing import Drawing, draw
from bench.training.fit import fit
from bench.training.member import Fitted, Member, Rows
from bench.training.network_factory import network_factory

DRAWS = 20_000
ROWS = torch.randn(30, 5, generator=torch.Generator().manual_seed(1))


def trained(method: Method, hidden: list[int], epochs: int = 3, seed: int = 0) -> Fitted:
    rows = Rows("regression", ROWS, ROWS.sum(1), torch.arange(30), torch.arange(0))
    problem, network = Problem("regression", (5,), 1), MLPNetwork(tuple(hidden))
    training = Training(epochs=epochs, batch=10, learning_rate=0.01)
    one = Member(method, problem, network_factory(network, problem), repr(network), training, rows, seed)
    return dict(fit([one]))[0]


def variance(method: Method, fitted: Fitted) -> Array:
    drawn = draw(Drawing(method, [fitted], "regression", ROWS, 0, DRAWS))[..., 0].astype(np.float64)
    spread: Array = drawn.var(0, ddof=1)
    return spread


def test_mcni_variance_of_a_linear_network_is_alpha2_sigma2_norm2() -> None:
    method = MCNIFixed(alpha=0.3)
    fitted = trained(method, [])
    sigma2 = fitted.params["layers.0.weight"].var(correction=0)
    expected = 0.09 * sigma2 * ROWS.square().sum(1)
    # the relative standard error of a variance from n normal draws is sqrt(2 / n) = 1 %
    np.testing.assert_allclose(variance(method, fitted), expected.numpy(), rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["weight", "layer", "scalar"])
def test_learned_mcni_variance_of_a_linear_network_weighs_each_input_by_its_own_level(granularity: str) -> None:
    method = MCNILearned(alpha=0.3, granularity=granularity)  # type: ignore[arg-type]  # one of the three
    fitted = trained(method, [], epochs=30)
    (name,) = [key for key in fitted.params if key.startswith("alpha:")]
    alpha = fitted.params[name]
    assert alpha.shape == ((1, 5) if granularity == "weight" else ())
    assert not torch.allclose(alpha, torch.full_like(alpha, 0.3)), "the level did not learn"
    sigma2 = fitted.params["layers.0.weight"].var(correction=0)
    expected = sigma2 * (ROWS.square() * alpha.square().expand(1, 5)).sum(1)
    np.testing.assert_allclose(variance(method, fitted), expected.numpy(), rtol=0.05)


@pytest.mark.slow
def test_dropout_variance_is_that_of_a_sum_of_bernoulli_terms() -> None:
    method = MCDropout(rate=0.2)
    fitted = trained(method, [12])
    first, second = (fitted.params[f"layers.{i}.weight"] for i in (0, 1))
    terms = torch.relu(ROWS @ first.T + fitted.params["layers.0.bias"]) * second
    expected = 0.2 / 0.8 * terms.square().sum(1)
    np.testing.assert_allclose(variance(method, fitted), expected.numpy(), rtol=0.08)


def test_noise_reaches_weights_but_no_bias_and_no_normalisation() -> None:
    method = MCNIFixed(alpha=0.5)
    images = torch.randn(8, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    rows = Rows("classification", images, torch.arange(8) % 3, torch.arange(8), torch.arange(0))
    problem, network = Problem("classification", (3, 8, 8), 3), ResNet8Network()
    one = Member(method, problem, network_factory(network, problem), "r", Training(epochs=1, batch=8), rows, 0)
    fitted = dict(fit([one]))[0]
    from bench.api.tape import LiveTape, generator
    from bench.methods._weight_noise import with_noise

    noisy = with_noise(fitted, LiveTape(generator(0)), lambda name: 0.5)
    changed = {name for name in fitted.params if not torch.equal(noisy.params[name], fitted.params[name])}
    assert changed == {name for name, p in fitted.params.items() if p.ndim >= 2}
    assert not any("norm" in name or "bias" in name for name in changed)


@pytest.mark.slow
def test_dropping_inputs_of_a_linear_network_has_the_variance_of_bernoulli_terms() -> None:
    method = MCDropout(rate=0.2, input_rate=0.3)
    fitted = trained(method, [])
    terms = (ROWS * fitted.params["layers.0.weight"][0]).double().square().sum(1)
    np.testing.assert_allclose(variance(method, fitted), terms.numpy() * 0.3 / 0.7, rtol=0.06)


def test_inputs_are_dropped_in_training_and_only_if_asked() -> None:
    plain, dropped, none = (
        trained(MCDropout(input_rate=rate), []).params["layers.0.weight"] for rate in (None, 0.5, 0.0)
    )
    assert torch.equal(plain, trained(Deterministic(), []).params["layers.0.weight"])  # no hidden unit to drop
    assert torch.equal(none, plain)
    assert not torch.allclose(dropped, plain, atol=1e-3)


@pytest.mark.parametrize(
    "method", [MCNIFixed(alpha=0.0), MCDropout(rate=0.0), MCDropout(rate=0.0, per_row=True)], ids=str
)
def test_without_noise_a_method_is_the_deterministic_network(method: Method) -> None:
    plain, other = trained(Deterministic(), [12]), trained(method, [12])
    for key, value in plain.params.items():
        torch.testing.assert_close(other.params[key], value, atol=1e-6, rtol=1e-5)
    drawn = draw(Drawing(method, [other], "regression", ROWS, 0, 5))
    np.testing.assert_allclose(drawn, np.broadcast_to(plain(ROWS).numpy(), drawn.shape), atol=1e-5)


@pytest.mark.slow
def test_levels_that_start_at_zero_stay_near_it_while_weights_learn() -> None:
    plain, other = trained(Deterministic(), [12], epochs=1), trained(MCNILearned(alpha=0.0), [12], epochs=1)
    for key, value in plain.params.items():
        torch.testing.assert_close(other.params[key], value, atol=0.01, rtol=0.05)


@pytest.mark.slow
def test_the_penalty_makes_the_levels_larger() -> None:
    sizes = [
        float(sum(a.square().sum() for k, a in fitted.params.items() if k.startswith("alpha:")))
        for fitted in (trained(MCNILearned(alpha=0.1, penalty=p), [12], epochs=20) for p in (0.0, 0.05))
    ]
    assert sizes[1] > 1.5 * sizes[0]


def cell_metrics(method: Method) -> dict[str, float]:
    random = np.random.default_rng(3)
    x = random.normal(size=(60, 4))
    split = Split("regression", x[:50], x[:50].sum(1), x[50:], x[50:].sum(1))
    protocol = Protocol(training=Training(epochs=5), draws=4)
    ((_, outcome),) = outcomes([Job(method, protocol, split, seed=5)])
    assert outcome.status == "ok", outcome.message
    return dict(outcome.metrics)


def test_a_one_member_ensemble_is_the_deterministic_network_to_the_last_metric() -> None:
    assert cell_metrics(DeepEnsemble(networks=1)) == cell_metrics(Deterministic())


def test_an_ensemble_of_three_has_three_different_functions() -> None:
    metrics = cell_metrics(DeepEnsemble(networks=3))
    assert metrics["mpiw"] > 0


@pytest.mark.parametrize(
    "bad",
    [
        lambda: MCDropout(rate=1.0),
        lambda: MCDropout(input_rate=1.0),
        lambda: MCDropout(rate=-0.1),
        lambda: DeepEnsemble(networks=0),
    ],
)
def test_impossible_options_are_refused(bad: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        bad()  # type: ignore[operator]  # a function


def test_noise_is_no_path_for_the_gradient_of_its_scale() -> None:
    from torch.func import grad

    from bench.api import Net
    from bench.api.tape import Tape
    from bench.methods._weight_noise import with_noise

    module = torch.nn.Linear(3, 2)
    weight, noise = module.weight.detach().clone(), torch.randn(6, generator=torch.Generator().manual_seed(0))

    def total(w: torch.Tensor) -> torch.Tensor:
        net = Net(module, {"weight": w, "bias": torch.zeros(2)}, {})
        return with_noise(net, Tape(noise, torch.zeros(0)), lambda name: 0.7).params["weight"].sum()

    torch.testing.assert_close(grad(total)(weight), torch.ones(2, 3))
