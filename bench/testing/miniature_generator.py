"""Random generators of the miniature device; torch asks a C++ library for those of a real one.

They are generators of the CPU that say they are not: for a seed they give the CPU's numbers, so that results on both
devices can be compared.
"""

from typing import Any, ClassVar
from weakref import WeakValueDictionary

import torch

NAME = "miniature"  # of the device

_HostGenerator = torch.Generator


class _AnyGenerator(type(_HostGenerator)):  # type: ignore[misc]  # torch has a metaclass of its own
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _HostGenerator)


class Generator(_HostGenerator, metaclass=_AnyGenerator):
    """Stands for `torch.Generator`, and makes generators of the miniature device, too."""

    of_device: ClassVar[WeakValueDictionary[int, "Generator"]] = WeakValueDictionary()

    def __new__(cls, device: Any = "cpu") -> Any:
        """Return a generator of the device that is named."""
        if not is_miniature(device):
            return _HostGenerator(device)
        new = super().__new__(cls)
        cls.of_device[_address(new)] = new
        return new

    def __init__(self, device: Any = "cpu") -> None:
        pass

    @property
    def device(self) -> torch.device:  # type: ignore[override]  # nobody assigns to it
        """The miniature device."""
        return torch.device(NAME, 0)


def is_miniature(device: Any) -> bool:
    """Return whether this names the miniature device."""
    return torch.device(device).type == NAME


def own_generator(argument: Any) -> Any:
    """Return an argument of an operation; raises as CUDA does for a generator of the host."""
    if isinstance(argument, _HostGenerator) and _address(argument) not in Generator.of_device:
        raise RuntimeError(f"Expected a '{NAME}' device type for generator but found 'cpu'")
    return argument


def _address(generator: torch.Generator) -> int:
    """Return what identifies a generator on its way through torch, which wraps it anew."""
    return int(generator._cdata)  # type: ignore[attr-defined]  # torch does not type it
