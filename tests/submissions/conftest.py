"""An export with predictions, and a store of runs on the same rows."""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bench.plan.cells import Refused, plan
from bench.plan.data_export import export_data
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.spec.cell import Outcome
from bench.store.store import Store, SuiteRecord
from tests.fixtures.commands import Command

SUITE = """
title = "Tiny"
seeds = 3
metrics = ["rmse", "crps"]
[datasets.table]
use = "diabetes"
[methods.deterministic]
[methods.mc-dropout]
"""


@dataclass(frozen=True)
class Split:
    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of three splits with predictions of normals, and a store with results of two methods on them."""
    root = tmp_path_factory.mktemp("prepared")
    path = root / "mine"
    export_data("diabetes", Registry().make("dataset", "diabetes", {}), path, 3)
    for number in range(3):
        test_y = exported(path, number).test_y
        np.savez(path / f"predictions-{number}.npz", mean=test_y + 1, std=np.full(len(test_y), 2.0))
    suite = root / "tiny.toml"
    suite.write_text(SUITE, "utf-8")
    results = []
    for task in plan(load_suite(str(suite)), Registry()):
        assert not isinstance(task, Refused)
        results += [(cell, Outcome("ok", metrics={"rmse": 50.0 + cell.seed, "crps": 30.0})) for cell in task.cells]
    with Store(str(root / "s.db")) as opened:
        opened.want(SuiteRecord("tiny", "Tiny", "deterministic", ["rmse", "crps"], "{}"), [cell for cell, _ in results])
        opened.save(results, "tiny")
    return root


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    """A copy of the export and its predictions."""
    return Path(shutil.copytree(prepared / "mine", tmp_path / "mine"))


@pytest.fixture
def store(prepared: Path, tmp_path: Path) -> Path:
    """A copy of the store."""
    return Path(shutil.copy(prepared / "s.db", tmp_path / "s.db"))


def exported(path: Path, number: int) -> Split:
    with np.load(path / f"split-{number}.npz") as arrays:
        return Split(**{name: arrays[name] for name in ("train_x", "train_y", "test_x", "test_y")})


def change(path: Path, old: str, new: str) -> None:
    document = path / "submission.toml"
    text = document.read_text("utf-8")
    assert re.search(old, text)
    document.write_text(re.sub(old, lambda _: new, text, count=1), "utf-8")


def scores(command: Command, path: Path) -> dict[str, float]:
    done = command("score", str(path), "--json")
    assert done.code == 0, done.err
    mean: dict[str, float] = json.loads(done.out)["mean"]
    return mean
