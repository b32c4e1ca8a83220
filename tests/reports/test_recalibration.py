"""The section shows raw values beside corrected ones, and only where validation predictions are stored."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bench.api import Figure, Kept, Table, Text
from bench.metrics import Forecast, Probabilities, score
from bench.reports.overview import Overview
from bench.reports.recalibration import Recalibration, _table
from bench.reports.reliability import Reliability
from bench.reports.summary import Summary
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
    ece = tables["recalibration-classes-ece"].numbers
    assert ece is not None
    assert list(ece.columns) == ["method", "raw", "temperature", "vector scaling", "isotonic"]
    expected = np.mean([score(kept.test, ["ece"])["ece"] for kept in made[2:]])
    np.testing.assert_allclose(ece["raw"].iloc[0], expected, rtol=1e-4)
    shown = tables["recalibration-classes-ece"]
    assert float(shown.data["raw"].iloc[0]) == pytest.approx(expected, abs=1e-4)
    better = int(ece["temperature"].iloc[0] < ece["raw"].iloc[0])
    assert f"of 1 method: temperature for {better}, " in shown.caption
    assert tables["recalibration-classes-set_coverage"].caption == "classes: set_coverage, corrected"
    assert "the first 2 repeats" in section.blocks[0].text  # type: ignore[union-attr]  # it begins with a text
    assert list(tables["recalibration-classes-set_coverage"].data.columns) == ["method", "conformal"]
    width = tables["recalibration-numbers-width95"].data
    assert list(width.columns) == ["method", "raw", "variance scaling", "isotonic", "conformal"]
    assert "conformal" not in tables["recalibration-numbers-crps_mixture"].data
    (introduction,) = (block.text for block in section.blocks if isinstance(block, Text))
    assert "rankings and tests use raw values alone" in introduction
    stored = {row["metric"] for row in store.values("tiny")}
    assert not [name for name in stored if "temperature" in name]


def test_an_infinite_mean_is_a_value_and_no_dash() -> None:
    """A correction that makes it finite is counted as better, so the raw value is not missing."""
    rows = pd.DataFrame({"method": ["a", "a"], "correction": ["raw", "variance scaling"], "value": [np.inf, 2.5]})
    table = _table("numbers", "nll_mixture", rows, ["a"])
    assert table is not None
    assert table.data.iloc[0].tolist() == ["a", "inf", "2.500"]
    assert "of 1 method: variance scaling for 1" in table.caption


def stored_predictions(store: Store) -> StoredResults:
    """Two methods on a dataset of numbers and one of classes, three repeats each."""
    cells, made = [], []
    for number in range(12):
        place, seed = divmod(number, 3)
        dataset, method = ("numbers", "classes")[place // 2], ("first", "second")[place % 2]
        cells.append(replace(cell(number, method), dataset=dataset, split=seed, seed=seed))
        made.append(predicted(number, "regression" if place < 2 else "classification", rows=60))
    metrics = ["rmse", "coverage95", "accuracy", "ece"]
    store.want(SuiteRecord("tiny", "Tiny", "first", metrics, "{}"), cells)
    store.save([(one, outcome(kept)) for one, kept in zip(cells, made, strict=True)], "tiny")
    return StoredResults(store, "tiny")


def test_recalibrated_columns_stand_beside_calibration_and_are_never_bold(store: Store) -> None:
    results = stored_predictions(store)
    overview, by_dataset = Overview().section(results), Summary().section(results)
    assert overview is not None
    assert by_dataset is not None
    for section in (overview, by_dataset):
        tables = [block for block in section.blocks if isinstance(block, Table) and block.asides]
        assert [list(table.asides) for table in tables] in (
            [["recalibrated mace"], ["recalibrated ece"]],
            [["recalibrated ece"], ["recalibrated mace"]],
        )
        for table in tables:
            (name,) = table.asides
            place = list(table.data.columns).index(name)
            assert not [column for _, column in table.bold if column == place]
            assert "fitted on the validation rows of the first 3 repeats" in table.asides[name]
            assert "not ranked" in (table.paper_caption or table.caption)
            assert table.numbers is not None
            scaling = {"ece": "temperature", "mace": "variance"}[name.split()[1]]
            own = table.numbers[table.numbers["metric"] == f"{name.split()[1]} after {scaling} scaling"]
            assert list(own["method"]) == list(table.data["method"].str.partition("\n")[0])
            shown = [text.partition("→ ")[2].rstrip(")") for text in table.data[name]]
            values = own.iloc[:, 2].to_numpy(dtype=float)
            np.testing.assert_allclose(np.array(shown, dtype=float), values, atol=5e-5)
    glance = next(block for block in overview.blocks if isinstance(block, Table) and "recalibrated ece" in block.asides)
    columns = list(glance.data.columns)
    assert columns.index("recalibrated ece") == columns.index("ece ↓") + 1


def test_reliability_panels_have_the_scaled_error_below_the_raw_one(store: Store) -> None:
    results = stored_predictions(store)
    section = Reliability().section(results)
    assert section is not None
    figures = [block for block in section.blocks if isinstance(block, Figure)]
    assert len(figures) == 2
    for figure in figures:
        texts = [text for axes in figure.figure.axes for text in axes.texts if text.get_text().startswith("scaled ")]
        assert len(texts) == 2
        assert "in italics" in figure.caption
        assert figure.data is not None
        known = {f"scaled {value:.3f}" for value in figure.data["recalibrated"].unique()}
        assert {text.get_text() for text in texts} == known


def test_predictions_are_read_once_for_a_page(store: Store) -> None:
    results = stored_predictions(store)
    read: list[str] = []
    kept = results.kept

    def counted(key: str) -> Kept | None:
        read.append(key)
        return kept(key)

    results.kept = counted  # type: ignore[method-assign]
    for report in (Overview(), Summary(), Reliability(), Recalibration()):
        report.section(results)
    assert len(read) == len(set(read)) == 12


def test_without_validation_predictions_there_is_no_section() -> None:
    results = example_results()
    assert Recalibration().section(results) is None
    p = np.full((1, 30, 2), 0.5)
    results.bank = {key: Kept(Forecast.of(Probabilities(p), np.zeros(30, dtype=int))) for key in results.cells["key"]}
    assert Recalibration().section(results) is None
