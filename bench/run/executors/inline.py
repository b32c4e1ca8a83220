"""The executor without workers: this process runs the calls, one after another."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from bench.errors import raise_if_stop
from bench.run.executors import Call


class InlineExecutor:
    """Runs a call while its messages are received."""

    workers = 1
    ends_calls = False

    def __init__(self) -> None:
        self._calls: deque[tuple[Iterator[Any], Future[None]]] = deque()

    def submit(self, call: Call, /, *arguments: Any) -> "Future[None]":
        """Put a call in the queue."""
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # it runs at the next occasion, whatever comes
        self._calls.append((call(*arguments), future))
        return future

    def receive(self, seconds: float) -> list[Any]:
        """Go on with the first call until it yields or ends."""
        while self._calls:
            running, future = self._calls[0]
            try:
                return [next(running)]
            except StopIteration:
                future.set_result(None)
            except BaseException as error:  # reported by the driver
                raise_if_stop(error)
                future.set_exception(error)
            self._calls.popleft()
        return []

    def notes(self) -> list[str]:
        """Return nothing: there is nothing to be said of workers that are started for the run."""
        return []

    def close(self, *, now: bool = False) -> None:
        """Forget the calls that did not run."""
        self._calls.clear()
