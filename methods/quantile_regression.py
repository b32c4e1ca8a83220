"""Quantile regression: one network that states a quantile of every level for every row.

    loss = mean over levels p of max(p (y - q_p(x)), (p - 1) (y - q_p(x)))
    q_k+1(x) = q_k(x) + (z_k+1 - z_k) softplus(o_k(x)) / log 2

Koenker and Bassett 1978, "Regression Quantiles" (Econometrica), doi:10.2307/1913643; by networks Taylor 2000, "A
quantile regression neural network approach to estimating the conditional density of multiperiod returns" (Journal of
Forecasting). The quantiles cannot cross: the one in the middle is an output of the network, every other lies above or
below its neighbour by a positive step. z_k is the standard normal's quantile, so that outputs of 0 state the normal's.

Between two levels the density is constant, and outside of the lowest and the highest it continues as an exponential
tail (`tails = "flat"` puts the outer probability at the outermost quantile instead, and states no density). The default
levels are those of the weighted interval score in Bracher, Ray, Gneiting and Reich 2021, "Evaluating epidemic forecasts
in an interval format", arXiv:2005.12881. Regression only.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.special import ndtri

from bench.api import Array, Batch, Look, Method, Net, NewNetwork, Prediction, Problem, Quantiles, Tape, Task

LEVELS = (0.01, 0.025, *(k / 20 for k in range(1, 20)), 0.975, 0.99)


@dataclass(frozen=True)
class QuantileRegression(Method):
    """One network with an output per level; `levels` ascend strictly between 0 and 1."""

    levels: tuple[float, ...] = LEVELS  # of the quantiles, ascending, between 0 and 1
    tails: Literal["exponential", "flat"] = "exponential"  # what lies beyond the outermost quantiles

    look = Look("green", ":", ">")
    spread = "aleatoric"  # it is one function, which states the distribution of the data

    def __post_init__(self) -> None:
        ascending = all(low < high for low, high in zip((0.0, *self.levels), (*self.levels, 1.0), strict=True))
        if len(self.levels) < 2 or not ascending:
            raise ValueError(f"levels must be at least 2, ascending, strictly between 0 and 1, got {self.levels}")

    def skip(self, problem: Problem) -> str | None:
        """Return why classes have no quantiles."""
        return None if problem.task == "regression" else "classes have no order, so no quantiles"

    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        """Return the suite's network with an output per level."""
        return new_network(len(self.levels))

    def memory(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return the levels and the spacing of their normal quantiles: in a draw they would be copied to the device."""
        levels = next(iter(net.params.values())).new_tensor(self.levels)
        return {"levels": levels, "spacing": ndtri(levels).diff()}

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the mean pinball loss of all levels."""
        above = batch.y.unsqueeze(-1) - self.draw(net, batch.x, tape)
        levels = net.memory["levels"]
        return torch.maximum(levels * above, (levels - 1) * above).mean()

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the quantiles `[rows, levels]`."""
        outputs, spacing = net(x), net.memory["spacing"]
        middle = len(self.levels) // 2
        centre = outputs[..., middle : middle + 1]
        below = spacing[:middle] * F.softplus(outputs[..., :middle]) / math.log(2)
        above = spacing[middle:] * F.softplus(outputs[..., middle + 1 :]) / math.log(2)
        down = below.flip(-1).cumsum(-1).flip(-1)
        return torch.cat([centre - down, centre, centre + above.cumsum(-1)], -1)

    def predict(self, drawn: Array, task: Task) -> Prediction:
        """Return the quantiles, with what is between and outside of them."""
        return Quantiles(np.array(self.levels), drawn, tails=self.tails)
