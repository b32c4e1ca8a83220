"""The hooks of a method on the miniature device: where they leave tensors, and what a draw copies and waits for."""

from collections.abc import Iterator
from contextlib import contextmanager

from bench.errors import UserError
from bench.testing.check import NotApplicable, require
from bench.testing.hooks import hook_results
from bench.testing.miniature import Crossing, crossings, miniature
from bench.training.member import Member

ROUNDING = 1e-3  # relative to the largest number of a tensor, between two devices
# Bases of the same space differ by signs from one device to another, and a level chosen by a score may flip.
NOT_COMPARED = ("finish",)


def second_device() -> str:
    """Return the name of the miniature device; raises where another vendor's device has its place in torch."""
    try:
        return miniature()
    except UserError as error:
        raise NotApplicable(str(error)) from None


def require_same_hooks(member: Member, device: str) -> list[Crossing]:
    """Fail the check unless all hooks work on the device as on the CPU; return what its draw copied and waited for."""
    found: list[Crossing] = []

    @contextmanager
    def watch() -> Iterator[None]:
        with crossings() as recorded:
            yield
        found.extend(recorded)

    for result in hook_results(member, device, watch):
        if left := result.elsewhere(device):
            advice = "create tensors on the device of their inputs: torch.zeros_like(w), x.new_zeros(shape)"
            require(False, f"on a second device {result.hook} returns {', '.join(left[:3])}; {advice}")
        gap = 0.0 if result.hook in NOT_COMPARED else result.gap()
        require(gap < ROUNDING, f"on a second device {result.hook} differs by {gap:.2g} from the CPU")
    return found
