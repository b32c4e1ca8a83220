"""One test image under growing noise: the softmax outputs of its class and of the class it is taken for.

Section V-C and Figure 3 of the MCNI paper. The image is x + level * eps with one eps ~ N(0, 1) for all levels, in
original units; the T functions are drawn at every level. All methods of a seed see the same noisy images.

The **rival** is the class that the mean prediction turns to: the most probable class at the first level at which that
is not the true one, or, where this never happens, the most probable of the other classes at the last level.
"""

import math

import numpy as np

from bench.api import Array, Split
from bench.api.corruptions import noisy_test_images
from bench.errors import UserError
from bench.metrics import Forecast, flip_level
from bench.probes.base import Finding, Subject
from bench.spec.protocol import NoiseProbe, Protocol


def check(protocol: Protocol, split: Split) -> None:
    """Refuse data without such an image."""
    if split.task != "classification" or split.test_x.ndim != 4:
        raise UserError(
            "probe 'softmax-noise' is for images with classes, "
            f"not for {split.task} of rows of shape {split.test_x.shape[1:]}"
        )
    _row(_options(protocol), split)


def rows(protocol: Protocol, test_rows: int) -> int:
    """Return at how many rows functions are drawn."""
    return len(_options(protocol).levels)


def find(subject: Subject) -> Finding:
    """Draw at every level; store the softmax outputs and the level at which the mean prediction flips."""
    probe, split = _options(subject.protocol), subject.split
    row = _row(probe, split)
    # The random numbers of a row come after those of the rows before it.
    images = np.stack([noisy_test_images(split.test_x[: row + 1], std, subject.seed)[row] for std in probe.levels])
    draws = subject.draws(subject.data.inputs(images), "test")
    if not np.isfinite(draws).all():
        return Finding(diverged="a drawn prediction was not finite")
    true, levels = int(split.test_y[row]), np.asarray(probe.levels, dtype=np.float64)
    mean = Forecast("classification", np.full(len(levels), true), draws).mean
    pair = [true, rival(mean, true)]
    flip = flip_level(levels, mean, true)
    arrays = {
        "levels": levels,
        "softmax": draws[:, :, pair].transpose(1, 0, 2),
        "classes": np.asarray(pair),
        "image": np.asarray(split.test_x[row]),
    }
    return Finding({} if math.isnan(flip) else {"flip_level": flip}, arrays)


def rival(mean: Array, true: int) -> int:
    """Return the class that the mean probabilities `[levels, classes]` turn to, as defined above."""
    others = mean.copy()
    others[:, true] = -1.0
    wrong = np.flatnonzero(others.max(axis=1) > mean[:, true])
    return int(others[wrong[0] if len(wrong) else -1].argmax())


def _options(protocol: Protocol) -> NoiseProbe:
    assert isinstance(protocol.probe, NoiseProbe)
    return protocol.probe


def _row(probe: NoiseProbe, split: Split) -> int:
    if probe.label >= split.classes:
        raise UserError(f"probe.label: there is no class {probe.label}; the classes are 0 to {split.classes - 1}")
    found = np.flatnonzero(split.test_y == probe.label)
    if probe.image >= len(found):
        raise UserError(
            f"probe.image: there is no image {probe.image}; a test set has {len(found)} images of class {probe.label}, "
            "counted from 0"
        )
    return int(found[probe.image])
