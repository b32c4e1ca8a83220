"""What a run did, for those who started it."""

from dataclasses import dataclass, field

from bench.counts import plural
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
    no_longer_shown: list[str] = field(default_factory=list)  # finished results that reports showed before, in lines
    seconds: float = 0.0

    @property
    def broken(self) -> int:
        """Cells that could not begin because of an error in a plug-in or in the data."""
        return sum(refused.cells for refused in self.refused if refused.fault)

    @property
    def not_applicable(self) -> int:
        """Cells of methods and datasets that are not meant for this suite."""
        return sum(refused.cells for refused in self.refused if not refused.fault)

    @property
    def well(self) -> bool:
        """Did everything run that was wanted?"""
        return not self.failures and not self.left and not self.broken

    def __str__(self) -> str:
        counts = [f"{plural(self.stored, 'cell')} run", f"{self.skipped} stored before"]
        counts += [f"{self.elsewhere} run by another driver"] * bool(self.elsewhere)
        counts += [f"{self.diverged} diverged", f"{len(self.failures)} failed"]
        counts += [f"{self.broken} could not begin"] * bool(self.broken)
        counts += [f"{self.not_applicable} not applicable"] * bool(self.not_applicable)
        counts += [f"{self.left} left"] * bool(self.left)
        return f"{', '.join(counts)}, in {self.seconds:.1f} s"
