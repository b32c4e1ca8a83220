"""kill -9 at random moments: after restarts the store equals an undisturbed run's.

`make test` does a few kills; `make faults` does fifty (UQBENCH_FAULTS=50) and prints what happened.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.harness import CELLS, SUITE, assert_same, disturb, kept, started

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("UQBENCH_FAULTS", "2"))


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("suite") / "disturbed.toml"
    path.write_text(SUITE, "utf-8")
    return path


@pytest.fixture(scope="module")
def reference(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """An undisturbed run, and how long it took."""
    store = tmp_path_factory.mktemp("reference") / "reference.db"
    began = time.monotonic()
    run = started(suite, store, "--engine", "local", "--workers", "2")
    said = run.communicate()[0]
    assert run.returncode == 0, said
    assert len(kept(store)[1]) == CELLS
    return store, time.monotonic() - began


def test_kills_at_random_moments(reference: tuple[Path, float], suite: Path, tmp_path: Path) -> None:
    store, seconds = reference
    tally = disturb(tmp_path, suite, store, KILLS, seed=1, seconds=1.2 * seconds)
    print(f"\n{tally}")
    assert tally.driver_kills + tally.worker_kills == KILLS


def test_a_polite_stop_stores_what_is_in_work(reference: tuple[Path, float], suite: Path, tmp_path: Path) -> None:
    store = tmp_path / "stopped.db"
    # A test run in the background has SIGINT ignored, and a child would inherit that.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from bench.cli.main import main; main()"
    )
    arguments = ["run", str(suite), "--store", str(store), "--engine", "inline"]
    run = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    while not (store.exists() and _claimed(store)):
        time.sleep(0.05)
        assert run.poll() is None
    run.send_signal(signal.SIGINT)
    said = run.communicate()[0]
    assert run.returncode == 128 + signal.SIGINT
    assert "finishing the cells in work" in said
    assert "the same command goes on with them" in said
    before = len(kept(store)[1])
    assert 0 < before < CELLS
    again = started(suite, store, "--engine", "inline")
    said = again.communicate()[0]
    assert again.returncode == 0, said
    assert f"{before} stored before" in said
    assert_same(store, reference[0])


def _claimed(store: Path) -> bool:
    try:
        with sqlite3.connect(store) as connection:
            found = connection.execute("SELECT COUNT(*) FROM claims").fetchone()[0]
        connection.close()
    except sqlite3.OperationalError:
        return False
    return bool(found)


def test_two_drivers_share_the_work(reference: tuple[Path, float], suite: Path, tmp_path: Path) -> None:
    store = tmp_path / "shared.db"
    drivers = [started(suite, store, "--engine", "inline", "--json") for _ in range(2)]
    said = [driver.communicate()[0] for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0, 0], said
    told = [json.loads(text[text.index("{") :]) for text in said]
    assert sum(each["stored"] for each in told) == CELLS, "a cell was run by both"
    assert all(each["stored"] + each["elsewhere"] + each["skipped"] == CELLS for each in told)
    assert_same(store, reference[0])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list["subprocess.Popen[bytes]"]]]:
    """A Dask scheduler and two worker processes, as an operator starts them."""
    pytest.importorskip("distributed")
    told = tmp_path / "scheduler.json"
    base = [sys.executable, "-m", "distributed.cli."]

    def start(name: str, *options: str) -> "subprocess.Popen[bytes]":
        arguments = [*base[:2], base[2] + name, "--scheduler-file", str(told), "--no-dashboard", *options]
        return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    scheduler = start("dask_scheduler", "--port", "0", "--host", "127.0.0.1")
    workers = [start("dask_worker", "--no-nanny", "--nthreads", "1") for _ in range(2)]
    while not told.exists():
        time.sleep(0.1)
        assert scheduler.poll() is None
    yield json.loads(told.read_text())["address"], workers
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


def test_a_dask_worker_is_killed(
    cluster: tuple[str, list["subprocess.Popen[bytes]"]], reference: tuple[Path, float], suite: Path, tmp_path: Path
) -> None:
    address, workers = cluster
    store = tmp_path / "dask.db"
    run = started(suite, store, "--engine", "dask", "--address", address)
    while not (store.exists() and _claimed(store)):
        time.sleep(0.05)
        assert run.poll() is None, run.communicate()[0]
    time.sleep(2.0)
    workers[0].kill()
    said = run.communicate()[0]
    assert run.returncode == 0, said
    assert_same(store, reference[0])
