"""Probes: what is asked of the trained networks of a cell.

A suite chooses one in its table `[probe]`. The ordinary one draws at the test rows and scores.
"""

from collections.abc import Callable, Iterator, Sequence

from bench.api import Split
from bench.probes import score, shift, softmax_noise
from bench.probes.base import Finding, Subject, Untrained
from bench.probes.latency import probe as latency
from bench.spec.protocol import Protocol
from bench.training.limits import Limits

PROBES: dict[str, Callable[[Subject], Finding]] = {
    "test": score.find,
    "shift": shift.find,
    "softmax-noise": softmax_noise.find,
}
# Of those that cannot ask about all data, and of those that ask about other rows than the test rows.
CHECKS: dict[str, Callable[[Protocol, Split], None]] = {"shift": shift.check, "softmax-noise": softmax_noise.check}
ROWS: dict[str, Callable[[Protocol, int], int]] = {"shift": shift.rows, "softmax-noise": softmax_noise.rows}

Together = Callable[[Sequence[Untrained], str, Limits], Iterator[tuple[int, Finding | Exception]]]
# Those that look at all cells of a unit at once, and need no trained networks.
TOGETHER: dict[str, Together] = {"latency": latency.find_together}


def find(subject: Subject) -> Finding:
    """Ask what the suite wants to know."""
    return PROBES[subject.protocol.probe.kind](subject)


def find_together(
    subjects: Sequence[Untrained], device: str, limits: Limits
) -> Iterator[tuple[int, Finding | Exception]]:
    """Ask of cells that are looked at together; yield the number of each and what was found, or what it raised."""
    return TOGETHER[subjects[0].protocol.probe.kind](subjects, device, limits)


def check(protocol: Protocol, split: Split) -> None:
    """Raise a UserError where the suite's question makes no sense for the data."""
    if protocol.probe.kind in CHECKS:
        CHECKS[protocol.probe.kind](protocol, split)


def rows_asked(protocol: Protocol, test_rows: int) -> int:
    """Return at how many rows functions are drawn, which is most of what a probe costs."""
    asked = ROWS.get(protocol.probe.kind)
    return asked(protocol, test_rows) if asked else test_rows


__all__ = ["Finding", "Subject", "Untrained", "check", "find", "find_together", "rows_asked"]
