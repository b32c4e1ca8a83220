"""Scores a submission: the data are loaded and compared with the fingerprint, metrics are computed here."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.api import Dataset, Split
from bench.errors import UserError
from bench.metrics import Forecast, TargetScale
from bench.metrics.kept import Kept
from bench.plan.cells import checked, fingerprint
from bench.plugins.registry import Registry
from bench.probes.base import Finding
from bench.probes.score import finding_of
from bench.spec.sizes import MOST_ARRAY_BYTES
from bench.submissions.document import Predictions, Submission, read_bounded, read_submission
from bench.submissions.prediction_files import read_prediction

VERIFIED = ("fingerprint of the data", "shapes and values of the predictions", "metrics, computed from the predictions")


@dataclass(frozen=True, eq=False)
class Scored:
    """The predictions of one split with their metrics."""

    predictions: Predictions
    finding: Finding
    hash: str  # of the file


@dataclass(frozen=True, eq=False)
class ScoredSubmission:
    """A submission that was verified and scored."""

    submission: Submission
    dataset: Dataset
    scored: Sequence[Scored]


def score_submission(path: Path, registry: Registry) -> ScoredSubmission:
    """Read, verify and score a submission; a UserError says what is wrong with it."""
    submission, folder = read_submission(path)
    where = f"{folder}: dataset"
    dataset: Dataset = registry.make("dataset", submission.dataset, submission.options, where)
    if reason := dataset.skip():
        raise UserError(f"{where} {submission.dataset!r} {reason}")
    found, splits = [], {}
    for each in sorted(submission.predictions, key=lambda one: (one.split, one.used_seed)):
        if each.split not in splits:
            splits = {each.split: _loaded(dataset, each, folder)}  # one in memory
        split = splits[each.split]
        if fingerprint(split) != each.data:
            raise UserError(
                f"{folder / each.file}: split {each.split} of {submission.dataset!r} has the fingerprint "
                f"{fingerprint(split)} here, the submission states {each.data}: these are other rows"
            )
        found.append(_score(folder / each.file, submission, each, split))
    return ScoredSubmission(submission, dataset, found)


def _loaded(dataset: Dataset, predictions: Predictions, folder: Path) -> Split:
    try:
        return checked(dataset.load(predictions.split))
    except UserError as error:
        raise UserError(f"{folder / predictions.file}: {error}") from None


def _score(path: Path, submission: Submission, predictions: Predictions, split: Split) -> Scored:
    prediction = read_prediction(path, submission, split)
    if predictions.noise_variance is not None and submission.kind != "points":
        raise UserError(f"{path}: noise_variance is for points; {submission.kind} state their own")
    scale = None
    if split.task == "regression":
        y = np.asarray(split.train_y, dtype=np.float64)
        scale = TargetScale(float(y.mean()), float(y.std()), float(y.min()), float(y.max()))
    law = None if split.law is None else split.law.at(split.test_x)
    forecast = Forecast.of(prediction, split.test_y, predictions.noise_variance, scale, split.test_truth, law)
    with np.errstate(all="ignore"):
        finding = finding_of(split, Kept(forecast, groups=split.test_groups), keep="predictions")
    digest = hashlib.blake2b(read_bounded(path, MOST_ARRAY_BYTES), digest_size=8).hexdigest()
    return Scored(predictions, finding, digest)
