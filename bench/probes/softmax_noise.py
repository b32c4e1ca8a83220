"""One test image under growing noise: the softmax outputs of its class and of the class it is taken for.

Section V-C and Figure 2 of the MCNI paper. The image is x + level * eps with one eps ~ N(0, 1) for all levels, in
original units; the T functions are drawn at every level. All methods of a seed see the same noisy images.

Two options give the images of public code that appears to be the authors' (GitHub, repository
`peace-andjoy/noise_injection_uncertainty`, `cifar10/qualitative_analysis_noise.ipynb`). With `noise_seed` every level
has an eps of its own, in turn from numpy's legacy generator as arrays `[height, width, channels]`, and all seeds of a
suite see these. With `pixels = "8-bit"` image and noise are added in steps of 1 / 255: the image is one of such
pixels, and the sum is clipped to pixels from 0 to 1 and rounded down to a step.

The **rival** is the class that the mean prediction turns to: the most probable class at the first level at which that
is not the true one, or, where this never happens, the most probable of the other classes at the last level.
"""

import math
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from bench.api import Array, Split
from bench.api.corruptions import noisy_test_images
from bench.errors import UserError
from bench.metrics import Forecast, flip_level
from bench.probes.base import Finding, Probe, TrainedSubject
from bench.spec.protocol import CLOSED, Count, NotNegative

Seed = Annotated[int, Field(ge=0, lt=2**32, strict=True)]


@dataclass(frozen=True, config=CLOSED)
class SoftmaxNoise(Probe):
    """Draw at one test image under growing Gaussian noise: when does the prediction flip, how do the draws spread?"""

    kind = "softmax-noise"
    label: Count = 0  # the class of the image
    image: Count = 0  # which of the test images of that class
    levels: list[NotNegative] = Field(  # standard deviations, in the units of the data; here the paper's
        default_factory=lambda: [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1]
    )
    noise_seed: Seed | None = None  # None: one noise for all levels, by the cell's seed
    pixels: Literal["float", "8-bit"] = "float"

    later = frozenset({"noise_seed", "pixels"})

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
        predicted = subject.predict(subject.data.inputs(self.images(split, row, subject.seed)), "test")
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

    def images(self, split: Split, row: int, seed: int) -> Array:
        """Return one test image under the noise of every level."""
        noise = self._noise(split, row, seed)
        clean: Array = split.test_x[row].astype(noise.dtype, copy=False)
        added = np.asarray(self.levels, dtype=noise.dtype)[:, None, None, None] * noise
        if self.pixels == "8-bit":
            return np.asarray(np.floor((np.rint(255 * clean) + 255 * added).clip(0, 255)) / 255)
        return np.asarray(clean + added)

    def _noise(self, split: Split, row: int, seed: int) -> Array:
        """Return eps for every level `[levels, channels, height, width]`."""
        shape = split.test_x.shape[1:]
        if self.noise_seed is None:
            # The random numbers of a row come after those of the rows before it.
            nothing = np.zeros((row + 1, *shape), dtype=np.float32)
            return np.broadcast_to(noisy_test_images(nothing, 1.0, seed)[row], (len(self.levels), *shape))
        numbers = np.random.RandomState(self.noise_seed).standard_normal((len(self.levels), *shape[1:], shape[0]))
        return np.moveaxis(numbers, -1, 1)

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
