"""A job: one cell in memory, ready to run, and what becomes known of it."""

import math
import traceback
from collections.abc import Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from bench.api import Array, Method, Network, Replication, Split, Wrapper
from bench.errors import raise_if_stop
from bench.metrics import score
from bench.metrics.kept import pack
from bench.plugins.faults import explain
from bench.plugins.registry import Registry
from bench.probes import make_probe
from bench.probes.base import DivergedError, Finding, Probe, TrainedSubject
from bench.probes.score import held_out_forecast
from bench.spec.cell import Outcome
from bench.spec.keep import MOMENTS, Keep
from bench.spec.protocol import Protocol
from bench.training.forms import Form, form_that_pays
from bench.training.member import Fitted
from bench.training.predictors import NotFiniteError
from bench.training.progress import Progress
from bench.training.rows import Prepared
from bench.training.search import Configuration, Selection, configurations
from bench.training.validation import validates_squared_error
from bench.training.wrapped import Calibrated, Part, calibrate

UNTRAINED = {"epochs": [0], "train_loss": [None], "validation_loss": [None]}  # the record of a cell without networks


Place = tuple[int | None, int]  # of a network in its cell: the fold of its wrapper, if that has any, and a number


@dataclass(eq=False)
class Job:
    """One cell, ready to run."""

    method: Any  # a Method or an Estimator; of a wrapper the inner one
    protocol: Protocol
    split: Split
    seed: int
    data: str = ""  # the fingerprint of the split
    plugin: str = ""  # name, origin and version of the method
    checkpoints: str = ""  # the folder of its trainings below that of all checkpoints; none: they are not kept
    kept_networks: str = ""  # the folder of its networks below that of all that are kept; none: they are not
    space: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # options of the method that are searched
    selection: Selection | None = None  # the search, once it is done
    requested: frozenset[str] = frozenset()  # the metrics on request that its suite names
    fitted: dict[Place, Fitted] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)  # where its network is found
    wrapper: Wrapper | None = None  # around the method
    form: Form | None = None  # of its training, where it is computed again; None: the one that pays
    keep: Keep = MOMENTS  # what is kept of its predictions; changes no value
    repeats: Replication | None = None  # what the dataset declares of its splits; None: nothing is recorded
    network: Network = field(init=False)
    search_network: Network = field(init=False)  # of its search, which may differ from the network in some options
    probe: Probe = field(init=False)

    def __post_init__(self) -> None:
        kind, options = self.protocol.network.name, self.protocol.network.options
        self.network = self.registry.make("network", kind, options)
        self.search_network = self.registry.make("network", kind, {**options, **self.protocol.search_network})
        self.probe = make_probe(self.protocol.probe)
        if self.form is None and not self.method.alone:
            self.form = self._form_that_pays()

    def _form_that_pays(self) -> Form:
        """Return the form for all networks of the cell, also those of its search: judged by its slowest learner.

        It depends on what cells that share trainings have in common.
        """
        training = self.protocol.training
        slowest = min(self.protocol.grid.get("learning_rate", [training.learning_rate]))
        steps = max(1, len(self.split.train_x) // training.batch)
        return form_that_pays(replace(training, learning_rate=slowest), steps, self.method.early_stopping)

    @property
    def place(self) -> Hashable:
        """What jobs must share to train on the same rows in the same way."""
        return (self.data or id(self.split), self.seed, repr(self.protocol))

    @property
    def folds(self) -> list[int | None]:
        """The folds on which its method is trained: those of its wrapper, or None for all training rows."""
        return list(range(self.wrapper.folds)) if self.wrapper is not None and self.wrapper.folds else [None]

    def networks(self, method: Method) -> list[Place]:
        """Return the places of the networks to train."""
        return [(fold, k) for fold in self.folds for k in range(method.networks)]

    def configurations(self) -> list[Configuration]:
        """Return what its search tries; one alone is taken without a trial."""
        return configurations(self.protocol.search, self.protocol.grid, self.space, self.seed)

    def repeats_record(self) -> dict[str, Any]:
        """Return the part of the stored record that says how the repeats of its dataset are related."""
        if self.repeats is None:
            return {}
        record = {"kind": self.repeats, "test_share": self.split.test_share}
        return {"repeats": record if self.split.count is None else {**record, "splits": self.split.count}}

    def search_record(self) -> dict[str, Any]:
        """Return the part of the stored record that is about the search, if there was one."""
        if self.selection is not None:
            return {"search": self.selection.record()}
        given = self.configurations()
        return {"search": {"chosen": {**given[0].training, **given[0].method}, "configurations": 1}} if given else {}

    def search_metrics(self) -> dict[str, float]:
        """Return what the search has measured, where its losses are squared errors of standardised targets."""
        protocol = self.protocol
        if self.selection is None or protocol.search_by != "loss" or not protocol.scale_targets:
            return {}
        squared = self.method.alone or validates_squared_error(self.method, protocol.training)
        best = self.selection.best
        if best is None or self.split.task != "regression" or not squared:
            return {}
        return {"cv_mse": self.selection.means[best]}

    def nothing_chosen(self) -> Outcome | None:
        """Return the outcome of a search that found no usable configuration, or None."""
        if self.selection is None or self.selection.chosen is not None:
            return None
        message = "no configuration of the search had a finite validation loss on every fold"
        return Outcome("diverged", message, training={"search": self.selection.record()})


JobEvent = Outcome | Selection | Progress  # what becomes known of a job; progress is about all of them


def held_out_value(subject: TrainedSubject, criterion: str) -> float:
    """Return how bad the predictions at the validation rows are: infinite where they are of no use.

    The criterion is `search_by` of the protocol; its loss is that of the mean prediction.
    """
    classes = subject.split.task == "classification"
    loss = "nll_categorical" if classes else "rmse"
    # With the observation noise: a method that states no spread has none of these scores without it.
    of_noise = {"loss": loss, "nll": "nll_categorical" if classes else "nll", "crps": "crps_noise"}
    name = of_noise.get(criterion, criterion)
    try:
        value = score(held_out_forecast(subject), [name]).get(name, math.inf)
    except DivergedError:
        return math.inf
    if criterion == "loss" and not classes:
        value = (value / subject.data.target_std) ** 2  # the squared error in training units
    return value if math.isfinite(value) else math.inf


def calibrated(job: Job, parts: Sequence[Part], whole: Prepared) -> Calibrated:
    """Return the calibrated wrapper of a job, whose inner method was trained once for each part."""
    assert job.wrapper is not None
    try:
        return calibrate(job.wrapper, parts, whole, job.split, job.protocol.draws, job.seed)
    except NotFiniteError as error:
        raise DivergedError("a prediction at the calibration rows was not finite", str(error)) from None


def predictions_of(job: Job, found: Finding) -> bytes:
    """Return the predictions of a finding as the content of an array file; empty where none are kept."""
    if found.kept is None:
        return b""
    return pack(found.kept, job.keep.precision, found.metrics) or b""


def loss_history(networks: Sequence[Fitted]) -> dict[str, Array]:
    """Return the losses of every epoch, `[networks, epochs]`; NaN after the last one of a network."""
    losses_of = np.full((2, len(networks), max(n.epochs for n in networks)), np.nan, dtype=np.float32)
    for k, network in enumerate(networks):
        losses_of[:, k, : network.epochs] = np.asarray(network.history, dtype=np.float32).T
    names = {"history/train_loss": losses_of[0], "history/validation_loss": losses_of[1]}
    return {name: losses for name, losses in names.items() if not np.isnan(losses).all()}


def training_record(job: Job, networks: Sequence[Fitted]) -> Mapping[str, Any]:
    """Return what is stored of the training of a cell's networks."""
    finite = [n.train_loss if math.isfinite(n.train_loss) else None for n in networks]
    kept = sum(n.stored for n in networks)
    return (
        job.search_record()
        | ({"stored_networks": kept} if kept else {})
        | {
            "epochs": [n.epochs for n in networks],
            "train_loss": finite,
            "validation_loss": [n.validation_loss for n in networks],
            "form": str(networks[0].form),
        }
    )


def error_text(error: BaseException) -> str:
    """Return the reason in one line, then the traceback."""
    return "\n".join([explain(error), "", "".join(traceback.format_exception(error))])


Event = TypeVar("Event")


def until_error(events: Iterator[Event]) -> Generator[Event, None, BaseException | None]:
    """Yield what plug-in code yields; return what it raised, of any type, or None if it came to its end."""
    while True:
        try:
            event = next(events)
        except StopIteration:
            return None
        except BaseException as error:
            raise_if_stop(error)
            return error
        yield event
