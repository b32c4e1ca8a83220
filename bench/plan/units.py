"""From missing cells to units of work: stacks that one worker computes, minutes long, and enough of them.

Cells of one dataset whose networks train alike belong together (they are trained once, or in one stack). A stack of few
members costs nearly as much per step as one of many, so stacks are cut only where that ends the run earlier, where a
unit would take too long to lose, or where its data would not fit into memory.
"""

import heapq
import math
from collections.abc import Container, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import torch

from bench.api import Network, Problem
from bench.plan.cells import Task
from bench.probes import make_probe
from bench.spec.cell import Cell
from bench.spec.spec import read_spec
from bench.training.flops import count_work
from bench.training.forms import expected_steps
from bench.training.limits import FLOPS_PER_ROW_OF_A_LARGE_NETWORK
from bench.training.member import training_form
from bench.training.network_factory import network_factory
from bench.training.search import configurations

# Rough figures of one core of 2023; they order and cut the work, nothing else.
SECONDS_TO_BEGIN = 1.5  # loading, tracing, first draws
SECONDS_A_STEP = 4e-4  # of a stack, however small
SECONDS_A_MEMBER_STEP = 1.3e-5
FLOPS_A_SECOND = 2e10
SECONDS_A_CELL = 5e-3  # drawing and scoring of little data
LONGEST = 300.0  # seconds; a worker's death costs half of this on average
BYTES = 2**30  # of prepared rows in one unit
UNITS_A_WORKER = 8  # are enough to balance with


@dataclass(frozen=True)
class Estimate:
    """What one repeat (all cells of one seed that share trainings) needs."""

    steps: float
    seconds_a_member_step: float
    networks: int
    seconds_beside: float  # drawing and scoring
    bytes: int
    large: bool  # trains by itself, not in a stack
    apart: bool = False  # every cell is computed in a process of its own


# Of a cell whose method trains in its own way: nobody knows how long it takes.
APART = Estimate(steps=0.0, seconds_a_member_step=0.0, networks=1, seconds_beside=3.0, bytes=0, large=False, apart=True)
# Of a cell that is tried again: every seed by itself.
UNKNOWN = Estimate(steps=0.0, seconds_a_member_step=0.0, networks=1, seconds_beside=LONGEST, bytes=0, large=False)


@dataclass(frozen=True)
class Unit:
    """Cells to be computed together: repeats that cannot be cut further, in order."""

    repeats: tuple[tuple[Cell, ...], ...]
    estimate: Estimate

    @property
    def cells(self) -> list[Cell]:
        """All cells."""
        return [cell for repeat in self.repeats for cell in repeat]

    @property
    def seconds(self) -> float:
        """How long it takes, roughly."""
        need, count = self.estimate, len(self.repeats)
        members = count * need.networks
        step = members * need.seconds_a_member_step + (0.0 if need.large else SECONDS_A_STEP)
        return SECONDS_TO_BEGIN + need.steps * step + count * need.seconds_beside

    def only(self, keys: Container[str]) -> "Unit":
        """Return the unit restricted to these cells."""
        kept = (tuple(cell for cell in repeat if cell.key in keys) for repeat in self.repeats)
        return replace(self, repeats=tuple(repeat for repeat in kept if repeat))

    def without(self, keys: Container[str]) -> "Unit":
        """Return the unit without these cells."""
        kept = (tuple(cell for cell in repeat if cell.key not in keys) for repeat in self.repeats)
        return replace(self, repeats=tuple(repeat for repeat in kept if repeat))

    def parts(self) -> "list[Unit]":
        """Return the unit cut in two; one repeat is cut into its cells."""
        if len(self.repeats) == 1:
            return [replace(self, repeats=((cell,),)) for cell in self.cells]
        middle = math.ceil(len(self.repeats) / 2)
        return [replace(self, repeats=half) for half in (self.repeats[:middle], self.repeats[middle:])]


TOGETHER = "together"  # the family of the cells that one worker measures in turn


class Units:
    """Collects missing cells and cuts them into units."""

    def __init__(self) -> None:
        self._estimates: dict[Hashable, Estimate] = {}
        self._repeats: dict[Hashable, dict[int, list[Cell]]] = {}
        self.failed_before: set[str] = set()

    def add_task(self, task: Task, missing: Sequence[Cell]) -> None:
        """Add the missing cells of a task to those that train alike."""
        if missing:
            if make_probe(task.protocol.probe).together:
                self.add(TOGETHER, _estimate_together(task, self._estimates.get(TOGETHER)), missing)
                return
            if task.plugin.alone:
                for cell in missing:
                    self.add((task.dataset, task.method, cell.key), APART, [cell])
                return
            kind, _ = training_form(task.plugin)
            space = read_spec(missing[0].spec).space
            searched = len(configurations(task.protocol.search, task.protocol.grid, space, seed=0))
            searched += task.protocol.refit  # one configuration alone is tried, too, to find its epochs
            self.add((task.dataset, kind, repr(task.protocol)), estimate(task, searched), missing)

    def add(self, family: Hashable, need: Estimate, cells: Iterable[Cell]) -> None:
        """Add cells that are computed together with others of the family."""
        known = self._estimates.get(family)
        # The networks of a smaller ensemble are among those of a larger one.
        if family == TOGETHER or known is None or need.networks > known.networks:
            self._estimates[family] = need
        repeats = self._repeats.setdefault(family, {})
        for cell in cells:
            # What is measured together is one repeat, which is never cut.
            repeats.setdefault(0 if family == TOGETHER else cell.seed, []).append(cell)

    def cut(self, workers: int) -> list[Unit]:
        """Return the units."""
        whole = [
            Unit(tuple(tuple(cells) for cells in repeats.values()), self._estimates[family])
            for family, repeats in self._repeats.items()
        ]
        return cut(whole, workers)


