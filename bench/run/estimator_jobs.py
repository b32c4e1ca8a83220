"""Jobs of estimators: searched options, one fit, its predictions and scores. Nothing is shared between them."""

from collections.abc import Iterator, Sequence
from typing import Any

from bench.api import Estimator
from bench.api.tape import stream
from bench.errors import UserError
from bench.machine.memory import PeakMemory
from bench.probes.base import DivergedError, TrainedSubject
from bench.run.job import Job, JobEvent, calibrated, error_text, held_out_value, predictions_of, until_error
from bench.spec.cell import Outcome
from bench.training.estimators import fit_estimator
from bench.training.network_factory import network_factory
from bench.training.rows import Prepared, calibration_folds, prepare, search_folds
from bench.training.search import Selection
from bench.training.wrapped import Part


def run_estimators(jobs: Sequence[Job]) -> Iterator[tuple[int, JobEvent]]:
    """Yield the number of a job and what became known of it; the last of each job is its outcome."""
    for number, job in enumerate(jobs):
        error = yield from until_error((number, event) for event in _events(job))
        if error is not None:  # whatever a plug-in raises fails its own cell
            yield number, Outcome("failed", error_text(error))


def _events(job: Job) -> Iterator[JobEvent]:
    if job.selection is None and len(job.configurations()) > 1:
        job.selection = _search(job)
        yield job.selection
    yield job.nothing_chosen() or _measured(job)


def _search(job: Job) -> Selection:
    """Fit all configurations on all folds, with the same seed on a fold."""
    if job.protocol.scale_by == "each-part":
        raise UserError('scale_by = "each-part" has no units in which to judge the predictions of an estimator')
    tried = job.configurations()
    parts = [
        prepare(job.split, job.protocol, job.seed, "cpu", fold)
        for fold in search_folds(len(job.split.train_x), job.protocol, job.seed, job.split.blocks)
    ]
    losses = []
    for configuration in tried:
        estimator, _ = configuration.applied(job.method, job.protocol.training)
        subjects = (_fitted(job, estimator, part, stream(job.seed, "fold", k)) for k, part in enumerate(parts))
        losses.append([held_out_value(subject, job.protocol.search_by) for subject in subjects])
    untrained = [[0] * len(parts) for _ in tried]
    return Selection(tried, losses, untrained, criterion=job.protocol.search_by)


def _measured(job: Job) -> Outcome:
    """Fit the estimator with the options chosen, and measure what it predicts."""
    given = next(iter(job.configurations()), None)  # at most one, or there would be a selection
    chosen = job.selection.chosen if job.selection is not None else given
    estimator, _ = chosen.applied(job.method, job.protocol.training) if chosen else (job.method, None)
    record: dict[str, Any] = {"estimator": True, **job.search_record()}  # and no epochs: its training is its own
    data, memory = prepare(job.split, job.protocol, job.seed, "cpu"), PeakMemory()
    try:
        subject, doubts = (
            (_fitted(job, estimator, data, job.seed), ()) if job.wrapper is None else _wrapped(job, estimator, data)
        )
        found = job.probe.measure(subject)
    except DivergedError as error:
        return Outcome("diverged", str(error), training=record)
    training = {**record, "memory_mib": memory.growth(), **found.record}
    message = "; ".join([*doubts, *found.doubts])
    metrics = {**found.metrics, **job.search_metrics()}
    kept = predictions_of(job, found)
    return Outcome("ok", message, metrics=metrics, training=training, arrays=found.arrays, predictions=kept)


def _wrapped(job: Job, estimator: Estimator, whole: Prepared) -> tuple[TrainedSubject, Sequence[str]]:
    """Fit the estimator once for each fold of its wrapper, or once; return the calibrated wrapper and its doubts."""
    assert job.wrapper is not None
    parts = []
    for fold in job.folds:
        if fold is None:
            parts.append(Part(_fitted(job, estimator, whole, job.seed).predictor, whole))
            continue
        held = calibration_folds(len(job.split.train_x), job.protocol, job.seed, job.wrapper.folds, job.split.blocks)[
            fold
        ]
        data = prepare(job.split, job.protocol, job.seed, "cpu", held)
        parts.append(Part(_fitted(job, estimator, data, stream(job.seed, "calibration", fold)).predictor, data))
    predictor = calibrated(job, parts, whole)
    own = (job.protocol, job.split, job.seed, whole, predictor, job.requested, job.keep)
    subject = TrainedSubject(estimator, job.network, *own)
    return subject, predictor.doubts


def _fitted(job: Job, estimator: Estimator, data: Prepared, seed: int) -> TrainedSubject:
    problem = job.split.problem
    predictor = fit_estimator(estimator, problem, data, network_factory(job.network, problem), seed)
    own = (job.protocol, job.split, seed, data, predictor, job.requested, job.keep)
    return TrainedSubject(estimator, job.network, *own)
