"""A study with a search is killed, once in the searches and once among the cells, and goes on where it was.

`make faults` does it with a small grid; `make faults KILLS=100` also with a part of the paper's study, where its data
is.
"""

import sqlite3
import time
from pathlib import Path

import pytest

from bench.machine.data_files import find_file
from tests.faults.harness import KILLS, assert_same, kept, started

pytestmark = pytest.mark.slow

SMALL = """
title = "A small study"
seeds = 2
draws = 5
search = "grid"
folds = 2
[grid]
learning_rate = [0.001, 0.01, 0.1]
[training]
epochs = 10
batch = 50
[network]
hidden = [10]
[datasets.diabetes]
[methods.deterministic]
[methods.mcni-fixed]
"""
REAL = ["--seeds", "1", "--dataset", "yacht", "--method", "deterministic", "--method", "mc-dropout", "--method"]


def searches(store: Path) -> dict[str, str]:
    """Return the searches that are stored, by the key of their cell."""
    if not store.exists():
        return {}
    try:
        with sqlite3.connect(store) as connection:
            found = dict(connection.execute("SELECT key, content FROM searches").fetchall())
        connection.close()
    except sqlite3.OperationalError:  # it is being made
        return {}
    return found


def test_a_killed_study_goes_on_with_what_it_has(tmp_path: Path) -> None:
    suite = tmp_path / "study.toml"
    suite.write_text(SMALL, "utf-8")
    _killed_twice(str(suite), tmp_path, 4, "--engine", "inline")


@pytest.mark.skipif(KILLS < 100, reason="several minutes of training: make faults KILLS=100")
@pytest.mark.skipif(find_file("uci/yacht/data.txt") is None, reason="the UCI files are not here (UQBENCH_DATA)")
def test_a_part_of_the_regression_study(tmp_path: Path) -> None:
    _killed_twice("uci-small", tmp_path, 3, "--engine", "local", "--workers", "1", *REAL, "mcni-fixed")


def _killed_twice(suite: str, folder: Path, count: int, *options: str) -> None:
    reference, store = folder / "reference.db", folder / "killed.db"
    began = time.monotonic()
    undisturbed = started(suite, reference, *options)
    said = undisturbed.communicate()[0]
    assert undisturbed.returncode == 0, said
    taken = time.monotonic() - began

    first = started(suite, store, *options)
    while not searches(store):
        assert first.poll() is None, first.communicate()[0]
        time.sleep(0.01)
    first.kill()
    first.communicate()
    found, cells = searches(store), len(kept(store)[1])

    second = started(suite, store, *options)
    while len(kept(store)[1]) <= cells:
        assert second.poll() is None, second.communicate()[0]
        time.sleep(0.01)
    second.kill()
    second.communicate()
    stored = kept(store)[1]
    assert len(stored) < count

    last = started(suite, store, *options)
    said = last.communicate()[0]
    assert last.returncode == 0, said
    assert f"{len(stored)} stored before" in said
    assert_same(store, reference, count)
    assert searches(store) == searches(reference)
    assert found.items() <= searches(store).items()
    print(
        f"\n{suite}: undisturbed {taken:.0f} s; killed with {len(found)} searches and {cells} cells stored, again with "
        f"{len(stored)} cells; then all {count} cells and {len(searches(store))} searches as in the undisturbed store"
    )
