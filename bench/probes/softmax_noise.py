"""One test image under growing noise: the softmax outputs of its class and of the class it is taken for.

Section V-C and Figure 3 of the MCNI paper. The image is x + level * eps with one eps ~ N(0, 1) for all levels, in
original units; the T functions are drawn at every level. All methods of a seed see the same noisy images.

The **rival** is the class that the mean prediction turns to: the most probable class at the first level at which that
is not the true one, or, where this never happens, the most probable of the other classes at the last level.
"""

import math
from itertools import pairwise

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from bench.api import Array, Split
from bench.api.corruptions import noisy_test_images
from bench.errors import UserError
from bench.metrics import Forecast, flip_level
from bench.probes.base import Finding, Probe, TrainedSubject
from bench.spec.protocol import CLOSED, Count, NotNegative


@dataclass(frozen=True, config=CLOSED)
class SoftmaxNoise(Probe):
    """Draw at one test image under growing Gaussian noise: when does the prediction flip, how do the draws spread?"""

    kind = "softmax-noise"
    label: Count = 0  # the class of the image
    image: Count = 0  # which of the test images of that class
    levels: list[NotNegative] = Field(  # standard deviations, in the units of the data; here the paper's
        default_factory=lambda: [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1]
    )

    def __post_init__(self) -> None:
        if not self.levels or any(low >= high for low, high in pairwise(self.levels)):
            raise ValueError("probe.levels: name at least one level, the lowest first, none twice")

    def check(self, split: Split) -> None:
        """Refuse data without such an image."""
        if split.task != "classification" or split.test_x.ndim != 4:
            fault = f"not for {split.task} of rows of shape {split.test_x.shape[1:]}"
            raise UserError(f"probe 'softmax-noise' is for images with classes, {fault}")
        self._row(split)

    def rows_drawn(self, test_rows: int) -> int:
        """Return one row per level."""
        return len(self.levels)

    def measure(self, subject: TrainedSubject) -> Finding:
        """Draw at every level; store the softmax outputs and the level at which the mean prediction flips."""
        split = subject.split
        row = self._row(split)
        # The random numbers of a row come after those of the rows before it.
        images = np.stack([noisy_test_images(split.test_x[: row + 1], std, subject.seed)[row] for std in self.levels])
        predicted = subject.predict(subject.data.inputs(images), "test")
        true, levels = int(split.test_y[row]), np.asarray(self.levels, dtype=np.float64)
        forecast = Forecast.of(predicted, np.full(len(levels), true))
        mean = forecast.mean
        pair = [true, rival(mean, true)]
        flip = flip_level(levels, mean, true)
        arrays = {
            "levels": levels,
            "softmax": forecast.draws[:, :, pair].transpose(1, 0, 2),
            "classes": np.asarray(pair),
            "image": np.asarray(split.test_x[row]),
        }
        return Finding({} if math.isnan(flip) else {"flip_level": flip}, arrays)

    def _row(self, split: Split) -> int:
        if self.label >= split.classes:
            raise UserError(f"probe.label: there is no class {self.label}; the classes are 0 to {split.classes - 1}")
        found = np.flatnonzero(split.test_y == self.label)
        if self.image >= len(found):
            count = f"a test set has {len(found)} images of class {self.label}, counted from 0"
            raise UserError(f"probe.image: there is no image {self.image}; {count}")
        return int(found[self.image])


def rival(mean: Array, true: int) -> int:
    """Return the class that the mean probabilities `[levels, classes]` turn to, as defined above."""
    others = mean.copy()
    others[:, true] = -1.0
    wrong = np.flatnonzero(others.max(axis=1) > mean[:, true])
    return int(others[wrong[0] if len(wrong) else -1].argmax())
