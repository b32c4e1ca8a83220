import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.api import Figure, Report, Section, Table, Text
from bench.metrics import catalogue
from bench.plugins.registry import Registry
from bench.spec.cell import Cell, Outcome
from bench.store.results import StoredResults
from bench.store.store import Store, SuiteRecord
from tests.fixtures.results import save_outcomes, spec

METHODS = ("alpha", "beta", "gamma")


def section(name: str, results: StoredResults, **options: Any) -> Section | None:
    report: Report = Registry().make("report", name, options)
    return report.section(results)


def tables(found: Section | None) -> list[Table]:
    assert found is not None
    return [block for block in found.blocks if isinstance(block, Table)]


def stored(
    store: Store,
    numbers: dict[tuple[str, int], dict[str, float]],
    shown: list[str],
    lost: tuple[tuple[str, int], ...] = (),
) -> StoredResults:
    facts = {"python": "3.11", "packages": {"torch": "2", "x": None}}
    outcomes = {("toy", *place): Outcome("ok", metrics=own, environment=facts) for place, own in numbers.items()}
    diverged = Outcome("diverged", "not finite", environment={"python": "3.12"})
    return save_outcomes(store, "tiny", outcomes | {("toy", *place): diverged for place in lost}, shown)


@pytest.fixture
def results(store: Store) -> StoredResults:
    rng = np.random.default_rng(0)
    shown = ["rmse", "r2", "picp", "nll"]
    numbers = {(m, s): dict(zip(shown, rng.normal(1, 0.3, 4), strict=True)) for m in METHODS for s in range(4)}
    return stored(store, numbers, shown)


def test_summary_numbers_are_those_of_pandas(results: StoredResults) -> None:
    (table,) = tables(section("summary", results))
    assert table.data["method"].tolist() == list(METHODS)
    assert [str(c).split()[0] for c in table.data.columns[1:]] == ["rmse", "r2", "picp", "nll"]
    wide = results.frame.pivot_table(index="method", columns="metric", values="value", aggfunc=["mean", "std"])
    for column in table.data.columns[1:]:
        metric = str(column).split()[0]
        for method, cell in zip(table.data["method"], table.data[column], strict=True):
            mean, spread = (float(part) for part in cell.split(" ± "))
            step = 10.0 ** -len(cell.split(" ± ")[0].partition(".")[2])
            assert mean == pytest.approx(wide["mean", metric][method], abs=0.5001 * step)
            assert spread == pytest.approx(wide["std", metric][method], abs=0.5001 * step)
        spreads = [float(cell.split(" ± ")[1]) for cell in table.data[column]]
        assert 10 * step <= np.median(spreads) <= 100 * step  # two digits of the typical deviation


def test_the_summary_tells_why_a_value_is_missing(store: Store) -> None:
    reasons = {"there is one draw": ["nll_mc", "picp"], "it is undefined on this data": ["r2"], "not asked": ["mae"]}
    outcomes = {
        ("toy", "one", 0): Outcome("ok", metrics={"rmse": 1.0}, training={"left_out": reasons}),
        ("toy", "single", 0): Outcome("ok", metrics={"rmse": 1.0, "r2": 0.5}, training={"left_out": reasons}),
        ("toy", "old", 0): Outcome("ok", metrics={"rmse": 1.0, "r2": 0.5}),  # from before reasons were stored
        ("toy", "full", 0): Outcome("ok", metrics={"rmse": 1.0, "nll_mc": 2.0, "picp": 0.9, "r2": 0.5}),
        ("other", "full", 0): Outcome("ok", metrics={"rmse": 1.0}),
    }
    found = section("summary", save_outcomes(store, "tiny", outcomes, ["rmse", "nll_mc", "picp", "r2"]))
    assert found is not None
    (text,) = [block.text for block in found.blocks[1:] if isinstance(block, Text)]
    assert text == (
        "Without a value (–): nll_mc, picp of one, single: there is one draw; r2 of one: it is undefined on this data."
    )


