"""Running a suite: plan, hand out units of work, store each cell the moment its outcome arrives.

The driver is the only writer of the store. What a plug-in does wrong is the failure of its cells, reported with its
traceback, never the end of the run; a worker that dies costs only the cells it had not finished, which are tried again.
"""

import contextlib
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.counts import plural
from bench.errors import UserError
from bench.plan.suite import Suite
from bench.plan.units import Unit, Units, cut
from bench.plugins.registry import Registry
from bench.run.apart import run_apart
from bench.run.executors import OUT_OF_TIME, Executor, LostWorkerError, UnfitWorkerError
from bench.run.executors.inline import InlineExecutor
from bench.run.missing import missing_units, units_of
from bench.run.monitor import Monitor
from bench.run.progress import Kind, Progress
from bench.run.summary import Summary
from bench.run.worker import Message, PluginFile, WorkItem, WorkOrder, run_order
from bench.spec.cell import Cell, Outcome
from bench.spec.keep import PREDICTIONS, Keep
from bench.spec.spec import spec_or_none
from bench.store.store import Store, new_owner
from bench.training import checkpoints, stored_networks
from bench.training.limits import Limits
from bench.training.search import Selection

STRIKES = 3  # a cell that alone with its worker sees it die so often is given up
SECONDS_BETWEEN_RENEWALS = 10.0
SECONDS_BETWEEN_CHECKS = 2.0  # of what other drivers are doing
ExecutorChoice = Executor | Callable[[float], Executor]  # or a function of the estimated seconds of work


@dataclass(frozen=True)
class RunSettings:
    """Where and how cells are computed. None of it changes a result by more than rounding."""

    executor: ExecutorChoice | None = None  # None: this process
    device: str = "cpu"
    limits: Limits = Limits()
    time_limit: float | None = None  # seconds that a cell may take
    forms: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (dataset, method): as recorded, to be repeated
    keep: Keep = PREDICTIONS


DEFAULT_SETTINGS = RunSettings()
SILENT = Monitor()


def run(
    suite: Suite, registry: Registry, store: Store, settings: RunSettings = DEFAULT_SETTINGS, monitor: Monitor = SILENT
) -> Summary:
    """Run the cells of a suite that the store does not have yet."""
    began = time.perf_counter()
    summary = Summary()
    monitor.progress("reading datasets")
    units = missing_units(suite, registry, store, summary, monitor, settings.device)
    _Driver(suite.name, registry, store, settings, monitor, summary).run(units)
    summary.seconds = time.perf_counter() - began
    return summary


def rerun(
    cells: Iterable[Cell],
    registry: Registry,
    store: Store,
    settings: RunSettings = DEFAULT_SETTINGS,
    monitor: Monitor = SILENT,
) -> Summary:
    """Run these cells by their specifications, whichever suite wants them."""
    began = time.perf_counter()
    summary = Summary()
    _Driver("", registry, store, settings, monitor, summary).run(units_of(cells, registry))
    summary.seconds = time.perf_counter() - began
    return summary


