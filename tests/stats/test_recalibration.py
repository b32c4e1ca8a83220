"""Which cells a page reads for its recalibrated columns, and what these columns hold."""

import sys

import numpy as np
import pandas as pd
import pytest

from bench.metrics import score
from bench.metrics.kept import Kept
from bench.metrics.recalibration import recalibrated
from bench.stats import recalibration_frame, recalibrations
from tests.fixtures.banks import predicted

COLUMNS = ["dataset", "split", "method", "seed", "key", "status"]


def board(datasets: int, methods: int, seeds: int) -> pd.DataFrame:
    places = [(d, m, s) for d in range(datasets) for m in range(methods) for s in range(seeds)]
    rows = [(f"d{d}", s, f"m{m}", s, f"{d}-{m}-{s}", "ok") for d, m, s in places]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_a_column_holds_the_means_before_and_after_over_the_same_repeats() -> None:
    made = {f"{d}-0-{s}": predicted(10 * d + s, "classification", rows=60) for d in range(2) for s in range(3)}
    found = recalibrations(board(2, 2, 3), made.get).column("classification", ["d0", "d1"])
    assert found is not None
    scaled = [score(recalibrated(one)["temperature"], ["ece"])["ece"] for one in made.values()]
    raw = [score(one.test, ["ece"])["ece"] for one in made.values()]
    assert found.pairs == {"m0": pytest.approx((np.mean(raw), np.mean(scaled)))}  # nothing is kept of m1
    assert found.name == "recalibrated ece"
    assert found.note == (
        "ece raw → after temperature scaling fitted on the validation rows of the first 3 repeats; "
        "no result of the method itself, and not ranked"
    )
    assert recalibrations(board(2, 2, 3), made.get).column("regression", ["d0", "d1"]) is None


def test_a_method_without_some_dataset_has_no_mean_over_all() -> None:
    made = {key: predicted(3, rows=40) for key in ("0-0-0", "1-0-0", "0-1-0")}
    found = recalibrations(board(2, 2, 1), made.get)
    both, first = found.column("regression", ["d0", "d1"]), found.column("regression", ["d0"])
    assert both is not None
    assert first is not None
    assert list(both.pairs) == ["m0"]
    assert list(first.pairs) == ["m0", "m1"]


def test_many_methods_and_datasets_are_read_in_fewer_repeats() -> None:
    asked: list[str] = []

    def kept(key: str) -> Kept | None:
        asked.append(key)
        return None

    assert recalibrations(board(8, 20, 6), kept).repeats == 3
    assert len(asked) == 8 * 20 * 3
    assert recalibrations(board(30, 30, 2), kept).fitted_on == "the validation rows of the first repeat"
    assert recalibrations(board(0, 0, 0), kept).repeats == 5


def test_stored_scores_are_not_computed_again_and_long_work_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = predicted(1, rows=40), predicted(2, draws=50, rows=600)
    made = {"0-0-0": small, "0-0-1": large}
    cells = board(1, 1, 2)
    stored = pd.DataFrame([("0-0-0", "mace", 0.25)], columns=["key", "metric", "value"])
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        found = recalibration_frame(cells, made.get, stored=stored, quick=True)
    raw = found[found["correction"] == "raw"].set_index(["key", "metric"])["value"]
    assert raw["0-0-0", "mace"] == 0.25
    assert raw["0-0-0", "coverage95"] == pytest.approx(score(small.test, ["coverage95"])["coverage95"])
    assert "0-0-1" not in raw.index
    corrections = found.groupby("key")["correction"].unique()
    assert list(corrections["0-0-0"]) == ["raw", "variance scaling", "isotonic", "conformal"]
    assert list(corrections["0-0-1"]) == ["variance scaling", "conformal"]
    assert "isotonic" in set(recalibration_frame(cells[1:], made.get)["correction"])
