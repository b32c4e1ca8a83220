"""Orders whose cells are computed apart: each in a fresh process, which ends with its cell.

So nothing is kept from one cell to the next, a crash is the failure of one cell, memory is measured by itself, and the
time limit ends code that nobody could interrupt, whichever executor the run has.
"""

import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.context import BaseContext
from typing import Any

import torch

from bench.run.executors import Call
from bench.run.executors.local import SPAWN, LocalExecutor, Settings
from bench.run.worker import Message, WorkOrder, run_order


def run_apart(order: WorkOrder) -> Iterator[Message]:
    """Compute the cells of an order, one process each; raises LostWorkerError when one of them dies."""
    for item in order.items:
        yield from in_fresh_process(run_order, replace(order, items=(item,)), time_limit=order.time_limit)


run_apart.limits_itself = True  # type: ignore[attr-defined]  # see bench.run.executors


def in_fresh_process(call: Call, *arguments: Any, time_limit: float | None = None) -> Iterator[Any]:
    """Yield what a call yields in a process that is started for it; raises LostWorkerError when it dies."""
    executor = LocalExecutor([Settings(torch.get_num_threads(), time_limit=time_limit)], _processes())
    try:
        future = executor.submit(call, *arguments)
        while not future.done():
            yield from executor.receive(0.5)
        yield from executor.receive(0.0)
        future.result()
    except BaseException:  # of the process, or because nobody waits for the messages any longer
        executor.close(now=True)
        raise
    executor.close()


def _processes() -> BaseContext:
    """Return how the processes are started.

    A fork server has loaded torch and scikit-learn before it forks: a process is there in a tenth of a second instead
    of the seconds that a spawned one needs to import them. Forking it is safe, because it computes nothing and has no
    threads but those of OpenBLAS, which stops them before a fork. Windows has no fork server.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return SPAWN
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "sklearn"])
    return context
