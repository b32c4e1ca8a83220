"""Predictive variances on Bayesian linear regression, where the posterior is known.

    UQBENCH_CONJUGATE=docs/results/conjugate.csv python -m pytest tests/methods/test_conjugate.py
    python -m tools.conjugate_page docs/results/conjugate.md

The first keeps the variances at each test point, the second writes the page from them. Without the variable they are
compared with those that were kept.

One linear layer, known noise, Gaussian prior: the posterior of the weights is N(m, S) with S^-1 = F^T F / noise^2 + P,
F the inputs with a column of ones, P the prior's precision. Every method is held to what it computes in closed form,
which is not always S; the table also shows how far that is from S.
"""

import csv
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.linalg import solve_discrete_lyapunov

from bench.api import Array, Method
from bench.methods.anchored_ensemble import AnchoredEnsemble
from bench.methods.bayes_by_backprop import BayesByBackprop
from bench.methods.laplace import Laplace
from bench.methods.sgld import SGLD
from bench.methods.swag import SWAG
from tools.conjugate_page import COLUMNS, Variances, read

NOISE, PRIOR, STEP, RATE, BATCH, RANK = 0.5, 0.7, 0.02, 0.1, 40, 20
SOURCE = torch.Generator().manual_seed(5)
X = torch.randn(60, 3, generator=SOURCE) @ torch.tensor([[1.0, 0.6, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 0.9]]) + 0.3
Y = X @ torch.tensor([0.5, -0.3, 0.2]) + NOISE * torch.randn(60, generator=SOURCE)
AT = torch.randn(20, 3, generator=SOURCE)


def with_ones(x: torch.Tensor) -> Array:
    ones: Array = np.column_stack([x.double().numpy(), np.ones(len(x))])
    return ones


F, AT_F = with_ones(X), with_ones(AT)
DATA = F.T @ F / NOISE**2
FAN_IN_PRIOR = np.diag([3, 3, 3, 1]) / PRIOR**2  # weights have the variance prior^2 / 3
EXACT = np.linalg.inv(DATA + FAN_IN_PRIOR)
ISOTROPIC = np.linalg.inv(DATA + np.eye(4) / PRIOR**2)


def diagonal(covariance: Array) -> Array:
    """The best factorised Gaussian in the sense of KL(q || p) has the inverse diagonal of the precision."""
    best: Array = np.diag(1 / np.diag(np.linalg.inv(covariance)))
    return best


def weights_apart_from_bias() -> Array:
    """The Kronecker structure keeps the whole block of one unit's weights, and the bias by itself."""
    precision = np.linalg.inv(ISOTROPIC)
    apart = np.zeros((4, 4))
    apart[:3, :3], apart[3, 3] = np.linalg.inv(precision[:3, :3]), 1 / precision[3, 3]
    return apart


def langevin() -> Array:
    """The stationary covariance of the discretised dynamics w <- w - h A w + sqrt(2 h / N) z with A = S^-1 / N."""
    slope = np.linalg.inv(EXACT) / len(X)
    stationary: Array = EXACT @ np.linalg.inv(np.eye(4) - STEP / 2 * slope)
    return stationary


def iterates() -> Array:
    """What SWAG makes of SGD's stationary distribution: C = (1 - h H) C (1 - h H) + h^2 (gradient noise of a batch)."""
    best = np.linalg.lstsq(F, Y.double().numpy(), rcond=None)[0]
    rows = 2 * (F @ best - Y.double().numpy())[:, None] * F
    noise = np.cov(rows.T) / BATCH * (1 - BATCH / len(X))  # rows of a batch are drawn without repetition
    contraction = np.eye(4) - RATE * 2 * F.T @ F / len(X)
    covariance = solve_discrete_lyapunov(contraction, RATE**2 * noise)
    mixed: Array = np.diag(np.diag(covariance)) / 2 + covariance * RANK / (RANK - 1) / 2
    return mixed


@dataclass(frozen=True)
class Case:
    name: str
    method: Method
    computes: str
    closed: Array
    posterior: Array
    seeds: int
    draws: int
    training: Mapping[str, object]
    tolerance: float  # of every row's variance; of their mean half of it


