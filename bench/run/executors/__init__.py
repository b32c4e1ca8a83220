"""Executors: where work orders are computed.

An executor is one in the sense of `concurrent.futures` whose calls are generators: what a call yields comes back while
it still runs, so that the driver, which is the only writer, stores each cell the moment it ends. The future is done
when the generator is; it raises `LostWorkerError` when its worker died, and `UnfitWorkerError` when another worker can
compute what this one cannot.
"""

import contextlib
import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Protocol

Call = Callable[..., Iterator[Any]]

OUT_OF_TIME = "not done within the time limit"  # how a LostWorkerError begins when that was the reason


def limits_itself(call: Call) -> bool:
    """Return whether a call ends itself at the time limit, so that its worker need not be ended."""
    return getattr(call, "limits_itself", False)


WAKE = object()  # put into an inbox when a call ends: then nobody waits for a message any longer


def drain(inbox: "queue.SimpleQueue[Any] | queue.Queue[Any]", seconds: float | None) -> list[Any]:
    """Return the messages in an inbox; wait at most so many seconds for the first, None: as long as it takes."""
    found = []
    with contextlib.suppress(queue.Empty):
        found.append(inbox.get(timeout=seconds))
        while True:
            found.append(inbox.get_nowait())
    return [message for message in found if message is not WAKE]


class LostWorkerError(Exception):
    """A worker ended before its call did; the message is how."""


class UnfitWorkerError(Exception):
    """A worker cannot compute a call that others can; it gets no more calls. The message is why."""


class Executor(Protocol):
    """Workers, and what they send while they work."""

    @property
    def workers(self) -> int:
        """How many calls can run at once; 0: none, until a worker comes."""
        ...

    @property
    def ends_calls(self) -> bool:
        """Whether a call that takes longer than the time limit is ended."""
        ...

    def submit(self, call: Call, /, *arguments: Any) -> "Future[None]":
        """Start a call."""
        ...

    def receive(self, seconds: float) -> list[Any]:
        """Return the messages that arrived; wait at most so many seconds for the first, less if a call ends."""
        ...

    def notes(self) -> list[str]:
        """Return what the user should know of the workers, each line once."""
        ...

    def close(self, *, now: bool = False) -> None:
        """End the workers; now: without waiting for what they are doing."""
        ...
