"""Compiles traced graphs, and keeps them in the user's cache folder for later processes.

`torch.compile` would trace a graph that is already one, for seconds in every process, and check its arguments at every
call, which takes a good part of the step of a small stack. So the graph is given to torch's compiler directly, and what
it writes, a Python file that calls compiled kernels, is kept under the hash of all that it depends on: a later process
loads it, without the compiler (`compiled_kernels`).
"""

import copy
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx

from bench.machine.compiled_cache import compiled_folder, prune
from bench.machine.compiler import cpp_compiler
from bench.machine.environment import cpu_features
from bench.machine.files import write_whole
from bench.training import small_convolutions
from bench.training.compiled_kernels import load_step, without_compiler
from bench.training.tracing import Run, one_fake_mode

FORMAT = 3

_loaded: dict[str, Any] = {}  # the functions of this process, by hash


def compiler_found() -> bool:
    """Return whether there is a C++ compiler."""
    return cpp_compiler() is not None


def compiled(graph: fx.GraphModule, arguments: Sequence[Tensor]) -> Run:
    """Return the compiled graph, after a first call with these arguments."""
    folder = compiled_folder()  # first: torch's compiler would choose another when it is imported
    closed = fx.GraphModule(graph, copy.deepcopy(graph.graph))
    constants = _constants_as_inputs(closed)
    inputs = [*arguments, *constants]
    key = _key(closed, inputs)
    if key not in _loaded:
        _loaded[key] = _load_or_compile(folder, key, closed, inputs)
    call = _loaded[key]
    # Results become the arguments of the next call, whose memory formats were fixed.
    strides = [value.stride() for value in graph(*arguments)]
    other = [i for i, value in enumerate(call(list(inputs))) if value.stride() != strides[i]]

    def run(leaves: list[Tensor]) -> Sequence[Tensor]:
        leaves.extend(constants)
        results: Sequence[Tensor] = call(leaves)
        if other:
            results = list(results)
            for i in other:
                results[i] = torch.empty_strided(results[i].shape, strides[i]).copy_(results[i])
        return results

    return run


def _constants_as_inputs(graph: fx.GraphModule) -> list[Tensor]:
    """Make tensors that a graph holds its last inputs, so that a file of its code is complete; return them."""
    constants: list[Tensor] = []
    last = graph.graph.find_nodes(op="placeholder")[-1]
    for node in graph.graph.find_nodes(op="get_attr"):
        constants.append(getattr(graph, str(node.target)))
        with graph.graph.inserting_after(last):
            last = graph.graph.placeholder(f"constant_{len(constants)}")
        last.meta.update(node.meta)
        node.replace_all_uses_with(last)
        graph.graph.erase_node(node)
    graph.recompile()
    return constants


def _key(graph: fx.GraphModule, inputs: Sequence[Tensor]) -> str:
    """Return the hash of all that compiled code depends on."""
    shapes = [(tuple(t.shape), t.stride(), t.dtype, t.device.type) for t in inputs]
    # Homes are shared by machines of several kinds, and code for one may be illegal on another.
    machine = (torch.__version__, torch.backends.cpu.get_cpu_capability(), cpu_features(), torch.get_num_threads() > 1)
    own = small_convolutions.own_kernels_name() if small_convolutions.all_small(graph) else ""
    return hashlib.blake2b(repr((FORMAT, graph.code, shapes, machine, own)).encode(), digest_size=16).hexdigest()


def _load_or_compile(folder: Path, key: str, graph: fx.GraphModule, inputs: Sequence[Tensor]) -> Any:
    path = folder / "graphs" / f"{key}.py"
    for inner in ("graphs", "locks"):
        (folder / inner).mkdir(exist_ok=True)
    from torch.utils._filelock import FileLock

    with FileLock(str(folder / "locks" / f"{key}.lock")):  # another worker may compile the same graph
        if (call := _load(path, inputs)) is not None:
            return call
        try:
            with _vector_instructions_trusted():
                return _compile(path, graph, inputs)
        except Exception:  # of the compiler, which has every kind of error
            # A process that was killed during compilation leaves a partial file in torch's cache, on which every later
            # one fails; or the compiler is older than the processor. Only an error with an empty cache, and with
            # vector instructions that were tried, is the compiler's.
            from torch._inductor.utils import fresh_cache

            with fresh_cache():
                return _compile(None, graph, inputs)


@contextmanager
def _vector_instructions_trusted() -> Iterator[None]:
    """Inside the block, torch believes what the processor says of its vector instructions.

    It would compile and load a program for each kind of them, in every process: up to a third of the time that the
    first graph takes. `cpp.vec_isa_ok` of its settings is for some of these programs alone.
    """
    from torch._inductor.cpu_vec_isa import VecISA

    trial = VecISA.check_build
    VecISA.check_build = lambda *_: True  # type: ignore[method-assign]
    try:
        yield
    finally:
        VecISA.check_build = trial  # type: ignore[method-assign]
        _forget_vector_instructions()


def _forget_vector_instructions() -> None:
    """Have whoever compiles next in this process try them."""
    from torch._inductor import cpu_vec_isa

    cpu_vec_isa.valid_vec_isa_list.cache_clear()
    for kind in (cpu_vec_isa.VecISA, *_subclasses(cpu_vec_isa.VecISA)):
        for answer in vars(kind).values():
            if hasattr(answer, "cache_clear"):
                answer.cache_clear()


def _subclasses(kind: type) -> Iterator[type]:
    each: type
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


def _load(path: Path, inputs: Sequence[Tensor]) -> Any | None:
    """Return the function of a file that was compiled before, or None if there is none that works."""
    if not path.is_file():
        return None
    try:
        call = load_step(path)
        call(list(inputs))
    except Exception:  # whatever half a file or a changed machine leads to
        path.unlink(missing_ok=True)
        return None
    os.utime(path)
    return call


def _compile(path: Path | None, graph: fx.GraphModule, inputs: Sequence[Tensor]) -> Any:
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx_inner  # takes seconds to import
    from torch._inductor.decomposition import select_decomp_table

    decompositions, settings = select_decomp_table(), {}
    if small_convolutions.all_small(graph) and small_convolutions.kernels() is not None:
        decompositions = {**decompositions, **small_convolutions.decompositions()}
        # They would turn vector instructions off where a loop over few channels is around the one over images.
        settings["cpp.enable_tiling_heuristics"] = False
    with one_fake_mode():
        functional = make_fx(functionalize(graph), decomposition_table=decompositions)(*inputs)
    extra = _constants_as_inputs(functional)  # of decompositions
    with config.patch(settings):
        made: Any = compile_fx_inner(functional, [*inputs, *extra], is_inference=True)
    call = made.current_callable
    call([*inputs, *extra])
    if extra:
        return lambda leaves: call([*leaves, *extra])
    if path is not None and not made.constants:
        names = getattr(call, "__func__", call).__globals__
        code = without_compiler(made.source_code, names, path.parent.parent).encode()
        write_whole(path, lambda file: file.write(code))
        prune(path.parent.parent)
    return call