class _Driver:
    """One driver at work: what waits, what is being computed, what another driver has taken."""

    def __init__(
        self, suite: str, registry: Registry, store: Store, settings: RunSettings, monitor: Monitor, summary: Summary
    ) -> None:
        folder = settings.limits.checkpoints or checkpoints.folder_of(store.arrays.folder)
        self.checkpoints = Path(folder).resolve()
        self.unfinished: set[str] = set()  # places of cells that failed: their trainings may still be of use
        self.suite, self.store, self.monitor, self.summary = suite, store, monitor, summary
        networks = str(stored_networks.folder_of(store.arrays.folder).resolve()) if settings.keep.networks else ""
        limits = replace(settings.limits, checkpoints=str(self.checkpoints), networks=networks)
        self.settings = replace(settings, limits=limits)
        self.progress = Progress()
        self.sources = registry.sources
        files = zip(registry.files, self.sources, strict=True)
        self.plugins = tuple(PluginFile(str(path.resolve()), source.content) for path, source in files)
        self.owner = new_owner()
        self.waiting: deque[Unit] = deque()
        self.leased: deque[tuple[Unit, Mapping[str, str]]] = deque()  # for the next free workers, with their searches
        self.ended: deque[float] = deque()  # when the last orders did
        self.running: dict[int, tuple[Future[None], Unit]] = {}
        self.pending: dict[str, Cell] = {}  # handed out, no outcome yet
        self.taken: list[Unit] = []  # leased by another driver
        self.open: set[str] = set()  # no outcome is stored, here or by another driver
        self.strikes: Counter[str] = Counter()
        self.orders = 0

    def run(self, units: Units) -> None:
        """Compute all units."""
        whole = units.cut(1)
        if not whole:
            return
        seconds = sum(unit.seconds for unit in whole)
        if any(cell.key in units.failed_before for unit in whole for cell in unit.cells):
            seconds = math.inf  # what may have killed a worker is not tried in this process, where there is a choice
        executor = self.settings.executor or InlineExecutor()
        self.executor = executor(seconds) if callable(executor) else executor
        if self.settings.time_limit is not None and not self.executor.ends_calls:
            trained = next((unit.cells[0].method for unit in whole if not unit.estimate.apart), "")
            if trained:
                raise UserError(
                    f"--time-limit: --engine inline cannot end a training that hangs (method {trained!r}), only an "
                    "estimator; use --engine local"
                )
        self.open = {cell.key for unit in whole for cell in unit.cells}
        self.waiting.extend(cut(whole, max(1, self.executor.workers)))
        for unit in self.waiting:
            self.progress.plan(_kind(unit), unit.seconds)
        self.progress.datasets = dict(Counter(cell.dataset for unit in self.waiting for cell in unit.cells))
        specs = "".join(cell.spec for unit in whole for cell in unit.cells)
        self.store.save_plugins(source for source in self.sources if source.hash in specs)
        finished = threading.Event()
        pulse = threading.Thread(target=self._renew_leases, args=(finished,), daemon=True)
        pulse.start()
        try:
            self._work()
            self.executor.close()
        except BaseException:
            self.executor.close(now=True)
            raise
        finally:
            finished.set()
            pulse.join()
            self.store.release(self.owner)
            self.summary.left = len(self.open)

    def _renew_leases(self, finished: threading.Event) -> None:
        while not finished.wait(SECONDS_BETWEEN_RENEWALS):
            # A store that cannot be written to is reported by the driver's own next write.
            with contextlib.suppress(UserError):
                self.store.renew(self.owner)

    def _work(self) -> None:
        while True:
            if not self.monitor.should_stop():
                self._hand_out()
            else:
                self._take_back()
            for note in self.executor.notes():
                self.monitor.note(note)
            if self.running:
                self.monitor.progress(self.progress)  # before the first report, which may take long
                # Asked before the messages are received: then all that these sent is among them.
                ended = [number for number, (future, _) in self.running.items() if future.done()]
                self._receive(self.executor.receive(0.0 if ended else 0.5))
                for number in ended:
                    self._close(number)
                self.monitor.progress(self.progress)
            elif self.monitor.should_stop() or not self._not_begun():
                return
            elif self.waiting or self.leased:  # there is no worker
                self._receive(self.executor.receive(0.5))
            else:
                cells = sum(len(unit.cells) for unit in self.taken)
                self.monitor.progress(f"waiting for {plural(cells, 'cell')} that another run of this store computes")
                time.sleep(SECONDS_BETWEEN_CHECKS)
                self._check_taken()

    def _take_back(self) -> None:
        """Take back the orders that no worker has begun."""
        for number, (future, unit) in list(self.running.items()):
            if future.cancel():
                del self.running[number]
                self.progress.close(number, done=False)
                for cell in unit.cells:
                    self.pending.pop(cell.key, None)
                self.waiting.append(unit)

    def _hand_out(self) -> None:
        """Send a unit to every free worker."""
        while (free := self.executor.workers - len(self.running)) > 0 and (self.leased or self._lease(free)):
            self._send(*self.leased.popleft())

    def _lease(self, free: int) -> bool:
        """Lease the next units in one transaction; return whether there are any.

        Beside those for free workers as many as ended within the last second: few where units take minutes, so that
        other drivers find work, and enough where a transaction takes longer than a unit.
        """
        while self.waiting and not self.leased:
            while self.ended and self.ended[0] < time.monotonic() - 1.0:
                self.ended.popleft()
            units = [self.waiting.popleft() for _ in range(min(free + len(self.ended), len(self.waiting)))]
            granted = self.store.lease([cell.key for unit in units for cell in unit.cells], self.owner)
            self.taken += [refused for unit in units if (refused := unit.without(granted)).repeats]
            found = self.store.searches(granted) if granted else {}
            self.leased.extend((ours, found) for unit in units if (ours := unit.only(granted)).repeats)
        return bool(self.leased)

    def _send(self, unit: Unit, searches: Mapping[str, str]) -> None:
        self.orders += 1
        items = tuple(self._item(cell, searches.get(cell.key, "")) for cell in unit.cells)
        settings = self.settings
        where = (settings.device, settings.limits, settings.time_limit)
        order = WorkOrder(self.orders, items, self.plugins, *where, settings.keep)
        self.pending.update((cell.key, cell) for cell in unit.cells)
        call = run_apart if unit.estimate.apart else run_order
        self.running[self.orders] = (self.executor.submit(call, order), unit)
        self.progress.hand_out(self.orders, _kind(unit), unit.seconds, unit.cells[0].dataset, len(unit.cells))

    def _item(self, cell: Cell, search: str) -> WorkItem:
        return WorkItem(cell.key, cell.spec, search, self.settings.forms.get((cell.dataset, cell.method), ""))

    def _receive(self, messages: Iterable[Message]) -> None:
        """Take what the workers report; store all outcomes in one transaction."""
        results = []
        for message in messages:
            if isinstance(message.content, Selection):
                self.store.save_search(message.key, message.content.to_json())
            elif not isinstance(message.content, Outcome):
                self.progress.update(message.order, message.content)
            # An order that was run twice reports the same twice.
            elif (cell := self.pending.pop(message.key, None)) is not None:
                results.append((cell, message.content))
                self.progress.update(message.order)
        if results:
            self._save(results)

    def _save(self, results: Sequence[tuple[Cell, Outcome]]) -> None:
        self.store.save(results, self.suite)
        for cell, outcome in results:
            self.open.discard(cell.key)
            self.progress.datasets[cell.dataset] -= 1
            self.summary.stored += outcome.status != "failed"
            self.summary.diverged += outcome.status == "diverged"
            if outcome.status == "ok" and outcome.message:
                self.summary.doubts.append((cell, outcome.message))
            if outcome.status == "failed":
                self.summary.failures.append((cell, outcome.message))
            self._forget_checkpoints(cell, outcome)
            self.monitor.cell_done(cell, outcome)

    def _forget_checkpoints(self, cell: Cell, outcome: Outcome) -> None:
        """Remove the checkpoints of a cell's place when no cell is left that could go on from them."""
        if not self.checkpoints.is_dir() or (place := _place(cell)) is None:
            return
        if not (self.checkpoints / place).is_dir():  # first, because most cells have none
            return
        if outcome.status == "failed":
            self.unfinished.add(place)
        left = [*self.pending.values(), *(cell for unit in self._not_begun() for cell in unit.cells)]
        if place not in self.unfinished and all(_place(other) != place for other in left):
            checkpoints.forget(self.checkpoints, place)

    def _not_begun(self) -> list[Unit]:
        return [*(unit for unit, _ in self.leased), *self.waiting, *self.taken]

    def _close(self, number: int) -> None:
        """Take an order that ended off the list; see to what it left undone."""
        future, unit = self.running.pop(number)
        self.ended.append(time.monotonic())
        self.progress.close(number)
        left = unit.only(self.pending)
        for cell in left.cells:
            del self.pending[cell.key]
        error = future.exception()
        if not left.repeats:
            return
        if isinstance(error, UnfitWorkerError):
            self._again([left])
        elif not isinstance(error, LostWorkerError):
            self._give_up(left, f"the worker did not report an outcome: {error}")
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
        self._save([(cell, Outcome("failed", reason)) for cell in unit.cells])

    def _check_taken(self) -> None:
        """Count the cells that other drivers have stored; take over those that they left."""
        done = self.store.done(cell.key for unit in self.taken for cell in unit.cells)
        for unit in self.taken:
            for cell in unit.only(done).cells:
                self.summary.elsewhere += 1
                self.monitor.cell_done(cell, None)
        self.open -= done
        # Handing them out leases them, or finds them still taken.
        self.waiting.extend(left for unit in self.taken if (left := unit.without(done)).repeats)
        self.taken.clear()


def _kind(unit: Unit) -> Kind:
    return Kind(unit.cells[0].method, unit.estimate.apart)


def _place(cell: Cell) -> str | None:
    """Return the folder of a cell's checkpoints; a specification that cannot be read has none."""
    spec = spec_or_none(cell.spec)
    return None if spec is None else checkpoints.place_of(spec)
