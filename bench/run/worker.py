"""The worker's side of a run, in whichever process: cells are rebuilt from their specifications and computed.

A specification holds everything, so an order is plain data, and a worker on another machine rebuilds what it needs from
its own plug-ins and files. What it rebuilds must be what the driver meant: other rows or another plug-in fail the cell
with one line, they never give numbers under the wrong key.
"""

import hashlib
import json
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench.api import Dataset, Split, Wrapper
from bench.errors import UserError, raise_if_stop
from bench.machine.environment import facts
from bench.metrics import Metric, catalogue, using_metrics
from bench.metrics.requests import requested_metrics, scored_by
from bench.plan.cells import checked, device_of, fingerprint
from bench.plugins.faults import explain
from bench.plugins.kinds import Kind
from bench.plugins.registry import Registry
from bench.run.job import Job, JobEvent, error_text, until_error
from bench.run.jobs import run_jobs
from bench.spec.cell import Outcome
from bench.spec.keep import PREDICTIONS, Keep
from bench.spec.plugin import PluginSpec
from bench.spec.spec import HARNESS, ON_REQUEST, CellSpec, read_spec
from bench.training import checkpoints, stored_networks
from bench.training.forms import read_form
from bench.training.limits import Limits
from bench.training.search import Selection


@dataclass(frozen=True)
class PluginFile:
    """A plug-in file of the user's, with its content: a worker may not see the driver's disk."""

    path: str
    content: bytes


@dataclass(frozen=True)
class WorkItem:
    """One cell to be computed: its key, its specification, and its search as JSON where that was done before."""

    key: str
    spec: str
    search: str = ""
    form: str = ""  # of its training, where a recorded one is repeated


@dataclass(frozen=True)
class WorkOrder:
    """Cells that one worker computes together: plain data."""

    number: int
    items: tuple[WorkItem, ...]
    plugins: tuple[PluginFile, ...] = ()
    device: str = "cpu"
    limits: Limits = Limits()
    time_limit: float | None = None  # seconds, for cells that are computed apart (see bench.run.apart)
    keep: Keep = PREDICTIONS


@dataclass(frozen=True)
class Message:
    """What a worker reports while it works on an order."""

    order: int
    key: str  # of the cell; empty where it is about the order
    content: JobEvent


def run_order(order: WorkOrder) -> Iterator[Message]:
    """Compute the cells of an order; report each outcome as it ends, and searches and progress before it."""
    messages = _messages(order)
    try:
        metrics: Mapping[str, Metric] = _registry(order.plugins).metrics
    except BaseException as error:  # reported by every cell
        raise_if_stop(error)
        metrics = catalogue()
    left = [item.key for item in order.items]
    try:
        raised = yield from until_error(_stepwise(messages, metrics, left))
    finally:
        messages.close()
    text = "no outcome was computed" if raised is None else error_text(raised)
    for key in left:
        yield Message(order.number, key, Outcome("failed", text))


def _stepwise(messages: Iterator[Message], metrics: Mapping[str, Metric], left: list[str]) -> Iterator[Message]:
    """Yield the messages, each made with these metrics; keys of cells that have an outcome are removed from `left`.

    Step by step: whoever receives the messages may be another run in this process.
    """
    while True:
        with using_metrics(metrics):
            message = next(messages, None)
        if message is None:
            return
        if isinstance(message.content, Outcome):
            left.remove(message.key)
        yield message


def why_not(order: WorkOrder) -> str:
    """Return why this worker cannot rebuild the cells of an order, in one line; empty: it can."""
    try:
        for item in order.items:
            _job(item, order.plugins, order.device)
    except BaseException as error:  # whatever a plug-in or a file of this worker raises
        raise_if_stop(error)
        return explain(error).partition("\n")[0]
    return ""


def _messages(order: WorkOrder) -> Generator[Message, None, None]:
    environment = _facts(order.device)
    jobs: dict[str, Job] = {}
    shares = _Shares(item.key for item in order.items)

    def ended(key: str, outcome: Outcome) -> Message:
        if outcome.status != "failed":
            outcome = replace(outcome, training={**outcome.training, **jobs[key].repeats_record()})
        return Message(order.number, key, replace(outcome, environment=environment, timing=shares.close(key)))

    for item in order.items:
        try:
            jobs[item.key] = replace(_job(item, order.plugins, order.device), keep=order.keep)
        except BaseException as error:  # a plug-in's or a file's fault is its own cell's
            raise_if_stop(error)
            yield ended(item.key, Outcome("failed", error_text(error)))
    keys = list(jobs)
    for number, event in run_jobs(list(jobs.values()), order.device, order.limits):
        if isinstance(event, Outcome):
            yield ended(keys[number], event)
        else:
            yield Message(order.number, keys[number] if isinstance(event, Selection) else "", event)


