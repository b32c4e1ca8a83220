"""Random numbers of torch's generator on a CPU, many at once: the same bits in a tenth to a third of the time.

torch computes one number after another. The kernels (`random_numbers.cpp`) use the vectors of the processor. They are
used where a trial has shown that they give torch's bits and leave its generator in the same state, and for as many
numbers as make up for handing the state over; everything else is drawn by torch.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from bench.machine.kernels import load_kernels

SOURCE = Path(__file__).with_suffix(".cpp")
# Sums are fused where the source says so and nowhere else; square roots set no error variable, which vectors cannot.
FLAGS = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
FEWEST = 1_000  # handing the state over takes as long as torch takes for so many numbers
# Kernels that no run has compiled yet are compiled when torch has drawn so many: that has then taken as long.
ENOUGH_TO_COMPILE = 2**27
TRIALS = (65_536, 2_003, 624, 16)  # numbers of a trial, one after another from one stream

Draw = Callable[[torch.Generator, Tensor], object]
TORCH: dict[str, Draw] = {
    "normals": lambda source, target: target.normal_(generator=source),
    "uniforms": lambda source, target: target.uniform_(generator=source),
}


def write_normals(source: torch.Generator, target: Tensor) -> None:
    """Fill a contiguous tensor with the next normal numbers of a generator, as `Tensor.normal_` does."""
    _here.write("normals", source, target)


def write_uniforms(source: torch.Generator, target: Tensor) -> None:
    """Fill a contiguous tensor with the next numbers between 0 and 1 of a generator, as `Tensor.uniform_` does."""
    _here.write("uniforms", source, target)


@dataclass
class _Numbers:
    """The kernels of this process, once it has any."""

    by_torch: int = 0  # numbers that torch has drawn where kernels would have
    kernels: ctypes.CDLL | None = None
    looked_for: bool = False  # among those that an earlier run has compiled
    settled: bool = False  # whether there are kernels will not change any more

    def write(self, law: str, source: torch.Generator, target: Tensor) -> None:
        many = target.numel() >= FEWEST and _on_host(source, target)
        kernels = self.found(target.numel()) if many else None
        if kernels is None:
            TORCH[law](source, target)
        else:
            _draw(kernels, law, source, target)

    def found(self, count: int) -> ctypes.CDLL | None:
        """Return the kernels for so many numbers: loaded when first asked for, compiled when that pays."""
        if not self.settled:
            self.by_torch += count
            pays = self.by_torch >= ENOUGH_TO_COMPILE
            if pays or not self.looked_for:
                loaded = load_kernels(SOURCE, *FLAGS, compiling=pays)
                self.looked_for, self.settled = True, pays or loaded is not None
                self.kernels = loaded if loaded is not None and _same_as_torch(loaded) else None
        return self.kernels


_here = _Numbers()


def _on_host(source: torch.Generator, target: Tensor) -> bool:
    return (
        type(target) is Tensor
        and target.device.type == source.device.type == "cpu"
        and target.dtype is torch.float32
        and target.is_contiguous()
        and not target.requires_grad
    )


def _draw(kernels: ctypes.CDLL, law: str, source: torch.Generator, target: Tensor) -> None:
    state = source.get_state()
    addresses = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (state, target))
    getattr(kernels, law)(*addresses, ctypes.c_int64(target.numel()))
    source.set_state(state)


def _same_as_torch(kernels: ctypes.CDLL) -> bool:
    """Return whether the kernels give torch's numbers and leave its generator in the same state."""
    expected, found = (torch.Generator().manual_seed(0) for _ in range(2))
    for law, draw in TORCH.items():
        for count in TRIALS:
            wanted, given = torch.empty(count), torch.empty(count)
            draw(expected, wanted)
            _draw(kernels, law, found, given)
            if not (torch.equal(wanted, given) and torch.equal(expected.get_state(), found.get_state())):
                return False
    return True
