"""Metrics of plug-in files: computed by runs, part of the key, and failures that name metric, file and line."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.metrics import catalogue
from bench.plan.suite import Suite, load_suite
from bench.plugins.registry import Registry
from bench.run.driver import rerun, run
from bench.store.results import StoredResults
from bench.store.store import Store
from bench.workflow import choose_suite, compare_methods, load_results, rank_methods, run_suite
from tests.fixtures.suites import tiny_suite

WritePlugin = Callable[[str, str], Path]
DECLARED = """
from bench.api import Metric
def own(forecast):
    return {}
METRICS = (
    Metric("own_bias", "regression", "predictive", "target", 0.0, "1", frozenset(), "mean_i (m_i - y_i)", "test",
           own, signed=True),
)
"""
BIAS = DECLARED.format("(forecast.mean - forecast.observed).mean()")


def values_of(store: Store, metric: str) -> dict[tuple[str, int], float]:
    return {(row["method"], row["seed"]): row["value"] for row in store.values("tiny") if row["metric"] == metric}


def test_a_run_stores_the_metric_beside_the_others(
    tiny: Suite, store: Store, tmp_path: Path, write_plugin: WritePlugin
) -> None:
    """It is what the stored predictions say, and no other number changes."""
    plain = Store(str(tmp_path / "plain.db"))
    run(tiny, Registry(), plain)
    run(tiny, Registry([write_plugin("bias", BIAS)]), store)
    assert "own_bias" not in catalogue()
    assert values_of(plain, "own_bias") == {}
    found = values_of(store, "own_bias")
    assert len(found) == 4
    for row in store.cells("tiny"):
        arrays = store.load_arrays(row["key"]) or {}
        expected = float((arrays["mean"] - arrays["observed"]).mean())
        assert found[row["method"], row["seed"]] == pytest.approx(expected, rel=1e-12)
    assert values_of(store, "rmse") == values_of(plain, "rmse")


def test_cells_without_this_very_metric_run_again(tiny: Suite, store: Store, write_plugin: WritePlugin) -> None:
    run(tiny, Registry(), store)
    first = Registry([write_plugin("bias", BIAS)])
    assert run(tiny, first, store).stored == 4
    assert run(tiny, first, store).skipped == 4
    before = values_of(store, "own_bias")
    edited = Registry([write_plugin("bias", DECLARED.format("2 * (forecast.mean - forecast.observed).mean()"))])
    assert run(tiny, edited, store).stored == 4
    assert values_of(store, "own_bias") == pytest.approx({place: 2 * value for place, value in before.items()})
    assert run(tiny, Registry(), store).skipped == 4  # what was stored first is still there


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("forecast.nothing", r"metric 'own_bias': AttributeError: .* \(bias\.py, line \d+\)"),
        ("1 / 0", r"metric 'own_bias': ZeroDivisionError: division by zero \(bias\.py, line \d+\)"),
        ("'much'", r"metric 'own_bias': it must return one number, got a str \(bias\.py, line \d+\)"),
        ("forecast.mean", r"metric 'own_bias': it must return one number, got a ndarray \(bias\.py, line \d+\)"),
    ],
)
def test_a_metric_that_fails_names_itself_its_file_and_line(
    body: str, told: str, tiny: Suite, store: Store, write_plugin: WritePlugin
) -> None:
    path = write_plugin("bias", DECLARED.format(body))
    summary = run(tiny.only([], ["deterministic"]), Registry([path]), store)
    assert summary.stored == 0
    first = {message.partition("\n")[0] for _, message in summary.failures}
    (line,) = first
    assert re.fullmatch(told, line), line
    number = int(line.rpartition("line ")[2].rstrip(")"))
    wanted = "def own" if "must return" in told else "return"
    assert wanted in path.read_text("utf-8").splitlines()[number - 1]


def test_a_retry_needs_the_file(tiny: Suite, store: Store, write_plugin: WritePlugin) -> None:
    broken = Registry([write_plugin("bias", DECLARED.format("1 / 0"))])
    run(tiny.only([], ["deterministic"]), broken, store)
    summary = rerun(store.failed(), Registry(), store)
    (told,) = {message.partition("\n")[0] for _, message in summary.failures}
    assert told.endswith("than the cell is scored by (own_bias); give the file with --plugin, unchanged")


def test_a_suite_may_list_it_where_the_file_is_given(tmp_path: Path, write_plugin: WritePlugin) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(tiny_suite("[gate]", "margins = {own_bias = 0.1}", metrics=["own_bias", "rmse"]), "utf-8")
    with pytest.raises(UserError, match="unknown metric 'own_bias'"):
        load_suite(str(path))
    registry = Registry([write_plugin("bias", BIAS)])
    assert choose_suite(path, registry).metrics == ["own_bias", "rmse"]
    with pytest.raises(UserError, match="unknown metric 'own_bias'"):
        choose_suite(path, Registry())


@pytest.mark.slow
def test_statistics_know_it_from_the_results(tmp_path: Path, write_plugin: WritePlugin) -> None:
    """Results of a run know its metrics; results that are read later need the file."""
    path, file = tmp_path / "tiny.toml", write_plugin("bias", BIAS)
    path.write_text(tiny_suite(metrics=["own_bias"], seeds=3), "utf-8")
    done = run_suite(path, plugins=[file], store=tmp_path / "s.db")
    assert [one.metric for one in compare_methods(done.results, "deterministic", "mc-dropout").rows] == ["own_bias"]
    again = load_results(tmp_path / "s.db", plugins=[file])
    found = compare_methods(again, "deterministic", "mc-dropout", metrics=["own_bias"])
    assert [one.metric for one in found.rows] == ["own_bias"]
    bare = load_results(tmp_path / "s.db")
    assert isinstance(bare, StoredResults)
    with pytest.raises(UserError, match="'own_bias' has stored values, but nothing here declares it; give its file"):
        compare_methods(bare, "deterministic", "mc-dropout", metrics=["own_bias"])
    with pytest.raises(UserError, match="nothing to rank"):
        rank_methods(bare)