def test_the_best_mean_is_bold_in_the_metrics_own_direction(results: StoredResults) -> None:
    (table,) = tables(section("summary", results))
    means = results.frame.groupby(["metric", "method"])["value"].mean()
    target = catalogue()["picp"].target
    assert target is not None
    best = {
        "rmse": means["rmse"].idxmin(),
        "r2": means["r2"].idxmax(),
        "picp": (means["picp"] - target).abs().idxmin(),
        "nll": means["nll"].idxmin(),
    }
    expected = {(METHODS.index(m), column) for column, m in enumerate(best.values(), start=1)}
    assert table.bold == expected
    assert [str(c).split()[1] for c in table.data.columns[1:]] == ["↓", "↑", "→", "↓"]


def test_ties_share_the_bold_and_one_method_has_none(store: Store, tmp_path: Path) -> None:
    tied = stored(store, {("alpha", 0): {"rmse": 1.0}, ("beta", 0): {"rmse": 1.0}, ("gamma", 0): {"rmse": 2.0}}, [])
    (table,) = tables(section("summary", tied))
    assert table.bold == {(0, 1), (1, 1)}
    assert table.data.iloc[0, 1] == "1.000"  # one seed has no spread
    alone = stored(Store(str(tmp_path / "alone.db")), {("alpha", 0): {"rmse": 1.0}}, [])
    assert tables(section("summary", alone))[0].bold == frozenset()


def test_infinite_and_missing_values(store: Store) -> None:
    numbers = {
        ("alpha", 0): {"nll_mc": math.inf},
        ("alpha", 1): {"nll_mc": 1.0},
        ("beta", 0): {"nll_mc": 3.0},
        ("beta", 1): {"nll_mc": 5.0},
        ("gamma", 0): {"rmse": 1.0},
        ("gamma", 1): {"rmse": 3.0},
    }
    (table,) = tables(section("summary", stored(store, numbers, ["nll_mc", "rmse"])))
    assert table.data.iloc[:, 1].tolist() == ["inf", "4.0 ± 1.4", "–"]
    assert table.data.iloc[:, 2].tolist() == ["–", "–", "2.0 ± 1.4"]
    assert table.bold == {(1, 1)}


def test_a_mean_over_fewer_seeds_says_so(store: Store) -> None:
    numbers = {("alpha", s): {"rmse": 1.0 + s} for s in range(3)} | {("beta", 0): {"rmse": 0.5}}
    (table,) = tables(section("summary", stored(store, numbers, [], (("beta", 1), ("beta", 2)))))
    assert table.data.iloc[:, 1].tolist() == ["2.0 ± 1.0", "0.5 (1 of 3)"]
    assert table.caption == "toy (3 seeds)"


@pytest.mark.parametrize("lost", [1, 9])
@pytest.mark.parametrize("how", ["diverged", "failed", "infinite", "no value"])
def test_the_mean_of_the_repeats_that_went_well_is_never_bold(store: Store, lost: int, how: str) -> None:
    """Beta has by far the lowest mean of the runs that it has left, and alpha the best of all ten."""
    outcomes = {
        ("toy", method, seed): Outcome("ok", metrics={"rmse": level + 0.01 * seed, "mae": 1.0})
        for method, level in (("alpha", 1.0), ("beta", 0.1), ("gamma", 2.0))
        for seed in range(10)
    }
    ends = {
        "diverged": Outcome("diverged"),
        "failed": Outcome("failed", "out of memory"),
        "infinite": Outcome("ok", metrics={"rmse": -math.inf, "mae": 1.0}),
        "no value": Outcome("ok", metrics={"mae": 1.0}),
    }
    outcomes |= {("toy", "beta", seed): ends[how] for seed in range(lost)}
    found = section("summary", save_outcomes(store, "lost", outcomes, ["rmse"]))
    assert tables(found)[0].bold == {(0, 1)}
    assert found is not None
    assert isinstance(found.blocks[0], Text)
    assert "never bold, because its mean is over other repeats" in found.blocks[0].text


