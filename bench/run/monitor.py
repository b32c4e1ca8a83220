"""What a run reports to its caller while it goes on, and how the caller stops it. Light to import."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.spec.cell import Cell, Outcome


class Monitor:
    """Follows a run: override what is of interest. This one ignores everything and never stops the run."""

    def cell_done(self, cell: "Cell", outcome: "Outcome | None") -> None:
        """Take note of a cell that has a result; no outcome: it was stored before, or by another driver."""

    def progress(self, state: object) -> None:
        """Take note of how far the run is: `str(state)` says it in words, whenever it is asked."""

    def note(self, text: str) -> None:
        """Take note of what the user should know, in one line."""

    def should_stop(self) -> bool:
        """Return whether no more work is to be handed out; what is in work is finished and stored."""
        return False
