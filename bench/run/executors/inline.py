"""The engine without workers: calls are carried out by this process, one after another."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from bench.run.executors import Call


class InlineEngine:
    """Carries a call out while its results are asked for."""

    workers = 1

    def __init__(self) -> None:
        self._calls: deque[tuple[Iterator[Any], Future[None]]] = deque()

    def submit(self, call: Call, /, *arguments: Any) -> "Future[None]":
        """Note a call."""
        future: Future[None] = Future()
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
            except Exception as error:  # the runner tells it
                future.set_exception(error)
            self._calls.popleft()
        return []

    def close(self, *, now: bool = False) -> None:
        """Forget what was not carried out."""
        self._calls.clear()
