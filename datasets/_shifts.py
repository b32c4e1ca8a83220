"""Test images that differ from the training images: what a dataset's options `shift`, `severity` and `noise` do."""

from dataclasses import replace

import numpy as np

from bench.api import Array, Split
from bench.corruptions import CORRUPTIONS, SEVERITIES, add_noise, corrupt, inverted, permuted
from bench.errors import unknown_name

NONE, INVERTED, PERMUTED = "none", "inverted", "permuted"
SHIFTS = (NONE, *CORRUPTIONS, INVERTED, PERMUTED)


def check(shift: str, severity: int, noise: float) -> None:
    """Complain about options that mean nothing."""
    if shift not in SHIFTS:
        raise ValueError(str(unknown_name("shift", shift, SHIFTS)))
    if not 1 <= severity <= SEVERITIES:
        raise ValueError(f"severity must be from 1 to {SEVERITIES}, got {severity}")
    if noise < 0:
        raise ValueError(f"noise must not be negative, got {noise}")


def shifted(split: Split, number: int, shift: str, severity: int, noise: float) -> Split:
    """Return the split with other test images; training images and all targets are left as they are."""
    x: Array = split.test_x
    if shift == INVERTED:
        x = inverted(x)
    elif shift == PERMUTED:
        x = permuted(x, np.random.default_rng([31, number]))
    elif shift != NONE:
        # Severities of one kind share their random numbers: they differ in strength alone.
        x = corrupt(x, shift, severity, np.random.default_rng([37, number]))
    if noise > 0:
        x = add_noise(x, noise, np.random.default_rng([41, number]))
    return replace(split, test_x=x)
