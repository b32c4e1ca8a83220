"""Test images that are not like the training images: how quality falls, and whether the uncertainty rises.

The networks of a cell are trained once and evaluated at the clean test images, at every corruption of them at every
severity, and at foreign images that belong to no class. Images are changed in original units and scaled as the
training images were. The same images and the same drawn functions serve all methods and all conditions of a seed, so
differences are due to the method or to the shift alone. Corruptions are computed, or, where the dataset comes with
shifted images (`cifar10-c`), read: `published-NAME`.

Conditions of the stored metrics: none and `all:0` for the clean images, `CORRUPTION:SEVERITY`, `all:SEVERITY` for the
mean over the corruptions, and the name of a foreign set.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from bench.api import Array, Split
from bench.api.corruptions import CORRUPTIONS, FOREIGN, corrupted_test_images, foreign_test_images
from bench.errors import UserError, unknown_name
from bench.metrics import Forecast, detection_scores, entropy, model_information, score
from bench.metrics.detection import SCORES
from bench.probes._conditions import ALL, conditioned, means
from bench.probes.base import DivergedError, Finding, Probe, TrainedSubject
from bench.probes.score import forecast_of, kept_of, score_subject
from bench.spec.protocol import CLOSED, Count

PUBLISHED = "published-"
Severity = Annotated[int, Field(ge=1, le=5, strict=True)]


@dataclass(frozen=True, config=CLOSED)
class Shift(Probe):
    """Score at the clean test images, under every corruption at every severity, and against foreign images."""

    kind = "shift"
    corruptions: list[str] = Field(default_factory=lambda: list(CORRUPTIONS))
    severities: list[Severity] = Field(default_factory=lambda: [1, 2, 3, 4, 5])
    foreign: list[str] = Field(default_factory=lambda: list(FOREIGN))
    rows: Count = 0  # so many test images, the first ones; 0: all

    def __post_init__(self) -> None:
        for key, noun, known in (("corruptions", "corruption", CORRUPTIONS), ("foreign", "foreign set", FOREIGN)):
            for name in getattr(self, key):
                if name not in known and not (key == "corruptions" and name.startswith(PUBLISHED)):
                    raise ValueError(str(unknown_name(noun, name, known, f"probe.{key}")))
        for key in ("corruptions", "severities", "foreign"):
            if len(set(getattr(self, key))) < len(getattr(self, key)):
                raise ValueError(f"probe.{key}: something is named twice")
        if bool(self.corruptions) != bool(self.severities):
            raise ValueError("probe: corruptions and severities go together; name both or leave both empty")

    def check(self, split: Split) -> None:
        """Refuse data that are not images with classes and pixels from 0 to 1."""
        if split.task != "classification" or split.test_x.ndim != 4:
            shape = split.test_x.shape[1:]
            raise UserError(f"probe 'shift' is for images with classes, not for {split.task} of rows of shape {shape}")
        low, high = float(split.test_x.min()), float(split.test_x.max())
        if low < 0 or high > 1:
            raise UserError(f"probe 'shift' needs pixels from 0 to 1, the test images have {low:g} to {high:g}")
        offered = [] if split.shifts is None else [f"{PUBLISHED}{name}" for name in split.shifts.names]
        for name in self.corruptions:
            if name not in (*CORRUPTIONS, *offered):
                if not offered:
                    raise UserError(f"probe.corruptions: {name!r}: this dataset comes with no shifted images")
                raise unknown_name("corruption", name, (*CORRUPTIONS, *offered), "probe.corruptions")

    def rows_drawn(self, test_rows: int) -> int:
        """Return the rows of all conditions."""
        each = min(self.rows or test_rows, test_rows)
        return each * (1 + len(self.corruptions) * len(self.severities) + len(self.foreign))

    def measure(self, subject: TrainedSubject) -> Finding:
        """Score the drawn functions under every condition."""
        original = subject.split.test_x
        clean_subject = self._with_images(subject, original)
        kept = kept_of(clean_subject)
        clean, finding = kept.test, score_subject(clean_subject, kept)
        metrics = dict(finding.metrics) | conditioned(finding.metrics, f"{ALL}:0")
        for severity in self.severities:
            by_corruption = []
            for corruption in self.corruptions:
                images = _corrupted(subject, corruption, severity)
                shifted = self._forecast(subject, images, f"under {corruption} of severity {severity}")
                values = score(shifted, requested=subject.requested) | dict(_detection(clean, shifted))
                metrics |= conditioned(values, f"{corruption}:{severity}")
                by_corruption.append(values)
            metrics |= conditioned(means(by_corruption), f"{ALL}:{severity}")
        scores = {}
        for name in self.foreign:
            images = foreign_test_images(original, name, subject.seed)
            foreign = self._forecast(subject, images, f"at the foreign images {name!r}")
            metrics |= {f"{metric}@{name}": value for metric, value in _detection(clean, foreign)}
            # For histograms beside the numbers; the entropies of the clean images follow from their stored means.
            scores[f"{SCORES}@{name}"] = entropy(foreign.mean).astype(np.float32)
        return replace(finding, metrics=metrics, arrays={**finding.arrays, **scores})

    def _forecast(self, subject: TrainedSubject, images: Array, where: str) -> Forecast:
        try:
            return forecast_of(self._with_images(subject, images))
        except DivergedError as error:
            raise error.under(where) from None

    def _with_images(self, subject: TrainedSubject, images: Array) -> TrainedSubject:
        """Return the subject with these as its test images, or the first of them.

        They are cut after they were changed, so that fewer images are not other images.
        """
        kept = slice(0, self.rows or None)
        groups = subject.split.test_groups
        split = replace(
            subject.split,
            test_x=images[kept],
            test_y=subject.split.test_y[kept],
            test_groups=None if groups is None else groups[kept],
        )
        return replace(subject, split=split, data=replace(subject.data, test_x=subject.data.inputs(split.test_x)))


def _corrupted(subject: TrainedSubject, corruption: str, severity: int) -> Array:
    """Return all test images under a corruption, read or computed."""
    if corruption in CORRUPTIONS or subject.split.shifts is None:
        return corrupted_test_images(subject.split.test_x, corruption, severity, subject.seed)
    return subject.split.shifts.images(corruption.removeprefix(PUBLISHED), severity)


def _detection(own: Forecast, other: Forecast) -> Iterator[tuple[str, float]]:
    """Yield how well the uncertainty separates other images (the positives) from the clean test images."""
    yield from detection_scores(entropy(own.mean), entropy(other.mean)).items()
    if own.draw_count > 1 or own.states_model:
        scores = model_information(own), model_information(other)
        yield from detection_scores(*scores, by="_mutual_information").items()
