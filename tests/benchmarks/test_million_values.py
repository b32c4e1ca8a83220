"""How long the pages and tables of 1,000,000 metric values take, and how much memory, as whole commands.

    python -m pytest tests/benchmarks/test_million_values.py -o addopts="--import-mode=importlib" -s

20 methods on 20 datasets with 50 seeds and 50 metrics each, in two suites that show six metrics, as suites do.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.metrics import catalogue
from bench.store.store import Store
from tests.fixtures.results import fill, steps

METHODS = [f"method-{number:02}" for number in range(20)]
SEEDS, METRICS = 50, 50
# Started by a small process: to the memory of a process counts that of the one that started it, and pytest's is large.
LAUNCH = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(status, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def whole_command(arguments: list[str], store: str) -> tuple[float, float, float]:
    """Run a command and return its seconds, its seconds of the processor with those of children, and its peak in MB."""
    began = time.perf_counter()
    whole = [sys.executable, "-c", LAUNCH, sys.executable, "-m", "bench", *arguments, "--store", store]
    answer = subprocess.run(whole, capture_output=True, text=True, check=True).stdout
    took = time.perf_counter() - began
    status, processor, kibibytes = map(float, answer.split())
    assert status == 0
    peak = kibibytes * 1024 / 1e6
    print(f"\nuqbench {' '.join(arguments)}: {took:.1f} s ({processor:.1f} s of the processor), {peak:.0f} MB")
    return took, processor, peak


def metrics_of(task: str) -> list[str]:
    """Return 50 names of metrics that a forecast of the task has, some of them of fewer draws."""
    every = [m for m in catalogue().values() if m.compute is not None and not m.on_request]
    own = [m.name for m in every if m.task in (task, "any") and m.has_better]
    return [*own, *(f"{name}@T={draws}" for draws in (1, 10) for name in own)][:METRICS]


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> Store:
    place = os.environ.get("UQBENCH_MILLION")  # a store that an earlier run has made
    path = Path(place) if place else tmp_path_factory.mktemp("million") / "store.db"
    if path.is_file():
        return Store(str(path))
    store, value = Store(str(path)), steps(METHODS, gap=0.05, noise=0.4)
    for suite, task in (("numbers", "regression"), ("classes", "classification")):
        names, datasets = metrics_of(task), [f"{suite}-{number:02}" for number in range(10)]
        fill(
            store,
            value,
            suite=suite,
            methods=METHODS,
            datasets=datasets,
            seeds=SEEDS,
            metrics=names,
            shown=names[:6],
            one_split=False,
        )
    return store


@pytest.mark.parametrize(
    ("arguments", "seconds", "megabytes"),
    [
        (["report", "--out", "OUT"], 60, 600),
        (["leaderboard", "--out", "OUT"], 30, 600),
        (["export", "--out", "OUT/values.csv"], 10, 400),
        (["export", "--format", "parquet", "--out", "OUT/values.parquet"], 10, 400),
        (["compare", "method-00", "method-19", "--suite", "numbers", "--metric", "rmse"], 10, 400),
        (["rank", "--suite", "numbers", "--metric", "rmse"], 10, 400),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else None,
)
def test_a_command(million: Store, arguments: list[str], seconds: float, megabytes: float, tmp_path: Path) -> None:
    command = [part.replace("OUT", str(tmp_path)) for part in arguments]
    took, _, peak = whole_command(command, str(million.path))
    assert took < seconds
    assert peak < megabytes
