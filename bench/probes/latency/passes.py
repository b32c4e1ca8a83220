"""One timed pass over the test rows, and the modes of evaluating it.

What is timed, batch by batch:

    total      from rows in original units on the host to mean predictions there: cutting, scaling, all of the below
    transfer   rows to the device, the draws, and their predictions back to the host
    forward    the draws alone: T functions at rows that lie on the device

Nothing else is between the marks: networks, random generators' seeds, graphs and the rows themselves are there before.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from bench.api import Array, Net
from bench.api.tape import Tape, TapeLength
from bench.probes.latency.clock import Clock
from bench.training.drawing import Cuts, Drawing, Functions
from bench.training.limits import Limits, threads
from bench.training.member import Tensors
from bench.training.tracing import Call, trace

SPANS = ("forward", "transfer", "total")
Evaluate = Callable[[Tensor], Tensor]  # rows on the device to `[T, rows, outputs]` there


@dataclass(frozen=True, eq=False)
class Workload:
    """The rows of a pass, and the batches in which they go to the device."""

    rows: Array  # in original units, on the host
    scaled: Callable[[Array], Tensor]  # to training units, on the host
    batch: int
    device: str
    dtype: str = "float32"


@dataclass(frozen=True)
class Spans:
    """Milliseconds of one pass."""

    forward: float
    transfer: float
    total: float


def timed_pass(workload: Workload, evaluate: Evaluate, clock: Clock) -> Spans:
    """Carry out one pass and time it."""
    moments, predictions = [], []
    with torch.no_grad(), precision(workload):
        clock.wait()
        start = clock.mark()
        for begin in range(0, len(workload.rows), workload.batch):
            host = workload.scaled(workload.rows[begin : begin + workload.batch])
            ready = clock.mark()
            x = host.to(workload.device)
            there = clock.mark()
            values = evaluate(x)
            drawn = clock.mark()
            back = values.cpu()
            moments.append((ready, there, drawn, clock.mark()))
            predictions.append(back.mean(0))
        torch.cat(predictions)
        end = clock.mark()
        clock.wait()
    forward = sum(clock.milliseconds(there, drawn) for _, there, drawn, _ in moments)
    transfer = sum(clock.milliseconds(ready, back) for ready, _, _, back in moments)
    return Spans(forward, transfer, clock.milliseconds(start, end))


@contextmanager
def precision(workload: Workload) -> Iterator[None]:
    """Compute products in the precision of the options."""
    kind = workload.device.partition(":")[0]
    with torch.autocast(kind, torch.bfloat16, enabled=workload.dtype == "bfloat16"):
        yield


@dataclass(frozen=True, eq=False)
class Mode:
    """How T functions are evaluated: the function that is timed, how it cuts the work, and its threads."""

    evaluate: Evaluate
    cuts: Cuts
    threads: int


def engine(job: Drawing, limits: Limits) -> Mode:
    """Draw as every run of a suite does."""
    functions = Functions(job, limits)
    return Mode(lambda x: torch.cat(list(functions.at(x)), dim=1), functions.cuts, functions.threads)


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

    return Mode(evaluate, _one_at_a_time(functions), functions.threads)


def by_compiler(job: Drawing, limits: Limits) -> Mode:
    """Draw one after another through a graph compiled by `torch.compile`; one graph for each number of rows."""
    functions = Functions(job, limits)
    method, module = functions.job.method, job.networks[0].module
    graphs: dict[int, tuple[Call, TapeLength]] = {}

    def one(params: Tensors, buffers: Tensors, memory: Tensors, x: Tensor, normals: Tensor, uniforms: Tensor) -> Tensor:
        outputs = method.draw(Net(module, params, buffers, memory), x, Tape(normals, uniforms))
        return outputs.softmax(-1) if job.task == "classification" else outputs

    def evaluate(x: Tensor) -> Tensor:
        with threads(functions.threads):
            length = functions.tape_length(x) if len(x) not in graphs else graphs[len(x)][1]
            values = []
            for t in range(functions.count):
                network = job.networks[t % len(job.networks)]
                tape = functions.numbers(t, length, x.device)
                arguments = (network.params, network.buffers, network.memory, x, *tape)
                if len(x) not in graphs:
                    graphs[len(x)] = torch.compile(trace(one, arguments)[0], fullgraph=True, dynamic=False), length
                values.append(graphs[len(x)][0](*pytree.tree_leaves(arguments))[0])
            return torch.stack(values)

    return Mode(evaluate, _one_at_a_time(functions), functions.threads)


def _one_at_a_time(functions: Functions) -> Cuts:
    cuts = functions.cuts
    return Cuts(cuts.large, cuts.by_row, rows=len(functions.job.x), draws=1, networks=1)


MODES: dict[str, Callable[[Drawing, Limits], Mode]] = {"engine": engine, "naive": naive, "compiled": by_compiler}
