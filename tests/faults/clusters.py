"""A Dask scheduler and workers in processes of their own, as an operator starts them."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

Process = subprocess.Popen[bytes]


class Cluster:
    """A scheduler without workers; `worker` starts one."""

    def __init__(self, folder: Path, *options: str) -> None:
        pytest.importorskip("distributed")
        self._file, self.workers = folder / "scheduler.json", list[Process]()
        self.scheduler = self._start("dask_scheduler", "--port", "0", "--host", "127.0.0.1", *options)
        until(lambda: self._file.exists() or self.scheduler.poll() is not None)
        assert self.scheduler.poll() is None
        self.address: str = json.loads(self._file.read_text())["address"]

    def worker(self, *options: str, environment: Mapping[str, str] | None = None) -> Process:
        """Start a worker; `--preload FILE` makes it a strange one."""
        self.workers.append(self._start("dask_worker", "--no-nanny", "--nthreads", "1", *options, more=environment))
        return self.workers[-1]

    def _start(self, name: str, *options: str, more: Mapping[str, str] | None = None) -> Process:
        command = [sys.executable, "-m", f"distributed.cli.{name}", "--scheduler-file", str(self._file)]
        environment = {**os.environ, **(more or {})}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([*command, "--no-dashboard", *options], env=environment, **quiet)  # type: ignore[call-overload,no-any-return]

    def ask(self, question: Callable[..., Any]) -> Any:
        """Return what a function says on the scheduler, which it gets as `dask_scheduler`."""
        import distributed

        with distributed.Client(self.address, set_as_default=False) as client:
            return client.run_on_scheduler(question)

    def close(self) -> None:
        """Kill all of it."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextlib.contextmanager
def started_cluster(folder: Path, *options: str) -> Iterator[Cluster]:
    """Run a scheduler and the workers that the block starts."""
    cluster = Cluster(folder, *options)
    try:
        yield cluster
    finally:
        cluster.close()


def until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
