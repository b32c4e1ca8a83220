"""How long a run will take, told before it starts.

The planner's figures order and cut work well, but a second of them is not a second of this machine. So they are scaled:
by what stored cells of the same suite took here, or by a measurement that the suite's author states, made on a machine
whose speed is compared with this one's by a short calibration.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.api import Measured
from bench.counts import plural
from bench.machine.environment import cpu_model
from bench.machine.speed import calibration_seconds
from bench.plan.cells import Refused, plan
from bench.plan.suite import Suite
from bench.plan.units import Unit, Units, cut, makespan
from bench.plugins.registry import Registry
from bench.store.store import Store

FEWEST_SECONDS = 20.0  # of stored cells, to judge a machine by


@dataclass(frozen=True)
class Duration:
    """The cells of a run that are to be computed, and how long that takes with so many workers."""

    missing: int
    stored: int
    seconds: float
    workers: int
    basis: str  # what the figure rests on

    def __str__(self) -> str:
        if not self.missing:
            return f"{plural(self.stored, 'cell')} stored: nothing is left to run"
        rest = f", {self.stored} stored" if self.stored else ""
        time = f"about {in_words(self.seconds)} with {plural(self.workers, 'worker')}"
        return f"{plural(self.missing, 'cell')} to run{rest}: {time} ({self.basis})"


def estimate_duration(
    suite: Suite,
    registry: Registry,
    store: Store | None,
    workers: int,
    reference: tuple[Suite, Measured] | None = None,
    device: str = "cpu",
) -> Duration:
    """Estimate how long the missing cells of a suite take; `reference` is a suite that was measured before."""
    missing, stored = _units(suite, registry, store.done if store else _none, device)
    count = sum(len(unit.cells) for unit in missing)
    done = {cell.key for unit in stored for cell in unit.cells}
    factor, basis = _stored_factor(suite.name, store, stored) if store else None, "by the cells in the store"
    if factor is None and reference is not None and count:
        whole, measured = reference
        planned = sum(unit.seconds for unit in _units(whole, registry, _none)[0])
        factor = measured.seconds / planned * calibration_seconds() / measured.calibration if planned else None
        basis = "measured before, scaled by a short calibration"
    if factor is None:
        factor, basis = 1.0, "a rough figure: nothing like it was measured"
    return Duration(count, len(done), factor * makespan(cut(missing, workers), workers), workers, basis)


def _none(keys: Iterable[str]) -> set[str]:
    return set()


def _units(
    suite: Suite, registry: Registry, done: Callable[[Iterable[str]], set[str]], device: str = "cpu"
) -> tuple[list[Unit], list[Unit]]:
    """Return the units of work of the cells that have no result, and of those that have one."""
    missing, stored = Units(), Units()
    for task in plan(suite, registry, device):
        if not isinstance(task, Refused):
            known = done(cell.key for cell in task.cells)
            missing.add_task(task, [cell for cell in task.cells if cell.key not in known])
            stored.add_task(task, [cell for cell in task.cells if cell.key in known])
    return missing.cut(1), stored.cut(1)


def _stored_factor(suite: str, store: Store, units: Iterable[Unit]) -> float | None:
    """Return what stored cells took by what was planned for them; None where too little was computed here."""
    here, wanted = cpu_model(), {cell.key for unit in units for cell in unit.cells}
    taken = {}
    for cell in store.cells(suite):
        if cell["key"] in wanted and cell["seconds"] and json.loads(cell["environment"] or "{}").get("cpu") == here:
            taken[cell["key"]] = float(cell["seconds"])
    planned = sum(own.seconds for unit in units if (own := unit.only(taken)).repeats)
    return sum(taken.values()) / planned if planned and sum(taken.values()) >= FEWEST_SECONDS else None


def in_words(seconds: float) -> str:
    """Return a duration as a person would say it."""
    if seconds < 90:
        return plural(max(1, round(seconds)), "second")
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
