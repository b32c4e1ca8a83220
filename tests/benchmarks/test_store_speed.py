"""How quickly a large store answers, and how many results a second it takes.

    make bench

A store of 20,000 cells in 50 suites with 1,000,000 metric values is made once. `uqbench status` and `status SUITE` are
timed as whole commands, with the start of the interpreter.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from bench.spec.cell import Cell, Outcome
from bench.store.store import Store, SuiteRecord, new_owner

SUITES, DATASETS, METHODS, SEEDS, METRICS = 50, 4, 10, 10, 50
MOST = 2.0  # seconds


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(str(tmp_path_factory.mktemp("large") / "store.db"))
    owner = new_owner()
    began = time.perf_counter()
    for number in range(SUITES):
        name = f"suite{number:02}"
        cells = [
            Cell(f"{number:08x}{d:08x}{m:08x}{s:08x}", f"dataset{d}", s, f"method{m}", s, '{"protocol": {}}')
            for d in range(DATASETS)
            for m in range(METHODS)
            for s in range(SEEDS)
        ]
        store.want(SuiteRecord(name, name, "method0", [], "{}"), cells)
        values = {f"metric{i:02}": 0.1 * i for i in range(METRICS)}
        store.save(((cell, Outcome("ok", metrics=values, environment={"code": "abc"})) for cell in cells), name)
        store.lease([cell.key for cell in cells], owner)
    seconds = time.perf_counter() - began
    count = SUITES * DATASETS * METHODS * SEEDS
    print(f"\n{count:,} cells, {count * METRICS:,} values: stored in {seconds:.1f} s, {count / seconds:,.0f} cells/s")
    return store


def timed(benchmark: Any, work: Callable[[], object], name: str) -> float:
    times: list[float] = []

    def once() -> None:
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)

    benchmark.pedantic(once, rounds=5, iterations=1)
    print(f"\n{name}: {median(times):.2f} s")
    return median(times)


@pytest.mark.parametrize(
    "arguments", [["status"], ["status", "suite07"], ["show", "dataset1/method1/1", "--suite", "suite07"]]
)
def test_a_million_values_answer_at_once(benchmark: Any, large: Store, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "bench", *arguments, "--store", str(large.path)]
    root = Path(__file__).resolve().parents[2]

    def work() -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=root)

    assert timed(benchmark, work, f"uqbench {' '.join(arguments)}") < MOST


def test_which_cells_are_done(benchmark: Any, large: Store) -> None:
    keys = [row["key"] for number in range(SUITES) for row in large.cells(f"suite{number:02}")]
    assert len(large.done(keys)) == len(keys)
    timed(benchmark, lambda: large.done(keys), f"which of {len(keys):,} keys are done")


def test_cells_stored_one_by_one_and_in_groups(benchmark: Any, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store.db"))
    values = {f"metric{i:02}": 0.1 * i for i in range(METRICS)}
    made = [(Cell(f"{n:032x}", "toy", n, "m", n, "{}"), Outcome("ok", metrics=values)) for n in range(1200)]
    began = time.perf_counter()
    for result in made[:200]:
        store.save([result])
    alone = (time.perf_counter() - began) / 200
    grouped: list[float] = []

    def group() -> None:
        start = 200 + 200 * len(grouped)
        began = time.perf_counter()
        store.save(made[start : start + 200])
        grouped.append((time.perf_counter() - began) / 200)

    benchmark.pedantic(group, rounds=5, iterations=1)
    print(f"\na cell of {METRICS} values: {alone * 1e3:.2f} ms alone, {median(grouped) * 1e3:.2f} ms in a group of 200")
    store.close()
