"""Stopping a run: the first signal lets it finish its cells, the second ends it. SIGTERM counts like Ctrl-C."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from bench.errors import StopNowError


class Stop:
    """Whether, and by which signal, the run is to be stopped."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextmanager
def polite_stop(notify: Callable[[str], None]) -> Iterator[Stop]:
    """Inside the block the first signal only sets the flag; the second raises StopNowError."""
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop:
            raise StopNowError
        stop.signal = number
        notify("finishing the cells in work and storing them; once more stops at once")

    numbers = (signal.SIGINT, signal.SIGTERM)
    # A process that was started to ignore a signal (nohup, a script's background job) goes on ignoring it.
    handled = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    if threading.current_thread() is not threading.main_thread():
        handled = []  # only the main thread may handle signals
    before = {number: signal.signal(number, handle) for number in handled}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
