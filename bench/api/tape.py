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
from bench.machine.random_numbers import write_normals, write_uniforms

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
        """Return the next whole number uniform on 0 .. below - 1, as a scalar tensor; `choose` indexes with it."""
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


def choose(values: Tensor, number: Tensor) -> Tensor:
    """Return `values[number]` for a scalar tensor. Indexing by it would wait until the device tells the number."""
    return values.index_select(0, number.reshape(1)).squeeze(0)


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
        super().__init__(torch.empty(0, device=device), torch.empty(0, device=device))
        self._source = source
        self._device = device

    def _next(self, numbers: Tensor, law: int, shape: Sequence[int]) -> Tensor:
        self._read[law] += math.prod(shape)
        draw = torch.randn if law == 0 else torch.rand
        return draw(tuple(shape), generator=self._source, device=self._device)


def stream(seed: int, *path: str | int) -> int:
    """Return the seed of a named stream of random numbers.

    torch's generator looks at 32 bits of it, so two of a million streams may coincide; no rule makes any two do so.
    """
    name = "/".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) >> 1


def new_generator(device: torch.device | str = "cpu") -> torch.Generator:
    """Return a generator of the device that uses its numbers: none of them is copied there from the host."""
    return torch.Generator(device)


def generator(seed: int, *path: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """Return the generator of a named stream on a device. Devices of another kind give other numbers for one seed."""
    return new_generator(device).manual_seed(stream(seed, *path))


@contextmanager
def no_other_randomness(what: str, device: torch.device | str = "cpu") -> Iterator[None]:
    """Refuse random numbers from torch's global generators inside the block: they would make results irreproducible."""
    before = _global_states(device)
    yield
    if not all(torch.equal(a, b) for a, b in zip(before, _global_states(device), strict=True)):
        raise UserError(f"{what} drew from torch's global generator; take random numbers from the tape instead")


def _global_states(device: torch.device | str) -> list[Tensor]:
    """Return the states of the global generators of the host and of the device, where it tells its own."""
    kind = torch.device(device).type
    own = None if kind == "cpu" else getattr(torch.get_device_module(kind), "get_rng_state", None)
    return [torch.random.get_rng_state(), *([] if own is None else [own()])]


def numbers(
    source: torch.Generator, calls: int, length: TapeLength, device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor]:
    """Draw the numbers of several calls at once, on the device: normals `[calls, n]` and uniforms `[calls, u]`."""
    normals = torch.empty(calls, length.normals, device=device)
    uniforms = torch.empty(calls, length.uniforms, device=device)
    write_numbers(source, normals, uniforms)
    return normals, uniforms


def write_numbers(source: torch.Generator, normals: Tensor, uniforms: Tensor) -> None:
    """Fill two contiguous tensors with the next numbers of a stream."""
    if normals.numel():
        write_normals(source, normals)
    if uniforms.numel():
        write_uniforms(source, uniforms)


def block_calls(length: TapeLength, at_most: int) -> int:
    """How many calls' numbers are drawn ahead in one go."""
    return max(1, min(at_most, BLOCK // max(1, length.total)))
