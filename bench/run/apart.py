"""Orders whose cells are computed apart: each in a fresh process, which ends with its cell.

So nothing is kept from one cell to the next, a crash is the failure of one cell, memory is measured by itself, and the
time limit ends code that nobody could interrupt, whichever executor the run has.
"""

import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.context import BaseContext

import torch

from bench.run.executors.local import SPAWN, LocalExecutor, Settings
from bench.run.worker import Message, WorkOrder, run_order


def run_apart(order: WorkOrder) -> Iterator[Message]:
    """Compute the cells of an order, one process each; raises LostWorkerError when one of them dies."""
    for item in order.items:
        yield from _run_alone(replace(order, items=(item,)))


run_apart.limits_itself = True  # type: ignore[attr-defined]  # see bench.run.executors


def _run_alone(order: WorkOrder) -> Iterator[Message]:
    executor = LocalExecutor([Settings(torch.get_num_threads(), time_limit=order.time_limit)], _processes())
    try:
        future = executor.submit(run_order, order)
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
