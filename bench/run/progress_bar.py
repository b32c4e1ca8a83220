"""The progress bar of a run, and stopping it with Ctrl-C."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from bench.run.monitor import Monitor

if TYPE_CHECKING:
    from bench.run.signals import Stop
    from bench.spec.cell import Cell, Outcome


# One time left, the run's own: tqdm's takes all cells for equally long.
FORMAT = "{desc}: {percentage:3.0f}%|{bar:20}| {n_fmt}/{total_fmt} cells [{elapsed}{postfix}]"
SECONDS_BETWEEN_TICKS = 1.0
SECONDS_BETWEEN_LINES = 60.0  # where there is no terminal for a bar


class ProgressBar(Monitor):
    """Shows on standard error how far a run is: a bar, or a line every minute where `lines` is set."""

    def __init__(self, bar: Any, stop: "Stop", *, lines: bool = False) -> None:
        self._bar = bar
        self.stop = stop
        self._lines, self._done, self._last = lines, 0, time.monotonic()
        self._state: object = ""

    @property
    def visible(self) -> bool:
        """Whether anything is shown."""
        return self._lines or not self._bar.disable

    def cell_done(self, cell: "Cell", outcome: "Outcome | None") -> None:
        """Count a cell."""
        self._done += 1
        self._bar.update()

    def advance(self, cells: int) -> None:
        """Count cells that have no outcome of their own."""
        self._done += cells
        self._bar.update(cells)

    def progress(self, state: object) -> None:
        """Show a state behind the bar, from now on as it is at each second."""
        self._state = state
        self.tick()

    def tick(self) -> None:
        """Show the state as it is now."""
        if self._lines and time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self.note(f"{self._done}/{self._bar.total} cells, {self._state}")
        elif not self._bar.disable:
            self._bar.set_postfix_str(str(self._state))

    def note(self, text: str) -> None:
        """Print a line, whether the bar is shown or not."""
        self._bar.write(f"uqbench: {text}", file=sys.stderr)

    def should_stop(self) -> bool:
        """Return whether a signal has arrived."""
        return bool(self.stop)


@contextmanager
def progress_bar(name: str, total: int, progress: bool | None = None) -> Iterator[ProgressBar]:
    """Yield a progress bar of so many cells; inside the block the first signal stops the run politely.

    `progress` is whether it is shown; None: where standard error is a terminal, and lines at intervals elsewhere.
    """
    from tqdm import tqdm

    from bench.run.signals import polite_stop

    hidden = None if progress is None else not progress
    bar = tqdm(total=total, desc=name, disable=hidden, file=sys.stderr, bar_format=FORMAT)
    with bar, polite_stop(lambda text: tqdm.write(f"uqbench: {text}", file=sys.stderr)) as stop:
        shown = ProgressBar(bar, stop, lines=progress is None and bar.disable)
        with _clock(shown) if shown.visible else nullcontext():
            yield shown


@contextmanager
def _clock(bar: ProgressBar) -> Iterator[None]:
    """Show the state every second, so that its times go on while nothing is reported."""
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(SECONDS_BETWEEN_TICKS):
            bar.tick()

    ticking = threading.Thread(target=tick, daemon=True)
    ticking.start()
    try:
        yield
    finally:
        ended.set()
        ticking.join()
