"""A metric on request is computed, and part of a cell's key, only where a suite names it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench.metrics import Forecast, catalogue, left_out, reasons_without_value, score, score_by_group
from bench.metrics.requests import requested_metrics, scored_by
from bench.plan.cells import Task, plan
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.driver import run
from bench.spec.spec import ON_REQUEST, foreign_plugins, read_spec
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures.suites import tiny_suite

ON = {name for name, metric in catalogue().items() if metric.on_request}
WriteSuite = Callable[..., str]


def keys(path: str, files: tuple[Path, ...] = ()) -> list[str]:
    tasks = plan(load_suite(path), Registry(list(files)))
    return [cell.key for task in tasks if isinstance(task, Task) for cell in task.cells]


def test_a_forecast_has_it_only_where_it_is_requested(rng: np.random.Generator) -> None:
    forecast = Forecast("regression", rng.normal(size=30), rng.normal(size=(5, 30)))
    assert not ON & (score(forecast).keys() | left_out(forecast).keys())
    wanted = frozenset({"mpiw_captured", "picp_truth", "ece_last_pass"})
    values = score(forecast, requested=wanted)
    assert ON & values.keys() == {"mpiw_captured"}
    assert {name: values[name] for name in values if name not in ON} == score(forecast)
    assert reasons_without_value(forecast, values, wanted)["the targets without noise are unknown"] == ["picp_truth"]
    assert score(forecast, ["mpiw_captured"]) == {"mpiw_captured": values["mpiw_captured"]}
    assert "mpiw_captured@group=0" in score_by_group(forecast, np.zeros(30, dtype=int), wanted)


def test_a_relative_metric_requests_what_it_is_a_difference_of() -> None:
    assert requested_metrics(["msll_all_pairs", "msll", "rmse"], catalogue()) == {"nll_all_pairs"}
    assert requested_metrics(["mpiw_captured@T=10", "nobody"], catalogue()) == {"mpiw_captured"}


def test_naming_one_changes_the_keys_and_naming_others_does_not(write_suite: WriteSuite) -> None:
    plain = keys(write_suite(tiny_suite()))
    assert keys(write_suite(tiny_suite(metrics=["rmse", "msll"]))) == plain
    for names in (["mpiw_captured"], ["msll_all_pairs", "rmse"]):
        assert not set(plain) & set(keys(write_suite(tiny_suite(metrics=names))))


def test_metrics_of_files_may_be_on_request(write_suite: WriteSuite, write_plugin: Callable[[str, str], Path]) -> None:
    file = write_plugin(
        "own",
        "from bench.api import Metric\n"
        'OWN = Metric("own_zero", "any", "predictive", "lower", None, "1", frozenset(), "always 0", "test",\n'
        "             lambda forecast: 0.0, on_request=True)\n",
    )
    plain, registry = write_suite(tiny_suite()), Registry([file])
    assert keys(plain, (file,)) == keys(plain)
    own = scored_by(["own_zero"], registry.metrics, registry.metric_hashes)
    assert own == registry.metric_hashes
    assert scored_by([], registry.metrics, registry.metric_hashes) == {}


def test_a_run_stores_it_under_its_own_key(write_suite: WriteSuite, store: Store) -> None:
    path = write_suite(tiny_suite(metrics=["msll_all_pairs", "mpiw_captured"]), "tiny")
    suite = load_suite(path, ["network.hidden=[30]", "draws=30"]).only([], ["mc-dropout"])
    assert run(suite, Registry(), store).stored == 2
    frame = StoredResults(store, "tiny").frame
    found = frame[frame["metric"].isin(sorted(ON))]
    assert set(found["metric"]) == {"nll_all_pairs", "msll_all_pairs", "mpiw_captured"}
    dropout = found[(found["metric"] == "msll_all_pairs") & (found["method"] == "mc-dropout")]
    assert list(dropout["value"]) == pytest.approx([0.0, 0.0])
    cell = store.cells("tiny")[0]
    spec = read_spec(cell["spec"])
    assert spec.metrics == {"mpiw_captured": ON_REQUEST, "nll_all_pairs": ON_REQUEST}
    assert foreign_plugins(spec) == {}
    assert run(suite, Registry(), store).skipped == 2
