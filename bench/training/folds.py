"""Cross-validation folds of the training rows, for choosing options without the test rows."""

import torch
from torch import Tensor

from bench.api.tape import generator
from bench.errors import UserError


def folds(rows: int, count: int, seed: int) -> list[tuple[Tensor, Tensor]]:
    """Return `count` pairs of (training, held-out) row numbers, sorted; no row is held out twice.

    They depend on the cell's seed alone, so every method and every set of options has the same folds. All
    folds have the same size, so that they train in one stack: `rows mod count` rows are in every training set.
    """
    if not 2 <= count <= rows:
        raise UserError(f"folds: expected from 2 to {rows} (the training rows), got {count}")
    order = torch.randperm(rows, generator=generator(seed, "folds"))
    size = rows // count
    held_out = [order[k * size : (k + 1) * size] for k in range(count)]
    train = [torch.cat([order[: k * size], order[(k + 1) * size :]]) for k in range(count)]
    return [(one.sort().values, other.sort().values) for one, other in zip(train, held_out, strict=True)]
