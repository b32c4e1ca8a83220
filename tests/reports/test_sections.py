"""The sections of a report on stores that hold what other probes than the ordinary one measure."""

import math
import re
from typing import Any

import numpy as np
import pytest

from bench.api import Facts, Figure, Report, Results, Section, Table, Text
from bench.leaderboard import collect
from bench.plugins.registry import Registry
from bench.report.figures import draw_figure
from bench.reports._words import band
from bench.spec.cell import Outcome
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures import studies
from tests.fixtures.results import fill, save_outcomes, steps


def section(name: str, results: Results, **options: Any) -> Section:
    report: Report = Registry().make("report", name, options)
    found = report.section(results)
    assert found is not None
    return found


def figures(found: Section) -> list[Figure]:
    return [block for block in found.blocks if isinstance(block, Figure)]


def tables(found: Section) -> list[Table]:
    return [block for block in found.blocks if isinstance(block, Table)]


def numbers(figure: Figure) -> Any:  # the stubs know too little of what .loc returns
    assert figure.data is not None
    return figure.data


def test_shift_curves_are_means_over_corruptions_and_seeds(store: Store) -> None:
    mean, each = figures(section("shift", studies.shifted(store)))
    rows = numbers(mean).set_index(["metric", "method", "severity"])["mean"]
    assert rows["accuracy", "mc-dropout", 3.0] == pytest.approx(0.9 - 0.3 + 0.001)
    assert rows["accuracy", "mcni-fixed", 3.0] == pytest.approx(0.9 - 0.15 + 0.001)
    assert rows["ece", "mcni-fixed", 2.0] == pytest.approx(0.04)
    assert "accuracy: mcni-fixed" in mean.caption
    assert set(numbers(each)["corruption"]) == {"gaussian-noise", "fog"}
    # Three seeds 0.001 apart: the band is the t interval of their mean, 4.303 * 0.001 / sqrt(3) to each side.
    band = numbers(mean).iloc[0]
    assert band["95 % high"] - band["mean"] == pytest.approx(4.302653 * 0.001 / math.sqrt(3), rel=1e-4)


def test_infinite_values_under_shift_are_not_left_out(store: Store) -> None:
    """One of three seeds is infinite at the greatest severity: the mean is, and the curve ends before it."""
    outcomes = {
        ("digits", method, seed): Outcome(
            "ok", metrics={"nll@fog:1": loss, "nll@fog:2": math.inf if method == "a" and seed == 2 else 2 * loss}
        )
        for method, loss in (("a", 0.1), ("b", 0.5))
        for seed in range(3)
    }
    found = section("shift", save_outcomes(store, "shifted", outcomes, ["nll"]))
    (mean,) = figures(found)
    rows = numbers(mean).set_index(["method", "severity"])["mean"]
    assert rows["a", 2.0] == math.inf
    assert rows["a", 1.0] == pytest.approx(0.1)
    assert "nll: b (all methods: 1.000 to inf, a)" in mean.caption
    assert "Infinite, and so not drawn: nll of a from 2 on." in mean.caption
    means: Any = tables(found)[0].data.set_index(["severity", "method"])["nll"]
    assert means[2.0, "a"] == math.inf
    draw_figure(mean.figure, "shift")  # without a warning


def test_bands_of_shifts_end_where_the_values_of_the_metric_end(store: Store) -> None:
    """Accuracies of 1, 1 and 0.97 have a t interval to 1.03, ECEs of 0, 0 and 0.03 one from -0.03."""
    outcomes = {
        ("digits", method, seed): Outcome(
            "ok", metrics={"accuracy@fog:1": 1.0 - far, "ece@fog:1": far, "nll@fog:1": far}
        )
        for method in ("a", "b")
        for seed, far in enumerate((0.0, 0.0, 0.03))
    }
    (mean,) = figures(section("shift", save_outcomes(store, "shifted", outcomes, ["accuracy", "ece", "nll"])))
    ends = numbers(mean)[numbers(mean)["method"] == "a"].set_index("metric")
    half = 4.302653 * 0.03 / 3.0  # t(0.975, 2) s / sqrt(3), with s = 0.03 / sqrt(3)
    assert tuple(ends.loc["accuracy", ["95 % low", "95 % high"]]) == pytest.approx((0.99 - half, 1.0))
    assert tuple(ends.loc["ece", ["95 % low", "95 % high"]]) == pytest.approx((0.0, 0.01 + half))
    assert tuple(ends.loc["nll", ["95 % low", "95 % high"]]) == pytest.approx((0.01 - half, 0.01 + half))


