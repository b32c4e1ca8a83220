"""The modes in which T functions are evaluated. All of them draw the same functions, from the same random numbers.

engine     as every run of a suite draws: the fixed mode
naive      one draw after another in a plain loop
compiled   the same loop with one draw compiled by `torch.compile`
tuned      whichever is the fastest here: `tuning` tries those of `ways_to_draw` on the device before the first pass
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from bench.api.tape import Tape
from bench.training.compiled_graphs import compiler_found
from bench.training.draw_calls import Call, Tensors
from bench.training.drawing import BYTES_AT_ONCE, Cuts, Drawing, Functions
from bench.training.limits import Limits, threads
from bench.training.tracing import trace

Evaluate = Callable[[Tensor], Tensor]  # rows on the device to `[T, rows, outputs]` there
Way = Callable[[Functions], Functions]
Record = Callable[[Callable[[], Tensor]], tuple[Callable[[], object], Tensor]]  # a call to its replay and its output

BYTES_IN_CACHE = 2**21  # written by one call that stays in a processor's own cache
BYTES_ON_A_DEVICE = 2**28  # written by one call that occupies a GPU


@dataclass(frozen=True, eq=False)
class Mode:
    """How T functions are evaluated: the function that is timed, how it cuts the work, its threads, and its name."""

    evaluate: Evaluate
    cuts: Cuts
    threads: int
    name: str = "engine"


def mode_of(functions: Functions, name: str) -> Mode:
    """Return functions as a mode."""
    return Mode(lambda x: torch.cat(list(functions.at(x)), dim=1), functions.cuts, functions.threads, name)


def engine(job: Drawing, limits: Limits) -> Mode:
    """Draw as every run of a suite does."""
    return mode_of(Functions(job, limits), "engine")


def naive(job: Drawing, limits: Limits) -> Mode:
    """Draw one after another in a plain loop: the same functions, on as many threads as the engine's."""
    functions = Functions(job, limits)
    method = functions.job.method

    def evaluate(x: Tensor) -> Tensor:
        with threads(functions.threads):
            length = functions.tape_length(x)
            values = []
            for t in range(functions.count):
                network = job.networks[t % len(job.networks)]
                outputs = method.draw(network, x, Tape(*functions.numbers(t, length, x.device)))
                values.append(outputs.softmax(-1) if job.task == "classification" else outputs)
            return torch.stack(values)

    cuts = functions.cuts
    one = Cuts(cuts.large, cuts.by_row, rows=len(functions.job.x), draws=1, networks=1)
    return Mode(evaluate, one, functions.threads, "naive")


class Compiled:
    """Evaluates calls through graphs compiled by `torch.compile`, one for each shape: all T of a cell share them."""

    def __init__(self) -> None:
        self._graphs: dict[Any, Any] = {}

    def __call__(
        self, numbers: tuple[int, ...], call: Call, tensors: Tensors, x: Tensor, normals: Tensor, uniforms: Tensor
    ) -> Tensor:
        """Evaluate a call; the first one of a shape is traced and compiled."""
        arguments = (tensors, x, normals, uniforms)
        leaves = pytree.tree_leaves(arguments)
        key = tuple((leaf.shape, leaf.stride()) for leaf in leaves)
        if key not in self._graphs:
            self._graphs[key] = torch.compile(trace(call, arguments)[0], fullgraph=True, dynamic=False)
        value: Tensor = self._graphs[key](*leaves)[0]
        return value


class Recorded:
    """Evaluates calls by replaying a recording of their kernels (CUDA graphs): the host launches one thing per call.

    Random numbers are made outside the recording, and copied with the rows to where it reads them.
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        self._recordings: dict[Any, tuple[list[Tensor], Callable[[], object], Tensor]] = {}

    def __call__(
        self, numbers: tuple[int, ...], call: Call, tensors: Tensors, x: Tensor, normals: Tensor, uniforms: Tensor
    ) -> Tensor:
        """Evaluate a call; the first one of some networks and a shape is recorded."""
        given = [x, normals, uniforms]
        key = (numbers, *((each.shape, each.stride()) for each in given))
        if key not in self._recordings:
            places = [each.clone() for each in given]
            self._recordings[key] = (places, *self._record(partial(call, tensors, *places)))
        places, replay, output = self._recordings[key]
        for place, each in zip(places, given, strict=True):
            place.copy_(each)
        replay()
        return output.clone()


def record_on_cuda(call: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
    """Record a call as a CUDA graph; it is called before on a stream of its own, as torch requires."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = call()
    return graph.replay, output


def by_compiler(job: Drawing, limits: Limits, graphs: Compiled | None = None) -> Mode:
    """Draw one after another through a compiled graph; one graph for each number of rows."""
    functions = Functions(job, limits)
    rows = functions.cuts.rows if functions.cuts.by_row else len(job.x)
    return mode_of(functions.one_by_one(rows).evaluated_by(graphs or Compiled()), "compiled")


def ways_to_draw(
    functions: Functions, room: int, graphs: Compiled | None, record: Record | None
) -> tuple[dict[str, Way], dict[str, str]]:
    """Return the ways to try by name, the fixed one first, and why others are left out.

    `graphs`: to compile into; None: not asked for. `record`: how a call is recorded; None: the device cannot.
    """
    on_cpu = functions.job.x.device.type == "cpu"
    rooms = [BYTES_AT_ONCE, BYTES_IN_CACHE] if on_cpu else [BYTES_AT_ONCE, BYTES_ON_A_DEVICE, room]
    by_cut: list[Way] = [Functions.one_by_one]
    if functions.count > 1:
        by_cut += [partial(_vectorised, room=each) for each in rooms]
    ways: dict[str, Way] = {name_of(functions): lambda same: same}
    for way in by_cut:
        ways.setdefault(name_of(way(functions)), way)
    left_out = {}
    # One draw after another, and as many at once as are tried: what a graph saves depends on the work of a call.
    cuts = {name_of(way(functions)): way for way in (Functions.one_by_one, by_cut[-1])}
    if record is None:
        left_out["graphs"] = "CUDA graphs need a CUDA device"
    else:
        recorded = Recorded(record)
        ways |= {f"graphs: {name}": _evaluated(way, recorded) for name, way in cuts.items()}
    if graphs is None:
        left_out["compiled"] = "on a CPU it is tried where the suite times this mode, too"
    elif not compiler_found():
        left_out["compiled"] = "no C++ compiler was found"
    else:
        ways |= {f"compiled: {name}": _evaluated(way, graphs) for name, way in cuts.items()}
    return ways, left_out


def _vectorised(functions: Functions, room: int) -> Functions:
    return functions.vectorised(room)


def _evaluated(way: Way, evaluate: Compiled | Recorded) -> Way:
    return lambda functions: way(functions).evaluated_by(evaluate)


def name_of(functions: Functions) -> str:
    """Return in words how the work is cut."""
    cuts, networks = functions.cuts, len(functions.job.networks)
    at_once = min(cuts.draws, functions.each) * min(cuts.networks, networks)
    if at_once == 1:
        return "one by one"
    kind = "folded into the batch" if functions.folds and networks == 1 else "vectorised"
    return f"{kind}, {at_once} draws per {'repeated ' if cuts.recorded else ''}call"


MODES: dict[str, Callable[[Drawing, Limits], Mode]] = {"engine": engine, "naive": naive, "compiled": by_compiler}
