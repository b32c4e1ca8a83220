"""How many cells per second one driver and two drivers get through Dask into PostgreSQL where the cells cost nothing.

    python -m pytest tests/benchmarks/test_driver_throughput.py -o addopts="--import-mode=importlib" -s

The workers are threads of one process with Dask's scheduler, and an order is answered at once with outcomes of the
usual size: 20 metric values, an environment, training facts. So what is measured is the driver's own work, Dask's and
the store's. The server syncs every commit to its disk. As a program, this file is one driver.
"""

import contextlib
import faulthandler
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from bench.run import worker
from bench.run.driver import RunSettings, rerun
from bench.run.executors.dask import ClusterExecutor
from bench.run.executors.local import SPAWN
from bench.run.monitor import Monitor
from bench.run.worker import Message, WorkOrder
from bench.spec.cell import Cell, Outcome
from bench.store.store import Store
from bench.store.tables import cells as table
from tests.fixtures.results import ENVIRONMENT, spec
from tests.fixtures.stores import Server, started_server

SECONDS_TO_START = 20.0
ROOT = Path(__file__).resolve().parents[2]
METRICS = {f"metric{number:02}": 0.1 * number for number in range(20)}
TRAINING = {"epochs": [40], "best_epochs": [31], "parameters": 1201, "losses": [0.25, 0.31]}


def cells_that_cost_nothing(count: int, per_order: int) -> list[Cell]:
    """Return cells that a driver sends out so many at a time: those of one dataset, method and seed."""
    text = json.dumps(spec("toy", "mc-dropout", options={"rate": 0.1}), sort_keys=True)
    keys = [hashlib.blake2b(f"{number} {per_order}".encode(), digest_size=16).hexdigest() for number in range(count)]
    return [Cell(key, "toy", n % per_order, "mc-dropout", n // per_order, text) for n, key in enumerate(keys)]


def answer_at_once(order: WorkOrder) -> Iterator[Message]:
    for item in order.items:
        timing = {"seconds": 1e-3, "cpu_seconds": 1e-3}
        outcome = Outcome("ok", metrics=METRICS, training=TRAINING, timing=timing, environment=ENVIRONMENT)
        yield Message(order.number, item.key, outcome)


def serve_workers(pipe: Connection, count: int) -> None:
    """Be a cluster whose workers are threads that answer at once."""
    import distributed

    vars(worker).update(run_order=answer_at_once, why_not=lambda order: "")
    with distributed.LocalCluster(
        n_workers=count, threads_per_worker=1, processes=False, dashboard_address=None, protocol="tcp://"
    ) as cluster:
        pipe.send(cluster.scheduler_address)
        pipe.recv()


class SteadyPart(Monitor):
    """Reads the clocks of processors at the first stored cell and at the last: not while processes start and end."""

    def __init__(self, cluster: int) -> None:
        self.cluster = cluster  # the process of Dask's scheduler and workers
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}
        self.cells = 0

    def cell_done(self, cell: Cell, outcome: Outcome | None) -> None:
        if outcome is None or time.time() - self.last.get("clock", 0.0) < 0.05:
            self.cells += outcome is not None
            return
        self.last = {"clock": time.time(), "cells": self.cells, "driver": time.process_time(), **self._others()}
        self.first = self.first or self.last
        self.cells += 1

    def _others(self) -> dict[str, float]:
        server = sum(map(seconds_of, processes("postgres")))
        return {"cluster": seconds_of(self.cluster), "server": server, **machine()}

    def spent(self) -> dict[str, float]:
        """Return how far each clock went."""
        return {name: self.last[name] - self.first[name] for name in self.last}


def drive(url: str, count: int, per_order: int, begin: float, workers: int = 8) -> dict[str, Any]:
    """Be a driver with workers of its own; say what it did and from when to when."""
    from bench.plugins.registry import Registry

    cells, registry, store = cells_that_cost_nothing(count, per_order), Registry(), Store(url)
    pipe, theirs = SPAWN.Pipe()
    cluster = SPAWN.Process(target=serve_workers, args=(theirs, workers), daemon=True)
    cluster.start()
    address = pipe.recv()
    time.sleep(max(0.0, begin - time.time()))
    began, steady = time.time(), SteadyPart(cluster.pid or 0)
    settings = RunSettings(executor=ClusterExecutor(address, workers))
    summary = rerun(cells, registry, store, settings, steady)
    cluster.kill()
    return {"stored": summary.stored, "began": began, **steady.spent()}


@pytest.fixture(scope="module")
def durable_server() -> Iterator[Server]:
    with started_server(fsync=True) as started:
        yield started


def measure(url: str, drivers: int, count: int, per_order: int) -> float:
    """Return the cells per second of so many drivers that share a store, from their start to the last stored cell."""
    begin = time.time() + SECONDS_TO_START
    command = [sys.executable, __file__, url, str(count), str(per_order), str(begin)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) for _ in range(drivers)
    ]
    found = [json.loads(process.communicate()[0].splitlines()[-1]) for process in processes]
    assert sum(one["stored"] for one in found) == count
    with Store(url) as store, store.database.reading() as connection:
        stored, last = connection.execute(select(func.count(), func.max(table.c.finished))).one()
    assert stored == count
    speed = float(count / (last - min(one["began"] for one in found)))
    together = {name: sum(one[name] for one in found) for name in ("cells", "driver", "cluster")}
    # Each driver has read the clocks of the server and of the machine.
    server, busy, all_ = (sum(one[name] for one in found) / drivers for name in ("server", "busy", "all"))
    each = [1e3 * spent / together["cells"] for spent in (together["driver"], together["cluster"], server)]
    names = ("driver", "Dask's scheduler and workers", "PostgreSQL")
    print(
        f"{drivers} driver(s), {per_order} cells per order: {speed:,.0f} cells/s; processors busy {busy / all_:.0%}; "
        f"ms of a processor per cell: {', '.join(f'{name} {part:.2f}' for name, part in zip(names, each, strict=True))}"
    )
    return speed


def machine() -> dict[str, float]:
    """Return how long the processors of this machine were busy, and how long they were there."""
    times = [int(part) for part in Path("/proc/stat").read_text("utf-8").splitlines()[0].split()[1:9]]
    return {"busy": sum(times) - times[3] - times[4], "all": sum(times)}


def processes(name: str) -> list[int]:
    """Return the processes of a program."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            if (place / "comm").read_text("utf-8").strip() == name:
                found.append(int(place.name))
    return found


def seconds_of(process: int) -> float:
    """Return how long a process has been on a processor; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(("per_order", "count", "least"), [(1, 500, 0), (10, 3_000, 400), (50, 5_000, 400)])
def test_cells_per_second(durable_server: Server, per_order: int, count: int, least: int, tmp_path: Path) -> None:
    print()
    one, two = (
        measure(durable_server.new_url(arrays=str(tmp_path / "arrays")), drivers, count, per_order)
        for drivers in (1, 2)
    )
    print(f"two drivers: {two / one:.2f} times one")
    assert one > least


if __name__ == "__main__":
    faulthandler.dump_traceback_later(600, exit=True)  # a driver that waits for ever would be waited for
    url, count, per_order, begin = sys.argv[1:]
    print(json.dumps(drive(url, int(count), int(per_order), float(begin))))
