"""The first screen of a report: values, intervals, marks, sentences, costs and warnings."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from bench.api import Facts, Figure, Report, Section, Table, Text
from bench.plugins.registry import Registry
from bench.reports._answers import _signed
from bench.reports._cost_figure import unbeaten
from bench.reports._costs import method_costs
from bench.reports._forest import forests
from bench.reports._headline import headlines
from bench.reports._page_tests import page_tests
from bench.reports._standings import boards, combined
from bench.spec.cell import Outcome
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures.results import save_outcomes

ONE_SPLIT = {"repeats": {"kind": "seeds", "test_share": 0.1}}
Value = Callable[[str, str, int], Mapping[str, float]]


def section(name: str, results: StoredResults) -> Section:
    report: Report = Registry().make("report", name, {})
    found = report.section(results)
    assert found is not None
    return found


def stored(
    store: Store,
    value: Value,
    datasets: tuple[str, ...] = ("d",),
    methods: tuple[str, ...] = ("base", "good", "bad"),
    seeds: int = 8,
    metrics: tuple[str, ...] = ("accuracy", "ece"),
    costs: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> StoredResults:
    outcomes = {
        (dataset, method, seed): Outcome(
            "ok", metrics=value(dataset, method, seed), training={**ONE_SPLIT, **costs.get(method, {})}
        )
        for dataset in datasets
        for method in methods
        for seed in range(seeds)
    }
    return save_outcomes(store, "made", outcomes, metrics, "base")


def classes(dataset: str, method: str, seed: int) -> dict[str, float]:
    """The first method of all gains 0.05 of accuracy and loses 0.2 of ECE; the seeds are 0.001 apart."""
    gain = {"good": 0.05, "bad": -0.05}.get(method, 0.0)
    noise = 0.001 * np.random.default_rng([seed, *method.encode()]).normal()
    return {"accuracy": 0.9 + gain + noise, "ece": 0.4 + 4 * gain + noise, "aurc": 0.01, "nll_categorical": 0.3}


def glance(results: StoredResults) -> Table:
    return next(block for block in section("overview", results).blocks if isinstance(block, Table))


def test_one_metric_stands_for_each_group_and_the_suites_choice_comes_first(store: Store) -> None:
    results = stored(store, classes)
    (found,) = headlines(results).values()
    assert [(one.group, one.metric.name) for one in found] == [
        ("prediction", "accuracy"),
        ("likelihood", "nll_categorical"),
        ("calibration", "ece"),
        ("selection", "aurc"),
    ]


def test_values_have_t_intervals_within_the_range_of_the_metric(store: Store) -> None:
    """Accuracies 1, 1, .., 0.9: their t interval reaches beyond 1, where no accuracy is."""

    def value(dataset: str, method: str, seed: int) -> dict[str, float]:
        return {"accuracy": 0.9 if seed == 0 else 1.0, "ece": 0.04 + 0.01 * seed}

    (own,) = boards(stored(store, value)).values()
    accuracy, ece = own[0].standings["good"].value, own[1].standings["good"].value
    values = 0.04 + 0.01 * np.arange(8)
    expected = scipy_stats.t.interval(0.95, 7, values.mean(), scipy_stats.sem(values))
    assert (ece.low, ece.high) == pytest.approx(expected)
    assert accuracy.high == 1.0
    assert accuracy.low == pytest.approx(0.9875 - 2.364624 * 0.0125)


def test_the_mean_of_several_means_has_welchs_interval() -> None:
    """Two samples: the interval of their mean is half that of the sum in Welch's test of a against -b."""
    random = np.random.default_rng(1)
    a, b = random.normal(1, 1, 6), random.normal(3, 4, 9)
    found = combined([a.mean(), b.mean()], [scipy_stats.sem(a), scipy_stats.sem(b)], [6, 9])
    interval = scipy_stats.ttest_ind(a, -b, equal_var=False).confidence_interval(0.95)
    assert found.value == pytest.approx((a.mean() + b.mean()) / 2)
    assert (found.low, found.high) == pytest.approx((interval.low / 2, interval.high / 2))
    assert not combined([1.0, 2.0], [0.1, math.nan], [5, 1]).has_interval


