"""Choosing a noise level on validation rows, for methods that put noise on a trained network."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bench.api import Batch, BlankTape, Tape

DRAWS = 20
ROWS = 500  # of one pass: activations of images are large

DrawAt = Callable[[float, Tensor, Tape], Tensor]  # level, rows and random numbers to one draw


def choose(levels: Sequence[float], draw: DrawAt, validation: Batch, tape: Tape) -> float:
    """Return the level whose mean prediction is the most likely; all levels see the same random numbers."""
    parts: dict[float, list[Tensor]] = {level: [] for level in levels}
    with torch.no_grad():
        for x in validation.x.split(ROWS):
            blank = BlankTape(x.device)
            draw(levels[0], x, blank)
            normals = tape.normal((DRAWS, blank.length.normals))
            uniforms = tape.uniform((DRAWS, blank.length.uniforms))
            for level in levels:
                tapes = [Tape(n, u) for n, u in zip(normals, uniforms, strict=True)]
                parts[level].append(torch.stack([draw(level, x, one) for one in tapes]))
    losses = {level: predictive_loss(validation, torch.cat(draws, 1)) for level, draws in parts.items()}
    return min(losses, key=lambda level: losses[level] if math.isfinite(losses[level]) else math.inf)


def predictive_loss(batch: Batch, draws: Tensor) -> float:
    """Return the negative log-likelihood of the rows under the draws `[T, rows, outputs]`.

    Classification: the mean of the probabilities. Regression: a Gaussian with the draws' mean and variance, and a
    constant observation noise that makes up for what they leave unexplained.
    """
    draws = draws.double()
    if batch.task == "classification":
        likelihood = draws.softmax(-1).mean(0).gather(-1, batch.y.unsqueeze(-1))
        return float(-likelihood.log().mean())
    mean, variance = draws[..., 0].mean(0), draws[..., 0].var(0, correction=1)
    error = (batch.y - mean).square()
    total = variance + (error - variance).mean().clamp(min=1e-6)
    return float((total.log() / 2 + error / (2 * total)).mean())


def check_levels(levels: Sequence[float], level: float) -> None:
    """Refuse candidates that are no noise levels."""
    if not levels or min(*levels, level) < 0:
        raise ValueError(f"levels must be one number or more, and none below 0, got {list(levels)} and level {level}")
