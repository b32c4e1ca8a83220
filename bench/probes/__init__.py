"""Probes: what is asked of the trained networks of a cell.

A suite chooses one in its table `[probe]`; the options of each are declared in `bench.protocol`. The ordinary one draws
at the test rows and scores.
"""

from collections.abc import Callable, Iterator, Sequence

from bench.probes import latency, test
from bench.probes.subject import Finding, Subject, Untrained
from bench.stack import Limits

PROBES: dict[str, Callable[[Subject], Finding]] = {"test": test.find}

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


__all__ = ["Finding", "Subject", "Untrained", "find", "find_together"]
