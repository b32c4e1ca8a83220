"""From a suite to cells: one (dataset, split, method, options, seed) each, with a key that names its result.

A key is a hash of everything that can change the numbers: plug-in names, versions and options, the data itself, the
protocol, the seed and the harness. A plug-in that is still a file on the command line is known by its content. So is a
metric in such a file: it changes no other number, but a cell that was stored without it, or with an earlier form of it,
is not the cell that is wanted. Two suites that contain the same cell share it.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from bench.api import BaseMethod, Dataset, Network, Split, Wrapper
from bench.errors import UserError, raise_if_stop
from bench.metrics import group_names
from bench.metrics.requests import scored_by
from bench.plan.sizes import check_cell, check_network, check_plan
from bench.plan.suite import Suite
from bench.plugins.building import PluginError
from bench.plugins.faults import explain
from bench.plugins.kinds import Kind
from bench.plugins.registry import Registry
from bench.plugins.wrapping import given_options, with_option
from bench.probes import make_probe
from bench.spec.cell import Cell
from bench.spec.protocol import Protocol, Training
from bench.spec.replication import check_replication
from bench.spec.spec import HARNESS, CellSpec


@dataclass(frozen=True, eq=False)
class Task:
    """The cells of one dataset and one method: what is trained together."""

    dataset: str
    method: str
    plugin: Any  # a Method or an Estimator: what is trained
    network: Network
    protocol: Protocol
    splits: tuple[Split, ...]
    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()  # what readers should know about the data
    wrapper: Wrapper | None = None  # around the plug-in

    @property
    def about(self) -> str:
        """What was read, in one line, where the dataset says so."""
        text = self.splits[0].about
        return f"{self.dataset}: {text}" if text and ":" not in self.dataset else text  # an address names its file


@dataclass(frozen=True)
class Refused:
    """A dataset, or a method on a dataset, that cannot run here, and why."""

    dataset: str
    method: str
    reason: str
    fault: bool  # an error, rather than a method or dataset that is not meant for this
    cells: int  # how many there would be


Planned = Task | Refused


def plan(suite: Suite, registry: Registry, device: str = "cpu") -> Iterator[Planned]:
    """Yield the tasks of a suite, dataset by dataset, so that one dataset's arrays are held at a time.

    Cells are computed on a device of this kind.
    """
    check_plan(suite)
    methods: dict[str, BaseMethod | PluginError] = {}
    for name, method_entry in suite.methods.items():
        plugin, where = method_entry.use or name, f"{suite.where}: methods.{name}"
        _refuse_borrowed_name(registry, "method", name, plugin, where)
        try:
            methods[name] = registry.make("method", plugin, method_entry.options, where)
            for option, values in method_entry.space.items():
                for value in values:
                    given = with_option(methods[name], method_entry.options, option, value)
                    registry.make("method", plugin, given, f"{where}: grid")
        except PluginError as error:
            methods[name] = error
    datasets: dict[str, Dataset | PluginError] = {}
    for name, entry in suite.datasets.items():
        try:
            where = f"{suite.where}: datasets.{name}"
            _refuse_borrowed_name(registry, "dataset", name, entry.use or name, where)
            datasets[name] = registry.make("dataset", entry.use or name, entry.options, where)
        except PluginError as error:
            datasets[name] = error
    for name, label in product(datasets, ("", *methods)):
        with suppress(PluginError):  # it refuses its cells
            make_network(suite, registry, name, label)
    # All options are checked by now, before the first training starts.
    for name, dataset in datasets.items():
        yield from _plan_dataset(suite, registry, name, dataset, methods, device)


def _refuse_borrowed_name(registry: Registry, kind: Kind, name: str, used: str, where: str) -> None:
    """Raise where a plug-in would stand in all results under the name of another one."""
    if used != name and name in registry.plugins(kind):
        raise UserError(f"{where}: uses {used!r} under the name of another {kind}; give it a name of its own")


def _plan_dataset(
    suite: Suite,
    registry: Registry,
    name: str,
    dataset: Dataset | PluginError,
    methods: dict[str, BaseMethod | PluginError],
    device: str,
) -> Iterator[Planned]:
    seeds = suite.seeds_of(name)
    whole = len(methods) * seeds
    if isinstance(dataset, PluginError):
        yield Refused(name, "", str(dataset), fault=True, cells=whole)
        return
    protocol = suite.protocol_for(name)
    try:
        if reason := dataset.skip():
            yield Refused(name, "", reason, fault=False, cells=whole)
            return
        check_replication(dataset.repeats)
        numbers = [split_of(suite, dataset, seed) for seed in range(seeds)]
        loaded = {number: checked(dataset.load(number)) for number in dict.fromkeys(numbers)}
        splits = tuple(loaded[number] for number in numbers)
        seen: dict[int, str] = {}
        prints = {number: fingerprint(split, seen) for number, split in loaded.items()}
        _check_protocol(protocol, make_network(suite, registry, name), splits[0])
        probe = make_probe(protocol.probe)
        for split in loaded.values():
            probe.check(split)
    except GeneratorExit:  # nobody wants the rest of the plan
        raise
    except BaseException as error:  # a dataset's own mistake, of any type, must not end the others
        raise_if_stop(error)
        yield Refused(name, "", explain(error), fault=True, cells=whole)
        return
    for label, method in methods.items():
        if isinstance(method, PluginError):
            yield Refused(name, label, str(method), fault=True, cells=seeds)
            continue
        try:
            inner = registry.inner(method)
            if reason := method.skip(splits[0].problem) or inner.skip(splits[0].problem):
                yield Refused(name, label, reason, fault=False, cells=seeds)
                continue
            _check_changes(suite, label, inner)
            network = make_network(suite, registry, name, label)
            _check_protocol(suite.protocol_for(name, label), network, splits[0])
            wrapper = method if isinstance(method, Wrapper) else None
            if wrapper is not None:
                _check_wrapper(suite.protocol_for(name, label), wrapper, len(splits[0].train_x))
            for split in loaded.values():
                _check_blocks(suite.protocol_for(name, label), wrapper, split)
            specs = [
                build_spec(suite, registry, (name, dataset), (label, method), prints[number], seed, device)
                for seed, number in enumerate(numbers)
            ]
            check_cell(specs[0], inner, network, splits[0])
            cells = tuple(Cell.of(spec, name, label) for spec in specs)
        except GeneratorExit:
            raise
        except BaseException as error:  # the same for a method: its `skip`, or options that are not plain data
            raise_if_stop(error)
            yield Refused(name, label, explain(error), fault=True, cells=seeds)
            continue
        protocol = specs[0].protocol  # with its network completed
        yield Task(name, label, inner, network, protocol, splits, cells, tuple(dataset.notes), wrapper)


def split_of(suite: Suite, dataset: Dataset, seed: int) -> int:
    """Return the number of the split that a seed is run on: its own, or one of the suite's `splits` in turn.

    No seed is used on two splits: what an initialisation does to all splits alike would look like a difference between
    methods. Splits that all have the same rows are not shared.
    """
    return seed if suite.splits is None or dataset.repeats == "seeds" else seed % suite.splits


def _check_protocol(protocol: Protocol, network: Network, split: Split) -> None:
    """Raise if a network, a training or a search does not fit the data."""
    if reason := network.skip(split.problem):
        raise UserError(f"network {protocol.network.name!r} {reason}")
    if protocol.training.augmentation != "none" and len(split.problem.inputs) != 3:
        raise UserError(f"training.augmentation is for images, not for rows of {split.problem.inputs}")
    by = protocol.search_by
    if protocol.search != "none" and by in ("crps", "nll_mixture") and split.task == "classification":
        raise UserError(f'search_by = "{by}" is for regression; classes can be searched by "nll" or "loss"')


def _check_blocks(protocol: Protocol, wrapper: Wrapper | None, split: Split) -> None:
    """Raise if the training rows have too few groups, or moments, for what is held out of them."""
    if split.blocks is None:
        return
    from bench.training.rows import calibration_folds, held_out, search_folds  # they need torch

    rows = len(split.train_x)
    held_out(rows, protocol, 0, split.blocks)
    if protocol.search != "none":
        search_folds(rows, protocol, 0, split.blocks)
    if wrapper is not None and wrapper.folds:
        calibration_folds(rows, protocol, 0, wrapper.folds, split.blocks)


def _check_changes(suite: Suite, label: str, method: BaseMethod) -> None:
    """Raise if a suite changes the training of a method that trains in its own way."""
    changed = sorted({"training", "grid"} & suite.methods[label].changes.keys()) if method.alone else []
    if changed:
        raise UserError(
            f"{suite.where}: methods.{label}.{changed[0]}: an estimator trains in its own way; give its options, or a "
            "grid of them"
        )


def _check_wrapper(protocol: Protocol, wrapper: Wrapper, rows: int) -> None:
    """Raise if a wrapper would have no rows to calibrate on."""
    if not 0 <= wrapper.folds <= rows or wrapper.folds == 1:
        raise UserError(f"folds: expected 0, or from 2 to {rows} (the training rows), got {wrapper.folds}")
    if wrapper.folds and make_probe(protocol.probe).together:
        raise UserError(
            f"this probe times one inner method, the wrapper has {wrapper.folds}; leave it out of the suite"
        )
    held = protocol.calibration or (protocol.validation and not protocol.refit)
    if not wrapper.folds and not held:
        raise UserError("calibration: a wrapper needs rows that do not train; give calibration a share, such as 0.2")


def make_network(suite: Suite, registry: Registry, dataset: str, method: str = "") -> Network:
    """Return the network of a dataset, as a method changes it; raises for a name or an option that does not exist."""
    wanted = suite.protocol_for(dataset, method).network
    places = [f"methods.{method}: "] if method and "network" in suite.methods[method].changes else []
    places += [f"datasets.{dataset}: "] if "network" in suite.datasets[dataset].changes else []
    where = f"{suite.where}: {places[0] if places else ''}network"
    network: Network = registry.make("network", wanted.name, wanted.options, where)
    check_network(network, where)
    if changed := suite.protocol_for(dataset, method).search_network:
        where = f"{suite.where}: search_network"
        check_network(registry.make("network", wanted.name, {**wanted.options, **changed}, where), where)
    return network


def build_spec(
    suite: Suite,
    registry: Registry,
    dataset: tuple[str, Dataset],
    method: tuple[str, BaseMethod],
    data: str,
    seed: int,
    device: str = "cpu",
) -> CellSpec:
    """Return the specification of a cell of a suite, computed on a device of this kind.

    Dataset and method are the names they have in the suite with the plug-ins; `data` is the fingerprint of the split.
    """
    entry, trained = suite.methods[method[0]], registry.inner(method[1])
    protocol = _protocol_of(trained, suite.protocol_for(dataset[0], method[0]))
    network = make_network(suite, registry, dataset[0], method[0])
    protocol = replace(protocol, network=registry.spec("network", protocol.network.name, network))
    # What the suite gives a value is not searched; its grid comes before the method's own values.
    space = {**trained.search_space, **entry.space}
    given = given_options(method[1], entry.options)
    searched = {name: values for name, values in space.items() if name not in given}
    return CellSpec(
        dataset=registry.spec("dataset", suite.datasets[dataset[0]].use or dataset[0], dataset[1]),
        data=data,
        method=registry.spec("method", entry.use or method[0], method[1]),
        protocol=protocol,
        space={} if protocol.search == "none" else _plain(searched),
        metrics=scored_by(suite.metrics, registry.metrics, registry.metric_hashes),
        split=split_of(suite, dataset[1], seed),
        seed=seed,
        harness=HARNESS,
        device=device_of(trained, device),
    )


def device_of(method: BaseMethod, device: str) -> str:
    """Return the kind of device that computes a method's cells in a run on this one: an estimator has the CPU."""
    return "cpu" if method.alone else device.partition(":")[0]


