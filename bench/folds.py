"""Cross-validation folds of the training rows, for choosing options without a look at the test rows."""

import torch
from torch import Tensor

from bench.errors import UserError
from bench.tape import generator


def folds(rows: int, count: int, seed: int) -> list[tuple[Tensor, Tensor]]:
    """Return `count` pairs of (training, held-out) row numbers, sorted; every row is held out exactly once.

    They follow from the cell's seed alone, so every method and every set of options is judged on the same folds.
    """
    if not 2 <= count <= rows:
        raise UserError(f"folds: expected from 2 to {rows} (the training rows), got {count}")
    order = torch.randperm(rows, generator=generator(seed, "folds"))
    parts = order.tensor_split(count)
    return [
        (torch.cat([*parts[:held], *parts[held + 1 :]]).sort().values, parts[held].sort().values)
        for held in range(count)
    ]  # fmt: skip
