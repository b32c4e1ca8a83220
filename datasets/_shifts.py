"""Test images that differ from the training images: what a dataset's options `shift`, `severity` and `noise` do."""

from dataclasses import replace

from bench.api import Array, Split, corruptions, unknown_name

NONE = "none"
SHIFTS = (NONE, *corruptions.CORRUPTIONS, *corruptions.FOREIGN)


def check(shift: str, severity: int, noise: float) -> None:
    """Raise an error for options without a meaning."""
    if shift not in SHIFTS:
        raise ValueError(str(unknown_name("shift", shift, SHIFTS)))
    if not 1 <= severity <= corruptions.SEVERITIES:
        raise ValueError(f"severity must be from 1 to {corruptions.SEVERITIES}, got {severity}")
    if noise < 0:
        raise ValueError(f"noise must not be negative, got {noise}")


def shifted(split: Split, number: int, shift: str, severity: int, noise: float) -> Split:
    """Return the split with other test images; training images and all targets are left as they are."""
    x: Array = split.test_x
    if shift in corruptions.FOREIGN:
        x = corruptions.foreign_test_images(x, shift, number)
    elif shift != NONE:
        x = corruptions.corrupted_test_images(x, shift, severity, number)
    if noise > 0:
        x = corruptions.noisy_test_images(x, noise, number)
    return replace(split, test_x=x)
