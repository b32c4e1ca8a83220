"""Runs that are killed at random moments, and what must be true of the store afterwards."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.store.store import Store

SUITE = """
title = "To be disturbed"
seeds = 4
draws = 5
[training]
epochs = 40
batch = 40
[network]
hidden = [10]
[datasets.toy]
rows = 80
[datasets.diabetes]
[methods.deterministic]
[methods.mc-dropout]
[methods.deep-ensemble]
networks = 2
"""
CELLS = 2 * 3 * 4


def command(suite: Path | str, store: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "bench", "run", str(suite), "--store", str(store), *options]


def started(suite: Path | str, store: Path, *options: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command(suite, store, *options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def workers_of(driver: int) -> list[int]:
    """Return the worker processes of a driver."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rsplit(") ", 1)[1].split()[1])
            line = (entry / "cmdline").read_bytes()
        except (OSError, IndexError, ValueError):
            continue  # it ended while we looked
        if parent == driver and b"spawn_main" in line:
            found.append(int(entry.name))
    return found


def kept(store: Path) -> tuple[list[tuple[str, str, float]], list[tuple[str, str]]]:
    """Return all metric values and all cells with their status, as the database has them."""
    with sqlite3.connect(store) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        values = connection.execute("SELECT key, metric, value FROM metrics ORDER BY key, metric").fetchall()
        cells = connection.execute("SELECT key, status FROM cells ORDER BY key").fetchall()
    connection.close()
    return values, cells


def assert_same(store: Path, reference: Path, count: int = CELLS) -> None:
    """The store has what an undisturbed run's has, byte for byte in its metrics: no cell twice, none missing."""
    values, cells = kept(store)
    assert len(cells) == len(set(cells)) == count
    assert kept(reference) == (values, cells)
    opened = Store(str(store), create=False)
    assert all(opened.load_arrays(key) is not None for key, _ in cells)
    opened.close()


@dataclass
class Tally:
    """What happened in a series of disturbed runs."""

    driver_kills: int = 0
    worker_kills: int = 0
    starts: int = 0
    stores: int = 0
    kept_between: list[int] = field(default_factory=list)  # cells in the store after each driver's death

    def __str__(self) -> str:
        return (
            f"{self.driver_kills + self.worker_kills} kill -9 ({self.driver_kills} of the driver, {self.worker_kills} "
            f"of a worker) in {self.starts} starts over {self.stores} stores; "
            f"cells found stored after a driver's death: {sorted(self.kept_between)}"
        )


def disturb(folder: Path, suite: Path, reference: Path, kills: int, seed: int, seconds: float) -> Tally:
    """Kill driver or worker at random moments of a run of about so many seconds, until there were so many kills."""
    generator = random.Random(seed)
    tally = Tally()
    while tally.driver_kills + tally.worker_kills < kills:
        store = folder / f"disturbed{tally.stores}.db"
        tally.stores += 1
        while True:
            tally.starts += 1
            driver = started(suite, store, "--engine", "local", "--workers", "2")
            ended = _disturbed(driver, generator, tally, kills, seconds)
            if ended is not None:
                assert driver.returncode == 0, ended
                break
            if store.exists():
                tally.kept_between.append(len(kept(store)[1]))
        assert_same(store, reference)
    return tally


def _disturbed(
    driver: "subprocess.Popen[str]", generator: random.Random, tally: Tally, kills: int, seconds: float
) -> str | None:
    """Let a driver run with kills; return what it said if it came to its end, None if it was killed itself."""
    while tally.driver_kills + tally.worker_kills < kills:
        moment = time.monotonic() + generator.uniform(0, seconds)
        while time.monotonic() < moment and driver.poll() is None:
            time.sleep(0.01)
        if driver.poll() is not None:
            break
        workers = workers_of(driver.pid)
        if workers and generator.random() < 0.5:
            os.kill(generator.choice(workers), signal.SIGKILL)
            tally.worker_kills += 1
        else:
            driver.kill()
            driver.communicate()
            tally.driver_kills += 1
            return None
    return driver.communicate()[0]
