"""Runs jobs: from their rows to searched options, trained networks, draws and scores.

Networks that train alike are trained once: a post-hoc method gets the very networks of the deterministic one, and an
ensemble's first network is that of a single one. A search trains all configurations on all folds in the same stack.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from bench.api import Method, Network
from bench.api.tape import stream
from bench.errors import raise_if_stop
from bench.probes.base import DivergedError, Finding, Subject, TrainedSubject
from bench.run.estimator_jobs import run_estimators
from bench.run.job import (
    UNTRAINED,
    Job,
    JobEvent,
    Place,
    calibrated,
    error_text,
    held_out_value,
    loss_history,
    predictions_of,
    training_record,
    until_error,
)
from bench.spec.cell import Outcome
from bench.spec.protocol import Training
from bench.training.allocator import only_new_objects_collected
from bench.training.checkpoints import name_of
from bench.training.divergence import first_not_finite
from bench.training.fit import fit_with_progress
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, Team, finish, training_form
from bench.training.network_factory import network_factory
from bench.training.predictors import Networks, Predictor
from bench.training.progress import Progress
from bench.training.rows import Prepared, calibration_folds, prepare, search_folds
from bench.training.search import Selection
from bench.training.stacked_calls import graphs_remembered
from bench.training.stored_networks import fit_unless_kept
from bench.training.validation import held_out_loss
from bench.training.wrapped import Part, rows_for_inner


def outcomes(jobs: Sequence[Job], device: str = "cpu", limits: Limits = Limits()) -> Iterator[tuple[int, Outcome]]:
    """Yield the number and the outcome of each job as it ends."""
    for number, event in run_jobs(jobs, device, limits):
        if isinstance(event, Outcome):
            yield number, event


def run_jobs(jobs: Sequence[Job], device: str = "cpu", limits: Limits = Limits()) -> Iterator[tuple[int, JobEvent]]:
    """Yield the number of a job and what became known of it; the last of each job is its outcome."""
    still_open = set(range(len(jobs)))
    with graphs_remembered(), only_new_objects_collected():
        error = yield from until_error(_events(jobs, still_open, device, limits))
    if error is not None:  # whatever a plug-in raises in training fails the cells that were in the stack
        message = error_text(error)
        for number in sorted(still_open):
            yield number, Outcome("failed", message)


def _events(jobs: Sequence[Job], still_open: set[int], device: str, limits: Limits) -> Iterator[tuple[int, JobEvent]]:
    """Yield what becomes known of the jobs; those that have an outcome are removed from `still_open`."""
    rows = _Data(device)
    measured = [number for number, job in enumerate(jobs) if not job.probe.together]
    estimators = [number for number in measured if jobs[number].method.alone]
    trained = [number for number in measured if not jobs[number].method.alone]
    for events in (
        _renumbered(_searched([jobs[n] for n in trained], rows, limits), trained),
        _renumbered(_trained([jobs[n] for n in trained], rows, limits), trained),
        _renumbered(run_estimators([jobs[n] for n in estimators]), estimators),
        _measured_together(jobs, device, limits),
    ):
        for number, event in events:
            if isinstance(event, Outcome):
                still_open.remove(number)
            yield number, event


def _renumbered(events: Iterator[tuple[int, JobEvent]], numbers: Sequence[int]) -> Iterator[tuple[int, JobEvent]]:
    """Yield the events of some of the jobs under their numbers among all."""
    for number, event in events:
        yield numbers[number], event


def _measured_together(jobs: Sequence[Job], device: str, limits: Limits) -> Iterator[tuple[int, JobEvent]]:
    groups: dict[str, list[int]] = {}
    for number, job in enumerate(jobs):
        if job.probe.together:
            groups.setdefault(repr(job.probe), []).append(number)
    for numbers in groups.values():
        subjects = [Subject(j.method, j.network, j.protocol, j.split, j.seed) for j in (jobs[n] for n in numbers)]
        for number, found in jobs[numbers[0]].probe.measure_together(subjects, device, limits):
            yield numbers[number], _outcome(found)


def _outcome(found: Finding | BaseException) -> Outcome:
    if isinstance(found, BaseException):
        return Outcome("failed", error_text(found))
    doubts = "; ".join(found.doubts)
    return Outcome("ok", doubts, metrics=found.metrics, training={**UNTRAINED, **found.record}, arrays=found.arrays)


class _Data:
    """Prepared rows, each kept once: methods share their splits, configurations their folds."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._prepared: dict[Hashable, Prepared] = {}

    def of(self, job: Job, fold: int | None = None) -> Prepared:
        """Return the rows of a job, or of one fold of its search."""
        place = (job.place, fold)
        if place not in self._prepared:
            held = (
                None
                if fold is None
                else search_folds(len(job.split.train_x), job.protocol, job.seed, job.split.blocks)[fold]
            )
            self._prepared[place] = prepare(job.split, job.protocol, job.seed, self._device, held)
        return self._prepared[place]

    def of_part(self, job: Job, fold: int | None) -> Prepared:
        """Return the rows of a job, or of one fold of its wrapper."""
        if fold is None or job.wrapper is None:
            return self.of(job)
        place = (job.place, job.wrapper.folds, fold)
        if place not in self._prepared:
            held = calibration_folds(
                len(job.split.train_x), job.protocol, job.seed, job.wrapper.folds, job.split.blocks
            )[fold]
            self._prepared[place] = prepare(job.split, job.protocol, job.seed, self._device, held)
        return self._prepared[place]


