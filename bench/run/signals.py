"""Stopping a run: once politely, twice at once. SIGTERM, which clusters send, counts like Ctrl-C."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Whether, and by which signal, the user asked to stop."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextmanager
def polite_stop(tell: Callable[[str], None]) -> Iterator[Stop]:
    """Inside the block the first signal only sets the flag; the second raises KeyboardInterrupt."""
    stop = Stop()

    def asked(number: int, frame: FrameType | None) -> None:
        if stop:
            raise KeyboardInterrupt
        stop.signal = number
        tell("finishing the cells in work and storing them; once more stops at once")

    numbers = (signal.SIGINT, signal.SIGTERM)
    # What was started to ignore a signal (nohup, a script's background job) goes on ignoring it.
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, asked) for number in heard}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
