"""Computes metrics from stored predictions: new ones, and those whose version changed since a cell was scored.

A value of the run that is replaced stays in the table of rescored values. Values under conditions that the stored
predictions do not cover (shifted rows) stay as they are.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, and_, delete, func, select

from bench.errors import UserError, unknown_name
from bench.metrics import Metric, using_metrics
from bench.metrics.requests import requested_metrics
from bench.plugins.registry import Registry
from bench.spec.spec import ON_REQUEST, spec_or_none
from bench.store.arrays import DamagedArraysError
from bench.store.bank import kept_files, keys_with_predictions, read_predictions
from bench.store.database import chunks, insert_rows
from bench.store.store import Store
from bench.store.tables import cells, metrics, rescored, wanted

CELLS_AT_ONCE = 100  # in one transaction


@dataclass(frozen=True)
class Task:
    """One cell and the metrics that it lacks, or has in another version."""

    key: str
    file: str
    precision: str
    names: tuple[str, ...]


@dataclass
class Rescored:
    """What was computed from stored predictions."""

    cells: int = 0  # that were scored again
    current: int = 0  # cells that have all these metrics in their present version
    values: int = 0  # written, those under conditions and of groups among them
    replaced: int = 0  # of the values: these had another value before
    names: set[str] = field(default_factory=set)  # of the metrics with new values
    without: int = 0  # cells of the suites whose predictions are not stored
    faults: list[tuple[str, str]] = field(default_factory=list)  # cells whose predictions are damaged, and how
    left: int = 0  # cells that were not reached, because the command was stopped


def chosen_metrics(registry: Registry, names: Collection[str] = ()) -> dict[str, Metric]:
    """Return the metrics that can be computed from predictions, or those of `names`; raises UserError for others."""
    known = registry.metrics
    for name in names:
        if name not in known:
            raise unknown_name("metric", name, known)
        if known[name].compute is None:
            if (base := known[name].relative_to) is not None:
                raise UserError(f"metric {name!r} is the difference of {base!r} to the baseline's: rescore {base!r}")
            raise UserError(f"metric {name!r} is measured by a probe or a search: stored predictions do not give it")
    return {
        name: metric for name, metric in known.items() if metric.compute is not None and (name in names or not names)
    }


def plan(
    store: Store, registry: Registry, suite: str | None, names: Collection[str] = ()
) -> tuple[list[Task], Rescored]:
    """Return which metrics of which cells are to be computed, and what is known before it."""
    suites = store.suites()
    if suite is not None:
        store.require_suite(suite)
    found, done, seen = chosen_metrics(registry, names), Rescored(), set[str]()
    tasks: list[Task] = []
    for name in suites if suite is None else [suite]:
        asked = {*names, *requested_metrics(suites[name]["metrics"], registry.metrics)}
        scoring = {n: metric for n, metric in found.items() if n in asked or not metric.on_request}
        keys = [key for key in keys_with_predictions(store, name) if key not in seen]
        states = store.states(name)
        done.without += len({k for k, state in states.items() if state == "ok"} - seen - set(keys))
        seen |= {k for k, state in states.items() if state == "ok"}
        for part in chunks(keys, CELLS_AT_ONCE):
            tasks += _tasks(store, part, scoring, registry.metric_hashes)
        done.current += len(keys)
    done.current -= len(tasks)
    return tasks, done


def _tasks(
    store: Store, keys: Sequence[str], scoring: Mapping[str, Metric], hashes: Mapping[str, str]
) -> Iterator[Task]:
    files = kept_files(store, keys)
    versions = _versions(store, keys)
    for key in keys:
        row, own = files[key], versions[key]
        lacks = [
            name
            for name, metric in scoring.items()
            if metric.task in ("any", row["task"]) and own.get(name) != hashes.get(name, str(metric.version))
        ]
        if lacks:
            yield Task(key, str(row["file"]), str(row["precision"]), tuple(lacks))


def _versions(store: Store, keys: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the version of every metric that cells were scored by, those without a value among them."""
    stated: dict[str, dict[str, str]] = {}
    scored: dict[str, set[str]] = {}
    with store.database.reading() as connection:
        columns = select(cells.c.key, cells.c.spec, cells.c.training)
        for key, text, training in connection.execute(columns.where(cells.c.key.in_(keys))):
            record, spec = json.loads(training or "{}"), spec_or_none(text)
            by_file = {} if spec is None else {n: h for n, h in spec.metrics.items() if h != ON_REQUEST}
            stated[key] = {name: str(version) for name, version in record.get("metric_versions", {}).items()} | by_file
            scored[key] = {name for names in record.get("left_out", {}).values() for name in names}
        for key, name in connection.execute(select(metrics.c.key, metrics.c.metric).where(metrics.c.key.in_(keys))):
            scored[key].add(name)
        found = {key: {name: stated[key].get(name, "1") for name in names} for key, names in scored.items()}
        later = select(rescored.c.key, rescored.c.metric, rescored.c.version).where(rescored.c.key.in_(keys))
        for key, name, version in connection.execute(later):
            found[key][name] = version
    return found


