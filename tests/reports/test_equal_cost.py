"""The section on equal cost: a method is compared with MCNI at as many passes as it has itself."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.api import Figure, Section, Table, Text
from bench.reports._costs import Cost, costs_of
from bench.reports.equal_cost import EqualCost, by_passes
from bench.testing.report_results import ExampleResults
from tests.fixtures.results import cell, spec

SEEDS = 6
NOISE = np.array([0.01, -0.01, 0.02, 0.0, -0.02, 0.005])
COSTS = {"mcni-fixed": (20, [30]), "ensemble": (5, [10, 20, 30, 30, 30]), "dropout": (20, [60]), "forest": (3, None)}
# rmse by passes: MCNI falls with T; the ensemble of 5 is better than its first 5 draws and worse than all 20.
RMSE = {
    "mcni-fixed": {"": 1.0, "@T=1": 2.0, "@T=5": 1.5},
    "ensemble": {"": 1.2},
    "dropout": {"": 1.3, "@T=5": 1.6},
    "forest": {"": 0.5},
}


def results(**changes: Any) -> ExampleResults:
    rows, cells = [], []
    for method, (draws, epochs) in COSTS.items():
        for seed in range(SEEDS):
            record = {"draws": draws} | ({"epochs": epochs} if epochs else {"estimator": True})
            about = cell(spec("toy", method, seed)).spec
            cells.append((method, seed, about, json.dumps(record)))
            for condition, value in RMSE[method].items():
                scatter = NOISE[seed] * (2 if method == "ensemble" else 1)
                rows.append((method, seed, f"rmse{condition}", value + scatter))
    place: dict[str, Any] = {"suite": "held", "dataset": "toy", "split": 0}
    frame = pd.DataFrame(rows, columns=["method", "seed", "metric", "value"]).assign(**place)
    table = pd.DataFrame(cells, columns=["method", "seed", "spec", "training"]).assign(status="ok", **place)
    usual: dict[str, Any] = {"frame": frame, "cells": table, "metrics": ["rmse"]}
    return ExampleResults(**usual | changes)


def section(held: ExampleResults) -> Section:
    found = EqualCost().section(held)
    assert found is not None
    return found


def test_costs_come_from_the_records() -> None:
    found = costs_of(results().cells)
    assert found["toy", "mcni-fixed"] == Cost(20, 1, 30.0)
    assert found["toy", "ensemble"] == Cost(5, 5, 120.0)
    forest = found["toy", "forest"]
    assert (forest.passes, forest.networks) == (3, None)


def test_values_of_all_draws_have_the_number_of_the_record() -> None:
    held = results()
    rows = by_passes(held.frame, costs_of(held.cells))
    assert sorted(rows[rows["method"] == "mcni-fixed"]["passes"].unique()) == [1, 5, 20]
    assert set(rows["metric"]) == {"rmse"}


def test_a_method_meets_mcni_with_as_many_passes() -> None:
    (table,) = [block for block in section(results()).blocks if isinstance(block, Table)]
    data = table.data.set_index("method")
    assert list(data.index) == ["ensemble", "dropout"]  # by passes
    beside = data["mcni-fixed, as many passes"]
    assert beside["ensemble"] == pytest.approx(1.5 + NOISE.mean())  # its first 5 draws, not all 20
    assert beside["dropout"] == pytest.approx(1.0 + NOISE.mean())
    assert data["difference"].tolist() == pytest.approx([-0.3 + NOISE.mean(), 0.3])
    assert data["verdict"]["ensemble"] == "better"
    assert (data["networks"].tolist(), data["epochs trained"].tolist()) == ([5, 1], ["4 x", "2 x"])


def test_words_name_what_was_shown_and_what_was_not_compared() -> None:
    texts = [block.text for block in section(results()).blocks if isinstance(block, Text)]
    (found,) = [text for text in texts if text.startswith("By rmse")]
    assert "better than mcni-fixed with as many passes: ensemble (toy)" in found
    assert "Not compared, because mcni-fixed is not scored at that T: forest on toy (T = 3)" in found


def test_the_figure_has_every_difference_with_its_interval() -> None:
    (figure,) = [block for block in section(results()).blocks if isinstance(block, Figure)]
    assert figure.data is not None
    own = figure.data.set_index("method")
    assert own["passes"].to_dict() == {"ensemble": 5, "dropout": 20}
    assert own["difference"].tolist() == pytest.approx([-0.3 + NOISE.mean(), 0.3])
    assert (own["95 % low"] <= own["difference"]).all()
    assert "to the left of 0 the method is better" in figure.caption
    assert figure.caption.startswith("RMSE: ") or figure.caption.startswith("rmse: ")  # titles, where they are known
    assert "Shown: 1 better and 1 worse than " in figure.caption


def test_nothing_is_said_where_mcni_is_scored_at_one_number_of_draws() -> None:
    held = results()
    plain = held.frame[~held.frame["metric"].str.contains("@")]
    assert EqualCost().section(results(frame=plain)) is None
    others = held.frame["method"] != "mcni-fixed"
    assert EqualCost().section(results(frame=held.frame[others])) is None
