"""Prepares a split for training: holds out validation and calibration rows and scales to standardised units.

The scaling depends on the training rows alone, not on validation, calibration or test rows, unless a protocol says that
each part is scaled by its own. Missing values are filled with the mean of the training rows, always.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from bench.api import Array, Blocks, ClassPrediction, Prediction, Split
from bench.api.law import Law, ScaledLaw
from bench.api.tape import generator, stream
from bench.errors import UserError
from bench.metrics import TargetScale
from bench.spec.protocol import Protocol
from bench.training.blocks import block_folds, hold_out, part_of
from bench.training.folds import folds
from bench.training.member import Rows

BLOCK = 50_000  # rows that are scaled at once


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
    law: Law | None = None  # of the targets, in training units, where the dataset states it

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


def held_out(rows: int, protocol: Protocol, seed: int, blocks: Blocks | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the indices of the training rows, of the validation rows and of the calibration rows."""
    held = min(max(1, round(protocol.validation * rows)), rows - 1) if protocol.validation else 0
    end = held + (min(max(1, round(protocol.calibration * rows)), rows - held - 1) if protocol.calibration else 0)
    if blocks is not None:
        return hold_out(blocks, held, end - held, seed)
    order = torch.randperm(rows, generator=generator(seed, "validation"))
    train, validation, calibration = (part.sort().values for part in (order[end:], order[:held], order[held:end]))
    return train, validation, calibration


def search_folds(rows: int, protocol: Protocol, seed: int, blocks: Blocks | None = None) -> list[tuple[Tensor, Tensor]]:
    """Return the folds of a search, (training, held-out) rows each; calibration rows are in none of them.

    One fold alone holds out the validation rows.
    """
    if protocol.folds == 1:
        return [held_out(rows, protocol, seed, blocks)[:2]]
    if not protocol.calibration:
        return _folds(rows, protocol.folds, seed, blocks)
    train, validation, _ = held_out(rows, protocol, seed, blocks)
    usable = torch.cat([train, validation]).sort().values
    own = None if blocks is None else part_of(blocks, usable)
    return [(usable[one], usable[other]) for one, other in _folds(len(usable), protocol.folds, seed, own)]