def test_marks_are_those_of_the_pages_families(store: Store) -> None:
    results = stored(store, classes)
    data: Any = glance(results).data.set_index("method")
    assert data.loc["good", "accuracy ↑"].startswith("0.949")
    assert [text.split("\n")[0][-1] for text in data["accuracy ↑"]] == ["†", "9", "‡"]  # good, base, bad
    assert [text.split("\n")[0][-1] for text in data["ece ↓"]] == ["‡", "9", "†"]
    tested = page_tests(results).tested["d", "ece"]
    good, base = tested.tests.methods.index("good"), tested.tests.methods.index("base")
    by_metric = {m.name: {c.a: c.rows[0] for c in own} for m, own in page_tests(results).beside.items()}
    row = by_metric["ece"]["good"]
    assert row.verdict == "worse"
    # Its p is the smallest of the family of other tests: 3 metrics against the baseline and 1 pair by the leading one.
    assert row.p_adjusted == tested.p_adjusted[good, base] == pytest.approx(7 * row.p)


def test_data_units_are_per_cent_of_the_baseline_over_datasets_and_its_zero_is_not_bold(store: Store) -> None:
    """The same 10 % on a dataset of metres and one of millimetres; nobody is better than the baseline."""

    def value(dataset: str, method: str, seed: int) -> dict[str, float]:
        noise = 1 + 0.001 * np.random.default_rng([seed, *method.encode()]).normal()
        return {"rmse": {"far": 1.0, "near": 1000.0}[dataset] * (1.1 if method != "base" else 1.0) * noise}

    results = stored(store, value, datasets=("far", "near"), metrics=("rmse",))
    ((board,),) = boards(results).values()
    assert board.percent
    assert board.standings["good"].value.value == pytest.approx(10.0, abs=0.2)
    table = glance(results)
    cells = dict(zip(table.data["method"], table.data.iloc[:, 1], strict=True))
    assert cells["base\n(baseline)"] == "0 %"
    assert cells["good"].startswith("+10.0 % ‡2") or cells["good"].startswith("+10.1 % ‡2")
    assert table.bold == frozenset()


def test_coverage_is_ranked_by_its_mean_distance_to_the_target(store: Store) -> None:
    """The mean coverage of one method is the target, but it misses it by 0.05 on both datasets."""

    def value(dataset: str, method: str, seed: int) -> dict[str, float]:
        off = {"good": (-0.02, -0.02), "bad": (-0.05, 0.05), "base": (-0.06, -0.06)}[method]
        return {"rmse": 1.0 + 0.01 * seed, "picp95": 0.95 + off[dataset == "e"]}

    results = stored(store, value, datasets=("d", "e"), metrics=("rmse", "picp95"))
    picp = next(board for board in boards(results)["regression"] if board.metric.name == "picp95")
    assert picp.standings["bad"].value.value == pytest.approx(0.95)
    assert picp.standings["bad"].loss == pytest.approx(0.05)
    assert picp.best() == "good"


def test_sentences_say_who_is_better_at_what_cost_and_what_could_not_be_seen(store: Store) -> None:
    costs = {
        "base": {"epochs": [10], "draws": 100},
        "good": {"epochs": [10] * 5, "draws": 5},
        "bad": {"epochs": [10], "draws": 100},
    }
    results = stored(store, classes, costs=costs)
    answers = next(b.facts for b in section("overview", results).blocks if isinstance(b, Facts))
    text = answers["Prediction: accuracy ↑"]
    assert "Better than base: good (+0.0" in text
    assert "5 x the training, T = 5" in text
    assert "worse than base: bad (-0.0" in text
    assert "best mean good, 0.9" in text
    same = answers["Selection: aurc ↓"]
    assert same.startswith("No method was shown to be better or worse than base")


def test_a_verdict_on_one_dataset_names_it_and_a_tiny_mean_is_a_bound(store: Store) -> None:
    def value(dataset: str, method: str, seed: int) -> dict[str, float]:
        """Good gains 0.05 on the first dataset and loses as much in one seed and more of the second."""
        noise = np.random.default_rng([seed, *method.encode(), *dataset.encode()]).normal()
        gain = {("one", "good"): 0.05, ("two", "good"): -0.05}.get((dataset, method), 0.0)
        return {"accuracy": 0.8 + gain + noise * (0.001 if dataset == "one" else 0.08)}

    results = stored(store, value, ("one", "two"), ("base", "good"), metrics=("accuracy",))
    answers = next(b.facts for b in section("overview", results).blocks if isinstance(b, Facts))
    text = answers["Prediction: accuracy ↑"]
    means = results.frame.groupby(["method", "dataset"])["value"].mean()
    there = means["good", "one"] - means["base", "one"]
    assert f"Better than base: good (on 1 of 2 datasets: {there:+.4f} on one, " in text
    assert " on average)" in text
    assert _signed(0.0004, 3, "") == "by less than 0.001"
    assert _signed(-0.04, 1, " %") == "by less than 0.1 %"
    assert (_signed(0.0, 2, ""), _signed(-0.5, 1, " %")) == ("0.00", "-0.5 %")


