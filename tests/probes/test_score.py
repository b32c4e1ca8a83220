"""The score of the first draws alone is that of a run with fewer draws."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.driver import run
from bench.store.store import Store
from tests.fixtures.suites import tiny_suite

SUITE = tiny_suite(
    "[datasets.wine]", "[methods.mcni-fixed]", "[methods.deep-ensemble]", "networks = 3", seeds=1, draws=6
)


def values(store: Store, suite: str) -> dict[tuple[str, str, str], float]:
    return {(row["dataset"], row["method"], row["metric"]): row["value"] for row in store.values(suite)}


@pytest.mark.slow
def test_first_draws_are_scored_as_a_run_of_fewer(write_suite: Callable[..., str], tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s.db"))
    suite = write_suite(SUITE)
    run(load_suite(suite, ["probe.kind=test", "probe.draws=[2, 3, 6]"]), Registry(), store)
    asked = values(store, "mine")
    run(load_suite(suite, ["draws=2"]), Registry(), store)
    fewer = values(store, "mine")
    for (dataset, method, metric), value in fewer.items():
        if method == "mcni-fixed":
            assert asked[dataset, method, f"{metric}@T=2"] == pytest.approx(value, nan_ok=True), metric
            assert asked[dataset, method, f"{metric}@T=6"] == pytest.approx(asked[dataset, method, metric], nan_ok=True)
    records = {row["method"]: json.loads(row["training"]) for row in store.cells("mine")}
    assert {method: record["draws"] for method, record in records.items()} == {
        "deterministic": 1,
        "mc-dropout": 2,
        "mcni-fixed": 2,
        "deep-ensemble": 3,
    }
    conditions = {method: {m.partition("@")[2] for _, own, m in asked if own == method} for _, method, _ in asked}
    assert conditions == {
        "deterministic": {""},
        "mc-dropout": {"", "T=2", "T=3", "T=6"},
        "mcni-fixed": {"", "T=2", "T=3", "T=6"},
        "deep-ensemble": {"", "T=2", "T=3"},
    }


def test_a_number_of_draws_is_named_once(write_suite: Callable[..., str]) -> None:
    with pytest.raises(UserError, match=r"probe\.draws: name every number of draws once"):
        load_suite(write_suite(SUITE), ["probe.kind=test", "probe.draws=[2, 2]"])
