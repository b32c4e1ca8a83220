"""In which precision a training computes its products, and whether the hardware was made for it.

`training.precision` is part of a cell's key, so it is what the suite says and never a choice of the machine. bfloat16
has float32's range with 8 bits of mantissa: autocast computes matrix products and convolutions in it and keeps sums,
norms and losses in float32, so no scaling of the loss is needed. Where the hardware has no such products they are
emulated, slowly, with the same rounding.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def forward_precision(name: str, device: torch.device) -> Iterator[None]:
    """Compute products inside the block in this precision."""
    with torch.autocast(device.type, torch.bfloat16, enabled=name == "bfloat16"):
        yield


def computes_bfloat16(device: torch.device) -> bool:
    """Does the device multiply in bfloat16 itself?"""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    able = torch.cpu.get_capabilities()
    return any(able.get(name, False) for name in ("amx_bf16", "avx512_bf16", "bf16"))  # the last is Arm's name


def warn_of_emulation(name: str, device: torch.device) -> None:
    """Tell once who asks for a precision that this hardware only imitates."""
    if name == "bfloat16" and not computes_bfloat16(device):
        warnings.warn(
            "training.precision: this hardware has no bfloat16 products and emulates them, many times slower than "
            "float32; take float32 here",
            stacklevel=2,
        )
