"""Calls that workers of the tests carry out; a module of its own, because they import it by name."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path


def counted(count: int) -> Iterator[int]:
    yield from range(count)


def failing() -> Iterator[int]:
    yield 1
    raise OSError("no luck")


def killed(marker: str) -> Iterator[str]:
    yield "before"
    if not Path(marker).exists():
        Path(marker).touch()
        time.sleep(0.2)  # what was sent is under way
        os.kill(os.getpid(), signal.SIGKILL)
    yield "after"


def told_pid() -> Iterator[int]:
    yield os.getpid()


def told_environment() -> Iterator[dict[str, object]]:
    yield {"torch": "torch" in sys.modules, "threads": os.environ["OMP_NUM_THREADS"]}
    import torch

    import bench  # noqa: F401

    yield {"threads": torch.get_num_threads(), "policy": os.environ["OMP_WAIT_POLICY"]}


def hanging() -> Iterator[str]:
    yield "begun"
    while True:
        pass


def sleeping(seconds: float) -> Iterator[str]:
    yield "begun"
    time.sleep(seconds)
    yield "done"
