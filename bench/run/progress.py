"""How far a run is, in words a person can read."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bench.counts import plural
from bench.training.progress import Progress as StackProgress

NEAR_THE_END = 0.8  # of the expected time; beyond, an order that takes longer comes ever closer to its end


@dataclass(frozen=True)
class Kind:
    """Work that goes at one pace: a second of its estimate takes the same time wherever it is done."""

    method: str
    apart: bool = False  # every cell in a process of its own


Seconds = defaultdict[Kind, float]


@dataclass
class _Order:
    kind: Kind
    seconds: float  # estimated
    label: str
    cells: int
    began: float
    advanced: float  # when a network or a cell of it ended last
    report: StackProgress | None = None
    outcomes: int = 0  # cells that ended

    @property
    def share(self) -> float:
        """Which share of its networks and cells has ended: drawing and scoring can take longer than training."""
        ended, networks = (self.report.ended, self.report.networks) if self.report else (0, 0)
        return (ended + self.outcomes) / max(1, networks + self.cells)

    @property
    def begun(self) -> float:
        """Which share of it has ended or is in work: what waits is not done by the passing of time."""
        if self.report is None or not self.report.waiting:
            return 1.0
        networks = self.report.networks
        return (networks - self.report.waiting + self.outcomes) / (networks + self.cells)


@dataclass
class Progress:
    """Adds up what the workers report.

    The planner's seconds are rough, and wrong by another factor for each kind of work: a forest may take a third of
    what was planned, cells with many metrics ten times as long. So each kind has the pace of its own orders; a method
    that has not begun has that of the other methods that are computed like it. While there is none of them either, no
    time is named. An order in work counts by what its worker reports or by its time, so that the time left goes on
    between the ends of orders.
    """

    datasets: dict[str, int] = field(default_factory=dict)  # cells that are missing, by dataset
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.began = self.clock()
        self._planned: Seconds = defaultdict(float)
        self._done: Seconds = defaultdict(float)  # the planned seconds of orders that ended
        self._took: Seconds = defaultdict(float)  # what these orders took
        self._orders: dict[int, _Order] = {}  # in work

    def plan(self, kind: Kind, seconds: float) -> None:
        """Take note of work that will be handed out."""
        self._planned[kind] += seconds

    def hand_out(self, order: int, kind: Kind, seconds: float, dataset: str, cells: int) -> None:
        """Take note of an order that was handed out."""
        now = self.clock()
        self._orders[order] = _Order(kind, seconds, f"{dataset} {kind.method}", cells, now, now)

    def update(self, order: int, report: StackProgress | None = None) -> None:
        """Take a worker's report on its order; without one, a cell of it has ended."""
        if known := self._orders.get(order):
            before = known.share
            if report is None:
                known.outcomes += 1
            else:
                known.report = report
            if known.share > before:
                known.advanced = self.clock()

    def close(self, order: int, done: bool = True) -> None:
        """Take note of an order that ended; not `done`: it was taken back before it began."""
        known = self._orders.pop(order, None)
        if known and done:
            self._done[known.kind] += known.seconds
            self._took[known.kind] += self.clock() - known.began

    def __str__(self) -> str:
        # Copies, as the clock of a progress bar asks from a thread of its own.
        counts, orders = list(self.datasets.values()), list(self._orders.values())
        reports = [order.report for order in orders if order.report]
        open_datasets = sum(count > 0 for count in counts)
        training = sum(report.training for report in reports)
        waiting = sum(report.waiting for report in reports)
        epoch = max((report.epoch for report in reports), default=0)
        parts = [f"{len(counts) - open_datasets}/{len(counts)} datasets"]
        if training:
            parts.append(f"{plural(training, 'network')} training, {waiting} waiting, epoch {epoch}")
        elif orders:
            parts.append(f"working on {orders[0].label}")
        if (left := self._seconds_left(orders)) is not None:
            parts.append(f"about {_duration(left)} left")
        return ", ".join(parts)

    def _seconds_left(self, orders: Iterable[_Order]) -> float | None:
        """Return how long the rest will take; None where the pace of some of it is not known."""
        now = self.clock()
        done, known, took = self._done.copy(), self._done.copy(), self._took.copy()
        busy = sum(took.values())
        for order in orders:
            share, seconds = order.share, order.advanced - order.began
            if order.begun < 1 and (now - order.began) * share > seconds * order.begun:
                # Slower than its first networks were: all that has begun is not done yet.
                share, seconds = order.begun, now - order.began
            known[order.kind] += order.seconds * share
            took[order.kind] += seconds
            busy += now - order.began
        paces = {kind: took[kind] / known[kind] for kind in known if known[kind] and took[kind]}
        for apart in (False, True):  # whose pace is not known have that of their like
            like = [kind for kind in paces if kind.apart is apart]
            unknown = [kind for kind in self._planned if kind.apart is apart and kind not in paces]
            if unknown and not like:
                return None
            overall = sum(took[kind] for kind in like) / sum(known[kind] for kind in like) if like else 0.0
            paces.update(dict.fromkeys(unknown, overall))
        for order in orders:
            expected = max(paces.get(order.kind, 0.0) * order.seconds, 1e-9)
            passed = min(_passed((now - order.began) / expected), order.begun)
            done[order.kind] += order.seconds * max(order.share, passed)
        left = sum(max(0.0, seconds - done[kind]) * paces[kind] for kind, seconds in self._planned.items())
        at_once = busy / max(now - self.began, 1e-9)  # how many orders were in work at a time
        return left / max(at_once, 1e-9) if left > 0 else None


def _passed(share: float) -> float:
    """Return the share of an order that counts as done after a share of the time that it was expected to take."""
    late = (share - NEAR_THE_END) / (1 - NEAR_THE_END)
    return share if late <= 0 else 1 - (1 - NEAR_THE_END) * math.exp(-late)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
