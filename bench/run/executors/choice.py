"""Which executor a run gets, from the options of the command line."""

import os
from collections.abc import Callable, Mapping, Sequence

from bench.errors import UserError
from bench.machine.environment import cores
from bench.run.executors import Executor
from bench.run.executors.inline import InlineExecutor
from bench.run.executors.local import LocalExecutor, Settings
from bench.run.options import ExecutorName

SECONDS_THAT_PAY_FOR_WORKERS = 20.0  # starting them takes some seconds


def choose(
    name: ExecutorName, workers: int | None, address: str | None, device: str, time_limit: float | None
) -> Callable[[float], Executor]:
    """Return a function that builds the executor, once the seconds of work are known."""
    if address is not None and name not in ("auto", "dask"):
        raise UserError(f"--address {address}: only --engine dask has an address")
    if address is not None and workers is not None:
        raise UserError(
            "--workers: a cluster that is running has as many workers as it has; leave it out with --address"
        )
    if name == "inline" and (workers or 1) > 1:
        raise UserError(f"--workers {workers}: --engine inline has no workers; use --engine local")
    count = workers or _devices(device)
    if name == "dask" and address is None and device == "cuda" and _devices(device) > 1:
        raise UserError(
            "--engine dask: give every GPU a worker of a cluster of yours (--address), or use --engine local"
        )

    def build(seconds: float) -> Executor:
        if address is not None or name == "dask":
            from bench.run.executors.dask import ClusterExecutor

            resources = {"GPU": 1.0} if device == "cuda" else None
            return ClusterExecutor(address, count, threads=_threads(count), resources=resources, time_limit=time_limit)
        small = count == 1 or seconds < SECONDS_THAT_PAY_FOR_WORKERS
        if name == "inline" or (name == "auto" and workers is None and time_limit is None and small):
            return InlineExecutor()
        places: Sequence[Mapping[str, str]] = [{}] * count
        if device == "cuda":
            own = worker_devices(count, os.environ.get("CUDA_VISIBLE_DEVICES"), _devices(device))
            places = [{"CUDA_VISIBLE_DEVICES": each} for each in own]
        return LocalExecutor([Settings(_threads(count), place, time_limit) for place in places])

    return build


def _threads(workers: int) -> int:
    return max(1, cores() // workers)


def _devices(device: str) -> int:
    """Return one worker for every GPU, or for every core."""
    if device != "cuda":
        return cores()
    import torch

    return max(1, torch.cuda.device_count())


def worker_devices(workers: int, visible: str | None, found: int) -> list[str]:
    """Return the one GPU of every worker: in turn those that this process may use, by number or by name.

    `visible` is what CUDA_VISIBLE_DEVICES says, of which the driver uses the first `found`.
    """
    named = [name.strip() for name in visible.split(",")] if visible else [str(k) for k in range(found)]
    usable = named[: max(1, found)]  # names after one that does not exist are not used
    return [usable[worker % len(usable)] for worker in range(workers)]
