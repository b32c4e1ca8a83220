"""How far a run is, in words a person can read."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.counts import plural
from bench.training.stack import Progress as StackProgress

NEAR_THE_END = 0.8  # of the expected time; beyond, an order that takes longer comes ever closer to its end


@dataclass
class Progress:
    """Adds up what the workers report.

    Seconds are the estimates of the units, scaled by how long those that ended really took. An order in work counts by
    what its worker reports or by its time, so that the time left goes on between the ends of orders.
    """

    seconds: float = 0.0  # of all units
    done: float = 0.0  # of those that ended
    took: float = 0.0  # what those that ended took
    datasets: dict[str, int] = field(default_factory=dict)  # cells that are missing, by dataset
    clock: Callable[[], float] = time.monotonic
    running: dict[int, tuple[float, float]] = field(default_factory=dict)  # order -> its seconds, and when it began
    labels: dict[int, str] = field(default_factory=dict)  # order -> its dataset and method
    reported: dict[int, StackProgress] = field(default_factory=dict)  # order -> how far it is
    advanced: dict[int, float] = field(default_factory=dict)  # order -> when a network of it ended last

    def __post_init__(self) -> None:
        self.began = self.clock()

    def hand_out(self, order: int, seconds: float, label: str) -> None:
        """Take note of an order that was handed out."""
        self.running[order] = (seconds, self.clock())
        self.labels[order] = label

    def update(self, order: int, report: StackProgress) -> None:
        """Take a worker's report on its order."""
        if order in self.running:
            before = self._reported_share(order)
            self.reported[order] = report
            if self._reported_share(order) > before:
                self.advanced[order] = self.clock()

    def close(self, order: int) -> None:
        """Take note of an order that ended."""
        if order in self.running:
            seconds, began = self.running.pop(order)
            self.done += seconds
            self.took += self.clock() - began
        self.reported.pop(order, None)
        self.advanced.pop(order, None)
        self.labels.pop(order, None)

    def __str__(self) -> str:
        # Copies, as the clock of a progress bar asks from a thread of its own.
        counts, labels = list(self.datasets.values()), list(self.labels.values())
        reports = list(self.reported.values())
        left = sum(count > 0 for count in counts)
        training = sum(report.training for report in reports)
        waiting = sum(report.waiting for report in reports)
        epoch = max((report.epoch for report in reports), default=0)
        parts = [f"{len(counts) - left}/{len(counts)} datasets"]
        if training:
            parts.append(f"{plural(training, 'network')} training, {waiting} waiting, epoch {epoch}")
        elif labels:
            parts.append(f"working on {labels[0]}")
        share = self._share()
        if 0.02 < share < 1.0:
            parts.append(f"about {_duration((self.clock() - self.began) * (1 - share) / share)} left")
        return ", ".join(parts)

    def _share(self) -> float:
        """Return how much of the work is done."""
        if not self.seconds:
            return 0.0
        now = self.clock()
        known, took, orders = self.done, self.took, []
        for number, (seconds, began) in list(self.running.items()):
            share = self._reported_share(number)
            orders.append((seconds, began, share))
            known += seconds * share
            took += self.advanced.get(number, began) - began
        if not known:
            return 0.0
        pace = took / known  # how long a second of the estimates takes
        done = self.done
        for seconds, began, share in orders:
            done += seconds * max(share, _passed((now - began) / max(pace * seconds, 1e-9)))
        return min(1.0, done / self.seconds)

    def _reported_share(self, order: int) -> float:
        report = self.reported.get(order)
        return report.ended / max(1, report.training + report.waiting + report.ended) if report else 0.0


def _passed(share: float) -> float:
    """Return the share of an order that counts as done after a share of the time that it was expected to take."""
    late = (share - NEAR_THE_END) / (1 - NEAR_THE_END)
    return share if late <= 0 else 1 - (1 - NEAR_THE_END) * math.exp(-late)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
