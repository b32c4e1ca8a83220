"""The Python interface: the document's example, and that it does what the commands do."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bench
from bench import stats, workflow
from bench.store.store import Store
from tests.fixtures.commands import Command
from tests.fixtures.results import fill

ROOT = Path(__file__).resolve().parents[1]
QUIET = bench.RunOptions(executor="inline", progress=False)
SUITE: dict[str, Any] = {
    "name": "small",
    "title": "Small",
    "seeds": 2,
    "draws": 5,
    "metrics": ["rmse"],
    "training": {"epochs": 2, "batch": 100},
    "network": {"hidden": [4]},
    "datasets": {"toy": {"rows": 40}, "diabetes": {}},
    "methods": {"deterministic": {}, "mc-dropout": {}},
}


@pytest.mark.slow
def test_the_document_s_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "python.md").read_text("utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/python.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "10 cells stored, 0 failed" in printed
    assert "15 results added, 0 conflicts" in printed
    assert {row.method for row in names["results"].cells.itertuples()} == {"mc-dropout", "heavy-dropout", "mcni-fixed"}
    documented = set(re.findall(r"^\| `(\w+)\(", text, re.MULTILINE))
    assert documented == {name for name in bench.__all__ if name[0].islower()}


def test_the_exported_names_are_those_that_type_checkers_see() -> None:
    tree = ast.parse((ROOT / "bench" / "__init__.py").read_text("utf-8"))
    checked = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(bench.__all__) == checked - {"TYPE_CHECKING", "Any", "reproduction", "workflow", "stats"}
    assert bench.Settings is stats.Settings
    assert all(getattr(bench, name) is getattr(workflow, name) for name in bench.__all__ if hasattr(workflow, name))
    assert set(bench.__all__) <= set(dir(bench))
    with pytest.raises(AttributeError, match="run_suite"):
        _ = bench.run_sweet  # type: ignore[attr-defined]


def test_importing_bench_and_naming_its_functions_loads_nothing_heavy(python: Callable[[str], str]) -> None:
    code = (
        "import sys, bench; bench.run_suite, bench.RunOptions(); print({'torch', 'pandas', 'numpy'} & set(sys.modules))"
    )
    assert python(code) == "set()"


@pytest.mark.slow
def test_the_same_suite_gives_the_same_cells_and_values_by_command_and_by_call(
    command: Command, tmp_path: Path, tiny_file: Path
) -> None:
    assert command("run", str(tiny_file), "--seeds", "1", "--store", "a.db", "--set", "draws=3").code == 0
    run = bench.run_suite(tiny_file, seeds=1, changes={"draws": 3}, store=tmp_path / "b.db", options=QUIET)
    assert run.ok
    assert (run.summary.stored, run.stopped_by) == (2, None)
    columns = ["method", "seed", "key", "metric", "value"]
    told = bench.load_results(tmp_path / "a.db").frame[columns]
    assert told.equals(run.results.frame[columns])
    again = bench.run_suite(tiny_file, seeds=1, changes=["draws=3"], store=run.store, options=QUIET)
    assert (again.summary.stored, again.summary.skipped) == (0, 2)
    merged = bench.merge_stores(tmp_path / "a.db", run.store)
    assert (merged.added, merged.same, merged.conflicts) == (0, 2, [])


@pytest.mark.slow
def test_a_mapping_is_a_suite_and_is_not_changed(tmp_path: Path) -> None:
    before = repr(SUITE)
    run = bench.run_suite(
        SUITE, methods=["mc-dropout", "mcni-fixed"], store=tmp_path / "s.db", options=QUIET, changes={"draws": 3}
    )
    assert repr(SUITE) == before
    assert set(run.results.frame["method"]) == {"mc-dropout", "mcni-fixed"}
    ranking = bench.rank_methods(run.results, metrics=["rmse"]).rankings[0]
    assert {method.method for method in ranking.methods} == {"mc-dropout", "mcni-fixed"}
    page, board = bench.write_leaderboard(run.store, tmp_path / "site")
    assert page.is_file()
    assert board.rows or board.unlisted
    assert bench.write_report(run.store, tmp_path / "report").read_text("utf-8").startswith("<!doctype html>")


SCRIPT = f"""
import sys
import bench

local = bench.RunOptions(executor="local", workers=1)
run = bench.run_suite({SUITE}, methods=["deterministic"], datasets=["toy"], seeds=1, store=sys.argv[1], options=local)
print(run.summary.stored, run.ok)
"""


@pytest.mark.slow
def test_a_script_without_a_main_guard_runs_once(tmp_path: Path) -> None:
    """Workers are spawned: one that imported the script would run the suite again, and wait for the first for ever."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, "utf-8")
    command = [sys.executable, str(script), str(tmp_path / "s.db")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.stdout.split() == ["1", "True"], done.stderr


def test_changes_may_be_nested_of_numpy_and_name_what_has_dots() -> None:
    registry = workflow.registry_of()
    chosen = workflow.choose_suite(
        SUITE,
        registry,
        methods="mc-dropout",
        datasets=["csv:houses.csv?target=price"],
        changes={
            "training": {"epochs": np.int64(7)},
            "title": "\N{TEST TUBE} mine",
            ("datasets", "csv:houses.csv?target=price", "optional"): False,
        },
    )
    assert (chosen.title, list(chosen.methods), list(chosen.datasets)) == (
        "\N{TEST TUBE} mine",
        ["mc-dropout"],
        ["csv:houses.csv?target=price"],
    )
    assert chosen.protocol_for("csv:houses.csv?target=price").training.epochs == 7


def test_results_of_comparisons_and_rankings_are_data_frames(tmp_path: Path) -> None:
    with Store(str(tmp_path / "made.db")) as store:
        fill(
            store,
            lambda d, m, s, _: {"a": 1.0, "b": 2.0}[m] + 0.01 * s * (m == "a"),
            methods=["a", "b"],
            datasets=["x", "y"],
        )
        results = bench.load_results(store)
        comparison = bench.compare_methods(results, "a", "b", metrics=["rmse"])
        frame = comparison.frame
        assert frame["dataset"].tolist() == ["x", "y"]
        assert frame["verdict"].tolist() == ["better", "better"]
        assert ((frame["low"] <= frame["difference"]) & (frame["difference"] <= frame["high"])).all()
        ranks = bench.rank_methods(results, metrics=["rmse"]).frame
        assert ranks[["method", "average_rank"]].to_numpy().tolist() == [["a", 1.0], ["b", 2.0]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bench.run_suite({"title": "x"}), "name: this key is required"),
        (lambda: bench.run_suite("quik"), "did you mean quick"),
        (lambda: bench.run_suite({**SUITE, "trainning": {}}), "did you mean training"),
        (lambda: bench.run_suite(SUITE, methods=["mc-droput"]), "did you mean mc-dropout"),
        (lambda: bench.RunOptions(executor="locl"), "did you mean local"),  # type: ignore[arg-type]
        (lambda: bench.RunOptions(executor=None), "unknown executor 'None'"),  # type: ignore[arg-type]
        (lambda: bench.RunOptions(workers=-1), "workers: expected a number above 0"),
        (lambda: bench.RunOptions(time_limit=0), "time_limit: expected a number above 0"),
        (lambda: bench.run_suite(SUITE, changes={"training.epoch": 3}), "did you mean epochs"),
        (lambda: bench.open_store("nothing.db"), "no such store"),
        (lambda: bench.load_results("nothing.db"), "no such store"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_would_be_right(
    call: Callable[[], object], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(bench.UserError) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
