"""Several processes and one store."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import Connection

from bench.store.store import Store
from bench.store.tables import suites

ROOT = Path(__file__).resolve().parents[2]
CELLS = 36

DRIVER = """
import sys
from bench.spec.cell import Cell, Outcome
from bench.store.store import Store, SuiteRecord, new_owner
url, who, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store, owner = Store(url), new_owner()
cells = [Cell(f"k{i}", "toy", i, "m", i, "{}") for i in range(count)]
store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), cells)
shared = [Cell("shared", "toy", 0, "shared", 0, "{}")]
store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), shared)
print("ready", flush=True)
sys.stdin.readline()
order = cells if who == "0" else cells[::-1]
for start in range(0, count, 3):
    part = order[start : start + 3]
    ours = store.lease([cell.key for cell in part], owner)
    store.renew(owner)
    outcome = Outcome("ok", metrics={"by": float(who), "more": 1.0})
    made = [(cell, outcome) for cell in part if cell.key in ours]
    store.save([*made, (shared[0], outcome)], "tiny")
    print(*(cell.key for cell, _ in made), flush=True)
store.release(owner)
"""


@pytest.mark.slow
def test_two_drivers_share_the_work(any_store: Store) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", DRIVER, any_store.url, str(who), str(CELLS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for who in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    made = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        made.append(set(out.split()))
    assert made[0] | made[1] == {f"k{i}" for i in range(CELLS)}
    assert not made[0] & made[1]  # nothing was done twice
    rows = {(row["key"], row["metric"]): row["value"] for row in any_store.values("tiny")}
    assert len(rows) == 2 * CELLS + 2
    for who, keys in enumerate(made):
        assert all(rows[key, "by"] == who for key in keys)
    assert [row["status"] for row in any_store.cells("tiny")] == ["ok"] * (CELLS + 1)
    assert any_store.drivers() == []


@pytest.mark.slow
def test_two_may_want_the_same_suite_at_once(any_store: Store) -> None:
    code = """
import sys
from bench.spec.cell import Cell
from bench.store.store import Store, SuiteRecord
store = Store(sys.argv[1])
for turn in range(8):
    cells = [Cell(f"{turn}{i}", "toy", i, "m", i, "{}") for i in range(20)]
    store.forget("tiny")
    store.want(SuiteRecord("tiny", f"Turn {turn}", None, [], "{}"), cells)
    store.remark("tiny", "toy", "", ["a", "b"])
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, any_store.url], cwd=ROOT) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert len(any_store.cells("tiny")) == 20
    assert len(any_store.remarks("tiny")) == 2


def test_what_one_suite_wants_is_written_by_one_at_a_time(any_store: Store) -> None:
    """A writer that has only begun already keeps the others waiting, so nobody decides by what is old in a moment."""
    begun, go_on = Event(), Event()

    def work(connection: Connection) -> None:
        begun.set()
        go_on.wait(20)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(any_store.database.write, work, suites)
        assert begun.wait(20)
        second = pool.submit(any_store.forget, "tiny")
        waited = wait([second], timeout=0.5).not_done
        go_on.set()
        first.result(20)
        second.result(20)
    assert waited == {second}
