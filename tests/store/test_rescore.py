"""Metrics from stored predictions: only what is new or changed, and nothing that was stored is lost."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

import bench
from bench.errors import UserError
from bench.metrics import Forecast, Metric
from bench.plugins.registry import Registry
from bench.store.lookup import describe
from bench.store.merge import merge
from bench.store.rescore import Rescored, plan, rescore
from bench.store.results import StoredResults
from bench.store.store import Store, SuiteRecord
from bench.store.tables import rescored
from tests.fixtures.banks import cell, filled, outcome, predicted
from tests.fixtures.stores import NewStore

SPREAD = Metric(
    name="mean_spread",
    task="regression",
    family="descriptive",
    direction="none",
    target=None,
    unit="target",
    needs=frozenset({"draws"}),
    formula="mean_i std_t f_t(x_i)",
    source="a test",
    compute=lambda forecast: float((forecast.spread**0.5).mean()),
)


def registry(*metrics: Metric) -> Registry:
    """The built-in metrics and these."""
    found = Registry()
    found.__dict__["metrics"] = {**found.metrics, **{metric.name: metric for metric in metrics}}
    return found


def run(store: Store, own: Registry, *names: str, go_on: Callable[[int], bool] = lambda cells: True) -> Rescored:
    return rescore(store, own, *plan(store, own, "tiny", names), go_on)


def values(store: Store, metric: str) -> dict[int, float]:
    return {row["seed"]: row["value"] for row in store.values("tiny") if row["metric"] == metric}


def test_a_new_metric_is_computed_once_and_other_values_stay(any_store: Store) -> None:
    made = filled(any_store)
    before = any_store.values("tiny")
    own = registry(SPREAD)
    done = run(any_store, own)
    assert (done.cells, done.values, done.replaced, done.names) == (3, 3, 0, {"mean_spread"})
    expected = {number: float((kept.test.spread**0.5).mean()) for number, kept in enumerate(made)}
    assert values(any_store, "mean_spread") == pytest.approx(expected, rel=1e-4)
    assert [row for row in any_store.values("tiny") if row["metric"] != "mean_spread"] == before
    again = run(any_store, own)
    assert (again.cells, again.values, again.current) == (0, 0, 3)


def test_a_changed_version_replaces_values_and_keeps_what_the_run_computed(any_store: Store) -> None:
    filled(any_store)
    rmse = Registry().metrics["rmse"]
    first = values(any_store, "rmse")
    assert run(any_store, Registry()).cells == 0

    def doubled(forecast: Forecast) -> float:
        assert rmse.compute is not None
        return 2 * rmse.compute(forecast)

    for version in (2, 3):
        done = run(any_store, registry(replace(rmse, compute=doubled, version=version)))
        assert (done.values, done.replaced) == (3, 3)
        assert values(any_store, "rmse") == pytest.approx({k: 2 * v for k, v in first.items()}, rel=1e-4)
        rows = any_store.database.rows(select(rescored).order_by(rescored.c.key))
        assert [row["before"] for row in rows] == list(first.values())
        assert {(row["version"], row["precision"]) for row in rows} == {(str(version), "16 bits")}
    noted = describe(any_store, cell(0).key)["rescored"]
    assert [(row["metric"], row["before"]) for row in noted] == [("rmse", first[0])]
    shown = StoredResults(any_store, "tiny").rescored
    assert shown.to_dict("records") == [{"metric": "rmse", "version": "3", "precision": "16 bits", "values": 3}]


def test_versions_at_run_time_are_known(any_store: Store) -> None:
    """A cell that was scored by the second version is not scored by it again."""
    filled(any_store, metric_versions={"rmse": 2})
    rmse = replace(Registry().metrics["rmse"], version=2)
    assert run(any_store, registry(rmse)).cells == 0
    assert run(any_store, Registry(), "rmse").cells == 3  # an older uqbench has another version


def test_a_metric_without_a_value_is_not_tried_again(any_store: Store) -> None:
    filled(any_store)
    undefined = replace(SPREAD, compute=lambda forecast: math.nan)
    done = run(any_store, registry(undefined))
    assert (done.cells, done.values) == (3, 0)
    assert run(any_store, registry(undefined)).cells == 0


def test_only_the_metrics_of_a_task_and_those_that_are_named(any_store: Store) -> None:
    any_store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), [cell(0), cell(1)])
    any_store.save([(cell(0), outcome(predicted(0), {}, left_out={}))])
    any_store.save([(cell(1), outcome(predicted(1, "classification"), {}, left_out={}))])
    assert run(any_store, Registry(), "accuracy", "rmse").names == {"accuracy", "rmse"}
    assert values(any_store, "rmse").keys() == {0}
    assert values(any_store, "accuracy").keys() == {1}
    run(any_store, Registry())
    assert values(any_store, "nll") == pytest.approx({0: predicted(0).scores()["nll"]}, rel=1e-4)
    assert values(any_store, "ece_last_pass") == {}  # on request
    assert run(any_store, Registry(), "ece_last_pass").values == 1


def test_cells_without_predictions_and_damaged_ones_are_counted(any_store: Store) -> None:
    filled(any_store)
    any_store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), [cell(number) for number in range(4)])
    any_store.save([(cell(3), replace(outcome(predicted(3)), predictions=b""))])
    for path in any_store.arrays.folder.iterdir():
        if path.stem == describe(any_store, cell(1).key)["predictions"]["file"]:
            path.write_bytes(b"x")
    done = run(any_store, registry(SPREAD))
    assert (done.cells, done.without, len(done.faults)) == (2, 1, 1)
    assert values(any_store, "mean_spread").keys() == {0, 2}


def test_a_stopped_command_goes_on_from_there(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.store.rescore.CELLS_AT_ONCE", 1)
    filled(store)
    done = run(store, registry(SPREAD), go_on=lambda cells: False)
    assert (done.cells, done.left) == (1, 2)
    assert run(store, registry(SPREAD)).cells == 2


def test_merging_with_a_store_that_was_not_rescored_is_no_conflict(new_store: NewStore) -> None:
    one, other = new_store(), new_store()
    filled(one)
    filled(other)
    run(other, registry(SPREAD))
    assert not merge(other, one).conflicts
    assert len(values(other, "mean_spread")) == 3
    assert not merge(one, other).conflicts
    assert values(one, "mean_spread") == values(other, "mean_spread")
    assert run(one, registry(SPREAD)).cells == 0


def test_a_metric_that_is_no_function_of_predictions_is_refused(store: Store) -> None:
    filled(store)
    for name, message in (("latency_total", "measured by a probe"), ("rmsee", "did you mean rmse")):
        with pytest.raises(UserError, match=message):
            plan(store, Registry(), "tiny", [name])
    with pytest.raises(UserError, match="unknown suite 'tinny'"):
        plan(store, Registry(), "tinny")


PLUGIN = """
from bench.api import Metric

MEAN = Metric(
    name="mean_draw", task="regression", family="descriptive", direction="none", target=None, unit="target",
    needs=frozenset(), formula="mean", source="mine", compute=lambda forecast: float(forecast.mean.mean()) * FACTOR,
)
"""


def test_a_metric_of_a_file_from_python(store: Store, tmp_path: Path) -> None:
    """The version of its metric is the content of the file, which the store keeps."""
    made = filled(store)
    file = tmp_path / "mine.py"
    for factor, replaced in ((1, 0), (2, 3)):
        file.write_text(PLUGIN.replace("FACTOR", str(factor)), "utf-8")
        done = bench.rescore(store, plugins=[file], progress=False)
        assert (done.values, done.replaced) == (3, replaced)
        assert bench.rescore(store, plugins=[file], progress=False).values == 0
    assert values(store, "mean_draw")[0] == pytest.approx(2 * made[0].test.mean.mean(), rel=1e-4)
    from bench.store.gc import clean

    clean(store)
    assert {source.name for source in store.plugins().values()} == {"mine.py"}
