"""Trained networks that are kept (`--keep-networks`): methods that train alike need not train them again.

A network is one safetensors file, named by the rows, the seed and the protocol, without what follows after a training,
and by the training within these. Its header holds what the record of a training says, the form of the training (torch,
device, traced or compiled), and a hash of the tensors. A file that is damaged, or of another form, is not used.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench.machine.files import write_whole
from bench.spec.spec import CellSpec
from bench.training.checkpoints import FORMAT, short_hash
from bench.training.fit import computing_as_trained, fit_with_progress
from bench.training.flops import measure
from bench.training.forms import read_form
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, start
from bench.training.progress import Progress

PARTS = ("params", "buffers", "memory")
AFTER_TRAINING = frozenset({"draws", "probe"})  # of a protocol: no trained network depends on it
Tensors = Mapping[str, Tensor]
Fit = Callable[[Sequence[Member], Limits], Iterator[tuple[int, Fitted] | Progress]]


def folder_of(arrays: Path) -> Path:
    """Return the folder of the kept networks of a store, beside its arrays."""
    return arrays.with_suffix(".networks")


def place_of(spec: CellSpec) -> str:
    """Return the folder of a cell's networks: one for all methods, metrics and probes that could use them."""
    plain = {name: value for name, value in spec.plain().items() if name not in ("method", "space", "metrics")}
    plain["protocol"] = {name: v for name, v in plain["protocol"].items() if name not in AFTER_TRAINING}
    return short_hash(plain)


def files_of(arrays: Path) -> list[Path]:
    """Return the files of all kept networks of a store."""
    return sorted(folder_of(arrays).glob("*/*.safetensors"))


def fit_unless_kept(
    members: Sequence[Member], limits: Limits, fit: Fit = fit_with_progress
) -> Iterator[tuple[int, Fitted] | Progress]:
    """Yield the networks that an earlier run kept, then train the others as `fit` does, and keep them if wanted."""
    left = []
    for number, member in enumerate(members):
        if (kept := load_network(member, limits)) is None:
            left.append(number)
            continue
        # What follows is computed as after a training: with as many threads, and without gradients.
        with computing_as_trained(measure(member), limits), torch.no_grad():
            yield number, kept
    for item in fit([members[number] for number in left], limits):
        if isinstance(item, Progress):
            yield item
            continue
        number = left[item[0]]
        save_network(members[number], item[1], limits)
        yield number, item[1]


def save_network(member: Member, fitted: Fitted, limits: Limits) -> None:
    """Keep a trained network; if that fails, warn: the results do not depend on it."""
    from safetensors.torch import save

    if not limits.networks or not member.kept_as or fitted.status != "ok" or fitted.stored:
        return
    tensors = {
        f"{part}/{name}": tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for part in PARTS
        for name, tensor in getattr(fitted, part).items()
    }
    about = {
        **_form(member, limits),
        "trained": str(fitted.form),
        "epochs": fitted.epochs,
        "train_loss": fitted.train_loss,
        "validation_loss": fitted.validation_loss,
        "history": [list(losses) for losses in fitted.history],
        "strides": {f"{part}/{name}": t.stride() for part in PARTS for name, t in getattr(fitted, part).items()},
        "digest": _digest(tensors),
    }
    path = Path(limits.networks) / member.kept_as
    content = save(tensors, metadata={"about": json.dumps(about)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda file: file.write(content))
    except OSError as error:
        warnings.warn(f"network not kept: {path.parent}: {error.strerror or error}", stacklevel=2)


def load_network(member: Member, limits: Limits) -> Fitted | None:
    """Return the network of a training that was kept, as the training would end, or None."""
    path = Path(limits.networks) / member.kept_as
    if not limits.networks or not member.kept_as or not path.is_file():
        return None
    try:
        about, tensors = read_network(path)
    except ValueError as error:
        warnings.warn(f"{error}; the network is trained again", stacklevel=2)
        return None
    form = read_form(str(about.get("trained", "")))
    if form is None or {name: about.get(name) for name in _form(member, limits)} != _form(member, limits):
        return None
    begun, strides = start(member), about["strides"]
    parts: dict[str, dict[str, Tensor]] = {}
    for part in PARTS:
        own = {name.removeprefix(f"{part}/"): t for name, t in tensors.items() if name.startswith(f"{part}/")}
        shapes = {name: (t.shape, t.dtype) for name, t in getattr(begun, part).items()}
        if {name: (t.shape, t.dtype) for name, t in own.items()} != shapes:
            return None
        parts[part] = {name: _laid_out(own[name], strides[f"{part}/{name}"]) for name in shapes}
        parts[part] = {name: tensor.to(member.rows.x.device) for name, tensor in parts[part].items()}
    history = [(float(train), float(held)) for train, held in about["history"]]
    losses = (float(about["train_loss"]), about["validation_loss"])
    network = (parts["params"], parts["buffers"], parts["memory"])
    return Fitted(begun.module, *network, "ok", form, int(about["epochs"]), *losses, history, stored=True)


def read_network(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the header and the tensors of a kept network; raises ValueError where the file is damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {})["about"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping
        if about["digest"] != _digest(tensors):
            raise ValueError("its content does not match its hash")
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a kept network ({' '.join(str(error).split())[:100]})") from error
    return about, tensors


def _laid_out(tensor: Tensor, strides: Sequence[int]) -> Tensor:
    """Return the tensor with the layout in memory that its training left: products of matrices round by layout."""
    return torch.empty_strided(tensor.shape, [int(step) for step in strides], dtype=tensor.dtype).copy_(tensor)


def _form(member: Member, limits: Limits) -> dict[str, Any]:
    """Return what the last bits of a training depend on besides the member."""
    wanted = [str(member.own_form), limits.compiling, limits.path]
    return {"format": FORMAT, "torch": torch.__version__, "device": member.rows.x.device.type, "wanted": wanted}


def _digest(tensors: Tensors) -> str:
    found = hashlib.blake2b(digest_size=16)
    for piece in _pieces(tensors):
        found.update(piece)
    return found.hexdigest()


def _pieces(tensors: Tensors) -> Iterator[bytes]:
    for name in sorted(tensors):
        tensor = tensors[name]
        yield json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode()
        yield tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()
