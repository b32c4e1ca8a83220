"""An accelerator in miniature: a second device, computed by the CPU, that obeys the rules of a real one.

    device = miniature()                       # "miniature", registered with torch for the rest of the process
    x = torch.zeros(3, device=device)
    x + torch.zeros(3)                         # raises: tensors on two devices
    with crossings() as found:                 # every copy between host and device, every wait for a result
        x.sum().item()

What a CPU forgives and a GPU does not is found without a GPU: tensors that a hook left on the host, copies and waits
between draws, random numbers of the host. As with CUDA, a CPU tensor of one number may take part in elementwise
operations, and rows of the device may be chosen by indices of the host; the latter is a copy.

It is a tensor subclass on torch's device type for backends of other vendors, so `vmap`, gradients and traces work as on
any device. Speed and memory are those of the CPU, and kernels cannot fail as a GPU's do: `uqbench verify device` tests
those on the real one.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from bench.errors import UserError
from bench.testing.miniature_generator import NAME, Generator, is_miniature, own_generator

Kind = Literal["to device", "to host", "wait", "host random numbers"]

aten = torch.ops.aten
_COPIES = (aten._to_copy.default, aten.copy_.default, aten._copy_from.default)


@dataclass(frozen=True)
class Crossing:
    """Something that a real accelerator would have to wait for, or that keeps the host at work."""

    kind: Kind
    operation: str
    place: str  # the file and line of the nearest caller outside torch

    def __str__(self) -> str:
        return f"{self.kind} ({self.operation}) at {self.place}"


class Queue(Protocol):
    """Hears of the work of the device; `bench.testing.miniature_queue` has one that keeps time."""

    def operate(self, operation: str) -> None:
        """Queue an operation."""

    def wait(self) -> None:
        """Let the host wait for all that is queued."""

    def copy_later(self, target: Tensor) -> None:
        """Take back the numbers that were copied to a tensor of the host, until it is waited for."""


class MiniatureTensor(Tensor):
    """A tensor of the second device; `host` holds its numbers."""

    host: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]  # as torch documents it

    @staticmethod
    def __new__(cls, host: Tensor) -> "MiniatureTensor":
        """Return a tensor of the second device with the numbers of one of the CPU, not copied."""
        new: MiniatureTensor = Tensor._make_wrapper_subclass(
            cls,
            host.size(),
            strides=host.stride(),
            storage_offset=host.storage_offset(),
            dtype=host.dtype,
            device=torch.device(NAME, 0),
        )
        new.host = host
        return new

    def __repr__(self, *, tensor_contents: object = None) -> str:  # type: ignore[override]  # torch does not type it
        return f"{NAME}:{self.host!r}"

    # torch reads these two from memory, past the dispatcher, and refuses subclasses.

    def tolist(self) -> Any:
        """Copy to the host, and return its numbers."""
        return self.cpu().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Copy to the host if forced, as torch does for any device."""
        if not force:
            raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy; use Tensor.cpu() first")
        return self.detach().cpu().numpy()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # as torch documents it
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _run(func, args, kwargs or {})


class _Device:
    """The state of the device: who watches it."""

    def __init__(self) -> None:
        self.libraries: list[torch.library.Library] = []
        self.crossings: list[list[Crossing]] = []
        self.queues: list[Queue] = []

    def cross(self, kind: Kind, func: Any) -> None:
        """Tell whoever watches."""
        if self.crossings:
            crossing = Crossing(kind, _name(func), _place())
            for found in self.crossings:
                found.append(crossing)


_device = _Device()


class _Module:
    """What torch asks of the module of a device."""

    is_initialized = is_available = staticmethod(lambda: True)
    current_device = staticmethod(lambda: 0)
    device_count = staticmethod(lambda: 1)
    _is_in_bad_fork = staticmethod(lambda: False)
    manual_seed_all = staticmethod(lambda seed: None)  # it draws from the host's where no generator is given
    get_amp_supported_dtype = staticmethod(lambda: [torch.bfloat16])