def test_a_band_ends_where_values_end() -> None:
    mean, low, high = band(np.array([[1.0, 0.2], [0.7, 0.3]]), (0.0, 1.0))
    half = 12.706205 * 0.1 / math.sqrt(2) / math.sqrt(2)  # t(0.975, 1) * s / sqrt(n) of the second
    np.testing.assert_allclose(mean, [0.85, 0.25])
    np.testing.assert_allclose(low, [0.0, 0.0])
    np.testing.assert_allclose(high, [1.0, 0.25 + half], rtol=1e-6)


def test_detection_of_foreign_data_is_a_table(store: Store) -> None:
    first, all_of_them = tables(section("shift", studies.shifted(store)))[-2:]
    assert first.data["letters"].tolist() == ["0.810 ± 0.010"] * 2
    assert all_of_them.data.columns.tolist()[3:] == ["ood_auroc", "ood_aupr", "ood_fpr95"]
    assert all_of_them.data["ood_fpr95"].tolist() == pytest.approx([0.4, 0.4])


def test_latency_tells_scaling_and_keeps_modes_apart(store: Store) -> None:
    found = section("latency", studies.timed(store))
    table = tables(found)[0]
    rows: Any = table.data.set_index(["method", "timed", "mode"])
    assert rows.loc[("mc-dropout", "forward", "default"), "scaling at T = 100"] == pytest.approx(11 / 110, rel=0.01)
    assert rows.loc[("mc-dropout", "forward", "naive"), "scaling at T = 100"] == pytest.approx(1.0)
    assert table.numbers is not None
    assert len(table.numbers) == 3 * 3 * 3
    times = [cell for name in rows if str(name).startswith("T =") for cell in rows[name]]
    shown = [str(cell).split(" ± ") for cell in times if "±" in cell]
    assert {len(mean.partition(".")[2]) - len(spread.partition(".")[2]) for mean, spread in shown} == {0}
    passes = tables(found)[1].data
    assert passes["median"].tolist()[0] == pytest.approx(1.1)


def test_a_method_of_one_draw_is_not_the_fastest_of_many(store: Store) -> None:
    costs = {"deterministic": {1: 5.0}, "mc-dropout": {1: 9.0, 100: 43_211.4}, "sgld": {1: 8.0, 100: 50_000.0}}
    outcomes = {}
    for method, times in costs.items():
        values = {f"latency_{what}@T={t}": ms for t, ms in times.items() for what in ("total", "forward")}
        outcomes["digits", method, 0] = Outcome("ok", metrics=values, training=studies.timing_facts(values))
    results = save_outcomes(store, "costs", outcomes, ["latency_forward@T=1"], "mc-dropout")
    found = section("latency", results)
    assert "Fastest at the most draws: forward passes alone: mc-dropout at T = 100" in figures(found)[0].caption
    table = tables(found)[0].data
    assert table["timed"].tolist() == ["forward", "total"] * 3
    assert table["T = 100"].tolist() == ["–"] * 2 + ["43,211"] * 2 + ["50,000"] * 2
    said = [block.text for block in section("overview", results).blocks if isinstance(block, Text)]
    assert said == ["No verdicts: the suite has no metrics of quality to compare by, only costs."]


def test_the_front_holds_what_nothing_beats(store: Store) -> None:
    front = figures(section("latency", studies.timed(store)))[-1]
    assert front.name.startswith("front-digits")
    chosen = numbers(front)[numbers(front)["front"] == "yes"]
    # mc-dropout is fastest at T = 1; mcni-fixed is better and slower; sgld is both slower and worse.
    expected = [("mc-dropout", 1.0), ("mcni-fixed", 1.0), ("mcni-fixed", 10.0)]
    assert sorted(zip(chosen["method"], chosen["T"], strict=True)) == expected
    assert set(numbers(front)["T"]) == {1.0, 10.0}  # how good 100 draws are was not measured


