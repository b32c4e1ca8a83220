"""Training-free noise: a trained network's sensitivity to noise inside it, as a measure of its uncertainty.

    h~ = h + level * sigma_h * eps      (where = "activations": infer-noise of the paper, every row its own noise)
    w~ = w + level * sigma_l * eps      (where = "weights": one function per draw)

Mi, Wang, Tian, He and Shavit 2022, "Training-Free Uncertainty Estimation for Dense Regression: Sensitivity as a
Surrogate", arXiv:1910.04858. sigma is the standard deviation of a layer's activations over the training rows, or of its
weights. The training is the ordinary one. The level is the best of `levels` on the validation rows, or `level` where a
suite holds none out; zero is not among them, because the noise is there to show sensitivity.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from bench.api import Batch, Look, Method, Net, Tape
from bench.methods._activations import hidden_spreads, noisy_hidden
from bench.methods._tuning import check_levels, choose
from bench.methods._weight_noise import with_noise


@dataclass(frozen=True)
class WeightNoise(Method):
    """Noise in draws only, on activations or weights, in proportion to their spread."""

    where: Literal["activations", "weights"] = "weights"  # the noise is put
    levels: Sequence[float] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # among which validation rows choose
    level: float = 0.05  # of the noise, where no validation rows are held out

    look = Look("blue", ":", "p")

    def __post_init__(self) -> None:
        check_levels(self.levels, self.level)

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        """Return the spreads of the activations and the tuned level."""
        spreads = {"spread": hidden_spreads(net, train.x)} if self.where == "activations" else {}
        level = self.level
        if validation is not None:
            at_level = lambda at, x, noise: self.noisy(net, torch.as_tensor(at), spreads, x, noise)  # noqa: E731
            level = choose(self.levels, at_level, validation, tape)
        return spreads | {"level": torch.tensor(level, device=train.x.device)}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the outputs under one noise."""
        return self.noisy(net, net.memory["level"], net.memory, x, tape)

    def noisy(self, net: Net, level: Tensor, spreads: Mapping[str, Tensor], x: Tensor, tape: Tape) -> Tensor:
        """Return the outputs under noise of one level."""
        if self.where == "weights":
            return with_noise(net, tape, lambda name: level)(x)
        return net(x, hidden=noisy_hidden(level * spreads["spread"], tape))
