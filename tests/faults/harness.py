"""Runs in processes of their own, and what must be true of the store afterwards."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from bench.store.store import Store

KILLS = int(os.environ.get("UQBENCH_KILLS", "14"))  # 100: the long form, 'make faults KILLS=100'
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
