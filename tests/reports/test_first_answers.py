"""What the first screen says beside its values: which method to use, what more seeds can show, and costs in sight."""

from collections.abc import Mapping

import numpy as np
import pytest

from bench.api import Facts, Figure, Report, Section, Table, catalogue, stats
from bench.plugins.registry import Registry
from bench.spec.cell import Outcome
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures.results import save_outcomes

COSTS = {"base": (10, 100), "dear": (50, 100), "cheap": (10, 1), "same": (10, 100), "few": (50, 5)}  # epochs, draws


def stored(
    store: Store,
    gains: Mapping[str, Mapping[str, float]],
    *,
    seeds: int = 8,
    noise: float = 0.001,
    kind: str = "independent",
    metrics: tuple[str, ...] = ("rmse", "nll"),
    share: float = 0.0,
) -> StoredResults:
    """Store methods that are better than 0.9 by so much: the gains of each metric."""
    outcomes = {}
    for method, own in gains.items():
        epochs, draws = COSTS[method]
        for seed in range(seeds):
            random = np.random.default_rng([seed, *method.encode()])
            outcomes["d", method, seed] = Outcome(
                "ok",
                metrics={name: 0.9 - own.get(name, 0.0) + noise * random.normal() for name in metrics},
                training={"repeats": {"kind": kind, "test_share": share}, "epochs": [epochs], "draws": draws},
            )
    return save_outcomes(store, "made", outcomes, metrics, "base")


def first(results: StoredResults) -> Section:
    report: Report = Registry().make("report", "overview", {})
    found = report.section(results)
    assert found is not None
    return found


def answers(results: StoredResults) -> Mapping[str, str]:
    return next(block.facts for block in first(results).blocks if isinstance(block, Facts))


def test_the_cheapest_that_nothing_beats_is_named(store: Store) -> None:
    """`dear` and `cheap` are better than the baseline, `dear` no better than `cheap`."""
    gains = {"base": {}, "dear": {"rmse": 0.1}, "cheap": {"rmse": 0.1}, "same": {}}
    text = answers(stored(store, gains))["Which to use"]
    assert text == (
        "Better than base by some of these metrics and not shown to be worse by any: cheap (by rmse), dear (by rmse). "
        "Of the methods with all these metrics that no test shows to be worse than another, cheap is the cheapest "
        "(1 x the training, T = 1); not shown is not the same as equal."
    )


def test_a_cheap_method_that_is_beaten_is_not_recommended(store: Store) -> None:
    """By rmse all pairs are tested, so that `cheap`, the baseline's equal, is behind `dear`."""
    text = answers(stored(store, {"base": {}, "dear": {"rmse": 0.1}, "cheap": {}}))["Which to use"]
    assert text.endswith(
        "dear is the only method that no test shows to be worse than another (5 x the training, T = 100)."
    )


def test_nothing_better_is_said_and_the_cheapest_of_the_unbeaten(store: Store) -> None:
    text = answers(stored(store, {"base": {}, "dear": {}, "cheap": {"nll": -0.2}}))["Which to use"]
    assert text.startswith("Nothing was shown to be better than base by any of these metrics. Of the methods")
    assert ", base is the cheapest (1 x the training, T = 100)" in text


def test_a_trade_off_names_nobody(store: Store) -> None:
    text = answers(stored(store, {"base": {}, "dear": {"rmse": 0.1, "nll": -0.1}}))["Which to use"]
    assert text == (
        "Every method that is better than base by one of these metrics is worse by another. Every method was shown to "
        "be worse than another by one of them: it depends on what counts."
    )


def test_with_too_few_seeds_nothing_is_recommended(store: Store) -> None:
    assert "Which to use" not in answers(stored(store, {"base": {}, "dear": {"rmse": 0.1}}, seeds=4))


def test_without_all_repeats_no_cheapest_is_named(store: Store) -> None:
    outcomes = {
        ("d", method, seed): Outcome("ok", metrics={"rmse": 0.9 + 0.01 * seed, "nll": 0.9})
        for method, seeds in (("base", 8), ("cheap", 8), ("same", 5))
        for seed in range(seeds)
    }
    text = answers(save_outcomes(store, "made", outcomes, ["rmse", "nll"], "base"))["Which to use"]
    assert text.endswith("Some methods lack repeats: run the same seeds of all before you choose by cost.")


def test_costs_stand_right_after_the_method(store: Store) -> None:
    table = next(block for block in first(stored(store, {"base": {}, "cheap": {}})).blocks if isinstance(block, Table))
    assert list(table.data.columns)[:4] == ["method", "training (x epochs)", "passes T", "rmse ↓"]


def test_no_difference_beyond_the_range_of_a_metric_is_called_detectable(store: Store) -> None:
    """Shares that jump between 0 and 1: five repeats cannot show a difference within that range."""
    shares = {"base": (0.0, 1.0, 0.1, 1.0, 0.9), "same": (1.0, 0.0, 0.9, 0.1, 1.0)}
    outcomes = {
        ("d", method, seed): Outcome("ok", metrics={"rmse": 1.0 + 0.1 * share, "coverage95": share})
        for method, own in shares.items()
        for seed, share in enumerate(own)
    }
    results = save_outcomes(store, "made", outcomes, ["rmse", "coverage95"], "base")
    text = answers(results)["Calibration: coverage95 → 0.95"]
    assert text.endswith("these repeats can show no difference that coverage95 can have.")
    found = stats.compare(results.frame, "same", "base", [catalogue()["coverage95"]], cells=results.cells)
    assert found.rows[0].detectable == float("inf")
    loose = stats.compare(results.frame, "same", "base", [stats.Measure("coverage95", "target", 0.95)])
    assert 0.95 < loose.rows[0].detectable < float("inf")


