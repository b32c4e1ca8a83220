"""Histories of values whose changes are known."""

import json
import math
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from bench.cell import Cell, Outcome
from bench.errors import UserError
from bench.gate.history import histories, history_page
from bench.stats.paired import Array
from bench.store import Store, SuiteRecord
from tests.gate.conftest import Command

ABOUT = {"dataset": ["toy", "built in", 1, {}], "method": ["m", "built in", 1, {}]}


def cell(version: int, seed: int) -> Cell:
    """A cell whose key changes with the version of its method, and whose protocol has grown a field."""
    spec = {
        **ABOUT,
        "harness": version,
        "seed": seed,
        "protocol": {"draws": 5, **({"probe": "test"} if version else {})},
    }
    spec["method"] = ["m", "built in", version, {}]
    return Cell(f"key-{version}-{seed}", "toy", seed, "m", seed, json.dumps(spec))


def stored(path: Path, values: Array, codes: Sequence[str]) -> Store:
    """A store with values `[versions, seeds]` of rmse, the last version wanted."""
    store = Store(str(path))
    cells = [[cell(version, seed) for seed in range(values.shape[1])] for version in range(len(values))]
    for version, (row, code) in enumerate(zip(values, codes, strict=True)):
        record = SuiteRecord("tiny", "Tiny", None, ["rmse"], "{}")
        store.want(record, cells[version])
        outcomes = [
            Outcome(
                "ok", metrics={"rmse": float(value)}, environment={"code": code}, timing={"finished": 100.0 + version}
            )
            for value in row
        ]
        store.save(zip(cells[version], outcomes, strict=True), "tiny")
    return store


def noisy(means: Sequence[float], seeds: int = 8) -> Array:
    generator = np.random.default_rng(0)
    return (
        np.array(means)[:, None]
        + 0.1 * generator.normal(size=seeds)
        + 0.01 * generator.normal(size=(len(means), seeds))
    )


def test_change_points_name_the_commit_at_which_the_values_changed(tmp_path: Path) -> None:
    store = stored(tmp_path / "s.db", noisy([1.0, 1.0, 1.0, 1.5, 1.5, 0.8, 0.8]), list("abcdefg"))
    (series,) = histories([store], "rmse")
    assert [version.code for version in series.versions] == list("abcdefg")
    assert [(change.code, change.better) for change in series.changes] == [("d", False), ("f", True)]
    assert series.changes[0].before == pytest.approx(1.0, abs=0.1)
    assert series.changes[0].after == pytest.approx(1.5, abs=0.1)


def test_noise_drift_and_identical_values_are_no_change_points(tmp_path: Path) -> None:
    same = noisy([1.0])
    for name, values in {
        "noise": noisy([1.0] * 8),
        "identical": np.repeat(same, 4, axis=0),
        "drift": same * (1.0 + 1e-6 * np.arange(6))[:, None],
    }.items():
        (series,) = histories([stored(tmp_path / f"{name}.db", values, [f"c{k}" for k in range(len(values))])], "rmse")
        assert series.changes == (), name


def test_versions_may_come_from_several_stores_and_may_be_dirty(tmp_path: Path) -> None:
    first = stored(tmp_path / "1.db", noisy([1.0, 1.0]), ["a", "b"])
    second = stored(tmp_path / "2.db", noisy([2.0, 2.0, 2.0]), ["x", "y", "c-dirty"])
    (series,) = histories([first, second], "rmse")
    assert {version.code for version in series.versions} == {"a", "b", "x", "y", "c-dirty"}


class _Outside(HTMLParser):
    """Collects what a page would load from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [str(value) for name, value in attrs if name in ("src", "href")]


def test_the_page_stands_alone_and_its_data_beside_it(tmp_path: Path) -> None:
    store = stored(tmp_path / "s.db", noisy([1.0, 1.0, 1.5]), ["a", "b", "<c>"])
    files = history_page(store, "rmse", tmp_path / "out")
    assert [path.name for path in files] == ["history-rmse.html", "history-rmse.json", "history-rmse.csv"]
    page = files[0].read_text("utf-8")
    reader = _Outside()
    reader.feed(page)
    assert reader.loaded == []
    assert "&lt;c&gt;" in page
    assert "<c>" not in page
    assert len(re.findall("<circle", page)) == 3
    content = json.loads(files[1].read_text("utf-8"))
    assert np.array(content["series"][0]["values"]).shape == (3, 8)
    assert files[2].read_text("utf-8").count("\n") == 1 + 24


def test_the_command_names_the_commit(tmp_path: Path, command: Command) -> None:
    stored(tmp_path / "s.db", noisy([1.0, 1.0, 1.5]), ["a", "b", "c"]).close()
    done = command("history", "--metric", "rmse", "--out", "out", "--store", "s.db")
    assert done.code == 0, done.err
    assert "worse  since c: m on toy: 1." in done.out
    assert (tmp_path / "out" / "history-rmse.html").is_file()


def test_mistakes_are_told(tmp_path: Path) -> None:
    store = stored(tmp_path / "s.db", noisy([1.0]), ["a"])
    with pytest.raises(UserError, match="unknown metric 'rmsee'; did you mean rmse"):
        histories([store], "rmsee")
    with pytest.raises(UserError, match="no value of it is stored"):
        histories([store], "ece")
    with pytest.raises(UserError, match="unknown suite 'quick'"):
        histories([store], "rmse", "quick")
    assert math.isfinite(histories([store], "rmse", "tiny")[0].values[0, 0])
