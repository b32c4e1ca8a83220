"""Checkpoints of large networks: saved after every epoch, so that a killed run continues from the last one.

A checkpoint is one safetensors file, with JSON in its header, written under a temporary name, synced and renamed. It
holds everything the next epoch depends on (weights, buffers, optimiser state, the state of both random generators), so
on the CPU in float32 a resumed training ends with exactly the numbers of an uninterrupted one. A file that is damaged,
or was written in another form (another torch, device or processor, compiled or not, other kernels of our own), is not
used: the training starts again.

There is one folder for each split, seed and protocol. The driver removes it once all its cells are stored.
"""

import hashlib
import json
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench.machine.files import write_whole
from bench.spec.spec import CellSpec
from bench.training import small_convolutions

FORMAT = 1
Tensors = dict[str, Tensor]
Parts = Mapping[str, Mapping[str, Tensor]]  # params, buffers, memory, ...


def folder_of(arrays: Path) -> Path:
    """Return the folder of all checkpoints of a store, beside its arrays."""
    return arrays.with_suffix(".checkpoints")


def place_of(spec: CellSpec) -> str:
    """Return the folder of a cell's trainings: one for all methods on the same rows with the same seed."""
    return short_hash({name: value for name, value in spec.plain().items() if name not in ("method", "space")})


def name_of(*training: object) -> str:
    """Return the file name of the training that these words identify."""
    return f"{short_hash([str(word) for word in training])}.safetensors"


def short_hash(words: object) -> str:
    """Return a name for what some JSON says."""
    return hashlib.blake2b(json.dumps(words, sort_keys=True).encode(), digest_size=12).hexdigest()


def form(device: torch.device, compiled: bool) -> dict[str, Any]:
    """Return what the last bits of a training depend on besides the member."""
    kernels = small_convolutions.kernels_of_this_version() if compiled and device.type == "cpu" else ""
    return {
        "format": FORMAT,
        "torch": torch.__version__,
        "device": device.type,
        "compiled": compiled,
        "kernels": kernels,  # a training that began with others must not go on with these
    }


def save(path: Path, parts: Parts, about: Mapping[str, Any]) -> bool:
    """Write a checkpoint; if that fails, warn and return False, since training can continue without."""
    from safetensors.torch import save as to_bytes

    # One tensor may have two names: the format requires separate memory for each.
    tensors = {
        f"{part}/{name}": tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for part, named in parts.items()
        for name, tensor in named.items()
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = to_bytes(tensors, metadata={"about": json.dumps(about)})
        write_whole(path, lambda file: file.write(content))
    except OSError as error:
        warnings.warn(f"no checkpoints: {path.parent}: {error.strerror or error}", stacklevel=2)
        return False
    return True


def load(path: Path, expected: Mapping[str, Any], shapes: Parts) -> dict[str, Tensors] | None:
    """Return the tensors by part, or None if there is no matching checkpoint.

    `expected` is the form of this training, and `shapes` has tensors of the expected names, shapes and dtypes.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {})["about"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        warnings.warn(f"{path}: not a complete checkpoint, the training starts again ({error})", stacklevel=2)
        return None
    if about != expected:
        return None
    parts: dict[str, Tensors] = {}
    for name, tensor in tensors.items():
        part, _, rest = name.partition("/")
        parts.setdefault(part, {})[rest] = tensor
    for part, named in shapes.items():
        found = parts.get(part, {})
        if {k: (t.shape, t.dtype) for k, t in named.items()} != {k: (t.shape, t.dtype) for k, t in found.items()}:
            return None
    return parts


def forget(folder: Path, place: str) -> None:
    """Remove one folder of checkpoints, and the parent folder if it is empty then."""
    shutil.rmtree(folder / place, ignore_errors=True)
    try:
        folder.rmdir()
    except OSError:  # not empty
        return
