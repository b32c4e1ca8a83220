"""How far a run is, in words a person can read."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Progress:
    """Adds up what the workers tell; seconds are the estimates of the units, corrected by how long they really take."""

    seconds: float = 0.0  # of all units
    done: float = 0.0  # of those that ended
    datasets: dict[str, int] = field(default_factory=dict)  # cells that are missing, by dataset
    began: float = field(default_factory=time.monotonic)
    flying: dict[int, float] = field(default_factory=dict)  # order -> seconds
    told: dict[int, Mapping[str, int]] = field(default_factory=dict)

    def hand_out(self, order: int, seconds: float) -> None:
        """An order went out."""
        self.flying[order] = seconds

    def tell(self, order: int, words: Mapping[str, int]) -> None:
        """A worker said how far it is."""
        if order in self.flying:
            self.told[order] = words

    def close(self, order: int) -> None:
        """An order ended."""
        self.done += self.flying.pop(order, 0.0)
        self.told.pop(order, None)

    def __str__(self) -> str:
        left = sum(count > 0 for count in self.datasets.values())
        training = sum(words["training"] for words in self.told.values())
        waiting = sum(words["waiting"] for words in self.told.values())
        epoch = max((words["epoch"] for words in self.told.values()), default=0)
        parts = [f"{len(self.datasets) - left}/{len(self.datasets)} datasets"]
        if training:
            parts.append(f"{training} networks training, {waiting} waiting, epoch {epoch}")
        share = self._share()
        if share > 0.02:
            parts.append(f"about {_duration((time.monotonic() - self.began) * (1 - share) / share)} left")
        return ", ".join(parts)

    def _share(self) -> float:
        """Return how much of the work is done."""
        done = self.done
        for order, words in self.told.items():
            total = words["training"] + words["waiting"] + words["ended"]
            done += self.flying[order] * words["ended"] / max(1, total)
        return min(1.0, done / self.seconds) if self.seconds else 0.0


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
