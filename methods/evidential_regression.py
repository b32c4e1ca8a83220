"""Deep evidential regression: one network that states a distribution over the mean and the variance of every row.

    y ~ N(mu, v),   mu ~ N(m, v / nu),   v ~ inverse gamma(alpha, beta)
    y ~ Student t at m, of squared scale beta (1 + nu) / (nu alpha) and 2 alpha degrees
    loss = -log p(y | m, nu, alpha, beta) + penalty |y - m| (2 nu + alpha)

Amini, Schwarting, Soleimany and Rus 2020, "Deep Evidential Regression", arXiv:1910.02600: m is the first of four
outputs, nu, alpha - 1 and beta are the softplus of the others, and the penalty takes evidence away where the prediction
is wrong. The noise is E[v] = beta / (alpha - 1) and the model's variance Var[mu] = beta / (nu (alpha - 1)). The
likelihood does not determine both: it is the same for all nu and beta of equal beta (1 + nu) / nu (Meinert, Gawlikowski
and Lavin 2023, "The Unreasonable Effectiveness of Deep Evidential Regression", arXiv:2205.10060), so how the variance
is divided comes from the penalty and the start of the training. Early stopping and search watch the likelihood alone.
Regression only.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.api import Array, Batch, Look, Method, Net, NewNetwork, NormalInverseGamma, Prediction, Problem, Tape, Task

LEAST = 1e-6  # of nu, alpha - 1 and beta, which a softplus may round to 0


@dataclass(frozen=True)
class EvidentialRegression(Method):
    """One network with a normal-inverse-gamma head; `penalty` is the weight of the regulariser."""

    penalty: float = 0.01  # weight of the regulariser

    look = Look("orange", ":", "h")
    spread = "aleatoric"  # it is one function; what is not known about it is stated, not drawn
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {"penalty": (0.001, 0.01, 0.1, 1.0)}

    def __post_init__(self) -> None:
        if self.penalty < 0:
            raise ValueError(f"penalty must be at least 0, got {self.penalty}")

    def skip(self, problem: Problem) -> str | None:
        """Return why classes have no Student t."""
        return None if problem.task == "regression" else "a normal-inverse-gamma head is for regression"

    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        """Return the suite's network with four outputs."""
        return new_network(4)

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the negative log-likelihood of a row with its penalty."""
        stated = evidence(net(batch.x))
        m, nu, alpha, _ = stated.unbind(-1)
        wrong = (batch.y - m).abs() * (2 * nu + alpha)
        return student_loss(stated, batch.y) + self.penalty * wrong.mean()

    def validate(self, net: Net, batch: Batch) -> Tensor:
        """Return the negative log-likelihood: losses with different penalties could not be compared."""
        return student_loss(evidence(net(batch.x)), batch.y)

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return m, nu, alpha and beta."""
        return evidence(net(x))

    def predict(self, drawn: Array, task: Task) -> Prediction:
        """Return the normal-inverse-gamma."""
        return NormalInverseGamma(*np.moveaxis(drawn, -1, 0))


def evidence(outputs: Tensor) -> Tensor:
    """Return m, nu, alpha and beta `[rows, 4]` from the network's outputs."""
    m, *others = outputs.unbind(-1)
    nu, excess, beta = (F.softplus(other) + LEAST for other in others)
    return torch.stack([m, nu, 1 + excess, beta], -1)


def student_loss(stated: Tensor, y: Tensor) -> Tensor:
    """Return the mean negative log-likelihood of the Student t."""
    m, nu, alpha, beta = stated.unbind(-1)
    omega = 2 * beta * (1 + nu)
    gammas = torch.lgamma(alpha) - torch.lgamma(alpha + 0.5)
    squares = (alpha + 0.5) * ((y - m).square() * nu + omega).log()
    return ((math.pi / nu).log() / 2 - alpha * omega.log() + squares + gammas).mean()