def miniature() -> str:
    """Register the device with torch if it is not yet, and return its name."""
    # Gradients are then computed in the calling thread: torch counts devices once, at the first gradient of a process,
    # and has no thread for one that came later.
    torch.autograd.set_multithreading_enabled(False)
    if _device.libraries:
        return NAME
    present = torch._C._get_privateuse1_backend_name()
    if present != "privateuseone":
        raise UserError(f"torch has one place for a device of another vendor, and {present!r} has taken it")
    from torch.fx.experimental import proxy_tensor
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    _setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
    library = torch.library.Library("aten", "IMPL")
    for name, operation in _factories():
        library.impl(name, _kernel(operation), "PrivateUse1")
    # `torch.tensor(..., device=...)` copies past subclasses, with the kernel of the device itself.
    for operation in (aten._to_copy.default, aten._copy_from.default):
        library.impl(_name(operation), _kernel(operation), "PrivateUse1")
    torch.Generator = Generator  # type: ignore[misc]  # torch asks a C++ library for those of a device
    # A tracer that meets a constant of an unknown subclass would record the operations on its numbers instead.
    proxy_tensor.HANDLED_TYPES += (MiniatureTensor,)  # type: ignore[assignment]  # a tuple of three
    _device.libraries.append(library)
    return NAME


@contextmanager
def attached(queue: Queue) -> Iterator[None]:
    """Let a queue hear of all work inside the block."""
    _device.queues.append(queue)
    try:
        yield
    finally:
        _device.queues.remove(queue)


@contextmanager
def crossings() -> Iterator[list[Crossing]]:
    """Record what passes between the host and the device inside the block, and random numbers drawn on the host."""
    found: list[Crossing] = []
    _device.crossings.append(found)
    try:
        with _HostRandomness():  # type: ignore[no-untyped-call]  # torch does not type it
            yield found
    finally:
        _device.crossings.remove(found)


