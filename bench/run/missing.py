"""What a driver has to do: the cells of a suite that a store does not have, or cells that are to be computed again."""

import json
from collections.abc import Iterable
from dataclasses import replace

from bench.errors import UserError
from bench.plan.cells import Refused, plan
from bench.plan.suite import Suite
from bench.plan.units import TOGETHER, UNKNOWN, Units
from bench.plugins.registry import Registry
from bench.probes import probe_types
from bench.run.monitor import Monitor
from bench.run.narrowed import no_longer_shown
from bench.run.summary import Summary
from bench.spec.cell import Cell
from bench.spec.spec import CellSpec, spec_or_none
from bench.store.store import Store, SuiteRecord


def units_of(cells: Iterable[Cell], registry: Registry) -> Units:
    """Return these cells as units of work, by their specifications."""
    units = Units()
    together = {kind for kind, probe in probe_types().items() if probe.together}
    for cell in cells:
        spec = spec_or_none(cell.spec)  # one that cannot be read fails in its worker, with the reason
        alone = spec is None or spec.protocol.probe["kind"] not in together
        need = replace(UNKNOWN, apart=alone and _computed_apart(spec, registry))
        units.add((cell.dataset, cell.method) if alone else TOGETHER, need, [cell])
        units.failed_before.add(cell.key)
    return units


def _computed_apart(spec: CellSpec | None, registry: Registry) -> bool:
    """Return whether the cells of a method are computed apart; one that cannot be made fails in its worker."""
    if spec is None:
        return False
    try:
        return bool(registry.inner(registry.make("method", spec.method.name, spec.method.options)).alone)
    except UserError:
        return False


def missing_units(
    suite: Suite, registry: Registry, store: Store, summary: Summary, monitor: Monitor, device: str = "cpu"
) -> Units:
    """Record in the store what the suite consists of on this device; return what is not there yet."""
    units = Units()
    seen: set[str] = set()  # two names for one thing are one cell
    content = json.dumps(suite.model_dump(mode="json"), sort_keys=True)
    record = SuiteRecord(suite.name, suite.title, suite.baseline, suite.metrics, content)
    cells: list[Cell] = []
    remarks: dict[tuple[str, str], list[str]] = {}
    described: set[str] = set()
    for task in plan(suite, registry, device):
        if isinstance(task, Refused):
            summary.refused.append(task)
            remarks[task.dataset, task.method] = [f"could not run: {task.reason}"]
            continue
        if task.about and task.about not in described:
            described.add(task.about)
            monitor.note(task.about)
        remarks[task.dataset, ""] = list(task.notes)
        remarks[task.dataset, task.method] = []
        cells += task.cells
        done = store.done(cell.key for cell in task.cells) | seen
        for cell in task.cells:
            if cell.key in done:
                summary.skipped += 1
                monitor.cell_done(cell, None)
        missing = [cell for cell in task.cells if cell.key not in done]
        seen.update(cell.key for cell in missing)
        units.add_task(task, missing)
    summary.no_longer_shown += no_longer_shown(suite.name, store.finished(suite.name), cells, whole=suite.whole)
    if suite.whole:
        store.forget(suite.name)
    store.want(record, cells)
    mistakes = _mistakes(suite, summary.refused, cells)
    for (dataset, method), texts in remarks.items():
        store.remark(suite.name, dataset, method, [] if (dataset, method) in mistakes else texts)
    units.failed_before = {cell.key for cell in store.failed(suite.name)}
    return units


def _mistakes(suite: Suite, refused: Iterable[Refused], cells: Iterable[Cell]) -> set[tuple[str, str]]:
    """Return the datasets and methods, named for this run alone, that an error kept from having any cell.

    They are no part of the suite, so its reports do not mention them.
    """
    known = {name for cell in cells for name in (("dataset", cell.dataset), ("method", cell.method))}
    strange = suite.added - known
    return {
        (each.dataset, each.method)
        for each in refused
        if each.fault and strange & {("dataset", each.dataset), ("method", each.method)}
    }
