"""Streams of random numbers of members: what several of them draw at the same place of one stream is drawn once.

All configurations of a search have the seed of their fold, so that they differ in nothing but their options: they read
the same shuffles and the same noise. A copy takes less time than a draw. The numbers are those that every member would
draw by itself. They are drawn on the device that trains, by its own generator.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from bench.api.tape import generator

BYTES_KEPT = 3 * 2**25  # of the first draws, through which every member goes
BYTES_RECENT = 2**25  # of the last ones, for members that began together


class Stream:
    """One stream of a member, at its present place."""

    def __init__(self, seed: int, name: str, device: torch.device | str = "cpu") -> None:
        self.state = _first_state(seed, name, str(device))
        self.place: Hashable = (seed, name)  # equal for streams that will give the same numbers

    def restore(self, state: Tensor) -> None:
        """Continue from a state that was stored."""
        self.state, self.place = state, object()


@lru_cache(maxsize=256)
def _first_state(seed: int, name: str, device: str) -> Tensor:
    return generator(seed, name, device=device).get_state()


_Draw = tuple[tuple[Tensor, ...], Tensor, Hashable]  # the numbers, and the state and place of the stream after them


class Draws:
    """Draws from the streams of a group of members; keeps draws only where members `share` seeds."""

    def __init__(self, share: bool, device: torch.device | str = "cpu") -> None:
        self._share = share
        self._source = generator(0, "any", device=device)  # in whichever state its stream is
        self._kept: dict[Hashable, _Draw] = {}
        self._recent: dict[Hashable, _Draw] = {}
        self._bytes = [0, 0]

    def into(self, streams: Sequence[Stream | None], *targets: Tensor, draw: Callable[..., object]) -> None:
        """Fill row i of every target with the next numbers of stream i, as `draw(generator, *rows)` does."""
        if not self._share:
            for place, stream in enumerate(streams):
                if stream is not None:
                    stream.state, stream.place = self._drawn(stream, [target[place] for target in targets], draw)
            return
        shapes = tuple(target.shape[1:] for target in targets)
        found: list[tuple[Tensor, ...]] = []
        blank = tuple(target.new_zeros(()).expand(target.shape[1:]) for target in targets)
        for stream in streams:
            if stream is None:
                found.append(blank)
                continue
            key = (stream.place, shapes)
            known = self._kept.get(key) or self._recent.get(key)
            if known is None:
                numbers = tuple(target.new_empty(target.shape[1:]) for target in targets)
                known = (numbers, *self._drawn(stream, numbers, draw))
                self._keep(key, known)
            numbers, stream.state, stream.place = known
            found.append(numbers)
        # One operation for all rows: a copy of each takes longer to call than to do.
        for target, rows in zip(targets, zip(*found, strict=True), strict=True):
            torch.stack(rows, out=target)

    def _drawn(self, stream: Stream, rows: Sequence[Tensor], draw: Callable[..., object]) -> tuple[Tensor, Hashable]:
        """Draw the next numbers of a stream into these rows; return its state and its place after them."""
        self._source.set_state(stream.state)
        draw(self._source, *rows)
        return self._source.get_state(), object()

    def _keep(self, key: Hashable, draw: _Draw) -> None:
        size = _bytes(draw)
        if self._bytes[0] + size <= BYTES_KEPT:
            self._kept[key] = draw
            self._bytes[0] += size
            return
        self._recent[key] = draw
        self._bytes[1] += size
        while self._bytes[1] > BYTES_RECENT:
            self._bytes[1] -= _bytes(self._recent.pop(next(iter(self._recent))))


def _bytes(draw: _Draw) -> int:
    return sum(tensor.nbytes for tensor in (*draw[0], draw[1]))
