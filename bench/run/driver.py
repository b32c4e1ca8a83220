"""Running a suite: plan, hand out units of work, store each cell the moment its outcome arrives.

The driver is the only writer of the store. What a plug-in does wrong is the failure of its cells, told with its
traceback, never the end of the run; a worker that dies costs only the cells it had not finished, which are tried again.
"""

import contextlib
import json
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.errors import UserError
from bench.plan.cells import Refused, plan
from bench.plan.suite import Suite
from bench.plan.units import TOGETHER, UNKNOWN_COST, Unit, Units, cut
from bench.plugins.registry import Registry
from bench.probes import probe_types
from bench.run.executors import OUT_OF_TIME, Engine, LostWorkerError
from bench.run.executors.inline import InlineEngine
from bench.run.progress import Progress
from bench.run.worker import Errand, Letter, Order, PluginFile, carry_out
from bench.spec.cell import Cell, Outcome, from_bytes, to_bytes
from bench.spec.spec import spec_or_none
from bench.store.store import Store, SuiteRecord, new_owner
from bench.training import checkpoints
from bench.training.limits import Limits

STRIKES = 3  # a cell that alone with its worker sees it die so often is given up
SECONDS_BETWEEN_RENEWALS = 10.0
SECONDS_BETWEEN_LOOKS = 2.0  # at what other drivers are doing


@dataclass
class Summary:
    """What a run did."""

    stored: int = 0
    skipped: int = 0  # stored already
    elsewhere: int = 0  # made by another driver of the same store in the meantime
    diverged: int = 0
    left: int = 0  # not done when the run was stopped
    failures: list[tuple[Cell, str]] = field(default_factory=list)
    doubts: list[tuple[Cell, str]] = field(default_factory=list)  # results that should not be trusted, and why
    refused: list[Refused] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def well(self) -> bool:
        """Did everything that was asked run?"""
        return not self.failures and not any(r.fault for r in self.refused)


Watch = Callable[[Cell, Outcome | None], None]  # no outcome: it was stored before, or by another driver
Tell = Callable[[str], None]  # how far the run is, in words


EngineChoice = Engine | Callable[[float], Engine]  # or a function of the seconds of work there may be


