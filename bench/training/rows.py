"""Prepares a split for training: holds out validation and calibration rows and scales to standardised units.

The scaling depends on the training rows alone, not on validation, calibration or test rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from bench.api import Array, ClassPrediction, Prediction, Split, as_float32
from bench.api.tape import generator, stream
from bench.metrics import TargetScale
from bench.spec.protocol import Protocol
from bench.training.folds import folds
from bench.training.member import Rows


@dataclass(frozen=True, eq=False)
class Prepared:
    """One split in training units, with the conversion to original units."""

    rows: Rows
    test_x: Tensor
    target_mean: float
    target_std: float
    scale: TargetScale | None
    inputs: Callable[[Array], Tensor]  # converts rows in original units to training units, on the device
    original_inputs: Callable[[Tensor], Array]  # and back

    def original(self, prediction: Prediction) -> Prediction:
        """Return a prediction in original units; classes have none."""
        if isinstance(prediction, ClassPrediction):
            return prediction
        return prediction.affine(self.target_std, self.target_mean)

    def scaled(self, prediction: Prediction) -> Prediction:
        """Return a prediction of original units in training units."""
        if isinstance(prediction, ClassPrediction):
            return prediction
        return prediction.affine(1 / self.target_std, -self.target_mean / self.target_std)


def held_out(rows: int, protocol: Protocol, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the indices of the training rows, of the validation rows and of the calibration rows."""
    order = torch.randperm(rows, generator=generator(seed, "validation"))
    held = min(max(1, round(protocol.validation * rows)), rows - 1) if protocol.validation else 0
    end = held + (min(max(1, round(protocol.calibration * rows)), rows - held - 1) if protocol.calibration else 0)
    train, validation, calibration = (part.sort().values for part in (order[end:], order[:held], order[held:end]))
    return train, validation, calibration


def search_folds(rows: int, protocol: Protocol, seed: int) -> list[tuple[Tensor, Tensor]]:
    """Return the folds of a search, (training, held-out) rows each; calibration rows are in none of them.

    One fold alone holds out the validation rows.
    """
    if protocol.folds == 1:
        return [held_out(rows, protocol, seed)[:2]]
    if not protocol.calibration:
        return folds(rows, protocol.folds, seed)
    train, validation, _ = held_out(rows, protocol, seed)
    usable = torch.cat([train, validation]).sort().values
    return [(usable[one], usable[other]) for one, other in folds(len(usable), protocol.folds, seed)]


def calibration_folds(rows: int, protocol: Protocol, seed: int, count: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return the training, validation and calibration rows of each fold of a wrapper, which calibrates on all folds.

    They are of all rows, whatever the suite sets aside for calibration. Early stopping must not see the part that is
    held out: it has its own share of the others.
    """
    found = []
    for number, (kept, held) in enumerate(folds(rows, count, stream(seed, "calibration"))):
        own = held_out(len(kept), replace(protocol, calibration=0.0), stream(seed, "calibration", number))
        train, validation = (kept[part] for part in own[:2])
        if protocol.refit:
            train, validation = kept, kept[:0]
        found.append((train, validation, held))
    return found


def prepare(split: Split, protocol: Protocol, seed: int, device: str, fold: Sequence[Tensor] | None = None) -> Prepared:
    """Hold out rows (those of a fold, or the protocol's shares), scale, and move the data to the device.

    A fold has training and validation rows, and calibration rows where it is one of `calibration_folds`.
    """
    none = torch.empty(0, dtype=torch.long)
    parts = (*fold, none)[:3] if fold else held_out(len(split.train_x), protocol, seed)
    train, validation, calibration = parts
    if protocol.refit and fold is None:
        train, validation = torch.cat([train, validation]).sort().values, none
    used = train.numpy()

    train_x = split.train_x[used] if len(used) < len(split.train_x) else split.train_x  # no copy of the whole
    mean, std = _input_scale(train_x) if protocol.scale_inputs else (np.zeros(1), np.ones(1))
    y_mean, y_std, scale = 0.0, 1.0, None
    if split.task == "regression":
        y = np.asarray(split.train_y, dtype=np.float64)
        scale = TargetScale(float(y.mean()), float(y.std()), float(y.min()), float(y.max()))
        if protocol.scale_targets:
            y_mean, y_std = float(y[used].mean()), float(y[used].std()) if np.ptp(y[used]) > 0 else 1.0
        targets = as_float32((y - y_mean) / y_std)
    else:
        targets = torch.from_numpy(np.asarray(split.train_y, dtype=np.int64))

    def inputs(x: Array) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(_scaled(x, mean, std), dtype=np.float32)).to(device)

    def original_inputs(x: Tensor) -> Array:
        original: Array = x.numpy(force=True) * std + mean
        return original

    rows = Rows(split.task, inputs(split.train_x), targets.to(device), train, validation, calibration)
    return Prepared(rows, inputs(split.test_x), y_mean, y_std, scale, inputs, original_inputs)


def _input_scale(x: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of every feature of a table, of every channel of images."""
    if x.ndim == 4:
        # Channel by channel: all of CIFAR-10 in double precision takes more than a gigabyte.
        scales = [_input_scale(x[:, channel].reshape(-1, 1)) for channel in range(x.shape[1])]
        mean, std = (np.concatenate(part, axis=1)[..., None, None] for part in zip(*scales, strict=True))
        return mean, std
    mean = x.mean(0, dtype=np.float64, keepdims=True)
    # A constant feature stays constant. Its standard deviation may be above 0 by rounding.
    varies = np.ptp(x, axis=0, keepdims=True) > 0
    return mean, np.where(varies, x.std(0, dtype=np.float64, keepdims=True), 1.0)


def _scaled(x: Array, mean: Array, std: Array) -> Array:
    """Return a scaled copy, computed in double precision; for images, which are large, in single."""
    kind = np.float32 if x.ndim == 4 else np.float64
    scaled: Array = x.astype(kind, copy=False) - mean.astype(kind)
    scaled /= std.astype(kind)
    return scaled