def _protocol_of(method: BaseMethod, protocol: Protocol) -> Protocol:
    """Return the protocol without what does not apply to the method: an estimator trains in its own way."""
    return replace(protocol, training=Training(), grid={}) if method.alone else protocol


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as JSON holds them: what was a tuple is a list when it is read again."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(table)))
    return plain


def checked(split: Split) -> Split:
    """Return the split; raises if its arrays do not fit each other or its task."""
    if not isinstance(split, Split):
        raise UserError(f"load must return a Split, got {type(split).__name__}")
    for part, x, y in (("train", split.train_x, split.train_y), ("test", split.test_x, split.test_y)):
        if not len(x):
            raise UserError(f"{part}_x has no rows")
        if y.ndim == 2 and len(y) == len(x):
            raise UserError(f"{part}_y {_columns(y.shape[1], split.task)}")
        if y.shape != x.shape[:1]:
            raise UserError(f"{part}_y must have one value for each of the {len(x)} rows, got shape {list(y.shape)}")
        for name, array in ((f"{part}_x", x), (f"{part}_y", y)):
            gaps = split.gaps and array is x
            if bad := int(np.count_nonzero(np.isinf(array) if gaps else ~np.isfinite(array))):
                raise UserError(f"{name}: {bad} of {array.size} values are {'' if gaps else 'NaN or '}infinite")
        if split.task == "classification":
            if split.classes < 2:
                raise UserError(f"classes must be at least 2 for classification, got {split.classes}")
            if y.min() < 0 or y.max() >= split.classes or (y != y.astype(np.int64)).any():
                raise UserError(f"{part}_y must hold classes from 0 to {split.classes - 1}")
    if split.train_x.shape[1:] != split.test_x.shape[1:]:
        raise UserError(f"train and test rows differ in shape: {split.train_x.shape[1:]} and {split.test_x.shape[1:]}")
    if split.test_groups is not None:
        group_names(split.test_groups, len(split.test_y))
    return split


