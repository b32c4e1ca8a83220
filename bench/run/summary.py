"""What a run did, for those who started it."""

from dataclasses import dataclass, field

from bench.plan.cells import Refused
from bench.spec.cell import Cell


@dataclass
class Summary:
    """What a run did."""

    stored: int = 0
    skipped: int = 0  # stored already
    elsewhere: int = 0  # computed by another driver of the same store in the meantime
    diverged: int = 0
    left: int = 0  # without an outcome: the run was stopped, or ended before it should
    failures: list[tuple[Cell, str]] = field(default_factory=list)
    doubts: list[tuple[Cell, str]] = field(default_factory=list)  # results that carry a warning, and which
    refused: list[Refused] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def well(self) -> bool:
        """Did everything run that was wanted?"""
        return not self.failures and not self.left and not any(r.fault for r in self.refused)