@pytest.mark.parametrize(
    ("name", "widest"), [("accuracy", 1.0), ("coverage95", 0.95), ("picp", 0.9973), ("rmse", float("inf"))]
)
def test_the_widest_difference_of_a_metric(name: str, widest: float) -> None:
    assert stats.widest_difference(catalogue()[name]) == pytest.approx(widest)


@pytest.mark.parametrize(("kind", "share"), [("splits", 0.1), ("independent", 0.0)])
def test_where_more_seeds_cannot_decide_the_page_says_what_helps(store: Store, kind: str, share: float) -> None:
    results = stored(store, {"base": {}, "same": {}}, noise=0.05, kind=kind, share=share)
    assert ("More seeds" in answers(results)) == (kind == "splits")


def test_where_training_and_predicting_differ_both_are_named(store: Store) -> None:
    text = answers(stored(store, {"base": {}, "few": {}}))["Which to use"]
    assert "the cheapest to train: base; to predict: few. Not shown" in text


SPREAD = (-0.2, -0.1, 0.0, 0.1, 0.2)  # of the repeats, mean 0


def test_a_verdict_over_all_datasets_is_on_the_first_screen(store: Store) -> None:
    """A gain that no single dataset shows and all eight together do was told in "Verdicts" alone."""
    outcomes = {
        (f"set-{number}", method, seed): Outcome(
            "ok", metrics={"nll": 1.0 + (wiggle - 0.05) * (method == "dear")}, training={"epochs": [1], "draws": 1}
        )
        for number in range(8)
        for method in ("base", "dear")
        for seed, wiggle in enumerate(SPREAD)
    }
    results = save_outcomes(store, "made", outcomes, ["nll"], "base")
    told = answers(results)
    assert told["Likelihood: nll ↓"].startswith(
        "No method was shown to be better or worse than base on a single dataset; over the 8 datasets together better "
        "than base: dear (-0.05"
    )
    assert told["Which to use"].startswith("Better than base by some of these metrics and not shown to be worse")
    assert "dear is the only method that no test shows to be worse" in told["Which to use"]
    table = next(block for block in first(results).blocks if isinstance(block, Table))
    assert "†all" in table.data.set_index("method")["nll ↓"]["dear"]
    assert "(all: over all of them together)" in table.caption
    verdicts = Registry().make("report", "verdicts", {}).section(results)
    assert verdicts is not None
    assert verdicts.blocks[0].text == (
        "By nll, no method was shown to be better or worse than base on any dataset; over all datasets together "
        "better: dear."
    )


def test_values_that_are_not_defined_are_no_reason_to_run_more_seeds(store: Store) -> None:
    """A perfect repeat has no AUROC of its errors; all methods have all seeds."""
    outcomes = {
        ("d", method, seed): Outcome(
            "ok", metrics={"rmse": 0.9 + 0.01 * seed, **({} if method == "cheap" and seed == 0 else {"nll": 0.9})}
        )
        for method in ("base", "cheap", "same")
        for seed in range(8)
    }
    text = answers(save_outcomes(store, "made", outcomes, ["rmse", "nll"], "base"))["Which to use"]
    assert text.endswith("No cheapest is named: some methods have no value in every repeat, (n of m) in the table.")


def test_where_something_was_shown_the_page_does_not_say_that_nothing_can_be(store: Store) -> None:
    shares = {"base": (0.1, 0.9, 0.1, 0.9, 0.5), "same": (0.9, 0.1, 0.9, 0.1, 0.4), "dear": (0.95,) * 5}
    shown = {"base": (0.1, 0.1, 0.1, 0.1, 0.12), "same": (0.1, 0.1, 0.1, 0.12, 0.1), "dear": (0.95,) * 5}
    outcomes = {
        (dataset, method, seed): Outcome("ok", metrics={"coverage95": share})
        for dataset, held in (("a", shares), ("b", shares), ("c", shown))
        for method, own in held.items()
        for seed, share in enumerate(own)
    }
    text = answers(save_outcomes(store, "made", outcomes, ["coverage95"], "base"))["Calibration: coverage95 → 0.95"]
    assert "Better than base: dear (on 1 of 3 datasets" in text
    assert text.endswith("in most of them these repeats can show no difference that coverage95 can have.")


def test_answers_of_several_tasks_say_which_they_are_about(store: Store) -> None:
    outcomes = {
        (dataset, method, seed): Outcome("ok", metrics={metric: 0.5 + 0.01 * seed})
        for dataset, metric in (("numbers", "rmse"), ("classes", "accuracy"))
        for method in ("base", "same")
        for seed in range(6)
    }
    results = save_outcomes(store, "made", outcomes, ["rmse", "accuracy"], "base")
    keys = [key for block in first(results).blocks if isinstance(block, Facts) for key in block.facts]
    assert [key for key in keys if key.startswith("Which")] == [
        "Which to use: regression",
        "Which to use: classification",
    ]


def test_the_metric_that_leads_has_a_panel_of_quality_against_cost(store: Store) -> None:
    results = stored(store, {"base": {}, "cheap": {"crps": 0.1}}, metrics=("crps", "rmse"))
    captions = [block.caption for block in first(results).blocks if isinstance(block, Figure)]
    (text,) = [caption for caption in captions if caption.startswith("Quality against cost")]
    assert "crps by passes: cheap" in text.lower()
    assert "No other method is both cheaper and better than the one named" in text or "rmse by passes" in text.lower()