def test_without_enough_seeds_there_is_no_mark_no_verdict_and_no_colour(store: Store) -> None:
    results = stored(store, classes, seeds=4)
    text = next(b.facts for b in section("overview", results).blocks if isinstance(b, Facts))
    assert text["Calibration: ece ↓"].endswith("not tested: 4 repeats, at least 5 are needed.")
    assert not any(mark in cell for mark in "†‡" for cell in glance(results).data["ece ↓"])
    figure = next(block for block in section("overview", results).blocks if isinstance(block, Figure))
    assert figure.data is not None
    assert set(figure.data["verdict"]) == {"not tested"}
    assert Registry().make("report", "wins", {}).section(results) is None
    assert figure.caption.endswith("An arrow at the edge: beyond the axis. Not tested: too few repeats.")
    assert "interval" not in figure.caption
    assert glance(results).caption.endswith("Nothing is tested; the intervals are of one number each.")
    verdicts = section("verdicts", results).blocks
    assert verdicts[0] == Text("By accuracy nothing was tested: 4 repeats, at least 5 are needed.")


def test_the_forest_turns_every_gain_to_the_right(store: Store) -> None:
    results = stored(store, classes)
    (figure,) = forests("forest", "base", boards(results)["classification"])
    assert figure is not None
    assert figure.data is not None
    gains: Any = figure.data.set_index(["metric", "method"])["gain"]
    assert gains["accuracy", "good"] == pytest.approx(0.05, abs=0.002)
    assert gains["ece", "good"] == pytest.approx(-0.2, abs=0.002)
    assert (figure.data["95 % low"] <= figure.data["gain"]).all()
    assert (figure.data["95 % high"] >= figure.data["gain"]).all()


def test_costs_are_relative_to_the_baseline_and_the_front_is_what_nothing_beats(store: Store) -> None:
    costs = {
        "base": {"epochs": [10], "draws": 1},
        "good": {"epochs": [20, 20], "draws": 2},
        "bad": {"epochs": [40], "draws": 50},
    }
    results = stored(store, classes, costs=costs)
    found = method_costs(results, ["d"])
    assert {m: cost.training for m, cost in found.items()} == pytest.approx({"base": 1.0, "good": 4.0, "bad": 4.0})
    assert found["good"].networks == (2,)
    assert found["bad"].most_passes == 50
    accuracy = boards(results)["classification"][0]
    points = {m: (found[m].training, accuracy.standings[m].value.value) for m in found}
    assert unbeaten(points, accuracy) == ["base", "good"]


def test_widths_are_neither_bold_nor_marked_and_relative_zeros_are_not_bold(store: Store) -> None:
    """The bad method is as narrow as it is wrong; msll of the baseline is 0 by definition."""

    def value(dataset: str, method: str, seed: int) -> dict[str, float]:
        noise = 0.001 * np.random.default_rng([seed, *method.encode()]).normal()
        worse = {"good": 1.0, "bad": 2.0}.get(method, 0.0)
        values = {"mpiw": 3.0 - worse, "nll_mc": 1.0 + worse, "picp": 0.99 - 0.3 * worse, "rmse": 1.0 + worse}
        return {name: number + noise for name, number in values.items()}

    results = stored(store, value, metrics=("rmse", "mpiw", "picp", "msll"))
    table = next(block for block in section("summary", results).blocks if isinstance(block, Table))
    columns = list(table.data.columns)
    bold = {columns[c]: table.data["method"][r] for r, c in table.bold}
    assert bold == {"rmse ↓": "base", "picp → 0.9973": "base"}
    assert not any(mark in cell for mark in "†‡" for cell in table.data["mpiw ↓"])
    assert any("‡" in cell for cell in table.data["picp → 0.9973"])


def test_warnings_of_cells_stand_on_the_page_beside_their_numbers(store: Store) -> None:
    outcomes = {
        ("d", method, seed): Outcome(
            "ok",
            "the machine was loaded; spreads over 282 %" if method == "good" else "the machine was loaded",
            metrics={"accuracy": 0.9, "ece": 0.1},
        )
        for method in ("base", "good")
        for seed in range(3)
    }
    results = save_outcomes(store, "made", outcomes, ["accuracy"], "base")
    (warning,) = [b for b in section("overview", results).blocks if isinstance(b, Text) and b.warning]
    expected = "Warning. all methods: the machine was loaded. good on d: spreads over 282 %."
    assert warning.text == expected


