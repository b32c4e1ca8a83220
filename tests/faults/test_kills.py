"""Runs that are stopped, shared by two drivers, or lose a Dask worker: the store equals an undisturbed run's."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.clusters import started_cluster, until
from tests.faults.harness import CELLS, SUITE, assert_same, kept, started

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("suite") / "disturbed.toml"
    path.write_text(SUITE, "utf-8")
    return path


@pytest.fixture(scope="module")
def reference(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of an undisturbed run."""
    store = tmp_path_factory.mktemp("reference") / "reference.db"
    run = started(suite, store, "--engine", "local", "--workers", "2")
    said = run.communicate()[0]
    assert run.returncode == 0, said
    assert len(kept(store)[1]) == CELLS
    return store


def test_a_polite_stop_stores_what_is_in_work(reference: Path, suite: Path, tmp_path: Path) -> None:
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
    assert "the same command goes on from there" in said
    before = len(kept(store)[1])
    assert 0 < before < CELLS
    again = started(suite, store, "--engine", "inline")
    said = again.communicate()[0]
    assert again.returncode == 0, said
    assert f"{before} stored before" in said
    assert_same(store, reference)


def _claimed(store: Path) -> bool:
    try:
        with sqlite3.connect(store) as connection:
            found = connection.execute("SELECT COUNT(*) FROM claims").fetchone()[0]
        connection.close()
    except sqlite3.OperationalError:
        return False
    return bool(found)


def test_two_drivers_share_the_work(reference: Path, suite: Path, tmp_path: Path) -> None:
    store = tmp_path / "shared.db"
    drivers = [started(suite, store, "--engine", "inline", "--json") for _ in range(2)]
    said = [driver.communicate()[0] for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0, 0], said
    told = [json.loads(text[text.index("{") :]) for text in said]
    assert sum(each["stored"] for each in told) == CELLS, "a cell was run by both"
    assert all(each["stored"] + each["elsewhere"] + each["skipped"] == CELLS for each in told)
    assert_same(store, reference)


def test_a_dask_worker_is_killed(reference: Path, suite: Path, tmp_path: Path) -> None:
    store = tmp_path / "dask.db"
    with started_cluster(tmp_path) as cluster:
        first, _ = cluster.worker(), cluster.worker()
        run = started(suite, store, "--engine", "dask", "--address", cluster.address)
        until(lambda: run.poll() is not None or (store.exists() and _claimed(store)))
        time.sleep(2.0)
        first.kill()
        said = run.communicate()[0]
    assert run.returncode == 0, said
    assert_same(store, reference)
