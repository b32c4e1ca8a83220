"""Random numbers as data: a tape that layers read in order, so that a result never depends on its neighbours.

A network in a stack of hundreds may not call a random generator itself: under `torch.func.vmap` all members would
share it. Instead the harness counts once how many numbers one call needs, draws them from each member's own
generator, and hands them to the call as a tape.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.errors import UserError

# Numbers drawn ahead in one call. Part of the meaning of a seed: torch's normal generator gives other numbers when
# the same stream is cut elsewhere, so the cut may depend on the member alone, never on memory or on neighbours.
BLOCK = 2**16


@dataclass(frozen=True)
class TapeLength:
    """How many numbers of each law one call reads."""

    normals: int = 0
    uniforms: int = 0

    @property
    def total(self) -> int:
        """All numbers of one call."""
        return self.normals + self.uniforms


class Tape:
    """The random numbers of one call of one network, read in order."""

    def __init__(self, normals: Tensor, uniforms: Tensor) -> None:
        self._normals = normals
        self._uniforms = uniforms
        self._read = [0, 0]

    def normal(self, shape: Sequence[int]) -> Tensor:
        """Return the next standard normal numbers."""
        return self._next(self._normals, 0, shape)

    def uniform(self, shape: Sequence[int]) -> Tensor:
        """Return the next numbers uniform on [0, 1)."""
        return self._next(self._uniforms, 1, shape)

    def integer(self, below: int) -> Tensor:
        """Return the next whole number uniform on 0 .. below - 1, as a scalar tensor."""
        # A float32 uniform may round up to 1 after the product; the clamp keeps the last index valid.
        return (self.uniform(()) * below).long().clamp(max=below - 1)

    @property
    def length(self) -> TapeLength:
        """How much was read so far."""
        return TapeLength(*self._read)

    def _next(self, numbers: Tensor, law: int, shape: Sequence[int]) -> Tensor:
        count = math.prod(shape)
        start = self._read[law]
        if start + count > numbers.shape[-1]:
            raise RuntimeError(
                "the tape ran out: a method must ask for the same random numbers in every call with the same shapes"
            )
        self._read[law] = start + count
        return numbers[start : start + count].reshape(tuple(shape))


class BlankTape(Tape):
    """A tape without end that is only read to be measured: every normal is 0, every uniform 0.5."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        super().__init__(torch.zeros(1, device=device), torch.full((1,), 0.5, device=device))

    def _next(self, numbers: Tensor, law: int, shape: Sequence[int]) -> Tensor:
        self._read[law] += math.prod(shape)
        return numbers.repeat(math.prod(shape)).reshape(tuple(shape))


class LiveTape(Tape):
    """A tape that draws its numbers as they are read, for what runs once and outside a stack."""

    def __init__(self, source: torch.Generator, device: torch.device | str = "cpu") -> None:
        super().__init__(torch.empty(0), torch.empty(0))
        self._source = source
        self._device = device

    def _next(self, numbers: Tensor, law: int, shape: Sequence[int]) -> Tensor:
        self._read[law] += math.prod(shape)
        draw = torch.randn if law == 0 else torch.rand
        return draw(tuple(shape), generator=self._source).to(self._device)


def stream(seed: int, *path: str | int) -> int:
    """Return the seed of a named stream of random numbers.

    torch's generator looks at 32 bits of it, so two of a million streams may coincide; no rule makes any two do so.
    """
    name = "/".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) >> 1


def generator(seed: int, *path: str | int) -> torch.Generator:
    """Return the generator of a named stream. Always on the CPU, so that every device sees the same numbers."""
    return torch.Generator().manual_seed(stream(seed, *path))


@contextmanager
def no_other_randomness(what: str) -> Iterator[None]:
    """Refuse random numbers from torch's global generator inside the block: they would make results irreproducible."""
    before = torch.random.get_rng_state()
    yield
    if not torch.equal(before, torch.random.get_rng_state()):
        raise UserError(f"{what} drew from torch's global generator; take random numbers from the tape instead")


def numbers(source: torch.Generator, calls: int, length: TapeLength) -> tuple[Tensor, Tensor]:
    """Draw the numbers of several calls at once: normals `[calls, n]` and uniforms `[calls, u]`."""
    normals, uniforms = torch.empty(calls, length.normals), torch.empty(calls, length.uniforms)
    write_numbers(source, normals, uniforms)
    return normals, uniforms


def write_numbers(source: torch.Generator, normals: Tensor, uniforms: Tensor) -> None:
    """Fill two contiguous tensors with the next numbers of a stream."""
    if normals.numel():
        torch.randn(normals.shape, generator=source, out=normals)
    if uniforms.numel():
        torch.rand(uniforms.shape, generator=source, out=uniforms)


def block_calls(length: TapeLength, at_most: int) -> int:
    """How many calls' numbers are drawn ahead in one go."""
    return max(1, min(at_most, BLOCK // max(1, length.total)))