def test_the_front_joins_suites_that_share_a_dataset(store: Store) -> None:
    costs = {"deterministic": {1: 5.0}, "mc-dropout": {1: 9.0, 10: 40.0}}
    timed, scored = {}, {}
    for method, times in costs.items():
        values = {f"latency_total@T={t}": ms for t, ms in times.items()}
        timed["digits", method, 0] = Outcome("ok", metrics=values, training=studies.timing_facts(values))
        brier = {"brier": 0.3} if method == "deterministic" else {"brier": 0.1, "brier@T=10": 0.2}
        scored["digits", method, 0] = Outcome("ok", metrics=brier)
    latency = save_outcomes(store, "costs", timed, ["latency_total@T=1"], "mc-dropout")
    quality = save_outcomes(store, "quality", scored, ["brier"], "mc-dropout")
    report: Report = Registry().make("report", "latency", {})
    joined = report.overall([latency, quality])
    assert joined is not None
    points = numbers(figures(joined)[0])
    # The quality of 50 draws is nobody's here: it is neither that of 1 draw nor of 10.
    assert sorted(zip(points["method"], points["T"], points["value"], strict=True)) == [
        ("deterministic", 1.0, 0.3),
        ("mc-dropout", 10.0, 0.2),
    ]
    assert report.overall([quality]) is None


def test_softmax_tells_where_the_mean_flips(store: Store) -> None:
    found = section("softmax", studies.softmax(store))
    (figure,) = figures(found)
    assert "mc-dropout from 0.2" in figure.caption
    assert "mcni-fixed never" in figure.caption
    rows = numbers(figure).set_index(["method", "noise std"])
    assert rows.loc[("mc-dropout", 0.2), "true class"] == pytest.approx(0.3)
    (table,) = tables(found)
    assert table.data["flipped in"].tolist() == ["5 of 5 runs", "0 of 5 runs"]
    assert table.data["median level of the flip"].tolist()[1] == "beyond the highest"


def test_images_that_never_flip_count_in_the_median(store: Store) -> None:
    """Two of five runs flip: by the three that do not the median lies beyond the highest level."""
    flips = {0: 0.1, 3: 0.2}
    arrays = {
        "softmax": np.full((2, 4, 2), 0.5),
        "levels": np.array([0.0, 0.2]),
        "classes": np.array([8, 9]),
        "image": np.zeros((1, 4, 4)),
    }
    outcomes = {
        ("digits", "mc-dropout", seed): Outcome(
            "ok", metrics={"flip_level": flips[seed]} if seed in flips else {}, arrays=arrays
        )
        for seed in range(5)
    }
    (table,) = tables(section("softmax", save_outcomes(store, "demo", outcomes, ["flip_level"], None)))
    row = table.data.iloc[0]
    assert (row["lowest"], row["median level of the flip"], row["highest"]) == (
        "0.1",
        "beyond the highest",
        "beyond the highest",
    )
    assert row["flipped in"] == "2 of 5 runs"


def test_noise_levels_have_a_histogram_for_each_layer(store: Store) -> None:
    found = section("noise-levels", studies.learned(store))
    (figure,), (table,) = figures(found), tables(found)
    assert [axis.get_title(loc="left") for axis in figure.figure.axes] == ["layers.0.weight", "layers.1.weight"]
    assert table.data["mean"].tolist() == pytest.approx([0.1, 0.3])
    assert table.data["values"].tolist() == [40, 10]  # two seeds
    assert numbers(figure).groupby("layer")["values"].sum().tolist() == [40, 10]


def test_training_curves_are_drawn_as_far_as_half_of_the_networks_went(store: Store) -> None:
    (figure,) = figures(section("training", studies.learned(store)))
    train = numbers(figure)[numbers(figure)["loss"] == "train loss"].set_index("epoch")["value"]
    assert train.to_dict() == pytest.approx({1: 6.0, 2: 3.0, 3: 1.0, 4: 0.5})


@pytest.mark.parametrize(("offset", "scale"), [(0.0, "log"), (-6.5, "linear")])
def test_training_axes_have_plain_numbers_and_are_logarithmic_for_positive_losses(
    store: Store, offset: float, scale: str
) -> None:
    losses = {"history/train_loss": np.geomspace(5e4, 5.0, 300)[None] + offset}
    cells = {("toy", "m", 0): Outcome("ok", metrics={"rmse": 1.0}, arrays=losses, training={"epochs": [300]})}
    (figure,) = figures(section("training", save_outcomes(store, "toy", cells)))
    (axes,) = figure.figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", scale)
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        shown = [text for at, text in _tick_labels(axis) if low <= at <= high]
        assert len(shown) >= 2
        assert all(re.fullmatch(r"\W?[0-9,.]+", text) for text in shown)  # no powers of ten
    assert "1,000" in [text for _, text in _tick_labels(axes.yaxis)] or scale == "linear"


