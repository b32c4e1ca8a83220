"""The progress bar of a run, and stopping it with Ctrl-C."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bench.run.monitor import Monitor

if TYPE_CHECKING:
    from bench.run.signals import Stop
    from bench.spec.cell import Cell, Outcome


class ProgressBar(Monitor):
    """Shows on standard error how far a run is."""

    def __init__(self, bar: Any, stop: "Stop") -> None:
        self._bar = bar
        self.stop = stop

    def cell_done(self, cell: "Cell", outcome: "Outcome | None") -> None:
        """Count a cell."""
        self._bar.update()

    def progress(self, text: str) -> None:
        """Show a text behind the bar."""
        self._bar.set_postfix_str(text)

    def note(self, text: str) -> None:
        """Print a line, whether the bar is shown or not."""
        self._bar.write(f"uqbench: {text}", file=sys.stderr)

    def should_stop(self) -> bool:
        """Return whether a signal has arrived."""
        return bool(self.stop)


@contextmanager
def progress_bar(name: str, total: int, progress: bool | None = None) -> Iterator[ProgressBar]:
    """Yield a progress bar of so many cells; inside the block the first signal stops the run politely.

    `progress` is whether it is shown; None: where standard error is a terminal.
    """
    from tqdm import tqdm

    from bench.run.signals import polite_stop

    bar = tqdm(total=total, unit="cell", desc=name, disable=None if progress is None else not progress, file=sys.stderr)
    with bar, polite_stop(lambda text: tqdm.write(f"uqbench: {text}", file=sys.stderr)) as stop:
        yield ProgressBar(bar, stop)
