from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from bench.errors import UserError
from bench.stats import Measure, friedman, rank
from bench.stats.tests import Array

Results = Callable[..., tuple[pd.DataFrame, pd.DataFrame]]
RMSE = Measure("rmse")
METHODS = ("bad", "best", "good")


def study(datasets: int = 10, pairs: int = 5) -> dict[tuple[str, str], Array]:
    generator = np.random.default_rng(0)
    level = {"best": 0.0, "good": 1.0, "bad": 2.0}
    return {
        (f"d{n}", method): level[method] + 0.2 * generator.normal(size=pairs)
        for n in range(datasets)
        for method in METHODS
    }


def test_a_clear_order(results: Results) -> None:
    frame, cells = results(study())
    found = rank(frame, RMSE, cells=cells)
    assert [one.method for one in found.methods] == ["best", "good", "bad"]
    assert [one.average_rank for one in found.methods] == [1.0, 2.0, 3.0]
    assert [one.groups for one in found.methods] == ["a", "ab", "b"]
    assert found.friedman == pytest.approx((20.0, np.exp(-10)))  # the largest chi-squared of 10 datasets and 3 methods
    assert {(pair.better, pair.worse, pair.verdict) for pair in found.pairs} == {
        ("best", "good", "better"),
        ("best", "bad", "better"),
        ("good", "bad", "better"),
    }
    assert found.pairs[0].p == pytest.approx(2 / 2**10)
    assert found.methods[0].score.high < 0.0 < found.methods[2].score.low
    assert found.family == "Holm over 3 pairs of methods"


def test_the_direction_turns_the_order(results: Results) -> None:
    frame, _ = results(study())
    assert [one.method for one in rank(frame, Measure("rmse", "higher")).methods] == ["bad", "good", "best"]
    assert rank(frame, Measure("rmse", "target", 1.0)).methods[0].method == "good"


def test_friedman_is_that_of_the_means(results: Results) -> None:
    frame, _ = results({place: np.random.default_rng(i).normal(size=4) for i, place in enumerate(study(6))})
    table = frame.pivot_table(index="dataset", columns="method", values="value").to_numpy()
    assert rank(frame, RMSE).friedman[0] == pytest.approx(float(friedman(table)[0]))


def test_few_datasets_are_told_what_they_cannot_show(results: Results) -> None:
    found = rank(results(study(4))[0], RMSE)
    assert "4 datasets: too few to tell average ranks apart, at least 5 are needed" in found.messages
    assert any("with 3 pairs of methods at least 7 datasets are needed" in text for text in found.messages)
    assert {pair.verdict for pair in found.pairs} == {"inconclusive"}
    with pytest.raises(UserError, match="rmse: 1 dataset with results"):
        rank(results(study(1))[0], RMSE)


def test_a_method_that_diverged_everywhere_on_a_dataset_is_last_there(results: Results) -> None:
    values: dict[tuple[str, str], list[float | str]] = {place: list(v) for place, v in study().items()}
    values["d0", "best"] = ["diverged"] * 5
    found = rank(results(values)[0], RMSE, cells=results(values)[1])
    ranks = {one.method: one.average_rank for one in found.methods}
    assert ranks == pytest.approx({"best": 1.2, "good": 1.9, "bad": 2.9})
    assert "d0: best diverged in every cell and is last" in found.messages
    assert np.isnan(found.methods[0].means[0])


def test_a_method_that_diverged_in_some_cells_is_behind_those_that_did_not(results: Results) -> None:
    """The cells that went well are not compared: they would favour it, and leave fewer repeats for the others."""
    values: dict[tuple[str, str], list[float | str]] = {place: list(v) for place, v in study().items()}
    values["d0", "best"] = [*values["d0", "best"][:1], *["diverged"] * 4]
    found = rank(results(values)[0], RMSE, cells=results(values)[1])
    assert {one.method: one.average_rank for one in found.methods} == pytest.approx(
        {"best": 1.2, "good": 1.9, "bad": 2.9}
    )
    assert "d0: best diverged or became infinite in 80 % of its cells and is last" in found.messages
    assert not any("paired deletion" in message for message in found.messages)
    values["d0", "good"] = ["diverged", *values["d0", "good"][1:]]
    found = rank(results(values)[0], RMSE, cells=results(values)[1])
    ranks = {one.method: one.average_rank for one in found.methods}
    assert ranks["bad"] == pytest.approx(2.8)
    assert ranks["good"] == pytest.approx(2.0)  # it lost fewer


def test_infinite_values_are_behind_all_finite_ones(results: Results) -> None:
    values: dict[tuple[str, str], list[float | str]] = {place: list(v) for place, v in study().items()}
    values["d0", "best"][0] = float("inf")
    found = rank(results(values)[0], RMSE, cells=results(values)[1])
    assert {one.method: one.average_rank for one in found.methods} == pytest.approx(
        {"best": 1.2, "good": 1.9, "bad": 2.9}
    )
    assert "d0: best diverged or became infinite in 20 % of its cells and is last" in found.messages


def test_a_dataset_on_which_every_method_diverged_is_left_out_and_said(results: Results) -> None:
    values: dict[tuple[str, str], list[float | str]] = {place: list(v) for place, v in study().items()}
    for method in METHODS:
        values["d0", method][1] = "diverged"
    found = rank(results(values)[0], RMSE, cells=results(values)[1])
    assert "d0" not in found.datasets
    assert "d0: left out, every method diverged or became infinite in some cells" in found.messages


def test_a_dataset_without_a_common_repeat_is_left_out_and_said(results: Results) -> None:
    values: dict[tuple[str, str], list[float | str]] = {place: list(v) for place, v in study().items()}
    values["d3", "good"] = ["failed"] * 5
    found = rank(results(values)[0], RMSE, cells=results(values)[1])
    assert "d3" not in found.datasets
    assert "d3: left out, no repeat has values of all methods (good has none)" in found.messages
    assert not any("paired deletion" in message for message in found.messages)
    assert "d3: good: 5 failed" in found.messages


def test_scales_do_not_mix(results: Results) -> None:
    values = {place: v * 10.0 ** int(place[0][1:]) for place, v in study(6).items()}
    found = rank(results(values)[0], RMSE)
    assert any("differ by more than a factor of 10" in text for text in found.messages)
    assert [one.average_rank for one in found.methods] == [1.0, 2.0, 3.0]


def test_methods_without_the_metric_are_not_ranked_and_said(results: Results) -> None:
    frame, _ = results(study())
    other, _ = results({("d0", "point"): [1.0]}, "mae")
    found = rank(pd.concat([frame, other]), RMSE)
    assert found.messages[0] == "without a value, so not ranked: point"
    with pytest.raises(UserError, match="a ranking needs 2"):
        rank(pd.concat([frame, other]), RMSE, methods=["best", "point"])
    with pytest.raises(UserError, match="unknown method 'bets'; did you mean best"):
        rank(frame, RMSE, methods=["bets", "good"])


def test_chosen_methods_only(results: Results) -> None:
    found = rank(results(study())[0], RMSE, methods=["good", "bad"])
    assert [one.method for one in found.methods] == ["good", "bad"]