def run(
    suite: Suite,
    registry: Registry,
    store: Store,
    *,
    engine: EngineChoice | None = None,
    device: str = "cpu",
    limits: Limits = Limits(),
    watch: Watch = lambda cell, outcome: None,
    tell: Tell = lambda words: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Summary:
    """Run what the store does not have yet; without an engine, in this process."""
    began = time.perf_counter()
    summary = Summary()
    units = _missing(suite, registry, store, summary, watch)
    units.failed_before = {cell.key for cell in store.failed(suite.name)}
    _Drive(suite.name, registry, store, device, limits, watch, tell, stopping, summary).run(units, engine)
    summary.seconds = time.perf_counter() - began
    return summary


def rerun(
    cells: Iterable[Cell],
    registry: Registry,
    store: Store,
    *,
    engine: EngineChoice | None = None,
    device: str = "cpu",
    limits: Limits = Limits(),
    watch: Watch = lambda cell, outcome: None,
    tell: Tell = lambda words: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Summary:
    """Run these cells by their specs, whatever suite asked for them."""
    began = time.perf_counter()
    summary = Summary()
    units = Units()
    together = {kind for kind, probe in probe_types().items() if probe.together}
    for cell in cells:
        spec = spec_or_none(cell.spec)  # one that cannot be read fails in its worker, with the reason
        alone = spec is None or spec.protocol.probe["kind"] not in together
        family = (cell.dataset, cell.method) if alone else TOGETHER
        units.add(family, UNKNOWN_COST, [cell])
        units.failed_before.add(cell.key)
    _Drive("", registry, store, device, limits, watch, tell, stopping, summary).run(units, engine)
    summary.seconds = time.perf_counter() - began
    return summary


def _missing(suite: Suite, registry: Registry, store: Store, summary: Summary, watch: Watch) -> Units:
    """Note in the store what the suite consists of; return what is not there yet."""
    units = Units()
    seen: set[str] = set()  # two names for one thing are one cell
    content = json.dumps(suite.model_dump(mode="json"), sort_keys=True)
    record = SuiteRecord(suite.name, suite.title, suite.baseline, suite.metrics, content)
    cells: list[Cell] = []
    remarks: dict[tuple[str, str], list[str]] = {}
    for task in plan(suite, registry):
        if isinstance(task, Refused):
            summary.refused.append(task)
            remarks[task.dataset, task.method] = [f"could not run: {task.reason}"]
            continue
        remarks[task.dataset, ""] = list(task.notes)
        remarks[task.dataset, task.method] = []
        cells += task.cells
        done = store.done(cell.key for cell in task.cells) | seen
        for cell in task.cells:
            if cell.key in done:
                summary.skipped += 1
                watch(cell, None)
        missing = [cell for cell in task.cells if cell.key not in done]
        seen.update(cell.key for cell in missing)
        units.add_task(task, missing)
    if suite.whole:
        store.forget(suite.name)
    store.want(record, cells)
    for (dataset, method), texts in remarks.items():
        store.remark(suite.name, dataset, method, texts)
    return units


class _Drive:
    """One driver at work: what waits, what is being carried out, what another driver has taken."""

    def __init__(
        self,
        suite: str,
        registry: Registry,
        store: Store,
        device: str,
        limits: Limits,
        watch: Watch,
        tell: Tell,
        stopping: Callable[[], bool],
        summary: Summary,
    ) -> None:
        self.checkpoints = Path(limits.checkpoints or checkpoints.folder_of(store.arrays.folder)).resolve()
        self.unfinished: set[str] = set()  # places of cells that failed: their trainings may still be of use
        self.suite, self.store, self.device = suite, store, device
        self.limits = replace(limits, checkpoints=str(self.checkpoints))
        self.watch, self.tell, self.stopping, self.summary = watch, tell, stopping, summary
        self.progress = Progress()
        self.plugins = tuple(PluginFile(str(path.resolve()), path.read_bytes()) for path in registry.files)
        self.owner = new_owner()
        self.waiting: deque[Unit] = deque()
        self.flying: dict[int, tuple[Future[None], Unit]] = {}
        self.unheard: dict[str, Cell] = {}  # handed out, no outcome yet
        self.taken: list[Unit] = []  # leased by another driver
        self.strikes: Counter[str] = Counter()
        self.orders = 0

    def run(self, units: Units, engine: EngineChoice | None) -> None:
        """Carry out all units."""
        whole = units.cut(1)
        if not whole:
            return
        seconds = sum(unit.seconds for unit in whole)
        if any(cell.key in units.failed_before for unit in whole for cell in unit.cells):
            seconds = math.inf  # what may have killed a worker is not tried in this process, where there is a choice
        self.engine = InlineEngine() if engine is None else engine(seconds) if callable(engine) else engine
        self.waiting.extend(cut(whole, self.engine.workers))
        self.progress.seconds = sum(unit.seconds for unit in self.waiting)
        self.progress.datasets = dict(Counter(cell.dataset for unit in self.waiting for cell in unit.cells))
        finished = threading.Event()
        pulse = threading.Thread(target=self._renew_leases, args=(finished,), daemon=True)
        pulse.start()
        try:
            self._work()
            self.engine.close()
        except BaseException:
            self.engine.close(now=True)
            raise
        finally:
            finished.set()
            pulse.join()
            self.store.release(self.owner)
            self.summary.left = sum(len(unit.cells) for unit in (*self.waiting, *self.taken))

    def _renew_leases(self, finished: threading.Event) -> None:
        while not finished.wait(SECONDS_BETWEEN_RENEWALS):
            # A store that cannot be written to is told by the driver's own next write.
            with contextlib.suppress(UserError):
                self.store.renew(self.owner)

    def _work(self) -> None:
        while True:
            if not self.stopping():
                self._hand_out()
            if self.flying:
                # Looked up before the mail: then all that these sent is in it.
                ended = [number for number, (future, _) in self.flying.items() if future.done()]
                self._keep(self.engine.receive(0.0 if ended else 0.5))
                for number in ended:
                    self._close(number)
                self.tell(str(self.progress))
            elif self.stopping() or not (self.waiting or self.taken):
                return
            elif not self.waiting:
                time.sleep(SECONDS_BETWEEN_LOOKS)
                self._look_at_taken()

    def _hand_out(self) -> None:
        while self.waiting and len(self.flying) < self.engine.workers:
            unit = self.waiting.popleft()
            granted = self.store.lease([cell.key for cell in unit.cells], self.owner)
            refused = unit.without(granted)
            if refused.repeats:
                self.taken.append(refused)
            unit = unit.only(granted)
            if not unit.repeats:
                continue
            self.orders += 1
            found = self.store.searches(cell.key for cell in unit.cells)
            errands = tuple(Errand(cell.key, cell.spec, found.get(cell.key, "")) for cell in unit.cells)
            order = Order(self.orders, errands, self.plugins, self.device, self.limits)
            self.unheard.update((cell.key, cell) for cell in unit.cells)
            self.flying[self.orders] = (self.engine.submit(carry_out, order), unit)
            self.progress.hand_out(self.orders, unit.seconds)

    def _keep(self, letters: Iterable[Letter]) -> None:
        """Store what arrived, all outcomes in one transaction."""
        results = []
        for letter in letters:
            if letter.kind == "progress":
                self.progress.tell(letter.order, json.loads(letter.content))
            elif letter.kind == "search":
                self.store.save_search(letter.key, letter.content.decode())
            # An order that was carried out twice says the same twice.
            elif (cell := self.unheard.pop(letter.key, None)) is not None:
                results.append((cell, from_bytes(letter.content)))
        if results:
            self.store.save(results, self.suite)
        for cell, outcome in results:
            self.progress.datasets[cell.dataset] -= 1
            self.summary.stored += outcome.status != "failed"
            self.summary.diverged += outcome.status == "diverged"
            if outcome.status == "ok" and outcome.message:
                self.summary.doubts.append((cell, outcome.message))
            if outcome.status == "failed":
                self.summary.failures.append((cell, outcome.message))
            self._forget_checkpoints(cell, outcome)
            self.watch(cell, outcome)

    def _forget_checkpoints(self, cell: Cell, outcome: Outcome) -> None:
        """Remove the checkpoints of a cell's place when no cell is left that could go on from them."""
        if not self.checkpoints.is_dir() or (place := _place(cell)) is None:
            return
        if not (self.checkpoints / place).is_dir():  # asked before the rest is looked through: most cells have none
            return
        if outcome.status == "failed":
            self.unfinished.add(place)
        left = [*self.unheard.values(), *(cell for unit in (*self.waiting, *self.taken) for cell in unit.cells)]
        if place not in self.unfinished and all(_place(other) != place for other in left):
            checkpoints.forget(self.checkpoints, place)

    def _close(self, number: int) -> None:
        """Take an order that ended off the list; see to what it left undone."""
        future, unit = self.flying.pop(number)
        self.progress.close(number)
        left = unit.only(self.unheard)
        for cell in left.cells:
            del self.unheard[cell.key]
        error = future.exception()
        if not left.repeats:
            return
        if not isinstance(error, LostWorkerError):
            self._give_up(left, f"the worker did not tell what became of it: {error}")
        elif len(left.cells) > 1:  # one of them, or too much at once
            self._again(left.parts())
        elif str(error).startswith(OUT_OF_TIME):
            self._give_up(left, str(error))
        else:
            (cell,) = left.cells
            self.strikes[cell.key] += 1
            if self.strikes[cell.key] >= STRIKES:
                self._give_up(left, f"{error}; tried {STRIKES} times alone")
            else:
                self._again([left])

    def _again(self, units: Iterable[Unit]) -> None:
        for unit in units:
            self.store.release(self.owner, [cell.key for cell in unit.cells])
            self.waiting.append(unit)

    def _give_up(self, unit: Unit, reason: str) -> None:
        for cell in unit.cells:
            self.unheard[cell.key] = cell
        self._keep(Letter(0, "outcome", cell.key, to_bytes(Outcome("failed", reason))) for cell in unit.cells)

    def _look_at_taken(self) -> None:
        """Cross off what other drivers have made; take over what they left."""
        done = self.store.done(cell.key for unit in self.taken for cell in unit.cells)
        for unit in self.taken:
            for cell in unit.only(done).cells:
                self.summary.elsewhere += 1
                self.watch(cell, None)
        # Handing them out leases them, or finds them still taken.
        self.waiting.extend(left for unit in self.taken if (left := unit.without(done)).repeats)
        self.taken.clear()


def _place(cell: Cell) -> str | None:
    """Return the folder of a cell's checkpoints; a specification that cannot be read has none."""
    spec = spec_or_none(cell.spec)
    return None if spec is None else checkpoints.place_of(spec)