def _tick_labels(axis: Any) -> list[tuple[float, str]]:
    places = axis.get_majorticklocs()
    return list(zip(places, axis.get_major_formatter().format_ticks(places), strict=True))


@pytest.mark.parametrize("name", ["shift", "latency", "softmax", "noise-levels", "critical-difference"])
def test_a_section_without_its_numbers_is_not_there(name: str, store: Store) -> None:
    results = save_outcomes(store, "plain", {("toy", "m", 0): Outcome("ok", metrics={"rmse": 1.0})})
    assert Registry().make("report", name, {}).section(results) is None


@pytest.fixture
def ranked(store: Store) -> Results:
    """Three methods on eight datasets: each 0.5 better than the next, far beyond the noise over seeds."""
    random = np.random.default_rng(0)
    outcomes = {
        (f"set-{d}", method, seed): Outcome("ok", metrics={"rmse": 1 + 0.5 * place + 0.01 * random.normal()})
        for d in range(8)
        for place, method in enumerate(("first", "second", "third"))
        for seed in range(6)
    }
    return save_outcomes(store, "ranked", outcomes, ["rmse"], "second")


def test_overview_counts_and_verdicts(ranked: Results) -> None:
    found = section("overview", ranked)
    facts = next(block.facts for block in found.blocks if isinstance(block, Facts) and "seeds" in block.facts)
    assert (facts["methods"], facts["datasets"], facts["seeds"]) == ("3", "8", "6")
    assert facts["cells with a result"] == "144 of 144"
    verdicts, evidence = tables(section("verdicts", ranked))
    rows: Any = verdicts.data.set_index("method")
    assert rows.loc["first", ["better", "worse"]].tolist() == [8, 0]
    assert rows.loc["third", ["better", "worse"]].tolist() == [0, 8]
    assert rows.loc["first", "over datasets"] == "better"
    assert len(evidence.data) == 16
    assert evidence.data["difference"].astype(float).abs().to_numpy() == pytest.approx(0.5, abs=0.05)


def test_tables_tell_how_many_configurations_each_method_was_given(ranked: Results, store: Store) -> None:
    outcomes = {
        (f"set-{d}", method, seed): Outcome(
            "ok",
            metrics={"rmse": 1.0 + d + 0.1 * seed},
            training={"search": {"configurations": tried[d]}} if tried else {},
        )
        for d in range(2)
        for method, tried in (("few", ()), ("many", (9, 9)), ("some", (1, 4)))
        for seed in range(6)
    }
    outcomes["set-1", "some", 0] = Outcome("diverged", training={"search": {"configurations": 7}})  # it was tried, too
    searched = save_outcomes(store, "searched", outcomes, ["rmse"], "few")
    expected = {"few": "no search", "many": "9", "some": "no search to 7"}
    for name in ("verdicts", "leaderboard", "provenance"):
        shown = [t.data for t in tables(section(name, searched)) if "configurations tried" in t.data]
        assert shown, name
        for table in shown:
            assert {m: expected[m] for m in table["method"]} == dict(
                zip(table["method"], table["configurations tried"], strict=True)
            )
        assert all("configurations tried" not in table.data for table in tables(section(name, ranked)))
    assert "(of few: no search)" in tables(section("verdicts", searched))[0].caption


def test_leaderboard_and_critical_differences_agree_with_the_order(ranked: Results) -> None:
    board = tables(section("leaderboard", ranked))[0].data
    assert board["method"].tolist() == ["first", "second", "third"]
    assert board["average rank"].tolist() == ["1.00", "2.00", "3.00"]
    (diagram,) = figures(section("critical-difference", ranked))
    assert numbers(diagram)["average rank"].tolist() == [1.0, 2.0, 3.0]


def test_ranks_by_many_metrics_are_several_tables_in_one_order(store: Store) -> None:
    names = ["rmse", "nll", "crps", "crps_mixture", "picp", "mace", "mae", "coverage95", "nll_mixture", "nll_mc"]
    outcomes = {
        (dataset, method, seed): Outcome("ok", metrics=dict.fromkeys(names, 0.5 + 0.1 * place + 0.01 * seed))
        for dataset in ("a", "b")
        for place, method in enumerate(("second", "first"))
        for seed in range(5)
    }
    found = tables(section("leaderboard", save_outcomes(store, "many", outcomes, names, "first")))
    ranks = [table for table in found if table.caption.startswith("Average rank")]
    assert [table.caption.rpartition(", ")[2] for table in ranks] == ["table 1 of 2", "table 2 of 2"]
    assert sorted(str(name).split()[0] for table in ranks for name in table.data if name != "method") == sorted(names)
    assert [table.data["method"].tolist() for table in ranks] == [["second", "first"]] * 2