def rescore(
    store: Store,
    registry: Registry,
    tasks: Sequence[Task],
    done: Rescored,
    go_on: Callable[[int], bool] = lambda cells: True,
) -> Rescored:
    """Compute the metrics of all tasks and store them, some cells at a time; `done` counts them.

    `go_on` is told of every so many cells that are stored, and returns whether to go on.
    """
    hashes = registry.metric_hashes
    versions = {name: hashes.get(name, str(metric.version)) for name, metric in registry.metrics.items()}
    used = {hashes[name] for task in tasks for name in task.names if name in hashes}
    store.save_plugins(source for source in registry.sources if source.hash in used)
    for part in chunks(tasks, CELLS_AT_ONCE):
        found: list[tuple[Task, dict[str, float]]] = []
        for task in part:
            try:
                with using_metrics(registry.metrics):
                    found.append((task, _scores(store, task)))
            except DamagedArraysError as error:
                done.faults.append((task.key, str(error)))
        _write(store, found, versions, done)
        done.left = len(tasks) - done.cells - len(done.faults)
        if not go_on(len(part)):
            break
    return done


def _scores(store: Store, task: Task) -> dict[str, float]:
    kept = read_predictions(store, task.file, validation=False)
    if kept is None:
        raise DamagedArraysError("lost")
    return kept.scores(names=task.names)


def _write(
    store: Store, found: Iterable[tuple[Task, Mapping[str, float]]], versions: Mapping[str, str], done: Rescored
) -> None:
    """Store the values of some cells in one transaction; the values they replace stay among the rescored ones."""
    now, new = time.time(), list(found)
    places = {task.key: {*task.names, *values} for task, values in new}

    def work(connection: Connection) -> int:
        before = _stored(connection, places)
        rows, values = [], []
        for task, scores in new:
            values += [{"key": task.key, "metric": name, "value": value} for name, value in scores.items()]
            for name in sorted(places[task.key]):
                about = {"version": versions[name.partition("@")[0]], "precision": task.precision, "computed": now}
                rows.append({"key": task.key, "metric": name, "before": before.get((task.key, name)), **about})
        for table in (metrics, rescored):
            for key, names in places.items():
                connection.execute(delete(table).where(table.c.key == key, table.c.metric.in_(sorted(names))))
        for part in chunks(rows, 5000):
            insert_rows(connection, rescored, part)
        for part in chunks(values, 5000):
            insert_rows(connection, metrics, part)
        return len(before)

    if new:
        done.replaced += store.database.write(work, lock=metrics)
    done.cells += len(new)
    done.values += sum(len(values) for _, values in new)
    done.names |= {name.partition("@")[0] for _, values in new for name in values}


def _stored(connection: Connection, places: Mapping[str, Collection[str]]) -> dict[tuple[str, str], float]:
    """Return the first value of each that any run stored: one that was itself rescored is the run's no longer."""
    found: dict[tuple[str, str], float] = {}
    for key, names in places.items():
        own = sorted(names)
        query = select(metrics.c.metric, metrics.c.value).where(metrics.c.key == key, metrics.c.metric.in_(own))
        found |= {(key, name): value for name, value in connection.execute(query)}
        later = select(rescored.c.metric, rescored.c.before).where(rescored.c.key == key, rescored.c.metric.in_(own))
        found |= {(key, name): value for name, value in connection.execute(later) if (key, name) in found}
    return found


def rescored_counts(store: Store, suite: str) -> list[dict[str, Any]]:
    """Return how many values of each metric of a suite were computed after its runs: metric, precision, values."""
    columns = (rescored.c.metric, rescored.c.version, rescored.c.precision)
    query = select(*columns, func.count().label("values")).join(wanted, wanted.c.key == rescored.c.key)
    has_value = and_(metrics.c.key == rescored.c.key, metrics.c.metric == rescored.c.metric)
    query = query.join(metrics, has_value).where(wanted.c.suite == suite)
    return store.database.rows(query.group_by(*columns).order_by(*columns))