def cut(units: Sequence[Unit], workers: int) -> list[Unit]:
    """Cut units until each is short enough and all workers are busy.

    For one worker they keep their order; for several the longest come first, so that none is left with a long one.
    """
    if workers == 1 and not any(_too_big(unit) for unit in units):
        return list(units)
    done: list[Unit] = []
    heap = [(-unit.seconds, number, unit) for number, unit in enumerate(units)]
    heapq.heapify(heap)
    number = len(heap)
    while heap:
        _, _, longest = heapq.heappop(heap)
        halves = longest.parts() if len(longest.repeats) > 1 else None
        few = len(heap) + len(done) < UNITS_A_WORKER * workers and workers > 1
        rest = [unit for _, _, unit in heap] + done if few else []
        if halves and (_too_big(longest) or (few and _ends_earlier(rest, longest, halves, workers))):
            for half in halves:
                number += 1
                heapq.heappush(heap, (-half.seconds, number, half))
        else:
            done.append(longest)
    return sorted(done, key=lambda unit: -unit.seconds)


def _too_big(unit: Unit) -> bool:
    return unit.seconds > LONGEST or unit.estimate.bytes * len(unit.repeats) > BYTES


def _ends_earlier(rest: Sequence[Unit], whole: Unit, halves: Sequence[Unit], workers: int) -> bool:
    return makespan([*rest, *halves], workers) < 0.95 * makespan([*rest, whole], workers)


def makespan(units: Sequence[Unit], workers: int) -> float:
    """Return when the last of the workers is done, if each takes the longest unit left."""
    loads = [0.0] * workers
    for seconds in sorted((unit.seconds for unit in units), reverse=True):
        heapq.heapreplace(loads, loads[0] + seconds)
    return max(loads)


def estimate(task: Task, searched: int = 1) -> Estimate:
    """Estimate what a repeat needs."""
    protocol, split, method = task.protocol, task.splits[0], task.plugin
    training = protocol.training
    rows = len(split.train_x) - round((protocol.validation + protocol.calibration) * len(split.train_x))
    batch = max(1, min(training.batch, rows))
    flops = _flops_a_row(task.network, split.problem)
    step = SECONDS_A_MEMBER_STEP + 3 * batch * flops / FLOPS_A_SECOND
    drawing = protocol.draws * make_probe(protocol.probe).rows_drawn(len(split.test_x)) * flops / FLOPS_A_SECOND
    size = 4 * (split.train_x.size + split.test_x.size)
    large = flops > FLOPS_PER_ROW_OF_A_LARGE_NETWORK or not task.network.stackable
    batches = rows // batch + (training.partial_batch and rows % batch > 0)
    steps = expected_steps(training, batches, method.early_stopping)
    folds = task.wrapper.folds if task.wrapper is not None else 0
    networks = method.networks * max(1, folds)
    if searched > 1:  # the search is most of it: configurations x folds, which train one network each
        networks = searched * protocol.folds + networks
    size *= 1 + folds + protocol.folds * (searched > 1)
    return Estimate(steps, step, networks, SECONDS_A_CELL + drawing, size, large)


def _estimate_together(task: Task, before: Estimate | None) -> Estimate:
    """Estimate what cells that are measured together need, beside those that were added before."""
    split, probe = task.splits[0], make_probe(task.protocol.probe)
    flops = probe.evaluations(len(split.test_x)) * _flops_a_row(task.network, split.problem)
    seconds = SECONDS_A_CELL + len(task.cells) * flops / FLOPS_A_SECOND + (before.seconds_beside if before else 0.0)
    return Estimate(0.0, 0.0, 1, seconds, 4 * split.test_x.size, large=False)


_flops: dict[tuple[str, Problem], float] = {}


def _flops_a_row(network: Network, problem: Problem) -> float:
    """Return the operations of one row; counted once for every network and problem."""
    name = repr(network)
    if (name, problem) not in _flops:
        with torch.random.fork_rng(devices=[]):
            module = network_factory(network, problem)(problem.outputs).eval()
        _flops[name, problem] = count_work(lambda: module(torch.zeros(1, *problem.inputs)))[1]
    return _flops[name, problem]