class _Shares:
    """Shares the time that passes among the cells that have no outcome yet."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._used = dict.fromkeys(keys, (0.0, 0.0))
        self._last = (time.perf_counter(), time.process_time())

    def close(self, key: str) -> dict[str, float]:
        """Return the share of a cell that ended now."""
        now = (time.perf_counter(), time.process_time())
        wall, cpu = ((b - a) / len(self._used) for a, b in zip(self._last, now, strict=True))
        self._used = {open_key: (w + wall, c + cpu) for open_key, (w, c) in self._used.items()}
        self._last = now
        seconds, cpu_seconds = self._used.pop(key)
        return {"seconds": seconds, "cpu_seconds": cpu_seconds}


@lru_cache(maxsize=4)
def _facts(device: str) -> dict[str, Any]:
    return facts(device)


def _job(item: WorkItem, plugins: tuple[PluginFile, ...], device: str) -> Job:
    """Rebuild a cell from its specification; raises if this worker would compute another one."""
    spec = read_spec(item.spec)
    if spec.harness != HARNESS:
        raise UserError(f"this worker's uqbench gives numbers of version {HARNESS}, the cell needs {spec.harness}")
    dataset, own_dataset = _plugin("dataset", spec.dataset, plugins)
    method, own_method = _plugin("method", spec.method, plugins)
    _, own_network = _plugin("network", spec.protocol.network, plugins)
    kind = device_of(_registry(plugins).inner(method), device)
    if kind != spec.device:
        raise UserError(f"this worker computes on {kind}, and the cell is one of --device {spec.device}")
    split, data = _split(dataset, spec, plugins)
    if data != spec.data:
        raise UserError(
            f"this worker's dataset {spec.dataset.name!r} has other rows than the driver's; "
            "compare 'uqbench data verify' on both"
        )
    # Built anew from what this worker has: a field that was not rebuilt here must not be taken as the driver meant it.
    own = CellSpec(
        dataset=own_dataset,
        data=data,
        method=own_method,
        protocol=replace(spec.protocol, network=own_network),
        space=spec.space,
        metrics=_metrics(spec, plugins),
        split=spec.split,
        seed=spec.seed,
        harness=HARNESS,
        device=kind,
    )
    if own != spec:
        raise UserError(f"this worker would run another cell: {own.text}; the driver wants {spec.text}")
    wrapper, trained = None, own_method
    if isinstance(method, Wrapper):
        wrapper, trained, method = method, method.method, _registry(plugins).inner(method)
    plugin = json.dumps([trained.name, trained.origin, trained.version])
    selection = Selection.from_json(item.search) if item.search else None
    about = (data, plugin, checkpoints.place_of(spec), stored_networks.place_of(spec), spec.space, selection)
    there = {
        "registry": _registry(plugins),
        "wrapper": wrapper,
        "repeats": dataset.repeats,
        "form": read_form(item.form),
        "requested": requested_metrics(spec.metrics, _registry(plugins).metrics),
    }
    return Job(method, spec.protocol, split, spec.seed, *about, **there)


def _metrics(spec: CellSpec, plugins: tuple[PluginFile, ...]) -> dict[str, str]:
    """Return by which metrics this worker would score the cell; raises if they are not those of its specification."""
    registry = _registry(plugins)
    own = scored_by(spec.metrics, registry.metrics, registry.metric_hashes)
    if own == spec.metrics:
        return own
    names = sorted(name for name in {*own, *spec.metrics} if own.get(name) != spec.metrics.get(name))
    lacks = [name for name in names if name in spec.metrics]
    need = "give the file with --plugin, unchanged" if lacks else "leave out the file that declares it"
    if any(spec.metrics.get(name) == ON_REQUEST for name in names):
        need = "it needs a newer uqbench"
    raise UserError(f"this worker has other metrics than the cell is scored by ({', '.join(names)}); {need}")


def _plugin(kind: Kind, wanted: PluginSpec, plugins: tuple[PluginFile, ...]) -> tuple[Any, PluginSpec]:
    """Return this worker's plug-in and its specification; raises if it is not the one that the driver wants."""
    registry = _registry(plugins)
    plugin = registry.make(kind, wanted.name, wanted.options)
    own = registry.spec(kind, wanted.name, plugin)
    if own != wanted:
        raise UserError(f"this worker has another {kind} {wanted.name!r}: {own}; the driver wants {wanted}")
    return plugin, own


@lru_cache(maxsize=2)
def _registry(plugins: tuple[PluginFile, ...]) -> Registry:
    """Return the plug-ins, with the user's files as the driver read them."""
    return Registry([_file(plugin) for plugin in plugins])


def _file(plugin: PluginFile) -> Path:
    """Return where this process can import a file from: its own place if it is there unchanged, else a copy."""
    path = Path(plugin.path)
    if path.is_file() and path.read_bytes() == plugin.content:
        return path
    copy = Path(_folder().name) / hashlib.blake2b(plugin.content, digest_size=8).hexdigest() / path.name
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(plugin.content)
    return copy


@lru_cache(maxsize=1)
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="uqbench-plugins-")  # removed when the process ends


BYTES_OF_SPLITS_KEPT = 2**28
_loaded: dict[tuple[str, tuple[PluginFile, ...], int], tuple[Split, str]] = {}


def _split(dataset: Dataset, spec: CellSpec, plugins: tuple[PluginFile, ...]) -> tuple[Split, str]:
    """Return one split and its fingerprint; what was loaded last is kept, the cells of a split follow each other."""
    place = (repr(spec.dataset), plugins, spec.split)
    if place not in _loaded:
        if sum(_bytes(split) for split, _ in _loaded.values()) > BYTES_OF_SPLITS_KEPT:
            _loaded.clear()
        split = checked(dataset.load(spec.split))
        _loaded[place] = (split, fingerprint(split))
    return _loaded[place]


def _bytes(split: Split) -> int:
    return sum(array.nbytes for array in (split.train_x, split.train_y, split.test_x, split.test_y))
