"""Copies between the host and a device that neither of them waits for, and memory that is given back to the device.

Only page-locked ("pinned") memory can be copied while both go on: a copy from ordinary memory waits until the device
has done all that was queued.
"""

import gc
from collections.abc import Iterable

import torch
from torch import Tensor

PINNING = ("cuda", "xpu")  # kinds of devices that copy from pinned memory


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor of the host on the device; work that is queued later sees it complete."""
    if tensor.device != device and device.type in PINNING:
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def to_host(parts: Iterable[Tensor]) -> list[Tensor]:
    """Return tensors on the host. The device is waited for once, when the last of them is on its way."""
    found, device = [], torch.device("cpu")
    for part in parts:
        device = part.device
        if device.type in PINNING:
            there = torch.empty(part.shape, dtype=part.dtype, pin_memory=True)
            found.append(there.copy_(part, non_blocking=True))
        else:
            found.append(part.cpu())
    if device.type in PINNING:
        torch.accelerator.synchronize(device)
    return found


def release_memory(device: torch.device) -> None:
    """Give memory that is no longer in use back to the device, before the same work is tried in smaller parts."""
    gc.collect()
    if device.type != "cpu" and torch.accelerator.is_available():
        torch.accelerator.empty_cache()
