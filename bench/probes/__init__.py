"""Probes: what is asked of the trained networks of a cell.

A suite chooses one in its table `[probe]`; the options of each are declared in `bench.protocol`. The ordinary one draws
at the test rows and scores.
"""

from collections.abc import Callable

from bench.probes import test
from bench.probes.subject import Finding, Subject

PROBES: dict[str, Callable[[Subject], Finding]] = {"test": test.find}


def find(subject: Subject) -> Finding:
    """Ask what the suite wants to know."""
    return PROBES[subject.protocol.probe.kind](subject)


__all__ = ["Finding", "Subject", "find"]