def _columns(count: int, task: str) -> str:
    """Return what is wrong with a table of targets, and what would be right."""
    if count == 1:
        return "has one column and two axes, shape [rows, 1]; write y[:, 0] to get one value per row"
    if task == "classification":
        return f"has {count} columns; give one class per row, from 0 (a one-hot table's is y.argmax(1))"
    return f"has {count} columns; a dataset has one target: choose one (y[:, 0]), or make a dataset of each"


def fingerprint(split: Split, seen: dict[int, str] | None = None) -> str:
    """Return a hash of a split's task and rows; arrays whose identity is in `seen` are not read again."""
    seen = {} if seen is None else seen
    parts = []
    for array in (split.train_x, split.train_y, split.test_x, split.test_y):
        if id(array) not in seen:
            block: Any = np.ascontiguousarray(array)
            digest = hashlib.blake2b(f"{block.dtype.str}{block.shape}".encode(), digest_size=16)
            digest.update(block.data.cast("B"))
            seen[id(array)] = digest.hexdigest()
        parts.append(seen[id(array)])
    if split.test_groups is not None:
        names = "\n".join(str(name) for name in split.test_groups)
        parts.append(hashlib.blake2b(names.encode(), digest_size=16).hexdigest())
    if split.blocks is not None:  # they decide which rows train
        codes = np.ascontiguousarray(np.unique(split.blocks.of_rows, return_inverse=True)[1], dtype="<i8")
        parts.append(f"{split.blocks.ordered}{hashlib.blake2b(codes.tobytes(), digest_size=16).hexdigest()}")
    about = f"{split.task} {split.classes} {' '.join(parts)}"
    return hashlib.blake2b(about.encode(), digest_size=16).hexdigest()
