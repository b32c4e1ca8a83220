"""The section shows raw values beside corrected ones, and only where validation predictions are stored."""

from dataclasses import replace

import numpy as np

from bench.api import Kept, Table, Text
from bench.metrics import Forecast, Probabilities, score
from bench.reports.recalibration import Recalibration
from bench.store.results import StoredResults
from bench.store.store import Store, SuiteRecord
from bench.testing.report_results import example_results
from tests.fixtures.banks import cell, outcome, predicted


def test_raw_values_stand_beside_corrected_ones(store: Store) -> None:
    cells = [replace(cell(number), dataset="numbers" if number < 2 else "classes") for number in range(4)]
    made = [predicted(number, "regression" if number < 2 else "classification", rows=60) for number in range(4)]
    store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), cells)
    store.save([(one, outcome(kept)) for one, kept in zip(cells, made, strict=True)], "tiny")
    section = Recalibration().section(StoredResults(store, "tiny"))
    assert section is not None
    tables = {block.name: block for block in section.blocks if isinstance(block, Table)}
    ece = tables["recalibration-classes-ece"].data
    assert list(ece.columns) == ["method", "raw", "temperature", "vector scaling", "isotonic"]
    expected = np.mean([score(kept.test, ["ece"])["ece"] for kept in made[2:]])
    np.testing.assert_allclose(ece["raw"].iloc[0], expected, rtol=1e-4)
    assert list(tables["recalibration-classes-set_coverage"].data.columns) == ["method", "conformal"]
    width = tables["recalibration-numbers-width95"].data
    assert list(width.columns) == ["method", "raw", "variance scaling", "isotonic", "conformal"]
    assert "conformal" not in tables["recalibration-numbers-crps_mixture"].data
    (introduction,) = (block.text for block in section.blocks if isinstance(block, Text))
    assert "rankings and tests use raw values alone" in introduction
    stored = {row["metric"] for row in store.values("tiny")}
    assert not [name for name in stored if "temperature" in name]


def test_without_validation_predictions_there_is_no_section() -> None:
    results = example_results()
    assert Recalibration().section(results) is None
    p = np.full((1, 30, 2), 0.5)
    results.bank = {key: Kept(Forecast.of(Probabilities(p), np.zeros(30, dtype=int))) for key in results.cells["key"]}
    assert Recalibration().section(results) is None