class _HostRandomness(torch.utils._python_dispatch.TorchDispatchMode):
    """Records random numbers that are drawn on the CPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags and not _on_device(result):
            _device.cross("host random numbers", func)
        return result


def _kernel(operation: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: _run(operation, args, kwargs)


def _factories() -> Iterator[tuple[str, Any]]:
    """Yield the operations that make a tensor out of none, such as zeros."""
    for full in torch._C._dispatch_get_all_op_names():
        space, _, name = full.partition("::")
        if space != "aten" or torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd"):
            continue
        packet, _, overload = name.partition(".")
        operation = getattr(getattr(aten, packet, None), overload or "default", None)
        if operation is None:
            continue
        arguments = operation._schema.arguments
        if any(a.name == "device" for a in arguments) and not any("Tensor" in str(a.type) for a in arguments):
            yield name, operation


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    """Compute an operation of the device on the tensors of the CPU that hold its numbers."""
    kwargs = dict(kwargs)
    target = kwargs.get("device")
    if target is not None:
        kwargs["device"] = torch.device("cpu")
    leaves, structure = pytree.tree_flatten((args, kwargs))
    _require_one_device(func, args, kwargs, leaves)
    on_host = target is not None and not is_miniature(target)
    if torch.Tag.nondeterministic_seeded in func.tags and not on_host:
        leaves = [own_generator(leaf) for leaf in leaves]
    for queue in _device.queues:
        queue.operate(_name(func))
    own = {id(leaf.host): leaf for leaf in leaves if isinstance(leaf, MiniatureTensor)}
    plain_args, plain_kwargs = pytree.tree_unflatten([_numbers_of(leaf) for leaf in leaves], structure)
    if func is aten._copy_from.default:
        result = plain_args[1].copy_(plain_args[0])
    else:
        result = func(*plain_args, **plain_kwargs)
    if func in _COPIES:
        on_host = on_host or (func is not aten._to_copy.default and id(result) not in own)
        _tell_copy(func, args, kwargs, result if on_host else None)
    else:
        _tell_waits(func, args)
    if on_host:
        return result
    if func._schema.is_mutable:
        _follow_shape(own.get(id(result)))
    return pytree.tree_map_only(Tensor, lambda t: own[id(t)] if id(t) in own else MiniatureTensor(t), result)


def _follow_shape(tensor: MiniatureTensor | None) -> None:
    """Give a tensor the shape of its numbers, which operations such as `squeeze_` change in place."""
    if tensor is None or (tensor.shape == tensor.host.shape and tensor.stride() == tensor.host.stride()):
        return
    host = tensor.host
    with torch._C._DisableTorchDispatch():
        aten.as_strided_.default(tensor, host.size(), host.stride(), host.storage_offset())


def _require_one_device(func: Any, args: Any, kwargs: Any, leaves: list[Any]) -> None:
    """Raise as CUDA does where an operation gets tensors of the host, too."""
    foreign = [leaf for leaf in leaves if isinstance(leaf, Tensor) and not isinstance(leaf, MiniatureTensor)]
    if not foreign or func in _COPIES:
        return
    writes_host = "out" in kwargs or (func._schema.is_mutable and not isinstance(args[0], MiniatureTensor))
    numbers = torch.Tag.pointwise in func.tags and all(tensor.ndim == 0 for tensor in foreign)
    indices = _is_index(func) and all(any(tensor is index for index in args[1]) for tensor in foreign)
    if (numbers and not writes_host) or indices:
        return
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {NAME}:0 and cpu! "
        f"(in {_name(func)}, at {_place()})"
    )


def _tell_copy(func: Any, args: Any, kwargs: Any, arrived: Tensor | None) -> None:
    """Record a copy between the devices, which the host waits for unless told otherwise; `arrived`: on the host."""
    source = args[1] if func is aten.copy_.default else args[0]
    from_device = isinstance(source, MiniatureTensor)
    if from_device == (arrived is None):  # within one device
        return
    _device.cross("to host" if from_device else "to device", func)
    late = kwargs.get("non_blocking", args[2] if func is not aten._to_copy.default and len(args) > 2 else False)
    for queue in _device.queues:
        if not late:
            queue.wait()
        elif arrived is not None:
            queue.copy_later(arrived)


def _tell_waits(func: Any, args: Any) -> None:
    """Record a copy of indices, and a wait of the host for a number or for the size of a result."""
    waits = torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags
    if _is_index(func):
        indices = [index for index in args[1] if isinstance(index, Tensor)]
        waits = any(index.dtype in (torch.bool, torch.uint8) for index in indices)
        if any(not isinstance(index, MiniatureTensor) for index in indices):
            _device.cross("to device", func)
    if waits:
        _device.cross("wait", func)
        for queue in _device.queues:
            queue.wait()


def _is_index(func: Any) -> bool:
    return _name(func).startswith(("index.", "index_put", "_index_put"))


def _numbers_of(leaf: Any) -> Any:
    return leaf.host if isinstance(leaf, MiniatureTensor) else leaf


def _on_device(result: Any) -> bool:
    return any(isinstance(leaf, Tensor) and is_miniature(leaf.device) for leaf in pytree.tree_leaves(result))


def _name(func: Any) -> str:
    return str(func).removeprefix("aten.").removesuffix(".default")


def _place() -> str:
    """Return the nearest caller outside torch and this file."""
    frame: Any = sys._getframe(1)
    inside = Path(torch.__file__).parent.as_posix()
    while frame is not None:
        path = Path(frame.f_code.co_filename).as_posix()
        if path != Path(__file__).as_posix() and not path.startswith(inside):
            return f"{Path(path).name}:{frame.f_lineno}"
        frame = frame.f_back
    return "unknown"
