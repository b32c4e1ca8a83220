"""The score of the first draws alone is that of a run with fewer draws."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from bench.api import Curves, Split
from bench.errors import UserError
from bench.metrics import Forecast
from bench.metrics.kept import Kept
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.probes.score import finding_of
from bench.run.driver import run
from bench.store.results import StoredResults
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


@pytest.mark.slow
def test_groups_of_a_users_table_are_scored_and_reported(write_suite: Callable[..., str], tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    table = tmp_path / "houses.csv"
    rows = [f"{random.normal():.3f},{random.normal():.3f},{'ns'[n % 2]},{random.normal():.3f}" for n in range(120)]
    table.write_text("\n".join(["a,b,region,price", *rows]), "utf-8")
    text = tiny_suite("[datasets.houses]", 'use = "csv"', f'path = "{table}"', 'group = "region"', seeds=2, draws=3)
    store = Store(str(tmp_path / "s.db"))
    assert run(load_suite(write_suite(text)), Registry(), store).well
    results = StoredResults(store, "mine")
    found = results.frame[results.frame["dataset"] == "houses"].set_index(["method", "seed", "metric"])["value"]
    for seed in (0, 1):
        both = [found["mc-dropout", seed, f"rmse@group={name}"] for name in "ns"]
        assert found["mc-dropout", seed, "rmse@worst-group"] == max(both)
        assert min(both) < found["mc-dropout", seed, "rmse"] < max(both)
    section = Registry().make("report", "groups", {}).section(results)
    assert section is not None
    first = section.blocks[1]
    assert first.data.columns.tolist() == ["method", "n", "s", "worst group"]
    means = found.groupby(level=["method", "metric"]).mean()
    base = first.name.removeprefix("groups-houses-")
    assert first.data["worst group"].tolist() == [means[m, f"{base}@worst-group"] for m in first.data["method"]]


def test_the_fitted_noise_is_stored_for_figures() -> None:
    """With it the stored predictions give the negative log-likelihood that was scored."""
    draws = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 4.0]])
    x, observed = np.zeros((3, 2)), np.array([0.2, 0.9, 2.5])
    split = Split("regression", x, observed, x, observed)
    forecast = Forecast("regression", observed, draws, noise_variance=0.3)
    found = finding_of(split, Kept(forecast))
    curves = Curves(**{name: array for name, array in found.arrays.items() if name in Curves.__dataclass_fields__})
    assert curves.observation_variance is not None
    nll = -norm.logpdf(observed, curves.mean, np.sqrt(curves.observation_variance)).mean()
    assert nll == pytest.approx(found.metrics["nll"])
