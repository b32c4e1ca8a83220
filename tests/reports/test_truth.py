"""Planted faults are named and ranked, and the section has its tables and figures."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from bench.api import Figure, Normal, Section, Table
from bench.metrics import Forecast, catalogue, score
from bench.plugins.registry import Registry
from bench.reports._truth_verdicts import verdict
from bench.reports.truth import Truth
from bench.testing.report_results import ExampleResults
from tests.fixtures.results import cell, spec

SEEDS = 8
# Of the exact posterior: shift of the mean in standard deviations of the noise, factors of noise and model variance,
# and the share of the noise that is stated as model variance (negative: of the model variance that is stated as noise).
PLANTED = {
    "exact": (0.0, 1.0, 1.0, 0.0),
    "half": (0.0, 0.5, 0.5, 0.0),
    "double": (0.0, 2.0, 2.0, 0.0),
    "shifted": (1.0, 1.0, 1.0, 0.0),
    "exchanged": (0.0, 1.0, 1.0, 0.9),
}


def planted(name: str, seed: int) -> tuple[dict[str, float], Forecast]:
    split = Registry().make("dataset", "known-linear", {"rows": 60, "test_rows": 200}).load(seed)
    exact, law = split.law.given(split.train_x, split.train_y).at(split.test_x), split.law.at(split.test_x)
    shift, noise_factor, model_factor, share = PLANTED[name]
    noise, model = exact.noise_variance * noise_factor, exact.model_variance * model_factor
    stated = Normal(exact.mean + shift * np.sqrt(noise), model + share * noise, noise * (1 - share))
    forecast = Forecast.of(stated, split.test_y, truth=split.test_truth, law=law, posterior=exact)
    return score(forecast, [name for name, metric in catalogue().items() if "law" in metric.needs]), forecast


@cache
def means(name: str) -> dict[str, float]:
    frame = pd.DataFrame([planted(name, seed)[0] for seed in range(SEEDS)])
    return {str(metric): float(value) for metric, value in frame.mean().items()}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("exact", "right"),
        ("half", "too little noise (x0.71)"),
        ("double", "too much noise (x1.4)"),
        ("shifted", "a mean that is too high"),
        ("exchanged", "noise stated as model uncertainty"),
    ],
)
def test_a_planted_fault_is_named(name: str, words: str) -> None:
    assert verdict(means(name)).startswith(words)


def test_planted_faults_are_ranked_by_what_they_cost() -> None:
    regret = {name: means(name)["law_regret"] for name in PLANTED}
    order = sorted(regret, key=lambda name: regret[name])
    assert set(order[:2]) == {"exact", "exchanged"}  # the same predictive law: only its parts differ
    assert regret["exchanged"] == pytest.approx(regret["exact"])
    # log 2 / 2 - 1/4 = 0.10 is what twice a variance costs, 1/2 - log 2 / 2 = 0.15 half of it, and 1/2 a shift by 1.
    assert order[2:] == ["double", "half", "shifted"]
    assert means("exchanged")["noise_cost"] > 10 * means("exact")["noise_cost"]
    assert means("exchanged")["model_cost"] > 10 * means("exact")["model_cost"]


def test_the_reverse_exchange_and_parts_of_the_right_size_are_named() -> None:
    costs = {"noise_cost": 0.2, "model_cost": 0.3, "variance_cost": 0.0}
    assert verdict(costs | {"noise_ratio": 2.0, "model_ratio": 0.1}) == "model uncertainty stated as noise"
    placed = {"noise_cost": 0.2, "model_cost": 0.0, "variance_cost": 0.2, "noise_ratio": 1.02, "model_ratio": 1.0}
    assert verdict(placed) == "noise of the right size in the wrong places"
    assert verdict({"confidence_gap": 0.07}) == "too confident by 0.07"
    assert verdict({"confidence_gap": -0.07}) == "not confident enough by 0.07"
    assert verdict({"confidence_gap": 0.01}) == "right on average"


class WithRows(ExampleResults):
    def arrays(self, key: str) -> dict[str, np.ndarray]:
        x = np.linspace(-2, 2, 50)[:, None]
        return {"x": x, "law/coverage": np.full(50, 0.8)}


def section() -> Section:
    frame, cells = [], []
    for dataset, rows in (("small", 60), ("large", 600)):
        about = cell(spec("known", "m", 0, dataset_options={"rows": rows})).spec
        for method in PLANTED:
            for seed in range(3):
                key = f"{dataset}{method}{seed}"
                values = planted(method, seed)[0]
                frame += [("s", dataset, seed, method, seed, key, metric, value) for metric, value in values.items()]
                frame += [
                    ("s", dataset, seed, method, seed, key, f"law_regret@group={g}", 0.1) for g in ("gap", "data")
                ]
                cells.append(("s", dataset, seed, method, seed, key, about, "ok", "", "{}", "{}"))
    blank = ExampleResults()
    held = WithRows(
        frame=pd.DataFrame(frame, columns=["suite", "dataset", "split", "method", "seed", "key", "metric", "value"]),
        cells=pd.DataFrame(cells, columns=blank.cells.columns),
    )
    found = Truth().section(held)
    assert found is not None
    return found


def test_the_section_has_tables_by_method_place_and_posterior_and_its_figures() -> None:
    whole = section()
    tables = {block.name: block for block in whole.blocks if isinstance(block, Table)}
    figures = {block.name for block in whole.blocks if isinstance(block, Figure)}
    assert {"truth-methods", "truth-verdicts", "truth-places-small", "truth-posterior-large"} <= tables.keys()
    assert {"truth-costs", "truth-ratios", "truth-coverage", "truth-sizes"} == figures
    methods = tables["truth-methods"].data
    assert methods["method"].iloc[-1] == "shifted"
    named = dict(zip(methods["method"], methods["what is wrong"], strict=True))
    assert named["exchanged"] == "noise stated as model uncertainty"
    assert list(tables["truth-places-small"].data.columns) == ["method", "data", "gap"]
    posterior = tables["truth-posterior-small"].data
    assert posterior["method"].iloc[0] == "exact"
    assert Truth().section(ExampleResults()) is None
