"""The tests of a page: one family for each question, and one result for a comparison in every section."""

import itertools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.api import Figure, Report, Section, Table, Text
from bench.plugins.registry import Registry
from bench.reports._page_tests import families_text, page_tests
from bench.reports._rankings import ranked_metrics, rankings
from bench.spec.cell import Outcome
from bench.stats import compare, compare_all_pairs, critical_difference, holm
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures.results import save_classifiers, save_outcomes

METHODS = ("a", "base", "b", "c", "d")
DATASETS = tuple(f"set-{n}" for n in range(7))
METRICS = ("rmse", "nll", "crps")
MARKS = {"better": "†", "worse": "‡"}
Page = Callable[..., StoredResults]


@pytest.fixture
def page(store: Store) -> Page:
    """Results in which some differences are close to the threshold: other families would decide otherwise."""

    def build(
        baseline: str | None = "base", size: float = 3.0, kinds: Mapping[str, str] = MappingProxyType({})
    ) -> StoredResults:
        random = np.random.default_rng(3)
        outcomes = {
            (dataset, method, seed): Outcome(
                "ok",
                metrics={metric: float(random.normal(size * (n % 3))) for metric in METRICS},
                training={"repeats": {"kind": kinds.get(dataset, "splits"), "test_share": 0.1}} if kinds else {},
            )
            for dataset in DATASETS
            for n, method in enumerate(METHODS)
            for seed in range(10)
        }
        return save_outcomes(store, "made", outcomes, METRICS, baseline)

    return build


def section(name: str, results: StoredResults) -> Section:
    report: Report = Registry().make("report", name, {})
    found = report.section(results)
    assert found is not None
    return found


def evidence(results: StoredResults) -> pd.DataFrame:
    tables = [block for block in section("verdicts", results).blocks if isinstance(block, Table)]
    return tables[-1].data


def test_verdicts_are_one_family_of_every_method_dataset_and_leading_metric(page: Page) -> None:
    results = page()
    rows = [row for own in page_tests(results).verdicts.values() for one in own for row in one.rows]
    assert len(rows) == 4 * 7
    assert [row.p_adjusted for row in rows] == pytest.approx(holm([row.p for row in rows]).tolist())
    over = [one for own in page_tests(results).verdicts.values() for comparison in own for one in comparison.across]
    assert [one.p_adjusted for one in over] == pytest.approx(holm([one.p for one in over]).tolist())


def test_all_other_tests_on_datasets_are_one_family(page: Page) -> None:
    results, expected = page(), {}
    for one in compare_all_pairs(results.frame, ranked_metrics(results), cells=results.cells):
        for i, j in itertools.combinations(range(5), 2):
            if (one.metric == "rmse") is not ("base" in (one.methods[i], one.methods[j])):
                expected[one.dataset, one.metric, one.methods[i], one.methods[j]] = float(one.p[i, j])
    adjusted = dict(zip(expected, holm(list(expected.values())).tolist(), strict=True))
    assert page_tests(results).further == len(expected) == 7 * (6 + 2 * 4)
    for (dataset, metric, a, b), p in adjusted.items():
        found = page_tests(results).tested[dataset, metric]
        i, j = found.tests.methods.index(a), found.tests.methods.index(b)
        assert found.p_adjusted[i, j] == found.p_adjusted[j, i] == pytest.approx(p)


def test_a_comparison_has_one_result_in_every_section(page: Page) -> None:
    results = page()
    verdicts = evidence(results).set_index(["method", "dataset"])["verdict"]
    assert set(verdicts) >= {"better", "worse", "inconclusive"}
    summary = [block for block in section("summary", results).blocks if isinstance(block, Table)]
    marks: dict[Any, Any] = {
        (row.method, table.name.removeprefix("results-")): row.mark
        for table in summary
        if table.numbers is not None
        for row in table.numbers[table.numbers["metric"] == "rmse"].itertuples()
    }
    for place, verdict in verdicts.items():
        assert marks[place] == MARKS.get(verdict, ""), place
    (figure,) = [block for block in section("wins", results).blocks if isinstance(block, Figure)]
    assert figure.data is not None
    wins: Any = figure.data.set_index(["method", "against"])
    for method in set(METHODS) - {"base"}:
        own = verdicts[method]
        counts = [int((own == word).sum()) for word in ("better", "worse")]
        assert wins.loc[(method, "base"), ["better", "worse"]].tolist() == counts


def test_intervals_are_those_of_compare(page: Page) -> None:
    results = page()
    shown = evidence(results).set_index(["method", "dataset"])
    (table,) = (
        b for b in section("verdicts", results).blocks if isinstance(b, Table) and b.name == "verdicts-evidence"
    )
    assert table.numbers is not None
    whole = table.numbers.set_index(["method", "dataset"])
    for row in compare(results.frame, "a", "base", ranked_metrics(results)[:1], cells=results.cells).rows:
        assert row.interval is not None
        own: Any = whole.loc[("a", row.dataset)]
        assert (own["95 % low"], own["95 % high"]) == (row.interval.low, row.interval.high)
        # On the page every number of a row has two digits of the interval's half-width.
        text: Any = shown.loc[("a", row.dataset)]
        places = {len(text[name].partition(".")[2]) for name in ("mean", "baseline", "difference", "95 % low")}
        assert len(places) == 1
        half = (row.interval.high - row.interval.low) / 2
        assert 0.1 <= half * 10 ** (min(places) - 1) < 10
        assert abs(float(text["difference"]) - row.difference) <= 0.5001 * 10.0 ** -min(places)