def test_a_suites_metrics_come_first_and_all_where_it_names_none_of_them(store: Store) -> None:
    numbers = {(m, 0): {"rmse": 1.0, "nll": 2.0, "mae": 3.0} for m in METHODS}
    (table,) = tables(section("summary", stored(store, numbers, ["nll", "ece", "rmse"])))
    assert [str(c).split()[0] for c in table.data.columns] == ["method", "nll", "rmse"]
    (table,) = tables(section("summary", stored(store, numbers, ["ece"])))
    assert {str(c).split()[0] for c in table.data.columns} == {"method", "nll", "rmse", "mae"}


@pytest.mark.parametrize("name", ["summary", "intervals", "provenance"])
def test_nothing_stored_gives_no_section(name: str, store: Store) -> None:
    store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), [])
    assert section(name, StoredResults(store, "tiny")) is None


def test_provenance_counts_and_tells(store: Store) -> None:
    numbers = {("alpha", s): {"rmse": 1.0} for s in range(3)}
    found = section("provenance", stored(store, numbers, [], (("beta", 0),)))
    assert found is not None
    assert isinstance(found.blocks[0], Text)
    assert found.blocks[0].text == "4 cells: 3 ok, 1 diverged."
    failures, *_, first, second = tables(found)
    assert failures.data[["method", "message"]].to_numpy().tolist() == [["beta", "not finite"]]
    assert "suite" not in failures.data.columns
    facts = {t.caption: dict(zip(t.data["fact"], t.data["value"], strict=True)) for t in (first, second)}
    assert facts["Environment 1 (3 cells)"] == {"python": "3.11", "torch": "2", "x": "missing"}
    assert facts["Environment 2 (1 cell)"] == {"python": "3.12"}


def test_provenance_shows_remarks_and_warns_of_mixed_protocols(store: Store) -> None:
    cells = [Cell(f"k{n}", "toy", 0, f"m{n}", 0, json.dumps(spec(draws=n + 1))) for n in range(2)]
    store.want(SuiteRecord("s", "S", None, [], "{}"), cells)
    for cell in cells:
        store.save([(cell, Outcome("ok", metrics={"rmse": 1.0}))])
    store.remark("s", "toy", "", ["rows are doubled"])
    found = section("provenance", StoredResults(store, "s"))
    assert found is not None
    assert any("2 different protocols" in block.text for block in found.blocks if isinstance(block, Text))
    assert any("rows are doubled" in table.data.to_string() for table in tables(found))
    store.want(SuiteRecord("s", "S", None, [], "{}"), cells[:1])
    store.forget("s")
    store.want(SuiteRecord("s", "S", None, [], "{}"), cells[:1])
    alone = section("provenance", StoredResults(store, "s"))
    assert alone is not None
    assert not any("different protocols" in block.text for block in alone.blocks if isinstance(block, Text))
    captions = ["Data", "Methods and their options", "Protocol of each dataset", "Environment 1 (1 cell)"]
    assert [t.caption for t in tables(alone)] == captions


def test_provenance_names_the_settings_in_which_methods_differ(store: Store) -> None:
    cells = [
        Cell(f"k{n}", "toy", 0, f"m{n}", 0, json.dumps(spec(training={"epochs": 7 if n == 1 else 3}, grid=grid)))
        for n, grid in enumerate([{}, {"learning_rate": [0.1]}, {}])
    ]
    store.want(SuiteRecord("s", "S", None, [], "{}"), cells)
    for cell in cells:
        store.save([(cell, Outcome("ok", metrics={"rmse": 1.0}))])
    found = section("provenance", StoredResults(store, "s"))
    assert found is not None
    texts = [block.text for block in found.blocks if isinstance(block, Text)]
    note = "Note: methods were trained differently on toy: training.epochs is 3, but 7 for m1; "
    assert f"{note}grid.learning_rate is –, but [0.1] for m1." in texts
    assert not any("different protocols" in text for text in texts)
    (protocol,) = (table for table in tables(found) if table.name == "protocol")
    assert list(protocol.data.columns) == ["key", "toy (m0, m2)", "toy (m1)"]


