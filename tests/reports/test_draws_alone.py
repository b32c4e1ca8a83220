"""Metrics that leave out the observation noise say so on the page."""

import numpy as np
import pytest

from bench.api import Facts, Report, Section, Table, Text, catalogue
from bench.metrics import Forecast, score
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.spec.cell import Outcome
from bench.store.store import Store
from tests.fixtures.results import save_outcomes


def test_the_declaration_says_which_metrics_do_not_see_the_fitted_noise() -> None:
    """Every metric of calibration is computed with little and with much noise: draws alone means the same value."""
    random = np.random.default_rng(0)
    observed, draws = random.normal(size=300), 0.3 * random.normal(size=(20, 300))
    little, much = (score(Forecast("regression", observed, draws, noise_variance=noise)) for noise in (0.1, 3.0))
    seen = {n: m for n, m in catalogue().items() if m.family == "calibration" and m.task == "regression" and n in much}
    assert {"picp", "crps", "nll", "coverage95"} <= set(seen)
    same = {name for name in seen if much[name] == pytest.approx(little[name], rel=1e-9)}
    assert {name for name, metric in seen.items() if metric.draws_alone} == same


def section(name: str, store: Store, metrics: list[str]) -> Section:
    outcomes = {
        ("d", method, seed): Outcome("ok", metrics=dict.fromkeys(metrics, 0.5 + 0.01 * seed))
        for method in ("base", "other")
        for seed in range(5)
    }
    report: Report = Registry().make("report", name, {})
    found = report.section(save_outcomes(store, "made", outcomes, metrics, "base"))
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["overview", "summary"])
def test_a_table_names_its_metrics_of_the_draws_alone(store: Store, name: str) -> None:
    found = section(name, store, ["rmse", "nll", "picp", "crps"])
    texts = [block.caption for block in found.blocks if isinstance(block, Table)]
    texts += [block.text for block in found.blocks if isinstance(block, Text)]
    assert sum("Draws alone, without observation noise: picp, crps." in t for t in texts) == 1
    facts = [key for block in found.blocks if isinstance(block, Facts) for key in block.facts]
    assert name == "summary" or "Calibration: picp → 0.9973, draws alone" in facts


@pytest.mark.parametrize("name", ["overview", "summary"])
def test_a_table_without_such_metrics_does_not_speak_of_them(store: Store, name: str) -> None:
    found = section(name, store, ["rmse", "nll", "coverage95", "interval_score95"])
    assert "raws alone" not in str([vars(block) for block in found.blocks if not hasattr(block, "figure")])


def test_the_first_suite_leads_with_calibration_that_includes_the_noise() -> None:
    metrics = [catalogue()[name] for name in load_suite("quick").metrics]
    first = next(metric for metric in metrics if metric.family == "calibration" and metric.direction == "target")
    assert not first.draws_alone
