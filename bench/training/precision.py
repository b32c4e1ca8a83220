"""The precision of the products in training, and whether the hardware supports it.

`training.precision` is part of a cell's key: the suite decides it, never the machine. bfloat16 has float32's range with
8 bits of mantissa: autocast computes matrix products and convolutions in it and keeps sums, norms and losses in
float32, so the loss need not be scaled. Hardware without such products emulates them, slowly, with the same rounding.
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
    """Return whether the device has bfloat16 products."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":  # of others torch does not tell
        return True
    able = torch.cpu.get_capabilities()
    return any(able.get(name, False) for name in ("amx_bf16", "avx512_bf16", "bf16"))  # the last is Arm's name


def warn_of_emulation(name: str, device: torch.device) -> None:
    """Warn if this hardware emulates the precision."""
    if name == "bfloat16" and not computes_bfloat16(device):
        slow = "this hardware has no bfloat16 products and emulates them, many times slower than float32"
        warnings.warn(f"training.precision: {slow}; use float32 here", stacklevel=2)
