"""SWAG: a Gaussian fitted to the weights that the last part of the training went through.

    q(w) = N(w_SWA, 1/2 S_diag + 1/(2 (R - 1)) D D^T)

w_SWA is the mean of the weights after each epoch from share `start` of the training on, S_diag their variances, and D
the deviations from the running mean in the last R = `rank` epochs. Maddox, Garipov, Izmailov, Vetrov and Wilson 2019,
"A Simple Baseline for Bayesian Uncertainty in Deep Learning", arXiv:1902.02476. The paper averages SGD with a constant
learning rate; here it is the suite's optimiser and schedule. What is approximated is the distribution of the
optimiser's iterates, which is the posterior only for a certain learning rate (Mandt, Hoffman and Blei 2017, "Stochastic
Gradient Descent as Approximate Bayesian Inference", arXiv:1704.04289). Batch norm's statistics are computed anew for
w_SWA, on at most 5,000 training rows, and kept for every draw (the paper computes them for each sample).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from bench.api import Batch, Look, Method, Net, Tape
from bench.methods._batch_statistics import batch_statistics, norms
from bench.methods._bayes import own

ROWS_FOR_BATCH_NORM = 5_000


@dataclass(frozen=True)
class SWAG(Method):
    """Moments of the iterates; `scale` multiplies the covariance (the paper's is 1)."""

    start: float = 0.5  # share of the training after which weights are collected
    rank: int = 20  # R, the last epochs whose deviations are kept
    scale: float = 1.0  # of the covariance; the paper's is 1

    title = "SWAG"
    look = Look("brown", "-", "X")
    early_stopping = False  # the iterates of the last part are what is averaged
    expected_failures: ClassVar[Mapping[str, str]] = {
        "variance-shrinks": "it is the spread of the iterates, which a falling learning rate takes away"
    }

    def __post_init__(self) -> None:
        if not 0 <= self.start < 1:
            raise ValueError(f"start must be in [0, 1), got {self.start}")
        if self.rank < 2:
            raise ValueError(f"rank must be at least 2, got {self.rank}")
        if self.scale < 0:
            raise ValueError(f"scale must be at least 0, got {self.scale}")

    def memory(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return moments of no iterates yet."""
        kept = {"count": torch.zeros((), device=next(iter(net.params.values())).device)}
        for name, w in own(net).items():
            kept |= {f"mean:{name}": torch.zeros_like(w), f"square:{name}": torch.zeros_like(w)}
            kept[f"deviations:{name}"] = w.new_zeros(self.rank, *w.shape)
        return kept

    def remember(self, net: Net, progress: Tensor, tape: Tape) -> dict[str, Tensor]:
        """Return the moments with one more iterate, once the averaging has begun."""
        taken = progress > self.start + 1e-6
        count = net.memory["count"] + 1
        new = {"count": count}
        for name, w in own(net).items():
            mean = net.memory[f"mean:{name}"] + (w - net.memory[f"mean:{name}"]) / count
            square = net.memory[f"square:{name}"]
            # Around the running mean (Welford): a difference of raw moments would lose small variances to rounding.
            new[f"square:{name}"] = square + (w - net.memory[f"mean:{name}"]) * (w - mean)
            new[f"mean:{name}"] = mean
            new[f"deviations:{name}"] = torch.cat([net.memory[f"deviations:{name}"][1:], (w - mean)[None]])
        return {name: torch.where(taken, tensor, net.memory[name]) for name, tensor in new.items()}

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        """Return the moments, and batch norm's statistics at the mean."""
        if not norms(net.module):
            return dict(net.memory)
        rows = tape.uniform((len(train.x),)).argsort()[:ROWS_FOR_BATCH_NORM]
        mean = net.with_params({name: net.memory[f"mean:{name}"] for name in own(net)})
        parts = [batch_statistics(mean, train.x[part]) for part in rows.split(500) if len(part) > 1]
        seen = {f"buffer:{name}": torch.stack([one[name] for one in parts]).mean(0) for name in parts[0]}
        return dict(net.memory) | seen

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one sample of the Gaussian."""
        count, low_rank = net.memory["count"], tape.normal((self.rank,))
        columns = count.clamp(min=2, max=self.rank) - 1
        drawn = {}
        for name, w in own(net).items():
            diagonal = (net.memory[f"square:{name}"] / count.clamp(min=1)).clamp(min=0).sqrt() * tape.normal(w.shape)
            correlated = torch.tensordot(low_rank, net.memory[f"deviations:{name}"], 1) / columns.sqrt()
            drawn[name] = net.memory[f"mean:{name}"] + (self.scale / 2) ** 0.5 * (diagonal + correlated)
        seen = {name: net.memory.get(f"buffer:{name}", buffer) for name, buffer in net.buffers.items()}
        return replace(net.with_params(drawn), buffers=seen)(x)