def _searched(jobs: Sequence[Job], data: _Data, limits: Limits) -> Iterator[tuple[int, JobEvent]]:
    """Train all configurations on all folds, once for those that train alike; give every job what won."""
    groups: dict[Hashable, list[int]] = {}
    for number, job in enumerate(jobs):
        if job.selection is None and _needs_search(job):
            kind, _ = training_form(job.method)
            # Methods that train alike may draw differently: then each is judged by itself.
            judged: Hashable = kind if job.protocol.search_by == "loss" else (kind, job.plugin, repr(job.method))
            groups.setdefault((job.place, judged, repr(job.space)), []).append(number)
    members: list[Member] = []
    places: list[tuple[Hashable, int, int]] = []
    losses: dict[Hashable, list[list[float]]] = {}
    epochs: dict[Hashable, list[list[int]]] = {}
    best: dict[Hashable, list[list[int]]] = {}
    left: Counter[Hashable] = Counter()
    for group, numbers in groups.items():
        job = jobs[numbers[0]]
        tried, count = job.configurations(), job.protocol.folds
        losses[group] = [[math.inf] * count for _ in tried]
        epochs[group], best[group] = ([[0] * count for _ in tried] for _ in range(2))
        left[group] = len(tried) * count
        for c, configuration in enumerate(tried):
            method, training = configuration.applied(job.method, job.protocol.training)
            _, form = training_form(method)
            for fold in range(count):
                seed = stream(job.seed, "fold", fold)
                member = _member(job, form, training, data.of(job, fold), seed, job.search_network)
                team = Team((group, c), count) if job.protocol.stop_together else None
                members.append(replace(member, team=team))
                places.append((group, c, fold))
    for item in fit_with_progress(members, limits):
        if isinstance(item, Progress):
            yield 0, item
            continue
        (group, c, fold), fitted = places[item[0]], item[1]
        job = jobs[groups[group][0]]
        losses[group][c][fold] = _held_out_score(job, c, members[item[0]], fitted, data.of(job, fold), limits)
        epochs[group][c][fold], best[group][c][fold] = fitted.epochs, fitted.best_epoch
        left[group] -= 1
        if not left[group]:
            found = (losses[group], epochs[group], best[group])
            selection = Selection(job.configurations(), *found, criterion=job.protocol.search_by)
            for number in groups[group]:
                jobs[number].selection = selection
                yield number, selection


def _needs_search(job: Job) -> bool:
    """Return whether there is a choice, or a number of epochs to find."""
    count = len(job.configurations())
    return count > 1 or (count == 1 and job.protocol.refit and job.protocol.training.patience > 0)


def _held_out_score(
    job: Job, configuration: int, member: Member, fitted: Fitted, data: Prepared, limits: Limits
) -> float:
    """Return how bad a configuration is on the held-out rows of a fold, by the criterion of the protocol."""
    criterion = job.protocol.search_by
    if criterion == "loss":
        return held_out_loss(member, fitted)
    if fitted.status != "ok":
        return math.inf
    method, _ = job.configurations()[configuration].applied(job.method, job.protocol.training)
    network = finish(replace(member, method=method), fitted)
    predictor = Networks(method, [network], job.split.task, limits)
    subject = TrainedSubject(method, job.search_network, job.protocol, job.split, member.seed, data, predictor)
    return held_out_value(subject, criterion)


def _chosen(job: Job) -> tuple[Method, Training]:
    """Return method and training as the search left them."""
    given = next(iter(job.configurations()), None)  # at most one, or there would be a selection
    chosen = job.selection.chosen if job.selection is not None else given
    method, training = (
        chosen.applied(job.method, job.protocol.training) if chosen else (job.method, job.protocol.training)
    )
    if job.protocol.refit:
        epochs = training.epochs if job.selection is None else job.selection.epochs_to_refit
        epochs = max(1, epochs - job.protocol.refit_less)
        training = replace(training, epochs=epochs, patience=0)
    return method, training


