"""Engines: where orders are carried out.

An engine is an executor in the sense of `concurrent.futures` whose calls are generators: what a call yields comes back
while it still runs, so that the driver, which is the only writer, stores each cell the moment it ends. The future is
done when the generator is; it raises `LostWorkerError` when its worker died.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Protocol

Call = Callable[..., Iterator[Any]]

OUT_OF_TIME = "not done within the time limit"  # how a LostWorkerError begins when that was the reason


class LostWorkerError(Exception):
    """A worker ended before its call did; says how."""


class Engine(Protocol):
    """Workers, and what they send while they work."""

    @property
    def workers(self) -> int:
        """How many calls can be carried out at once."""
        ...

    def submit(self, call: Call, /, *arguments: Any) -> "Future[None]":
        """Have a call carried out."""
        ...

    def receive(self, seconds: float) -> list[Any]:
        """Return what arrived; wait at most so long for the first, less if a call ends."""
        ...

    def close(self, *, now: bool = False) -> None:
        """End the workers; now: without waiting for what they are doing."""
        ...