def test_ranks_are_one_family_for_all_metrics(page: Page) -> None:
    results = page()
    ranked = rankings(results)
    assert [metric.name for metric in ranked_metrics(results)] == list(METRICS)
    for ranking in ranked.values():
        assert ranking.critical_difference == pytest.approx(critical_difference(7, 5, 0.05 / 3))


def test_the_page_says_what_its_families_add_up_to(page: Page) -> None:
    text = families_text(page())
    assert "(1) verdicts, every method against base by rmse on every dataset (Holm over 28 tests)" in text
    assert "(2) over datasets, every method against base by rmse (Holm over 4 tests)" in text
    assert "(3) other tests on datasets, other metrics, and pairs without the baseline by the leading metrics" in text
    assert "(4) average ranks, all pairs of methods by rmse, nll, crps (Nemenyi at level 0.05 / 3)" in text
    assert "at most 5 % in each of these families and 20 % on the whole page" in text
    assert text in [block.text for block in section("verdicts", page()).blocks if isinstance(block, Text)]


def test_without_a_baseline_all_pairs_are_the_family(page: Page) -> None:
    results = page(None)
    assert page_tests(results).verdicts == {}
    assert page_tests(results).further == 7 * 10
    assert "(1) other tests on datasets, all pairs (Holm over 70 tests)" in families_text(results)


def texts(results: StoredResults) -> str:
    return " ".join(block.text for block in section("verdicts", results).blocks if isinstance(block, Text))


@pytest.mark.parametrize(("errors", "holds"), [(12, False), (1, True)])
def test_verdicts_on_one_test_set_say_whether_they_hold_for_other_rows(store: Store, errors: int, holds: bool) -> None:
    results = save_classifiers(store, {"a": errors})
    (row,) = evidence(results).to_dict("records")
    assert row["verdict"] == "better"  # the seeds alone are sure of both
    p = row["p, other test rows"]
    assert (p == "<0.001" or float(p) < 0.05) is holds
    if holds:
        assert "Every better and worse was shown for other rows, too." in texts(results)
    else:
        assert "Not shown for other rows of the same kind: a better by accuracy on set." in texts(results)


@pytest.mark.parametrize("kind", ["splits", "independent"])
def test_repeats_with_other_rows_need_no_such_test(store: Store, kind: str) -> None:
    assert "p, other test rows" not in evidence(save_classifiers(store, {"a": 1}, kind))


def test_verdicts_without_stored_predictions_are_said_to_be_untested_for_other_rows(store: Store) -> None:
    results = save_classifiers(store, {"a": 1, "b": 1}, without=["b"])
    found = evidence(results).set_index("method")["p, other test rows"]
    assert found["b"] == "–" != found["a"]
    assert "Every better and worse that was tested so was shown for other rows, too." in texts(results)
    assert "Not tested for other rows: accuracy on set (predictions are not stored: b)." in texts(results)


def test_methods_and_datasets_that_were_not_tested_for_other_rows_are_said_together(page: Page) -> None:
    """This store holds no predictions; the other datasets have other rows for every repeat."""
    results = page(kinds=dict.fromkeys(DATASETS[:2], "seeds"))
    expected = "Not tested for other rows: rmse on set-0, set-1 (predictions are not stored: all methods)."
    assert "Repeats of set-0, set-1 are seeds on one test set: verdicts are about these rows." in texts(results)
    assert expected in texts(results)
    assert "p, other test rows" not in evidence(results)


def test_verdicts_of_tests_that_may_not_hold_their_level_are_named(store: Store) -> None:
    """By a the differences are alike; one of c's is far from the others; d diverged once."""
    level = {"a": -1.0, "base": 0.0, "c": 1.0, "d": 1.0, "e": 0.0}
    outcomes = {
        ("set", method, seed): Outcome("diverged")
        if (method, seed) == ("d", 0)
        else Outcome("ok", metrics={"rmse": 9.0 + level[method] + 0.01 * (seed % 3) + (method == "c" and seed == 5)})
        for method in level
        for seed in range(8)
    }
    results = save_outcomes(store, "made", outcomes, ["rmse"], "base")
    found = [b.text for b in section("verdicts", results).blocks if isinstance(b, Text) and "hold its level" in b.text]
    assert found == [
        "The test of the mean may not hold its level, because of skew, outliers or failed runs: c worse by rmse on "
        "set; d worse by rmse on set. The remarks of the evidence have tests of the median."
    ]