def calibration_folds(
    rows: int, protocol: Protocol, seed: int, count: int, blocks: Blocks | None = None
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return the training, validation and calibration rows of each fold of a wrapper, which calibrates on all folds.

    They are of all rows, whatever the suite sets aside for calibration. Early stopping must not see the part that is
    held out: it has its own share of the others.
    """
    found = []
    for number, (kept, held) in enumerate(_folds(rows, count, stream(seed, "calibration"), blocks)):
        inner = None if blocks is None else part_of(blocks, kept)
        share = replace(protocol, calibration=0.0)
        own = held_out(len(kept), share, stream(seed, "calibration", number), inner)
        train, validation = (kept[part] for part in own[:2])
        if protocol.refit:
            train, validation = kept, kept[:0]
        found.append((train, validation, held))
    return found


def _folds(rows: int, count: int, seed: int, blocks: Blocks | None) -> list[tuple[Tensor, Tensor]]:
    return folds(rows, count, seed) if blocks is None else block_folds(blocks, count, seed)


def prepare(split: Split, protocol: Protocol, seed: int, device: str, fold: Sequence[Tensor] | None = None) -> Prepared:
    """Hold out rows (those of a fold, or the protocol's shares), scale, and move the data to the device.

    A fold has training and validation rows, and calibration rows where it is one of `calibration_folds`.
    """
    none = torch.empty(0, dtype=torch.long)
    parts = (*fold, none)[:3] if fold else held_out(len(split.train_x), protocol, seed, split.blocks)
    train, validation, calibration = parts
    if protocol.refit and fold is None:
        train, validation = torch.cat([train, validation]).sort().values, none
    each_part = protocol.scale_by == "each-part"
    if each_part and len(calibration):
        raise UserError(
            'scale_by = "each-part" gives held-out rows units of their own, in which no wrapper can calibrate: give '
            'scale_by = "training"'
        )
    scale = _Scale.of(split, protocol, split.train_x, split.train_y, train.numpy())
    train_x, train_y = scale.inputs(split.train_x), scale.targets(split.train_y)
    if each_part and len(validation):
        held = validation.numpy()
        own = _Scale.of(split, protocol, split.train_x, split.train_y, held, fill=scale.fill)
        train_x[held], train_y[held] = own.inputs(split.train_x[held]), own.targets(split.train_y[held])
    whole = None
    if split.task == "regression":
        y = np.asarray(split.train_y, dtype=np.float64)
        whole = TargetScale(float(y.mean()), float(y.std()), float(y.min()), float(y.max()))
    told = _Scale.of(split, protocol, split.test_x, split.test_y, fill=scale.fill) if each_part else scale

    def inputs(x: Array) -> Tensor:
        return torch.from_numpy(told.inputs(x)).to(device)

    def original_inputs(x: Tensor) -> Array:
        original: Array = x.numpy(force=True) * told.std + told.mean
        return original

    rows_x, rows_y = (torch.from_numpy(part).to(device) for part in (train_x, train_y))
    scaled_images = split.train_x.ndim == 4 and protocol.scale_inputs
    black = tuple((-scale.mean / scale.std).ravel().tolist()) if scaled_images else ()
    rows = Rows(split.task, rows_x, rows_y, train, validation, calibration, black)
    law = split.law and ScaledLaw(split.law, told.mean, told.std, told.y_mean, told.y_std)
    return Prepared(rows, inputs(split.test_x), told.y_mean, told.y_std, whole, inputs, original_inputs, law)


@dataclass(frozen=True, eq=False)
class _Scale:
    """Mean and standard deviation of inputs and targets, as far as the protocol scales them."""

    mean: Array
    std: Array
    y_mean: float
    y_std: float
    classes: bool
    fill: Array | None = None  # in the place of missing values, in original units; None: there are none

    @classmethod
    def of(
        cls, split: Split, protocol: Protocol, x: Array, y: Array, rows: Array | None = None, fill: Array | None = None
    ) -> "_Scale":
        """Return the scale of some rows (None: of all), their gaps filled with `fill` (None: with their own means)."""
        mean, std, y_mean, y_std = np.zeros(1), np.ones(1), 0.0, 1.0
        # No copy of all rows.
        chosen_x = x[rows] if rows is not None and len(rows) < len(x) else x
        if split.gaps:
            fill = _means_of_known(chosen_x) if fill is None else fill
            chosen_x = _filled(chosen_x, fill)
        if protocol.scale_inputs:
            mean, std = _input_scale(chosen_x)
        if split.task == "regression" and protocol.scale_targets:
            chosen = np.asarray(y, dtype=np.float64)[slice(None) if rows is None else rows]
            y_mean, y_std = float(chosen.mean()), float(chosen.std()) if np.ptp(chosen) > 0 else 1.0
        return cls(mean, std, y_mean, y_std, split.task == "classification", fill)

    def inputs(self, x: Array) -> Array:
        """Return rows in training units."""
        scaled = np.empty(x.shape, dtype=np.float32)
        for first in range(0, len(x), BLOCK):  # no second copy of a large table in double precision
            part = slice(first, first + BLOCK)
            whole = x[part] if self.fill is None else _filled(x[part], self.fill)
            scaled[part] = _scaled(whole, self.mean, self.std)
        return scaled

    def targets(self, y: Array) -> Array:
        """Return targets in training units; classes have none."""
        if self.classes:
            return np.array(y, dtype=np.int64)
        return np.array((np.asarray(y, dtype=np.float64) - self.y_mean) / self.y_std, dtype=np.float32)


def _means_of_known(x: Array) -> Array:
    """Return the mean of the known values of each feature; 0 where none is known."""
    known = ~np.isnan(x)
    means: Array = np.where(known, x, 0.0).sum(0, keepdims=True) / np.maximum(known.sum(0, keepdims=True), 1)
    return means


def _filled(x: Array, fill: Array) -> Array:
    return np.where(np.isnan(x), fill, x)


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
