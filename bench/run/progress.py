"""How far a run is, in words a person can read."""

import time
from dataclasses import dataclass, field

from bench.counts import plural
from bench.training.stack import Progress as StackProgress


@dataclass
class Progress:
    """Adds up what the workers report; seconds are the estimates of the units, scaled by how long they really take."""

    seconds: float = 0.0  # of all units
    done: float = 0.0  # of those that ended
    datasets: dict[str, int] = field(default_factory=dict)  # cells that are missing, by dataset
    began: float = field(default_factory=time.monotonic)
    running: dict[int, float] = field(default_factory=dict)  # order -> seconds
    labels: dict[int, str] = field(default_factory=dict)  # order -> its dataset and method
    reported: dict[int, StackProgress] = field(default_factory=dict)  # order -> how far it is

    def hand_out(self, order: int, seconds: float, label: str) -> None:
        """Take note of an order that was handed out."""
        self.running[order] = seconds
        self.labels[order] = label

    def update(self, order: int, report: StackProgress) -> None:
        """Take a worker's report on its order."""
        if order in self.running:
            self.reported[order] = report

    def close(self, order: int) -> None:
        """Take note of an order that ended."""
        self.done += self.running.pop(order, 0.0)
        self.reported.pop(order, None)
        self.labels.pop(order, None)

    def __str__(self) -> str:
        left = sum(count > 0 for count in self.datasets.values())
        training = sum(report.training for report in self.reported.values())
        waiting = sum(report.waiting for report in self.reported.values())
        epoch = max((report.epoch for report in self.reported.values()), default=0)
        parts = [f"{len(self.datasets) - left}/{len(self.datasets)} datasets"]
        if training:
            parts.append(f"{plural(training, 'network')} training, {waiting} waiting, epoch {epoch}")
        elif self.labels:
            parts.append(f"working on {next(iter(self.labels.values()))}")
        share = self._share()
        if 0.02 < share < 1.0:
            parts.append(f"about {_duration((time.monotonic() - self.began) * (1 - share) / share)} left")
        return ", ".join(parts)

    def _share(self) -> float:
        """Return how much of the work is done."""
        done = self.done
        for order, report in self.reported.items():
            total = report.training + report.waiting + report.ended
            done += self.running[order] * report.ended / max(1, total)
        return min(1.0, done / self.seconds) if self.seconds else 0.0


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
