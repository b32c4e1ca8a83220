"""The commands as a user calls them."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.spec.cell import Cell, Outcome
from bench.spec.plugin import PluginSpec
from bench.spec.protocol import Protocol
from bench.spec.spec import CellSpec
from bench.store.store import Store, SuiteRecord, new_owner
from tests.fixtures.commands import Command, Done

SPEC = CellSpec(
    dataset=PluginSpec("toy"),
    data="rows",
    method=PluginSpec("m", options={"rate": 0.1}),
    protocol=Protocol(),
    split=0,
    seed=0,
    harness=2,
)


@pytest.fixture
def call(command: Command) -> Command:
    """Run a command in this process, on the store of the test."""

    def run(*arguments: str, store: str = "runs/store.db") -> Done:
        return command(*arguments, "--store", store)

    return run


def cell(number: int, dataset: str = "toy", method: str = "m") -> Cell:
    return Cell(f"{number:04x}{number:028x}", dataset, number, method, number, SPEC.text)


@pytest.fixture
def mixed(store: Store) -> Store:
    """Six cells of one suite in every state, and a second suite with one of them."""
    cells = [cell(number, "toy" if number < 4 else "other/set") for number in range(6)]
    store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), cells)
    store.want(SuiteRecord("second", "Second", None, [], "{}"), cells[:1])
    store.want(SuiteRecord("empty", "Empty", None, [], "{}"), [])
    environment = {"code": "abc-dirty", "python": "3.11"}
    made = Outcome(
        "ok",
        metrics={"rmse": 0.1, "nll": math.inf},
        training={"epochs": [7], "left_out": {"there is one draw": ["nll_mc", "crps_sample"]}},
        environment=environment,
        timing={"seconds": 1.25, "cpu_seconds": 2.5, "finished": 0.0},
        arrays={"mean": np.arange(3.0)},
    )
    store.save([(cells[0], made), (cells[1], Outcome("diverged", "not finite"))], "tiny")
    store.save([(cells[2], Outcome("failed", "ValueError: bad\n\nTraceback \x1b[31m")), (cells[4], Outcome("failed"))])
    store.lease([cells[3].key, cells[4].key], new_owner())
    return store


def test_status(mixed: Store, call: Command) -> None:
    answer = call("status")
    assert (answer.code, answer.err) == (0, "")
    lines = [line.split() for line in answer.out.splitlines()]
    assert lines[0] == ["suite", "done", "diverged", "running", "failed", "missing"]
    assert lines[1:4] == [
        ["empty", "0", "0", "0", "0", "0"],
        ["second", "1", "0", "0", "0", "0"],
        ["tiny", "1", "1", "2", "1", "1"],
    ]
    assert "2 cells, last seen" in answer.out
    assert "1 array file " in answer.out
    found = json.loads(call("status", "tiny", "--json").out)
    counts = {
        (row["dataset"], row["method"]): [row[s] for s in ("done", "diverged", "running", "failed", "missing")]
        for row in found["rows"]
    }
    assert counts == {("toy", "m"): [1, 1, 1, 1, 0], ("other/set", "m"): [0, 0, 1, 0, 1]}
    assert [driver["cells"] for driver in found["drivers"]] == [2]
    assert found["array_files"] == 1
    assert found["unwanted"] == 0
    mixed.forget("tiny")
    assert "3 results of earlier forms of suites" in call("status").out
    assert "running that form again shows them without computing anew" in call("status").out


@pytest.mark.slow
def test_status_is_the_same_for_a_server(any_store: Store, call: Command) -> None:
    any_store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), [cell(0), cell(1)])
    any_store.save([(cell(0), Outcome("ok"))])
    answer = call("status", store=any_store.url)
    assert answer.out.splitlines()[1].split() == ["tiny", "1", "0", "0", "0", "1"]
    assert "a-secret" not in call("status", "--json", store=any_store.url).out


def test_show(mixed: Store, call: Command) -> None:
    key = cell(0).key
    whole = call("show", key)
    assert (whole.code, whole.err) == (0, "")
    about = (f"cell {key}: ok", "tiny: toy, split 0, m, seed 0", "second: toy", "abc with changes", "seconds: 1.250")
    more = ("1970-01-01T00:00:00", '"rate": 0.1', '"python": "3.11"', "0.1", "inf", '"epochs"')
    for said in (*about, *more):
        assert said in whole.out
    assert "metrics without a value:\n  nll_mc, crps_sample: there is one draw\n" in whole.out
    assert "left_out" not in whole.out
    assert call("show", key[:6]).out == whole.out
    assert call("show", "toy/m/0", "--suite", "tiny").out == call("show", "toy/m/0").out == whole.out
    told = json.loads(call("show", "toy/m/0", "--json").out)
    assert told["metrics"] == {"nll": "inf", "rmse": 0.1}
    assert told["spec"] == SPEC.plain()
    failed = call("show", "toy/m/2").out
    assert "ValueError: bad" in failed
    assert "\x1b" not in failed  # what is stored does not steer the terminal
    assert "missing" in call("show", "other/set/m/5").out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("show", "ffff"), "no such cell"),
        (("show", "000"), "at least 4 characters"),
        (("show", "nothing"), "no such cell"),
        (("show", "toy/m/x"), "the seed must be a number"),
        (("show", "toy/m/99"), "no such cell"),
        (("show", "toy/m/1", "--suite", "second"), "suite second of the store"),
        (("show", "toy/m/1", "--suite", "tin"), "did you mean tiny?"),
        (("status", "tinny"), "did you mean tiny?"),
        (("status", "tinny"), "store runs/store.db: unknown suite 'tinny'"),
        (("report", "tinny"), "(another store is named with --store)"),
        (("retry", "tinny", "--failed"), "(another store is named with --store)"),
        (("rescore", "tinny"), "(another store is named with --store)"),
        (("export", "tinny"), "did you mean tiny?"),
        (("export", "--format", "xml"), "'csv', 'json', 'parquet'"),
        (("export", "--out", "runs/store.db/x"), "cannot be written: a file has"),
        (("merge", "gone.db"), "no such store"),
        (("merge", "foo://x"), "expected an SQLite file"),
        (("gc", "--unwanted"), "is working on this store"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments: tuple[str, ...], reason: str, mixed: Store, call: Command) -> None:
    answer = call(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("uqbench: ")
    assert answer.err.count("\n") == 1
    assert reason in answer.err


@pytest.mark.parametrize("arguments", [("status",), ("show", "abcd"), ("export",), ("gc",), ("gc", "--dry-run")])
def test_looking_makes_no_store(arguments: tuple[str, ...], call: Command, tmp_path: Path) -> None:
    answer = call(*arguments)
    assert answer.code == 2
    assert "no such store; create one with" in answer.err
    assert list(tmp_path.iterdir()) == []


def test_an_ambiguous_cell(store: Store, call: Command) -> None:
    cells = [Cell(f"abcd{number:028x}", "toy", 0, "m", 0, f"{number}") for number in range(2)]
    store.want(SuiteRecord("one", "One", None, [], "{}"), cells[:1])
    store.want(SuiteRecord("two", "Two", None, [], "{}"), cells[1:])
    for name, hint in (("abcd", "give more characters"), ("toy/m/0", "name one with --suite")):
        answer = call("show", name)
        assert answer.code == 2
        assert "2 cells match" in answer.err
        assert hint in answer.err
    assert call("show", "toy/m/0", "--suite", "two").code == 0


def test_merge(mixed: Store, call: Command, tmp_path: Path) -> None:
    other = Store(str(tmp_path / "other.db"))
    other.save([(cell(0), Outcome("ok", metrics={"rmse": 0.5, "nll": math.inf}))])
    other.save([(cell(2), Outcome("ok", metrics={"rmse": 3.0})), (cell(9), Outcome("ok"))])
    answer = call("merge", "other.db")
    assert answer.code == 1
    assert answer.err == f"CONFLICT: {cell(0).key} rmse: here 0.1, there 0.5\n"
    assert "1 result added, 1 failure replaced, 0 the same, 1 in conflict" in answer.out
    again = json.loads(call("merge", "other.db", "--json").out)
    assert (again["added"], again["same"]) == (0, 2)
    assert again["conflicts"] == [{"key": cell(0).key, "what": "rmse", "here": 0.1, "there": 0.5}]
    fresh = call("merge", "other.db", store="new/fresh.db")  # a new store may be made by it
    assert (fresh.code, fresh.err) == (0, "")
    other.close()


def test_export(mixed: Store, call: Command, tmp_path: Path) -> None:
    plain = call("export", "tiny")
    assert plain.out.splitlines() == [
        "suite,dataset,split,method,seed,metric,value,key,status",
        f"tiny,toy,0,m,0,nll,inf,{cell(0).key},ok",
        f"tiny,toy,0,m,0,rmse,0.1,{cell(0).key},ok",
    ]
    assert call("export", "tiny", "--out", "values.csv").out == ""
    assert (tmp_path / "values.csv").read_text("utf-8") == plain.out
    assert len(json.loads(call("export", "--format", "json").out)) == 4
    assert call("export", "--format", "parquet", "--out", "v.parquet").code == 0
    assert len(pd.read_parquet(tmp_path / "v.parquet")) == 4


def test_parquet_is_not_for_a_terminal(mixed: Store, call: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.cli.store._is_terminal", lambda: True)
    answer = call("export", "--format", "parquet")
    assert answer.code == 2
    assert "not for a terminal" in answer.err


def test_gc_of_compiled_steps(store: Store, call: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = tmp_path / "uqbench" / "data.csv"
    graph = tmp_path / "uqbench" / "compiled" / "graphs" / "a.py"
    graph.parent.mkdir(parents=True)
    for path in (kept, graph):
        path.write_bytes(b"x" * 1500)
    assert call("gc", "--compiled", "--dry-run").out.endswith("\nwould remove 1 file of compiled steps (2 kB)\n")
    assert json.loads(call("gc", "--compiled", "--json").out)["compiled_files"] == 1
    assert not graph.exists()
    assert kept.exists()


def test_gc(store: Store, call: Command) -> None:
    store.arrays.folder.mkdir()
    stray = store.arrays.folder / ("a" * 32 + ".npz")
    stray.write_bytes(b"x" * 1500)
    assert call("gc", "--dry-run").out == "would remove 1 array file, 0 temporary files (2 kB) and 0 results\n"
    assert stray.exists()
    expected = {
        "dry_run": False,
        "results": 0,
        "array_files": 1,
        "temporary_files": 0,
        "bytes": 1500,
        "checkpoint_files": 0,
        "predictions": 0,
        "network_files": 0,
        "plugins": 0,
    }
    assert json.loads(call("gc", "--json").out) == expected
    assert not stray.exists()
    assert (
        call("gc", "--checkpoints").out
        == "removed 0 array files, 0 temporary files, 0 checkpoints (0 B) and 0 results\n"
    )
