"""Refuses what a hook must not do at the operation that does it, so that the traceback ends in the author's line."""

import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from bench.api import BaseMethod, Batch, Net, Task
from bench.errors import UserError

FROM_TAPE = "take random numbers from the tape: tape.normal(shape), tape.uniform(shape), tape.integer(below)"


def place_of(method: BaseMethod, hook: str) -> str:
    """Return a hook's name with the file and line where it is defined."""
    code = getattr(inspect.unwrap(getattr(type(method), hook)), "__code__", None)
    return hook if code is None else f"{hook}, {Path(code.co_filename).name}:{code.co_firstlineno}"


def check_draw_shape(method: BaseMethod, task: Task, outputs: Tensor, *, own_columns: bool = False) -> None:
    """Raise if a draw is no table of means, or of means and variances, or of logits.

    `own_columns`: the method says in `predict` what its columns are.
    """
    if outputs.ndim != 2:
        reason = f"draw must return [rows, outputs], got shape {list(outputs.shape)}"
    elif task == "regression" and not own_columns and outputs.shape[1] not in (1, 2):
        reason = (
            f"draw must return means, or means and variances, got {outputs.shape[1]} columns; "
            "a method that states something else says in predict what its columns are"
        )
    else:
        return
    raise UserError(f"{place_of(method, 'draw')}: {reason}")


@contextmanager
def guarded(net: Net, batch: Batch | None = None, **inputs: Tensor) -> Iterator[None]:
    """Refuse own random numbers, writing in place, and targets that broadcast against outputs, inside the block."""
    kept = {f"net.params[{name!r}]": tensor for name, tensor in net.params.items()}
    kept |= {f"net.memory[{name!r}]": tensor for name, tensor in net.memory.items()}
    if batch is None:  # a draw, which must not write buffers either; batch norm does in training
        kept |= {f"net.buffers[{name!r}]": tensor for name, tensor in net.buffers.items()}
    else:
        inputs = {"batch.x": batch.x, "batch.y": batch.y}
    with _Guard(net.module, kept | inputs, batch):
        yield


class _Guard(TorchDispatchMode):
    def __init__(self, module: nn.Module, kept: Mapping[str, Tensor], batch: Batch | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not type it
        self._layers = {id(layer): name for name, layer in module.named_modules()}
        self._kept = {place: name for name, tensor in kept.items() if (place := _storage(tensor))}
        self._targets = batch.y if batch is not None and batch.task == "regression" else None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        random, writes = _kind(func)
        if random:
            raise UserError(self._random_layer() or f"{_name(func)} is not reproducible under the harness; {FROM_TAPE}")
        if writes:
            self._refuse_writing(func, args)
        result = func(*args, **(kwargs or {}))
        if self._targets is not None and isinstance(result, Tensor) and result.ndim == 2:
            self._refuse_broadcasting(args, result)
        return result

    def _refuse_writing(self, func: Any, args: Any) -> None:
        for argument, value in zip(func._schema.arguments, args, strict=False):
            if argument.alias_info is None or not argument.alias_info.is_write or not isinstance(value, Tensor):
                continue
            if (name := self._kept.get(_storage(value))) is not None:
                raise UserError(f"{_name(func)} writes into {name} in place; write new tensors instead")

    def _refuse_broadcasting(self, args: Any, result: Tensor) -> None:
        """Outputs `[n, 1]` less targets `[n]` are `[n, n]`, whose mean trains a network to predict a constant."""
        targets = self._targets
        assert targets is not None
        rows = len(targets)
        tensors = [value for value in args if isinstance(value, Tensor)]
        if rows < 2 or result.shape != (rows, rows) or not any(_same(value, targets) for value in tensors):
            return
        others = [value for value in tensors if value.shape == (rows, 1) and _storage(value) != _storage(targets)]
        if others or _in_functional():
            raise UserError(
                f"outputs of shape [{rows}, 1] and targets of shape [{rows}] broadcast to [{rows}, {rows}];"
                " write net(batch.x)[:, 0], or use batch.loss"
            )

    def _random_layer(self) -> str:
        """Return what is wrong if the numbers are for a layer of torch's own, such as Dropout."""
        frame: Any = sys._getframe(2)
        while frame is not None and not isinstance(frame.f_locals.get("self"), nn.Module):
            frame = frame.f_back
        layer = None if frame is None else frame.f_locals["self"]
        if layer is None or not type(layer).__module__.startswith("torch.nn."):
            return ""
        name = self._layers.get(id(layer), "")
        found = (
            f"layer {name!r} ({type(layer).__name__}) draws random numbers of its own in training and none in a draw"
        )
        return f"{found}; leave it out and write net(x, hidden=...), with a mask from the tape, as mc-dropout does"


@cache  # to ask torch takes longer than many operations
def _kind(func: Any) -> tuple[bool, bool]:
    """Return whether an operation draws random numbers, and whether it writes into its arguments."""
    return torch.Tag.nondeterministic_seeded in func.tags, bool(func._schema.is_mutable)


def _name(func: Any) -> str:
    return str(func.overloadpacket.__name__)


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)  # a device need not tell where its memory is


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and _storage(one) == _storage(other)


def _in_functional() -> bool:
    """Return whether the operation is part of one of torch's loss functions, which expand their arguments first."""
    frame: Any = sys._getframe(3)
    while frame is not None:
        if frame.f_code.co_filename == torch.nn.functional.__file__:
            return True
        frame = frame.f_back
    return False
