"""From a split to rows that train: what is held out for validation, and units that networks like.

Only the rows that train decide the scaling: nothing of the validation or test rows reaches it.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bench.api import Array, Split, as_float32
from bench.member import Rows
from bench.metrics import TargetScale
from bench.protocol import Protocol
from bench.tape import generator


@dataclass(frozen=True, eq=False)
class Prepared:
    """One split in training units, and the way back to original ones."""

    rows: Rows
    test_x: Tensor
    target_mean: float
    target_std: float
    scale: TargetScale | None

    def original(self, draws: Array) -> tuple[Array, Array | None]:
        """Return regression draws `[T, N, 1 or 2]` in original units: means `[T, N]` and stated variances, if any."""
        means = draws[..., 0].astype(np.float64) * self.target_std + self.target_mean
        stated = draws[..., 1].astype(np.float64) * self.target_std**2 if draws.shape[-1] == 2 else None
        return means, stated


def prepare(split: Split, protocol: Protocol, seed: int, device: str) -> Prepared:
    """Hold out validation rows, scale, and put the data on the device."""
    count = len(split.train_x)
    order = torch.randperm(count, generator=generator(seed, "validation"))
    held = min(round(protocol.validation * count), count - 1)
    validation, train = order[:held].sort().values, order[held:].sort().values
    fitted = train.numpy()

    x_mean, x_std = np.zeros(1), np.ones(1)
    if protocol.scale_inputs:
        x_mean = split.train_x[fitted].mean(0)
        # A constant feature stays constant. Its standard deviation does not tell: rounding may leave it above 0.
        varies = np.ptp(split.train_x[fitted], axis=0) > 0
        x_std = np.where(varies, split.train_x[fitted].std(0), 1.0)
    y_mean, y_std, scale = 0.0, 1.0, None
    if split.task == "regression":
        y = np.asarray(split.train_y, dtype=np.float64)
        scale = TargetScale(float(y.mean()), float(y.std()), float(y.min()), float(y.max()))
        if protocol.scale_targets:
            y_mean, y_std = float(y[fitted].mean()), float(y[fitted].std()) if np.ptp(y[fitted]) > 0 else 1.0
        targets = as_float32((y - y_mean) / y_std)
    else:
        targets = torch.from_numpy(np.asarray(split.train_y, dtype=np.int64))
    rows = Rows(
        split.task, as_float32((split.train_x - x_mean) / x_std).to(device), targets.to(device), train, validation
    )
    test_x = as_float32((split.test_x - x_mean) / x_std).to(device)
    return Prepared(rows, test_x, y_mean, y_std, scale)