def test_a_metric_in_units_of_the_data_that_the_baseline_lacks_has_a_reason_in_place_of_a_column(store: Store) -> None:
    def value(dataset: str, method: str, seed: int) -> dict[str, float]:
        own = {"rmse": 1.0 + 0.01 * seed, "nll": 0.2 + 0.01 * seed, "crps": 0.5 + 0.01 * seed}
        return {name: one for name, one in own.items() if method != "base" or name != "crps"}

    results = stored(store, value, datasets=("a", "b"), metrics=("rmse", "nll", "crps"))
    assert [column for column in glance(results).data if str(column).startswith(("rmse", "crps"))] == ["rmse ↓ (%)"]
    answers = next(block for block in section("overview", results).blocks if isinstance(block, Facts)).facts
    assert answers["Intervals: crps ↓, draws alone"].startswith(
        "No column here: base, the baseline, has no value of it"
    )


def test_a_metric_of_calibration_that_leads_is_named_so_and_the_prediction_has_its_column(store: Store) -> None:
    def value(dataset: str, method: str, seed: int) -> dict[str, float]:
        return {"picp": 0.9, "rmse": 1.0 + 0.01 * seed, "winkler": 2.0 + 0.01 * seed}

    (found,) = headlines(stored(store, value, metrics=("picp", "winkler"))).values()
    assert [(one.group, one.metric.name) for one in found] == [
        ("calibration", "picp"),
        ("prediction", "rmse"),
        ("intervals", "winkler"),
    ]


def test_a_change_in_per_cent_is_not_below_nothing_and_has_sensible_digits(store: Store) -> None:
    def value(dataset: str, method: str, seed: int) -> dict[str, float]:
        return {"rmse": 1.0 + 0.01 * seed + (method == "bad") * 2000.0 * (seed == 3)}

    results = stored(store, value, datasets=("a", "b"), metrics=("rmse",))
    ((board,),) = boards(results).values()
    assert board.standings["bad"].value.low == -100.0 < board.standings["bad"].value.value
    table = glance(results)
    cell = dict(zip(table.data["method"], table.data["rmse ↓ (%)"], strict=True))["bad"]
    assert cell.partition("\n")[0] == f"{board.standings['bad'].value.value:+.0f} %"
    assert "(-100 to" in cell


def test_a_detectable_difference_is_not_beyond_the_range_of_the_metric(store: Store) -> None:
    def value(dataset: str, method: str, seed: int) -> dict[str, float]:
        return {"accuracy": float(np.random.default_rng([seed, *method.encode()]).random())}

    results = stored(store, value, seeds=5, metrics=("accuracy",))
    answers = next(block for block in section("overview", results).blocks if isinstance(block, Facts)).facts
    assert "these repeats can show no difference that accuracy can have" in answers["Prediction: accuracy ↑"]


def test_a_method_without_the_metric_is_not_inconclusive(store: Store) -> None:
    """One draw has no variance and no CRPS: more seeds would not give it one. By classes it is compared."""

    def values(dataset: str, method: str, seed: int) -> dict[str, float]:
        known = {"accuracy": 0.5 + 0.01 * seed} if dataset == "classes" else {"rmse": 1.0, "crps": 0.5 + 0.01 * seed}
        return {name: value for name, value in known.items() if (name, method) != ("crps", "point")}

    outcomes = {
        (dataset, method, seed): Outcome("ok", metrics=values(dataset, method, seed), training=ONE_SPLIT)
        for dataset in ("numbers", "classes")
        for method in ("base", "point", "other")
        for seed in range(6)
    }
    results = save_outcomes(store, "made", outcomes, ("crps", "accuracy"), "base")
    tables = {block.name: block.data for block in section("verdicts", results).blocks if isinstance(block, Table)}
    rows: Any = tables["verdicts-crps"].set_index("method")
    assert rows.loc["point", ["inconclusive", "seeds it would take"]].tolist() == [0, "no values"]
    assert rows.loc["other", ["equivalent", "inconclusive"]].sum() == 1


def test_verdicts_count_no_dataset_that_a_method_does_not_fit(store: Store) -> None:
    """Methods of another task were listed as inconclusive on every dataset."""
    outcomes = {
        (dataset, method, seed): Outcome("ok", metrics={metric: 0.5 + 0.01 * seed}, training=ONE_SPLIT)
        for dataset, metric in (("numbers", "rmse"), ("classes", "accuracy"))
        for method in ("base", "both", dataset)
        for seed in range(6)
    }
    results = save_outcomes(store, "made", outcomes, ("rmse", "accuracy"), "base")
    tables = {block.name: block.data for block in section("verdicts", results).blocks if isinstance(block, Table)}
    assert list(tables["verdicts-rmse"]["method"]) == ["both", "numbers"]
    assert list(tables["verdicts-accuracy"]["method"]) == ["both", "classes"]
