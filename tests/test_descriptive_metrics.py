"""Metrics without a better, from the store to every page: shown and described, never ranked, compared or gated."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bench
from bench.api import Report, Table, Text
from bench.errors import UserError
from bench.gate.values import gated_metrics, measured
from bench.history.changes import with_changes
from bench.history.series import Label, Series, Version
from bench.history.view import line_view
from bench.leaderboard import collect
from bench.leaderboard.collect import board_metrics
from bench.metrics import catalogue
from bench.plan.suite import check_suite
from bench.plugins.registry import Registry
from bench.report.standings import standing_lines
from bench.report.write import write_report
from bench.spec.cell import Outcome
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures.commands import Command
from tests.fixtures.results import ENVIRONMENT, noisy, save_outcomes

DRAWS = {"deep-ensemble": 5, "mc-dropout": 100, "mcni-fixed": 100}
SUITE = {"title": "t", "datasets": {"toy": {}}, "methods": {"deterministic": {}}}


def study(store: Store, shown: tuple[str, ...] = ()) -> StoredResults:
    random = np.random.default_rng(2)
    outcomes = {}
    for dataset in ("one", "two"):
        for level, (method, draws) in enumerate(DRAWS.items()):
            for seed in range(6):
                values = {"accuracy": 0.9 - 0.1 * level, "mutual_information": 0.1 + level, "predictive_entropy": 1.0}
                values = {name: value + 0.01 * random.normal() for name, value in values.items()}
                values |= {f"mutual_information@T={t}": 0.05 for t in (1, 5)}
                record = {"epochs": [2], "draws": draws}
                outcomes[dataset, method, seed] = Outcome(
                    "ok", metrics=values, training=record, environment=ENVIRONMENT
                )
    return save_outcomes(store, "made", outcomes, shown, "mc-dropout")


def test_comparing_or_ranking_by_one_is_an_error_of_one_line(store: Store) -> None:
    results = study(store)
    for call in (
        lambda: bench.compare_methods(results, "mc-dropout", "mcni-fixed", metrics=["mutual_information"]),
        lambda: bench.rank_methods(results, metrics=["mutual_information"]),
    ):
        with pytest.raises(UserError, match="mutual_information describes predictions: no value of it is better") as e:
            call()
        assert "\n" not in str(e.value)


@pytest.mark.parametrize("shown", [(), ("mutual_information", "accuracy")])
def test_what_is_not_named_is_left_out_of_comparisons_rankings_and_standings(
    store: Store, shown: tuple[str, ...]
) -> None:
    results = study(store, shown)
    comparison = bench.compare_methods(results, "mc-dropout", "mcni-fixed")
    assert {row.metric for row in comparison.rows} == {"accuracy"}
    assert [one.metric for one in bench.rank_methods(results).rankings] == ["accuracy"]
    heading = next(iter(standing_lines(results)))
    assert "accuracy ↑" in heading
    assert "mutual_information" not in heading


def test_they_are_not_gated(store: Store) -> None:
    suite = check_suite({**SUITE, "name": "x"}, "x")
    names = gated_metrics(suite)
    assert "accuracy" in names
    assert not {name for name in names if not catalogue()[name].has_better}
    # Nor where a whole metric is asked for under its conditions.
    found = measured(study(store), ["accuracy", "mutual_information"], range(6))
    assert {name for rows in found.values.values() for name in rows} == {"accuracy"}
    shown = check_suite({**SUITE, "name": "x", "metrics": ["mutual_information", "accuracy"]}, "x")
    assert gated_metrics(shown) == ["accuracy"]


@pytest.mark.parametrize("gate", [{"metrics": ["mutual_information"]}, {"margins": {"predictive_entropy": "5%"}}])
def test_a_suite_that_gates_one_is_refused(gate: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"gate\.\w+.*is better than another: it is never gated"):
        check_suite({**SUITE, "name": "x", "gate": gate}, "x")


def test_they_have_no_board(store: Store) -> None:
    results = study(store)
    assert board_metrics(results, ["all"]) == ["accuracy"]
    assert {board.metric for board in collect(store).boards} == {"accuracy"}
    with pytest.raises(UserError, match="--metric mutual_information: it describes predictions"):
        collect(store, metrics=["mutual_information"])


def test_boards_of_a_biased_metric_keep_the_methods_of_equal_draws(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study(store)
    biased = replace(catalogue()["accuracy"], biased_in_draws=True)
    monkeypatch.setattr(sys.modules["bench.leaderboard.collect"], "declaration", lambda name: biased)
    for board in collect(store).boards:
        assert {entry.method for entry in board.entries} == {"mc-dropout", "mcni-fixed"}
        assert any("(T = 100), so not ranked: deep-ensemble (T = 5)" in note for note in board.notes)


def test_the_summary_shows_them_without_arrow_bold_or_mark(store: Store) -> None:
    report: Report = Registry().make("report", "summary", {})
    found = report.section(study(store, ("mutual_information", "accuracy")))
    assert found is not None
    for table in (block for block in found.blocks if isinstance(block, Table)):
        assert [str(column) for column in table.data.columns] == ["method", "mutual_information", "accuracy ↑"]
        assert {column for _, column in table.bold} == {2}
        assert not table.data["mutual_information"].str.contains("[†‡]").any()
        assert table.data["accuracy ↑"].str.contains("[†‡]").any()


def test_the_description_has_their_means_and_the_number_of_draws(store: Store) -> None:
    results = study(store)
    report: Report = Registry().make("report", "description", {})
    found = report.section(results)
    assert found is not None
    introduction, first, _ = found.blocks
    assert isinstance(introduction, Text)
    assert "Compare rows of equal T only: mutual_information, predictive_entropy" in introduction.text
    assert isinstance(first, Table)
    assert dict(zip(first.data["method"], first.data["T"], strict=True)) == {m: str(t) for m, t in DRAWS.items()}
    assert not first.bold
    rows = results.frame[(results.frame["dataset"] == "one") & (results.frame["metric"] == "mutual_information")]
    means = rows.groupby("method")["value"].mean()
    deviations = rows.groupby("method")["value"].std()
    places = {m: 1 - math.floor(math.log10(deviations[m])) for m in deviations.index}  # two digits of the deviation
    assert first.data["mutual_information"].tolist() == [
        f"{means[m]:.{places[m]}f} ± {deviations[m]:.{places[m]}f}" for m in first.data["method"]
    ]


@pytest.mark.slow
def test_a_report_and_a_site_are_written(store: Store, tmp_path: Path) -> None:
    study(store, ("predictive_entropy", "accuracy"))
    page, *_ = write_report(store, Registry(), tmp_path)
    assert "Description of the predictions" in page.read_text("utf-8")
    index, board = bench.write_leaderboard(store, tmp_path / "site")
    assert index.is_file()
    assert board.boards


def test_a_history_names_changes_without_calling_them_better() -> None:
    values = noisy([1.0, 1.0, 2.0])
    versions = tuple(Version(f"c{number}", "", float(number), float(number)) for number in range(3))
    series = Series(Label("s", "d", "m"), "mutual_information", versions, tuple(range(8)), values, 1, ())
    (line,) = with_changes([series]).lines
    (change,) = line.changes
    assert (change.at, change.better, change.verdict) == (2, None, "different")
    view = line_view(line, 0.95)
    assert view.changes[0].verdict == "different"
    assert 'class="n"' in view.picture


def test_the_list_says_that_no_value_is_better(command: Command) -> None:
    out = " ".join(command("list", "metrics").out.split())
    assert "descriptive, classification, descriptive: no value is better, unit nat" in out
