"""How far a stack of networks is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """The progress of a stack."""

    training: int  # networks in training
    waiting: int
    ended: int
    epoch: int  # of the member that has trained longest

    @property
    def networks(self) -> int:
        """All networks of the stack."""
        return self.training + self.waiting + self.ended
