"""Monte Carlo batch norm: a draw normalises with the statistics of one random training batch.

    f(x; w, mu_B, sigma_B),   B = `batch` random rows of the training data

Teye, Azizpour and Smith 2018, "Bayesian Uncertainty Estimation for Batch Normalized Deep Networks", arXiv:1802.06455.
The training is ordinary training with batch norm. A network without batch norm gets one between every hidden linear
layer and its activation; one that has it (ResNet8) keeps its own. The statistics of `batches` batches are computed
after the fit, and a draw takes those of one of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from bench.api import Batch, Look, Method, Net, NewNetwork, Problem, Tape, choose
from bench.methods._batch_statistics import BatchNorm, batch_statistics, norms


@dataclass(frozen=True)
class MCBatchNorm(Method):
    """Batch norm whose statistics are drawn; `batch` should be the size of the batches it was trained on."""

    batch: int = 64  # rows of a batch whose statistics are drawn; that of the training, as a rule
    batches: int = 50  # whose statistics are kept, to draw from

    title = "MC batch norm"
    look = Look("brown", "--", "o")
    expected_failures: ClassVar[Mapping[str, str]] = {
        "variance-shrinks": "a network without a hidden layer has nothing to normalise"
    }

    def __post_init__(self) -> None:
        if self.batch < 2 or self.batches < 1:
            raise ValueError(f"batch must be at least 2 and batches at least 1, got {self.batch} and {self.batches}")

    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        """Return the suite's network with batch norm."""
        module = new_network(problem.outputs)
        if norms(module):
            return module
        linear = [name for name, part in module.named_modules() if isinstance(part, nn.Linear)]
        if len(linear) < 2:
            raise ValueError("mc-batch-norm needs a hidden layer to normalise; this network has none")
        for name in linear[:-1]:
            layer = module.get_submodule(name)
            assert isinstance(layer, nn.Linear)
            module.set_submodule(name, nn.Sequential(layer, BatchNorm(layer.out_features)))
        return module

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        """Return the statistics of random batches `[batches, units]`, by the names of the buffers they replace."""
        drawn = []
        for _ in range(self.batches):
            rows = tape.uniform((len(train.x),)).argsort()[: self.batch]  # without repetition
            drawn.append(batch_statistics(net, train.x[rows]))
        return {name: torch.stack([one[name] for one in drawn]) for name in drawn[0]}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one batch's statistics."""
        number = tape.integer(self.batches)
        seen = {name: choose(statistics, number) for name, statistics in net.memory.items()}
        return replace(net, buffers={**net.buffers, **seen})(x)