def test_a_place_counts_the_methods_shown_to_be_better_as_on_the_site(store: Store) -> None:
    """Nemenyi's critical difference of 3 methods on 8 datasets is 1.17: neighbours are not told apart."""
    fill(store, steps(("first", "second", "third")), methods=("first", "second", "third"), datasets=list("abcdefgh"))
    board = tables(section("leaderboard", StoredResults(store, "made")))[0]
    assert "critical difference 1.17" in board.caption
    places = dict(zip(board.data["method"], board.data["place"], strict=True))
    assert places == {"first": 1, "second": 1, "third": 2}
    (site,) = (board for board in collect(store).boards if board.dataset is None)
    assert {entry.method: entry.place for entry in site.entries} == places


@pytest.mark.parametrize("datasets", [1, 4])
def test_without_a_test_over_datasets_nobody_has_a_place(store: Store, datasets: int) -> None:
    """The method that diverges in all but its best repeat is last, whatever the mean of that one."""
    outcomes = {
        (f"set-{d}", method, seed): Outcome("diverged")
        if method == "third" and seed
        else Outcome("ok", metrics={"rmse": level + 0.01 * seed})
        for d in range(datasets)
        for method, level in (("third", 0.1), ("second", 2.0), ("first", 1.0))
        for seed in range(6)
    }
    table = tables(section("leaderboard", save_outcomes(store, "few", outcomes, ["rmse"])))[0]
    board = table.data
    assert [name.partition("\n")[0] for name in board["method"]] == ["first", "second", "third"]
    assert set(board.get("place", ["–"])) == {"–"}
    if datasets == 1:
        assert table.numbers is not None
        assert table.numbers["repeats"].tolist() == [6, 6, 1]


def test_wins_are_antisymmetric(ranked: Results) -> None:
    (figure,) = figures(section("wins", ranked))
    rows = numbers(figure).set_index(["method", "against"])
    assert rows.loc[("first", "third"), ["better", "open", "worse"]].tolist() == [8, 0, 0]
    for a, b in (("first", "second"), ("second", "third"), ("first", "third")):
        assert rows.loc[(a, b), "better"] == rows.loc[(b, a), "worse"]
        assert rows.loc[(a, b), "pairs won"] + rows.loc[(b, a), "pairs won"] == pytest.approx(1.0)


def test_marks_say_who_differs_from_the_baseline(ranked: Results) -> None:
    table = tables(section("summary", ranked))[0]
    marks = {m: text[-1] for m, text in zip(table.data["method"], table.data.iloc[:, 1], strict=True)}
    assert marks["first"] == "†"
    assert marks["third"] == "‡"
    assert marks["second"].isdigit()
    assert table.numbers is not None
    assert table.numbers["mark"].tolist() == ["†", "", "‡"]


def test_provenance_tells_data_methods_and_protocol(ranked: Results) -> None:
    found = {table.name: table for table in tables(section("provenance", ranked))}
    assert found["data"].data["different splits"].tolist() == [6] * 8
    assert found["data"].data["seeds"].tolist() == ["0 to 5"] * 8
    assert found["data"].numbers is not None
    assert len(found["data"].numbers) == 48
    assert found["methods"].data["method"].tolist() == ["first", "second", "third"]
    assert "training.epochs" in found["protocol"].data["key"].tolist()


@pytest.mark.parametrize(("existing", "more"), [(None, ""), (9, " (9 splits exist)")])
def test_the_verdicts_say_where_a_plan_asks_for_more_splits_than_exist(
    store: Store, existing: int | None, more: str
) -> None:
    random = np.random.default_rng(5)
    repeats = {"kind": "splits", "test_share": 0.001} | ({"splits": existing} if existing else {})
    outcomes = {
        ("d", method, seed): Outcome("ok", metrics={"rmse": float(random.normal())}, training={"repeats": repeats})
        for method in ("a", "b")
        for seed in range(8)
    }
    results = save_outcomes(store, "made", outcomes, ["rmse"], "b")
    needed = tables(section("verdicts", results))[0].data["seeds it would take"].tolist()
    number = int(needed[0].split()[0])
    assert number > 9
    assert needed == [f"{number}{more}"]