def _trained(jobs: Sequence[Job], data: _Data, limits: Limits) -> Iterator[tuple[int, JobEvent]]:
    members: dict[Hashable, Member] = {}
    waiting: dict[Hashable, list[tuple[int, Place]]] = {}  # a training, and the (job, network) that wait for it
    networks: dict[int, int] = {}
    for number, job in enumerate(jobs):
        if outcome := job.nothing_chosen():
            yield number, outcome
            continue
        method, training = _chosen(job)
        kind, form = training_form(method)
        networks[number] = len(job.networks(method))
        for own in job.networks(method):
            place = (job.place, kind, repr(training), own, own[0] is not None and networks[number])
            if place not in members:
                member = _member(job, form, training, data.of_part(job, own[0]), _network_seed(job, own))
                name = _file_of(job, method, training, own)
                checkpoint, kept_as = (f"{at}/{name}" if at else "" for at in (job.checkpoints, job.kept_networks))
                members[place] = replace(member, checkpoint=checkpoint, kept_as=kept_as)
            waiting.setdefault(place, []).append((number, own))
    trainings = list(members)
    for item in fit_unless_kept([members[t] for t in trainings], limits, fit_with_progress):
        if isinstance(item, Progress):
            yield 0, item
            continue
        for number, own in waiting[trainings[item[0]]]:
            job = jobs[number]
            job.fitted[own] = item[1]
            if len(job.fitted) == networks[number]:
                yield number, _judged(job, data, limits)
                job.fitted.clear()


def _file_of(job: Job, method: Method, training: Training, place: Place) -> str:
    """Return the file name of a training that may be long: the same for all methods that share the training."""
    kind, form = training_form(method)
    plugin = job.plugin if form is method else ""
    own = place[1] if job.wrapper is None or place[0] is None else f"{place} of {job.wrapper.folds} folds"
    return name_of(plugin, kind, training, own)


def _network_seed(job: Job, place: Place) -> int:
    fold, k = place
    seed = job.seed if fold is None else stream(job.seed, "calibration", fold)
    return seed if k == 0 else stream(seed, "network", k)


def _member(
    job: Job, method: Method, training: Training, data: Prepared, seed: int, network: Network | None = None
) -> Member:
    problem, network = job.split.problem, network or job.network
    new_network = network_factory(network, problem)
    return Member(method, problem, new_network, repr(network), training, data.rows, seed, job.form)


def _judged(job: Job, data: _Data, limits: Limits) -> Outcome:
    """Let the method finish its networks, draw from them and score the draws; an error fails this cell alone."""
    try:
        method, training = _chosen(job)
        places = job.networks(method)
        record = training_record(job, [job.fitted[place] for place in places])
        lost = [place for place in places if job.fitted[place].status == "diverged"]
        if lost:
            return Outcome("diverged", _divergence(job, data, lost[0]), training=record)
        networks = [_finished(job, method, training, data, place) for place in places]
        whole = data.of(job)
        try:
            predictor, doubts = _predictor(job, method, networks, data, limits)
            subject = TrainedSubject(
                method, job.network, job.protocol, job.split, job.seed, whole, predictor, job.requested, job.keep
            )
            found = job.probe.measure(subject)
        except DivergedError as error:
            return Outcome("diverged", str(error), training=record)
        seen = {f"inspect/{name}": t.numpy(force=True) for name, t in method.inspect(networks[0]).items()}
        arrays = {**found.arrays, **seen, **loss_history(networks)}
        doubts = "; ".join([*doubts, *found.doubts])
        metrics = {**found.metrics, **job.search_metrics()}
        about, kept = {**record, **found.record}, predictions_of(job, found)
        return Outcome("ok", doubts, metrics=metrics, training=about, arrays=arrays, predictions=kept)
    except BaseException as error:  # of any type, such as sys.exit
        raise_if_stop(error)
        return Outcome("failed", error_text(error))


def _finished(job: Job, method: Method, training: Training, data: _Data, place: Place) -> Fitted:
    member = _member(job, method, training, data.of_part(job, place[0]), _network_seed(job, place))
    if job.wrapper is not None:
        member = replace(member, rows=rows_for_inner(member.rows))
    return finish(member, job.fitted[place])


def _predictor(
    job: Job, method: Method, networks: Sequence[Fitted], data: _Data, limits: Limits
) -> tuple[Predictor, Sequence[str]]:
    """Return the predictor of a job, calibrated if it has a wrapper, and what readers of its results should know."""
    if job.wrapper is None:
        return Networks(method, networks, job.split.task, limits), ()
    each = method.networks
    parts = [
        Part(Networks(method, networks[k * each :][:each], job.split.task, limits), data.of_part(job, fold))
        for k, fold in enumerate(job.folds)
    ]
    predictor = calibrated(job, parts, data.of(job))
    return predictor, predictor.doubts


def _divergence(job: Job, data: _Data, place: Place) -> str:
    """Return where the training of a network came upon a value that is not finite."""
    method, training = _chosen(job)
    fold, k = place
    network = job.fitted[place]
    which = f"network {k}" if method.networks > 1 else "the network"
    which += "" if fold is None else f" of fold {fold}"
    message = f"the loss of {which} was not finite in epoch {network.epochs}"
    _, form = training_form(method)
    member = _member(job, form, training, data.of_part(job, fold), _network_seed(job, place))
    found = first_not_finite(member, network)
    return f"{message}; first not finite: {found}" if found else message
