"""Executors: where work orders are computed.

An executor is one in the sense of `concurrent.futures` whose calls are generators: what a call yields comes back while
it still runs, so that the driver, which is the only writer, stores each cell the moment it ends. The future is done
when the generator is; it raises `LostWorkerError` when its worker died.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Protocol

Call = Callable[..., Iterator[Any]]

OUT_OF_TIME = "not done within the time limit"  # how a LostWorkerError begins when that was the reason


class LostWorkerError(Exception):
    """A worker ended before its call did; the message is how."""


class Executor(Protocol):
    """Workers, and what they send while they work."""

    @property
    def workers(self) -> int:
        """How many calls can run at once."""
        ...

    def submit(self, call: Call, /, *arguments: Any) -> "Future[None]":
        """Start a call."""
        ...

    def receive(self, seconds: float) -> list[Any]:
        """Return the messages that arrived; wait at most so many seconds for the first, less if a call ends."""
        ...

    def close(self, *, now: bool = False) -> None:
        """End the workers; now: without waiting for what they are doing."""
        ...
