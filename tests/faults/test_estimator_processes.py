"""Estimators in whole runs: one fresh process per cell, with its faults, its time limit and its cost."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.plan.cells import Refused, Task, plan
from bench.plan.suite import Suite, load_suite
from bench.plugins.registry import Registry
from bench.run.driver import run
from bench.run.options import RunOptions
from bench.store.store import Store

WritePlugin = Callable[[str, str], Path]
SUITE = """
title = "Tiny"
seeds = 1
draws = 5
{keys}
[network]
hidden = [4]
[datasets.toy]
rows = 40
{tables}
"""
HEAD = """
import os, signal, time
from pathlib import Path
from bench.api import Estimator, Points
"""


def estimator(fit: str, predict: str = "state + np.zeros((2, len(x)))", options: str = "pass") -> str:
    return f"""{HEAD}
@dataclass(frozen=True)
class Mine(Estimator):
    {options}
    def fit(self, train, validation, seed):
        {fit}
    def predict(self, state, x, draws, seed):
        return Points({predict})
"""


def suite_of(folder: Path, *methods: str, keys: str = "", tables: str = "") -> Suite:
    path = folder / "tiny.toml"
    own = "\n".join(f"[methods.{name}]" for name in methods)
    path.write_text(SUITE.format(keys=keys, tables=f"{own}\n{tables}"), "utf-8")
    return load_suite(str(path))


def values(store: Store) -> dict[tuple[Any, ...], float]:
    return {(row["method"], row["seed"], row["metric"]): row["value"] for row in store.values("tiny")}


def records(store: Store) -> dict[str, dict[str, Any]]:
    return {row["method"]: json.loads(row["training"]) for row in store.cells("tiny")}


@pytest.mark.slow
def test_faults_and_cost_of_a_cell_are_its_own_without_workers(
    tmp_path: Path, store: Store, write_plugin: WritePlugin
) -> None:
    bodies = {
        "fine": "return 0.5",
        "killed": "os.kill(os.getpid(), signal.SIGKILL)",
        "endless": "while True: time.sleep(0.01)",
        "wrong": "return np.linalg.inv(np.zeros((2, 2)))",
        "hog": "return float(np.ones(50_000_000).mean())",  # 400 MB
    }
    files = [write_plugin(name, estimator(body)) for name, body in bodies.items()]
    summary = run(
        suite_of(tmp_path, *bodies), Registry(files), store, RunOptions(executor="inline", time_limit=4.0).settings()
    )
    assert summary.stored == 2
    told = {cell.method: message for cell, message in summary.failures}
    assert told.keys() == {"killed", "endless", "wrong"}
    assert told["killed"].startswith("its worker died of SIGKILL")
    assert "tried 3 times alone" in told["killed"]
    assert told["endless"].startswith("not done within the time limit (4 s)")
    assert "in fit" in told["endless"]  # where it hung
    assert told["wrong"].startswith("fit, wrong.py:16: LinAlgError: Singular matrix\n")
    found = records(store)
    assert 350 < found["hog"]["memory_mib"] < 500
    assert found["fine"]["memory_mib"] < 100
    (cost,) = [row for row in store.cells("tiny") if row["method"] == "fine"]
    assert cost["seconds"] > 0
    assert cost["cpu_seconds"] > 0


def test_without_workers_the_time_limit_is_for_estimators_only(tmp_path: Path, store: Store) -> None:
    settings = RunOptions(executor="inline", time_limit=5.0).settings()
    with pytest.raises(UserError, match=r"cannot end a training that hangs \(method 'deterministic'\), only an estim"):
        run(suite_of(tmp_path, "deterministic"), Registry(), store, settings)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for a process in /proc")
def test_no_process_outlives_the_driver(tmp_path: Path, write_plugin: WritePlugin) -> None:
    note = tmp_path / "pid"
    hang = f"Path({str(note)!r}).write_text(str(os.getpid()))\n        while True: time.sleep(0.01)"
    file = write_plugin("mine", estimator(hang))
    suite_of(tmp_path, "mine")
    command = [sys.executable, "-m", "bench", "run", str(tmp_path / "tiny.toml"), "--plugin", str(file)]
    command += ["--store", str(tmp_path / "s.db"), "--engine", "inline"]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: note.is_file() and note.read_text() != "")
    finally:
        driver.kill()
        driver.wait()
    until(lambda: not Path(f"/proc/{note.read_text()}").exists())


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_training_of_networks_is_no_part_of_the_key(tmp_path: Path, write_plugin: WritePlugin) -> None:
    registry = Registry([write_plugin("mine", estimator("return 1.0"))])

    def keys(training: str) -> list[str]:
        suite = suite_of(tmp_path, "mine", "deterministic", tables=training)
        return [cell.key for task in plan(suite, registry) if isinstance(task, Task) for cell in task.cells]

    (mine, network), (mine_later, network_later) = keys(""), keys("[training]\nepochs = 3")
    assert mine == mine_later
    assert network != network_later


@pytest.mark.parametrize("table", ["training = { epochs = 3 }", "grid = { learning_rate = [0.1, 0.2] }"])
def test_a_training_for_an_estimator_is_refused(table: str, tmp_path: Path, write_plugin: WritePlugin) -> None:
    registry = Registry([write_plugin("mine", estimator("return 1.0"))])
    (refused,) = plan(suite_of(tmp_path, tables=f"[methods.mine]\n{table}", keys='search = "grid"'), registry)
    assert isinstance(refused, Refused)
    assert "tiny.toml: methods.mine." in refused.reason
    assert "an estimator trains in its own way" in refused.reason
