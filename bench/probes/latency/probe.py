"""The latency probe: its options, and what the rest of the harness needs to know of it without loading torch."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from bench.probes.base import Finding, Probe, Subject
from bench.probes.latency.conditions import check_conditions
from bench.probes.latency.table import latency_table
from bench.spec.protocol import CLOSED, Count, Draws, Positive

if TYPE_CHECKING:
    from bench.training.limits import Limits

ModeName = Literal["engine", "naive", "compiled", "tuned"]
DEFAULT_MODES: tuple[ModeName, ...] = ("engine", "naive")


@dataclass(frozen=True, config=CLOSED)
class Latency(Probe):
    """Time passes over the test rows, all methods and numbers of draws in turn; nothing is trained."""

    kind = "latency"
    together = True
    later = frozenset({"single_rows", "tuning_seconds"})
    table = staticmethod(latency_table)
    check_outcome = staticmethod(check_conditions)
    draws: list[Draws] = Field(default_factory=lambda: [1, 10, 50, 100])  # T of the series
    batch: Positive = 500  # rows of one call
    rows: Count = 0  # test rows of a pass; 0: all there are
    repeats: Positive = 10  # timed passes of each series
    modes: list[ModeName] = Field(default_factory=lambda: list(DEFAULT_MODES))
    dtype: Literal["float32", "bfloat16"] = "float32"  # bfloat16: products only, by autocast
    threads: Count = 0  # 0: one per core
    warm_up: Positive = 5  # passes of each series at most, before its times count
    single_rows: Count = 0  # test rows that are timed one by one, too, in batches of 1; 0: none
    tuning_seconds: Annotated[float, Field(gt=0, le=3600, strict=True)] = 5.0  # to choose the mode of a tuned series

    def __post_init__(self) -> None:
        for name, values in (("draws", self.draws), ("modes", self.modes)):
            if not values or len(set(values)) != len(values):
                raise ValueError(f"probe.{name}: name at least one, and none twice")

    def evaluations(self, test_rows: int) -> int:
        """Return the rows of all passes of a cell, roughly, warm-up included."""
        rows = min(test_rows, self.rows or test_rows) + self.single_rows
        return (self.repeats + 3) * sum(self.draws) * len(self.modes) * rows

    def measure_together(
        self, subjects: Sequence[Subject], device: str, limits: "Limits"
    ) -> Iterator[tuple[int, Finding | BaseException]]:
        """Time all cells in turn."""
        from bench.probes.latency.series import measure_in_turn

        return measure_in_turn(self, subjects, device, limits)
