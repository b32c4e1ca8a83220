"""Sizes that nobody means are refused before anything of that size is made."""

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.gate.baseline import read_baseline
from bench.leaderboard.frozen import read_frozen
from bench.machine import files
from bench.plan import sizes
from bench.plan.cells import Refused, plan
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.options import RunOptions

HUGE = 10**18


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (f"seeds={HUGE}", "seeds: Input should be less than or equal to 10000"),
        (f"draws={HUGE}", "draws: Input should be less than or equal to 100000"),
        (f"training.epochs={HUGE}", "training.epochs: Input should be less than or equal to 1000000000"),
        (f"training.batch={HUGE}", "training.batch: Input should be less than or equal to 1000000000"),
        (f"folds={HUGE}", "folds: Input should be less than or equal to 1000000000"),
    ],
)
def test_a_suite_states_no_such_size(change: str, reason: str, tiny_file: Path) -> None:
    with pytest.raises(UserError, match=reason):
        load_suite(tiny_file, [change])


def test_a_plan_with_too_many_cells(tiny_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = load_suite(tiny_file, ["seeds=10000"], methods=[f"m{number}" for number in range(10)])
    with pytest.raises(
        UserError, match=r"1 datasets x 12 methods x 10,000 seeds are 120,000 cells, a plan has at most"
    ):
        next(plan(suite, Registry()))
    monkeypatch.setattr(sizes, "MOST_CELLS", 4)
    assert len(list(plan(load_suite(tiny_file), Registry()))) == 2  # as many are allowed
    with pytest.raises(UserError, match="6 cells"):
        next(plan(load_suite(tiny_file, ["seeds=3"]), Registry()))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (["network.hidden=[50000, 50000]"], "it has 2,500,200,001 weights"),
        (["network.hidden=[1000000000]"], "hidden: expected at most 100,000, got 1000000000"),
        (["draws=100000", "datasets.toy.rows=20000"], "100,000 draws at 20,000 rows with 1 outputs are 2,000,000,000"),
        (["search=grid", "grid.weight_decay=[" + "0.1," * 10001 + "]"], "10,001 configurations"),
        (["search=random:20000", "grid.weight_decay=[" + "0.1," * 20001 + "]"], "20,000 configurations"),
        (
            ["search=random:5", *(f"grid.{name}=[{'0.1,' * 1001}]" for name in ("weight_decay", "learning_rate"))],
            "1,002,001 points",
        ),
        (["methods.deep-ensemble.networks=1000000000"], "at most 10,000 networks, got 1,000,000,000"),
    ],
)
def test_a_cell_that_is_too_large(changes: list[str], reason: str, tiny_file: Path) -> None:
    methods = ["deep-ensemble"] if "ensemble" in changes[0] else []
    tracemalloc.start()
    try:
        refused = _refusals(load_suite(tiny_file, changes, methods=methods))
    except UserError as error:
        refused = [str(error)]
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert any(reason in text for text in refused), refused
    assert peak < 200 * 2**20


def _refusals(suite: Any) -> list[str]:
    return [task.reason for task in plan(suite, Registry()) if isinstance(task, Refused)]


def test_a_network_that_cannot_be_made_without_memory_is_not_measured(tiny_file: Path) -> None:
    class Strange:
        def build(self, problem: object, outputs: int) -> object:
            raise NotImplementedError

    split: Any = type("Split", (), {"problem": type("Problem", (), {"outputs": 1})})
    assert sizes._weights(Strange(), split) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(("option", "value"), [("workers", HUGE), ("time_limit", 1e300), ("time_limit", float("inf"))])
def test_a_run_has_bounds(option: str, value: Any) -> None:
    with pytest.raises(UserError, match=f"{option}: at most"):
        RunOptions(**{option: value})


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "large"])
def test_a_table_is_a_regular_file_of_some_size(kind: str, tiny_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(2**30 + 1)  # takes no space
    else:
        path = Path("/dev/zero")
    suite = load_suite(tiny_file, datasets=[f"csv:{path}"]).only([f"csv:{path}"], ["deterministic"])
    (reason,) = _refusals(suite)
    assert ("not a regular file" in reason) == (kind != "large")
    assert ("1,073,741,825 bytes, a table has at most" in reason) == (kind == "large")


@pytest.mark.parametrize("read", [read_baseline, read_frozen, load_suite])
def test_a_document_has_an_end(read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_DOCUMENT_BYTES", 2**16)
    path = tmp_path / "document.toml"
    path.write_bytes(b" " * 2**16 + b"#")
    with pytest.raises(UserError, match="larger than 65,536 bytes"):
        read(path)
    if read is not load_suite:  # a suite is a regular file
        with pytest.raises(UserError, match="/dev/zero: larger than 65,536 bytes"):
            read(Path("/dev/zero"))
