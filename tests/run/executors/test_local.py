"""Worker processes: what they yield arrives, and the death of one is nobody else's."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from bench.run.executors import OUT_OF_TIME, LostWorkerError, local
from bench.run.executors.local import LocalExecutor, Settings
from tests.run.executors import calls

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def engine() -> Iterator[LocalExecutor]:
    made = LocalExecutor([Settings(), Settings()])
    yield made
    made.close(now=True)


def collected(engine: LocalExecutor, *futures: "Future[None]") -> list[Any]:
    found: list[Any] = []
    while not all(future.done() for future in futures):
        found += engine.receive(0.2)
    return found + engine.receive(0.0)


def test_what_calls_yield_arrives_before_they_are_done(engine: LocalExecutor) -> None:
    futures = [engine.submit(calls.counted, count) for count in (3, 4, 0)]
    assert sorted(collected(engine, *futures)) == sorted([0, 1, 2, 0, 1, 2, 3])
    assert [future.exception() for future in futures] == [None] * 3


def test_an_error_of_a_call_is_told_and_the_worker_lives(engine: LocalExecutor) -> None:
    first = engine.submit(calls.failing)
    assert collected(engine, first) == [1]
    assert str(first.exception()) == "OSError: no luck"
    again = engine.submit(calls.counted, 1)
    assert collected(engine, again) == [0]


def test_a_dead_worker_costs_its_own_call_only(engine: LocalExecutor, tmp_path: Path) -> None:
    other = engine.submit(calls.sleeping, 2.0)
    dying = engine.submit(calls.killed, str(tmp_path / "marker"))
    found = collected(engine, other, dying)
    assert sorted(found) == ["before", "begun", "done"]
    assert other.exception() is None
    assert isinstance(dying.exception(), LostWorkerError)
    assert "SIGKILL" in str(dying.exception())
    again = engine.submit(calls.killed, str(tmp_path / "marker"))
    assert collected(engine, again) == ["before", "after"]


@pytest.mark.slow
def test_a_worker_sets_its_threads_before_torch_is_loaded() -> None:
    engine = LocalExecutor([Settings(threads=1)])
    future = engine.submit(calls.told_environment)
    before, after = collected(engine, future)
    engine.close()
    assert before == {"torch": False, "threads": "1"}
    assert after == {"threads": 1, "policy": "PASSIVE"}


def test_a_call_that_never_ends_is_ended(tmp_path: Path) -> None:
    engine = LocalExecutor([Settings(time_limit=1.0)])
    future = engine.submit(calls.hanging)
    assert collected(engine, future) == ["begun"]
    message = str(future.exception())
    assert message.startswith(OUT_OF_TIME)
    assert "in hanging" in message  # where it was
    quick = engine.submit(calls.counted, 2)
    assert collected(engine, quick) == [0, 1]
    engine.close()


def test_a_worker_that_cannot_be_started_is_a_lost_one(engine: LocalExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(process: Any) -> None:
        raise BlockingIOError("too many processes")

    with monkeypatch.context() as patched:
        patched.setattr(local.SPAWN.Process, "start", refused)
        future = engine.submit(calls.counted, 1)
        assert collected(engine, future) == []
    assert isinstance(future.exception(), LostWorkerError)
    assert "could not be started: too many processes" in str(future.exception())
    again = engine.submit(calls.counted, 1)
    assert collected(engine, again) == [0]


@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.05])
def test_closing_at_once_waits_for_nobody(seconds: float) -> None:
    engine = LocalExecutor([Settings(), Settings()])
    for _ in range(3):
        engine.submit(calls.hanging)
    time.sleep(seconds)
    engine.close(now=True)
    assert engine.pids() == []


def test_workers_do_not_mind_the_signals_of_the_terminal(engine: LocalExecutor) -> None:
    future = engine.submit(calls.sleeping, 1.5)
    while engine.receive(0.2) != ["begun"]:
        pass
    for pid in engine.pids():
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    assert collected(engine, future) == ["done"]
    assert future.exception() is None


def test_workers_end_with_their_driver() -> None:
    code = (
        "import sys, time\n"
        "from bench.run.executors.local import LocalExecutor, Settings\n"
        "from tests.run.executors import calls\n"
        "if __name__ == '__main__':\n"
        "    engine = LocalExecutor([Settings()])\n"
        "    engine.submit(calls.told_pid)\n"
        "    pid = engine.receive(60)[0]\n"
        "    engine.submit(calls.hanging)\n"
        "    engine.receive(60)\n"
        "    print(pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    worker = int(driver.stdout.readline())
    driver.kill()
    driver.communicate()
    for _ in range(100):
        if not _alive(worker):
            return
        time.sleep(0.1)
    pytest.fail("the worker outlived its driver")


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except FileNotFoundError:
        return False
