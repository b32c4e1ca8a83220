"""Test images that are not like the training images: how quality falls, and whether the uncertainty tells.

The networks of a cell are trained once and asked about the clean test images, about every corruption of them at every
severity, and about foreign images that belong to no class. Images are changed in original units and scaled as the
training images were. The same images and the same drawn functions serve all methods and all conditions of a seed, so
differences are due to the method or to the shift alone.

Conditions of the stored metrics: none and `all:0` for the clean images, `CORRUPTION:SEVERITY`, `all:SEVERITY` for the
mean over the corruptions, and the name of a foreign set.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bench.api import Array, Split
from bench.api.corruptions import corrupted_test_images, foreign_test_images
from bench.errors import UserError
from bench.metrics import Forecast, auroc, entropy, mutual_information, score
from bench.probes.base import Finding, Subject
from bench.probes.score import finding_of, forecast_of
from bench.spec.protocol import Protocol, ShiftProbe

ALL = "all"


def check(protocol: Protocol, split: Split) -> None:
    """Refuse what cannot be shifted."""
    if split.task != "classification" or split.test_x.ndim != 4:
        raise UserError(
            f"probe 'shift' is for images with classes, not for {split.task} of rows of shape {split.test_x.shape[1:]}"
        )
    low, high = float(split.test_x.min()), float(split.test_x.max())
    if low < 0 or high > 1:
        raise UserError(f"probe 'shift' needs pixels from 0 to 1, the test images have {low:g} to {high:g}")


def rows(protocol: Protocol, test_rows: int) -> int:
    """Return at how many rows functions are drawn."""
    probe = _options(protocol)
    each = min(probe.rows or test_rows, test_rows)
    return each * (1 + len(probe.corruptions) * len(probe.severities) + len(probe.foreign))


def find(subject: Subject) -> Finding:
    """Score the drawn functions under every condition."""
    probe, original, number = _options(subject.protocol), subject.split.test_x, subject.seed
    own = _seeing(subject, original, probe.rows)
    clean = forecast_of(own)
    if isinstance(clean, str):
        return Finding(diverged=clean)
    found = finding_of(own.split, clean)
    metrics = dict(found.metrics) | {f"{name}@{ALL}:0": value for name, value in found.metrics.items()}
    for severity in probe.severities:
        by_corruption = []
        for corruption in probe.corruptions:
            images = corrupted_test_images(original, corruption, severity, number)
            shifted = forecast_of(_seeing(subject, images, probe.rows))
            if isinstance(shifted, str):
                return Finding(diverged=f"{shifted} under {corruption} of severity {severity}")
            values = score(shifted) | dict(_told_apart(clean, shifted))
            metrics |= {f"{name}@{corruption}:{severity}": value for name, value in values.items()}
            by_corruption.append(values)
        metrics |= {f"{name}@{ALL}:{severity}": value for name, value in _means(by_corruption).items()}
    for foreign in probe.foreign:
        images = foreign_test_images(original, foreign, number)
        strange = forecast_of(_seeing(subject, images, probe.rows))
        if isinstance(strange, str):
            return Finding(diverged=f"{strange} at the foreign images {foreign!r}")
        metrics |= {f"{name}@{foreign}": value for name, value in _told_apart(clean, strange)}
    return Finding(metrics, found.arrays)


def _options(protocol: Protocol) -> ShiftProbe:
    assert isinstance(protocol.probe, ShiftProbe)
    return protocol.probe


def _seeing(subject: Subject, images: Array, count: int) -> Subject:
    """Return the subject with these as its test images, the first ones of them where a count is given.

    They are cut after they were made, so that fewer images are not other images.
    """
    kept = slice(0, count or None)
    split = replace(subject.split, test_x=images[kept], test_y=subject.split.test_y[kept])
    return replace(subject, split=split, data=replace(subject.data, test_x=subject.data.inputs(split.test_x)))


def _told_apart(own: Forecast, other: Forecast) -> Iterator[tuple[str, float]]:
    """Yield how well uncertainty tells other images from the clean test images."""
    yield "ood_auroc", auroc(entropy(own.mean), entropy(other.mean))
    if own.draw_count > 1:
        yield "ood_auroc_mutual_information", auroc(mutual_information(own.draws), mutual_information(other.draws))


def _means(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean over corruptions of each metric that all of them have.

    A mean over some would be a mean over others for another method: where nothing was wrong under one corruption,
    `error_auroc` has no value there and no mean.
    """
    shared = [name for name in values[0] if all(name in each for each in values)]
    means = {name: float(np.mean([each[name] for each in values])) for name in shared}
    return {name: value for name, value in means.items() if not math.isnan(value)}