FULL = {"batch": 60, "momentum": 0.9}
CASES = [
    Case(
        "bayes-by-backprop (temperature 1)",
        BayesByBackprop(prior=PRIOR, noise=NOISE, learn_noise=False, temperature=1.0),
        "the best factorised Gaussian",
        diagonal(EXACT),
        EXACT,
        8,
        8000,
        {**FULL, "epochs": 1500, "learning_rate": 0.02, "schedule": "cosine"},
        0.06,
    ),
    Case(
        "sgld",
        SGLD(step=STEP, prior=PRIOR, noise=NOISE, learn_noise=False, burn_in=0.2, samples=60),
        "the posterior, widened by the step",
        langevin(),
        EXACT,
        24,
        4800,
        {**FULL, "epochs": 1500},
        0.2,
    ),
    Case(
        "laplace, last layer",
        Laplace(prior_precision=PRIOR**-2, noise=NOISE),
        "the posterior",
        ISOTROPIC,
        ISOTROPIC,
        1,
        20000,
        FULL,
        0.06,
    ),
    Case(
        "laplace, Kronecker",
        Laplace(structure="kronecker", prior_precision=PRIOR**-2, noise=NOISE),
        "weights and bias separately",
        weights_apart_from_bias(),
        ISOTROPIC,
        1,
        20000,
        FULL,
        0.06,
    ),
    Case(
        "laplace, diagonal",
        Laplace(structure="diagonal", prior_precision=PRIOR**-2, noise=NOISE),
        "the diagonal of the precision",
        diagonal(ISOTROPIC),
        ISOTROPIC,
        1,
        20000,
        FULL,
        0.06,
    ),
    Case(
        "swag",
        SWAG(start=0.2, rank=RANK),
        "the stationary distribution of SGD",
        iterates(),
        EXACT,
        48,
        9600,
        {"batch": BATCH, "optimizer": "sgd", "momentum": 0.0, "learning_rate": RATE, "epochs": 600},
        0.3,
    ),
    Case(
        "anchored ensemble",
        AnchoredEnsemble(prior=PRIOR, noise=NOISE),
        "prior samples pulled to the data",
        EXACT @ FAN_IN_PRIOR @ EXACT,
        EXACT,
        256,
        256,
        {**FULL, "epochs": 250, "learning_rate": 0.03, "schedule": "cosine"},
        0.3,
    ),
]


def variance(covariance: Array) -> Array:
    spread: Array = np.einsum("ni,ij,nj->n", AT_F, covariance, AT_F)
    return spread


Written = list[tuple[str, str, Array, Array, Array]]


@pytest.fixture(scope="module")
def written() -> Iterator[Written]:
    """What was measured, a case each; it is kept where the environment names a file."""
    found: Written = []
    yield found
    if path := os.environ.get("UQBENCH_CONJUGATE"):
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            for name, computes, *variances in found:
                for values in zip(*variances, strict=True):
                    writer.writerow([name, computes, *(f"{value:.6g}" for value in values)])


@pytest.fixture(scope="module")
def kept() -> Mapping[str, Variances]:
    return read()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_predictive_variance_is_the_closed_form(
    case: Case,
    train: Callable[..., object],
    draws_of: Callable[..., Array],
    written: Written,
    kept: Mapping[str, Variances],
) -> None:
    networks = train(case.method, X, Y, hidden=[], seeds=case.seeds, **case.training)
    # Only the first numbers of a draw's tape differ between networks, so the mean of all draws is the mean to leave.
    spread = draws_of(case.method, networks, AT, case.draws)[..., 0].var(0, ddof=1)
    closed, posterior = variance(case.closed), variance(case.posterior)
    written.append((case.name, case.computes, spread, closed, posterior))
    ratio = spread / closed
    assert ratio == pytest.approx(1, abs=case.tolerance)
    assert ratio.mean() == pytest.approx(1, abs=case.tolerance / 2)
    if "UQBENCH_CONJUGATE" not in os.environ:
        before = kept[case.name]
        assert before.computes == case.computes
        for values, former in zip((spread, closed, posterior), before.values, strict=True):
            np.testing.assert_allclose(values, former, rtol=0.02)  # other processors and libraries round differently
