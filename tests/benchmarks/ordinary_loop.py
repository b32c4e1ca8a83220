"""One network after another in an ordinary PyTorch loop, with early stopping and each method's noise.

Written as a user would write it, except that rows are indexed in memory: a `DataLoader` would take longer.
"""

import copy
import itertools
import math
import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.spec.protocol import Training
from bench.training.limits import threads
from bench.training.member import Rows

LEVEL = 0.05  # of noise; the time does not depend on it


class NoisyLinear(nn.Linear):
    """A layer with noise on its weights in training, of a level that is fixed or learned."""

    def __init__(self, inputs: int, outputs: int, level: float, learned: bool) -> None:
        super().__init__(inputs, outputs)
        levels = torch.full_like(self.weight, level)
        self.alpha: Tensor | float = nn.Parameter(levels) if learned else level

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        noise = self.weight.detach().std(correction=0) * torch.randn_like(self.weight)
        return F.linear(x, self.weight + self.alpha * noise, self.bias)


def new_module(method: str, inputs: int, hidden: int, level: float = LEVEL) -> nn.Sequential:
    """Return the network of a method of suite `uci`."""
    if method in ("mcni-fixed", "mcni-learned"):
        noise = (level, method == "mcni-learned")
        return nn.Sequential(NoisyLinear(inputs, hidden, *noise), nn.ReLU(), NoisyLinear(hidden, 1, *noise))
    dropout = [nn.Dropout(level)] if method == "mc-dropout" else []
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), *dropout, nn.Linear(hidden, 1))


def new_optimizer(module: nn.Module, rate: float, decay: float) -> torch.optim.Optimizer:
    """Return Adam with its defaults; noise levels do not decay."""
    named = dict(module.named_parameters())
    levels = [p for name, p in named.items() if name.endswith("alpha")]
    weights = [p for name, p in named.items() if not name.endswith("alpha")]
    groups: list[dict[str, Any]] = [{"params": weights}, *([{"params": levels, "weight_decay": 0.0}] if levels else [])]
    return torch.optim.Adam(groups, lr=rate, weight_decay=decay)


def train(module: nn.Module, rows: Rows, training: Training, at_most: int) -> int:
    """Train one network with early stopping, for whole epochs until `at_most` steps; return how many there were."""
    optimizer = new_optimizer(module, training.learning_rate, training.weight_decay)
    held_x, held_y = rows.x[rows.validation], rows.y[rows.validation]
    best, since, steps, kept = math.inf, 0, 0, module.state_dict()
    for _ in range(training.epochs):
        module.train()
        order = rows.train[torch.randperm(len(rows.train))]
        for chosen in order.split(training.batch)[: len(order) // training.batch]:
            optimizer.zero_grad()
            F.mse_loss(module(rows.x[chosen])[:, 0], rows.y[chosen]).backward()
            optimizer.step()
            steps += 1
        module.eval()
        with torch.no_grad():
            value = F.mse_loss(module(held_x)[:, 0], held_y).item()
        since += 1
        if value < best:
            best, since, kept = value, 0, copy.deepcopy(module.state_dict())
        if since >= training.patience or steps >= at_most:
            break
    module.load_state_dict(kept)
    return steps


def seconds_per_step(
    method: str, folds: Sequence[Rows], hidden: int, training: Training, steps: int
) -> tuple[float, float]:
    """Return the time and the processor time of a step, validation included, over at least this many.

    On one thread, which suits it best.
    """
    done = 0
    with threads(1):
        began, began_cpu = time.perf_counter(), time.process_time()
        for rows in itertools.cycle(folds):
            done += train(new_module(method, rows.x.shape[1], hidden), rows, training, steps - done)
            if done >= steps:
                break
        return (time.perf_counter() - began) / done, (time.process_time() - began_cpu) / done
