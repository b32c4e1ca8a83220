"""Evidential regression: its loss against scipy, and its closed form against samples of what it states."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from bench.api import Array, Batch, Forecast, Net, Normal, NormalInverseGamma, Problem
from bench.api.tape import BlankTape
from bench.methods.evidential_regression import EvidentialRegression, evidence, student_loss
from bench.metrics import score
from bench.networks.mlp import MLP

SOURCE = torch.Generator().manual_seed(10)
# Every proper score of the total prediction, and the moments' ones that a stated variance has, too.
SCORES = ("nll_mixture", "crps_mixture", "pinball", "wis", "interval_score95", "dawid_sebastiani")
MOMENTS = ("crps", "winkler", "winkler95", "rmse", "mae")


def test_the_loss_is_the_likelihood_of_the_student_t() -> None:
    outputs, y = 2 * torch.randn(30, 4, generator=SOURCE).double(), torch.randn(30, generator=SOURCE).double()
    stated = evidence(outputs)
    m, nu, alpha, beta = stated.numpy().T
    student = stats.t(2 * alpha, loc=m, scale=np.sqrt(beta * (1 + nu) / (nu * alpha)))
    assert float(student_loss(stated, y)) == pytest.approx(-student.logpdf(y.numpy()).mean())
    least = evidence(torch.full((1, 4), -200.0))
    assert (least[:, [1, 3]] > 0).all()
    assert (least[:, 2] > 1).all()  # a variance exists, however small the evidence


def test_the_penalty_is_the_error_times_the_evidence() -> None:
    module = MLP(2, [5], 4)
    net = Net(module, dict(module.named_parameters()), {})
    x, y = torch.randn(20, 2, generator=SOURCE), torch.randn(20, generator=SOURCE)
    batch = Batch("regression", x, y, torch.tensor(20.0))
    m, nu, alpha, _ = evidence(net(x)).unbind(-1)
    without, with_it = (EvidentialRegression(penalty=p).loss(net, batch, BlankTape()) for p in (0.0, 0.3))
    torch.testing.assert_close(with_it - without, 0.3 * ((y - m).abs() * (2 * nu + alpha)).mean())
    torch.testing.assert_close(EvidentialRegression(penalty=0.3).validate(net, batch), without)


@pytest.fixture(scope="module")
def closed(train: Callable[..., Any], draws_of: Callable[..., Array]) -> NormalInverseGamma:
    """What a network trained on a noisy sine states, at rows inside and outside of the data."""
    source = torch.Generator().manual_seed(0)
    x = torch.rand(600, 1, generator=source) * 4 - 2
    y = torch.sin(x[:, 0]) + torch.where(x[:, 0] > 0, 0.3, 0.1) * torch.randn(600, generator=source)
    method = EvidentialRegression()
    (net,) = train(method, x, y, hidden=[20], epochs=30, batch=60, learning_rate=0.02)
    prediction = method.predict(draws_of(method, [net], torch.linspace(-2.5, 2.5, 12)[:, None], 1), "regression")
    assert isinstance(prediction, NormalInverseGamma)
    return prediction


def test_closed_form_and_samples_agree_on_every_proper_score(closed: NormalInverseGamma) -> None:
    """T functions (mu, v) of the normal-inverse-gamma are T normals; their mixture tends to the Student t."""
    random = np.random.default_rng(2)
    observed = closed.quantile(random.uniform(0.02, 0.98, (1, closed.row_count)))[0]
    exact = score(Forecast.of(closed, observed), SCORES + MOMENTS)
    assert exact.keys() == {*SCORES, *MOMENTS}
    repeats = []
    for _ in range(10):
        shape = (1000, closed.row_count)
        v = closed.beta / random.gamma(closed.alpha, size=shape)
        mu = closed.mean + np.sqrt(v / closed.nu) * random.normal(size=shape)
        repeats.append(score(Forecast.of(Normal(mu, noise_variance=v), observed), exact))
    for name, value in exact.items():
        sampled = np.array([values[name] for values in repeats])
        error = sampled.std(ddof=1) / np.sqrt(len(sampled))
        assert abs(sampled.mean() - value) < 4 * error, f"{name}: {value} and {sampled.mean()} +- {error}"
        assert error < 0.02 * abs(value) + 0.01, f"{name}: {error} is too rough to tell"


def test_noise_that_depends_on_the_input_is_recovered(closed: NormalInverseGamma) -> None:
    at = np.linspace(-2.5, 2.5, 12)
    left, right = (at > -2) & (at < -0.4), (at < 2) & (at > 0.4)
    width = (closed.quantile(np.array([0.84134]))[0] - closed.quantile(np.array([0.15866]))[0])[0] / 2
    np.testing.assert_allclose(width[left], 0.1, rtol=0.5)
    np.testing.assert_allclose(width[right], 0.3, rtol=0.5)


def test_classes_and_impossible_options_are_refused() -> None:
    assert "regression" in str(EvidentialRegression().skip(Problem("classification", (3,), 4)))
    with pytest.raises(ValueError, match="penalty must be at least 0"):
        EvidentialRegression(penalty=-1.0)
