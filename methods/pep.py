"""Parameter ensembling by perturbation: Gaussian noise on all parameters of a trained network.

    w~ = w + level * eps,   eps ~ N(0, I),   level = argmax of the validation likelihood of the mean prediction

Mehrtash, Abolmaesumi, Golland, Kapur, Wassermann and Wells 2020, "PEP: Parameter Ensembling by Perturbation",
arXiv:2010.12721. The training is the ordinary one. The level is the best of `levels` on the validation rows, or `level`
where a suite holds none out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.api import Batch, Look, Method, Net, Tape
from bench.methods._tuning import check_levels, choose


@dataclass(frozen=True)
class PEP(Method):
    """Noise of one tuned level on every parameter, in draws only."""

    levels: Sequence[float] = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)  # among which validation rows choose
    level: float = 0.01  # of the noise, where no validation rows are held out

    title = "PEP"
    look = Look("blue", "--", ">")
    spread = "level"  # one level for all weights, tuned on validation rows, is no posterior

    def __post_init__(self) -> None:
        check_levels(self.levels, self.level)

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        """Return the tuned level."""
        level = self.level
        if validation is not None:
            level = choose(self.levels, lambda at, x, noise: perturbed(net, at, noise)(x), validation, tape)
        return {"level": torch.tensor(level, device=train.x.device)}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one perturbed network."""
        return perturbed(net, net.memory["level"], tape)(x)


def perturbed(net: Net, level: Tensor | float, tape: Tape) -> Net:
    """Return the network with noise on all of its parameters."""
    return net.with_params({name: w + level * tape.normal(w.shape) for name, w in net.params.items()})
