"""Test-time augmentation with Gaussian noise: the predictions of a trained network at noisy copies of every row.

    f(x + level * eps),   eps ~ N(0, I),   fresh for every row and draw

Jiang, Zhao, Wu and Zuo 2022, "Capturing Model Uncertainty with Data Augmentation in Deep Learning" (SIAM SDM),
doi:10.1137/1.9781611977172.31, at test time; the paper also trains on noisy inputs, here the training is the ordinary
one. Inputs are in training units, where every feature has variance 1. The level is the best of `levels` on the
validation rows, or `level` where a suite holds none out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.api import Batch, Look, Method, Net, Tape
from bench.methods._tuning import check_levels, choose


@dataclass(frozen=True)
class TestTimeAugmentation(Method):
    """Noise of one tuned level on the inputs, in draws only."""

    levels: Sequence[float] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # among which validation rows choose
    level: float = 0.05  # of the noise, where no validation rows are held out

    title = "Test-time augmentation"
    look = Look("red", ":", "^")
    spread = "level"  # the noise is on the inputs, its level tuned or given: it is not about the weights

    def __post_init__(self) -> None:
        check_levels(self.levels, self.level)

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        """Return the tuned level."""
        level = self.level
        if validation is not None:
            at_level = lambda at, x, noise: net(x + at * noise.normal(x.shape))  # noqa: E731
            level = choose(self.levels, at_level, validation, tape)
        return {"level": torch.tensor(level, device=train.x.device)}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the outputs at one noisy copy of every row."""
        return net(x + net.memory["level"] * tape.normal(x.shape))
