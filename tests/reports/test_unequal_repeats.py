"""Methods that were run with different numbers of seeds: no table sorts or compares means over different repeats."""

import numpy as np
import pandas as pd
import pytest

from bench.api import Facts, Figure, Report, Section, Table, stats
from bench.leaderboard.collect import collect
from bench.plugins.registry import Registry
from bench.report.standings import standing_lines, value_lines
from bench.reports._lost_cells import lost_cells
from bench.spec.cell import Outcome
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures.results import ENVIRONMENT, save_outcomes

SEEDS = {"long": 20, "short": 6, "base": 6}


def unequal(store: Store, datasets: tuple[str, ...] = ("d",), seeds: dict[str, int] = SEEDS) -> StoredResults:
    """On every split `short` is better than `long` by 1; the splits after the sixth are easy."""
    levels = {"long": 6.0, "short": 5.0, "base": 8.0, "other": 7.0}
    outcomes = {
        (dataset, method, seed): Outcome(
            "ok",
            metrics={"rmse": levels[method] + _noise(method, seed) - 3.0 * (seed >= 6)},
            training={"repeats": {"kind": "independent", "test_share": 0.0}},
            timing={"seconds": 1.0, "cpu_seconds": 0.5, "finished": 1.7e9},
            environment=ENVIRONMENT,
        )
        for dataset in datasets
        for method, count in seeds.items()
        for seed in range(count)
    }
    return save_outcomes(store, "made", outcomes, ["rmse"], "base")


def _noise(method: str, seed: int) -> float:
    return float(0.01 * np.random.default_rng([seed, *method.encode()]).normal())


def section(name: str, results: StoredResults) -> Section:
    report: Report = Registry().make("report", name, {})
    found = report.section(results)
    assert found is not None
    return found


def first_table(name: str, results: StoredResults) -> Table:
    return next(block for block in section(name, results).blocks if isinstance(block, Table))


def test_a_method_with_fewer_repeats_is_marked_and_nobody_is_bold(store: Store) -> None:
    results = unequal(store)
    table = first_table("overview", results)
    assert list(table.data["method"]) == ["long", "short\n(6 of 20)", "base\n(baseline)\n(6 of 20)"]
    assert table.bold == frozenset()
    assert "its mean is over n of m repeats, so it is last and never the best" in table.caption
    facts = next(block.facts for block in section("overview", results).blocks if isinstance(block, Facts))
    text = facts["Prediction: rmse ↓"]
    assert "(best over the 6 common ones: short 4.998, long 6.003)" in text
    assert "best mean long" not in text.lower()


def test_a_method_that_lacks_one_metric_is_marked_at_its_value(store: Store) -> None:
    outcomes = {
        ("d", method, seed): Outcome("ok", metrics={"rmse": 1.0 + 0.1 * seed, "mae": 1.0, "nll": 2.0 + 0.1 * seed})
        for method in ("base", "other")
        for seed in range(6)
    }
    outcomes["d", "other", 0] = Outcome("ok", metrics={"rmse": 1.0})
    table = first_table("overview", save_outcomes(store, "made", outcomes, ["rmse", "nll"], "base"))
    assert list(table.data["method"]) == ["base\n(baseline)", "other"]
    assert [cell.endswith("(5 of 6)") for cell in table.data["nll ↓"]] == [False, True]
    assert table.bold == frozenset()


def test_the_best_is_one_of_those_with_all_repeats(store: Store) -> None:
    table = first_table("overview", unequal(store, seeds={**SEEDS, "other": 20}))
    assert [name.partition("\n")[0] for name in table.data["method"]] == ["long", "other", "short", "base"]
    assert table.bold == {(0, 1)}


def test_the_forest_has_the_order_of_the_table(store: Store) -> None:
    """By the means over all seeds of each, `short` would be below `other`."""
    blocks = section("overview", unequal(store, seeds={**SEEDS, "other": 20})).blocks
    axis = next(block for block in blocks if isinstance(block, Figure)).figure.axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()][:3] == ["long", "other", "short"]


def test_over_several_datasets_repeats_are_counted_together(store: Store) -> None:
    table = first_table("overview", unequal(store, ("d", "e")))
    assert table.data["method"][1] == "short\n(12 of 40)"
    assert table.bold == frozenset()


def test_results_by_dataset_and_the_section_leaderboard_say_the_same(store: Store) -> None:
    results = unequal(store)
    own = first_table("summary", results)
    assert own.bold == frozenset()
    cells = dict(zip(own.data["method"], own.data["rmse ↓"], strict=True))
    assert {method for method, cell in cells.items() if "(6 of 20)" in cell} == {"short", "base"}
    ranked = first_table("leaderboard", results)
    assert list(ranked.data["method"]) == ["long", "short\n(6 of 20)", "base\n(6 of 20)"]
    assert ranked.numbers is not None
    assert list(ranked.numbers["repeats"]) == [20, 6, 6]
    assert list(ranked.numbers["of all"]) == [20, 20, 20]
    assert list(ranked.numbers["method"]) == ["long", "short", "base"]


def test_ranks_are_of_means_over_common_repeats(store: Store) -> None:
    """Over all its seeds `long` would be ahead on both datasets."""
    results = unequal(store, ("d", "e"))
    _, *lines, _, why, _ = standing_lines(results)
    assert [line.split() for line in lines] == [["short", "1.00"], ["long", "2.00"], ["base", "3.00"]]
    assert why.startswith("ranks are of means over the repeats that all methods have")
    ranking = stats.rank(results.frame, stats.Measure("rmse", "lower"), cells=results.cells)
    assert [one.method for one in ranking.methods] == ["short", "long", "base"]
    assert ranking.methods[0].means == pytest.approx([5.0, 5.0], abs=0.02)


def test_the_terminal_marks_who_lacks_repeats(store: Store) -> None:
    lines = [" ".join(line.split()) for line in value_lines(unequal(store))]
    assert {line.split()[0] for line in lines if "(6 of 20)" in line} == {"short", "base"}


def test_figures_do_not_call_it_the_best_either(store: Store) -> None:
    assert lost_cells(unequal(store)) == {"d": {"short", "base"}}


def test_cells_that_nobody_ran_make_no_method_incomplete(store: Store) -> None:
    """A run of `long` with 20 seeds was stopped after 6: the others have all that there is."""
    results = unequal(store, seeds=dict.fromkeys(SEEDS, 6))
    more = results.cells.iloc[:6].assign(seed=range(6, 12), split=range(6, 12), status=None, method="long")
    due = stats.repeats_due(pd.concat([results.cells, more]))
    assert due == {("d", "long"): 12, ("d", "short"): 6, ("d", "base"): 6}


def test_the_site_sorts_by_common_repeats_and_says_so(store: Store) -> None:
    """Over all its seeds `long` would be first."""
    results = unequal(store)
    board = next(board for board in collect(results.store, settings=stats.Settings(resamples=200)).boards)
    assert [entry.method for entry in board.entries] == ["short", "long", "base"]
    assert [(entry.repeats, entry.planned) for entry in board.entries] == [(6, 20), (20, 20), (6, 20)]
    assert "short (6 of 20)" in " ".join(board.notes)
    assert "sorted by the 6 repeats that all of them have" in " ".join(board.notes)