def test_an_estimator_has_no_training_of_the_suite(store: Store) -> None:
    settings = {"m0": {"epochs": 3}, "m1": {}, "m2": {"epochs": 3}}
    cells = [Cell(m, "toy", 0, m, 0, json.dumps(spec(training=t))) for m, t in settings.items()]
    store.want(SuiteRecord("s", "S", None, [], "{}"), cells)
    own = {"estimator": True, "search": {"chosen": {"trees": 9}}}
    for cell in cells:
        record = own if cell.method == "m1" else {"epochs": [3], "train_loss": [0.1]}
        store.save([(cell, Outcome("ok", metrics={"rmse": 1.0}, training=record))])
    found = section("provenance", StoredResults(store, "s"))
    assert found is not None
    assert not any("trained differently" in block.text for block in found.blocks if isinstance(block, Text))
    (protocol,) = (table for table in tables(found) if table.name == "protocol")
    row = protocol.data.set_index("key").loc["training.epochs"]
    assert row.to_dict() == {"toy (m0, m2)": "3", "toy (m1)": "–"}
    trained = section("training", StoredResults(store, "s"))
    assert trained is not None
    (epochs,) = tables(trained)
    assert epochs.data["networks"].tolist() == [1, 0, 1]
    assert epochs.data["fewest"].tolist() == [3, "–", 3]
    assert epochs.data["chosen most often"].tolist() == ["–", "trees = 9 (1 of 1)", "–"]


def curves(store: Store, methods: dict[str, float], *, x: bool = True) -> StoredResults:
    """Predict 0 at 100 points whose values are evenly spread over [0, 1]."""
    observed = np.linspace(0, 1, 101)
    cells = [Cell(f"{m}{s}", "toy", s, m, s, "{}") for m in methods for s in (0, 1)]
    store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), cells)
    for cell in cells:
        variance = np.full(101, methods[cell.method] if cell.seed == 0 else 99.0)
        arrays = {"observed": observed, "mean": np.zeros(101), "variance": variance}
        store.save([(cell, Outcome("ok", arrays=arrays | ({"x": observed[:, None]} if x else {})))])
    return StoredResults(store, "tiny")


def test_intervals_tell_coverage_and_width_of_the_first_seed(store: Store) -> None:
    found = section("intervals", curves(store, {"a": 0.01, "b": 0.04}))
    assert found is not None
    (figure,) = found.blocks
    assert isinstance(figure, Figure)
    # mean 0, 3 std = 0.3: the values 0, 0.01, ..., 0.3 are inside, 31 (or 30, by rounding) of 101.
    assert "b: 60.4 % of the points inside, mean width 1.2" in figure.caption
    assert "a: 30.7 % of the points inside, mean width 0.6" in figure.caption or "a: 29.7 %" in figure.caption
    assert "seed 0" in figure.caption
    assert [axis.get_title(loc="left").split("\n")[0] for axis in figure.figure.axes] == ["a", "b"]


def test_the_band_is_as_wide_as_asked(store: Store) -> None:
    found = section("intervals", curves(store, {"a": 0.01}), width=2.0)
    assert found is not None
    assert isinstance(found.blocks[0], Figure)
    assert "mean ± 2 standard deviations" in found.blocks[0].caption
    assert "mean width 0.4" in found.blocks[0].caption


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7])
def test_one_panel_a_method(count: int, store: Store) -> None:
    found = section("intervals", curves(store, {f"m{i}": 0.01 for i in range(count)}))
    assert found is not None
    assert isinstance(found.blocks[0], Figure)
    assert sum(axis.axison for axis in found.blocks[0].figure.axes) == count


def test_what_has_no_band_or_no_axis_is_not_drawn(store: Store) -> None:
    assert section("intervals", curves(store, {"a": math.nan})) is None
    assert section("intervals", curves(store, {"a": 0.01}, x=False)) is None


@pytest.mark.slow
def test_the_frame_is_not_changed_by_reports(results: StoredResults) -> None:
    before = results.frame.copy()
    for name in Registry().plugins("report"):
        section(name, results)
    pd.testing.assert_frame_equal(results.frame, before)
