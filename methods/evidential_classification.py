"""Evidential classification: one network that states a Dirichlet over the probabilities of the classes.

    p ~ Dirichlet(a),   a_k = 1 + softplus(f_k(x)),   S = sum_k a_k
    loss = E||y - p||^2 + weight KL(Dirichlet(a~) || Dirichlet(1)),   E||y - p||^2 = sum_k (y_k - a_k / S)^2 + V_k
    V_k = a_k (S - a_k) / (S^2 (S + 1)),   a~ = y + (1 - y) a

Sensoy, Kaplan and Kandemir 2018, "Evidential Deep Learning to Quantify Classification Uncertainty", arXiv:1806.01768. y
has a 1 for the class of the row. The divergence takes away evidence for wrong classes; its weight grows from 0 to
`penalty` in the first `annealing` epochs, so that evidence can form at all. The paper's penalty is 1; on ten classes
and in few epochs that leaves too little evidence to tell the classes apart, so the default is smaller. The softplus
takes the place of the paper's ReLU, whose units may stop learning. Early stopping watches the expected squares alone.
Classification only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.api import Array, Batch, Dirichlet, Look, Method, Net, Prediction, Problem, Tape, Task

EPOCHS = "epochs"  # so many are over


@dataclass(frozen=True)
class EvidentialClassification(Method):
    """One network with a Dirichlet head; `penalty` is the last weight of the divergence."""

    penalty: float = 0.1  # last weight of the divergence
    annealing: float = 10.0  # epochs in which the weight of the divergence grows from 0

    look = Look("orange", "-.", "X")
    spread = "aleatoric"  # it is one function; what is not known about it is stated, not drawn
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {"penalty": (0.01, 0.1, 1.0)}

    def __post_init__(self) -> None:
        if self.penalty < 0 or self.annealing < 0:
            raise ValueError(f"penalty and annealing must be at least 0, got {self.penalty} and {self.annealing}")

    def skip(self, problem: Problem) -> str | None:
        """Return why numbers have no Dirichlet."""
        return None if problem.task == "classification" else "a Dirichlet is over classes"

    def memory(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return the number of epochs, which the weight depends on."""
        return {EPOCHS: next(iter(net.params.values())).new_zeros(())}

    def remember(self, net: Net, progress: Tensor, tape: Tape) -> dict[str, Tensor]:
        """Return one epoch more."""
        return {EPOCHS: net.memory[EPOCHS] + 1}

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the expected squares, and the evidence for wrong classes."""
        concentration = dirichlet(net(batch.x))
        weight = self.penalty * (net.memory[EPOCHS] / (self.annealing + 1e-12)).clamp(max=1)
        return expected_squares(concentration, batch.y) + weight * wrong_evidence(concentration, batch.y)

    def validate(self, net: Net, batch: Batch) -> Tensor:
        """Return the expected squares: the weight of the rest changes."""
        return expected_squares(dirichlet(net(batch.x)), batch.y)

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the concentrations."""
        return dirichlet(net(x))

    def predict(self, drawn: Array, task: Task) -> Prediction:
        """Return the Dirichlet."""
        return Dirichlet(drawn)


def dirichlet(outputs: Tensor) -> Tensor:
    """Return the concentrations of the network's outputs."""
    return 1 + F.softplus(outputs)


def expected_squares(concentration: Tensor, y: Tensor) -> Tensor:
    """Return E||y - p||^2, mean over the rows."""
    strength = concentration.sum(-1, keepdim=True)
    p = concentration / strength
    squares = (true_class(concentration, y) - p).square() + p * (1 - p) / (strength + 1)
    return squares.sum(-1).mean()


def wrong_evidence(concentration: Tensor, y: Tensor) -> Tensor:
    """Return KL(Dirichlet(a~) || Dirichlet(1)), mean over the rows."""
    y = true_class(concentration, y)
    others = y + (1 - y) * concentration
    total = others.sum(-1)
    classes = torch.lgamma(torch.full_like(total, others.shape[-1]))
    constant = torch.lgamma(total) - classes - torch.lgamma(others).sum(-1)
    slopes = (others - 1) * (torch.digamma(others) - torch.digamma(total).unsqueeze(-1))
    return (constant + slopes.sum(-1)).mean()


def true_class(like: Tensor, y: Tensor) -> Tensor:
    """Return a 1 for the class of each row `[rows, classes]`."""
    # Compared, because `one_hot` has no batching rule.
    return (torch.arange(like.shape[-1], device=y.device) == y.unsqueeze(-1)).to(like.dtype)
