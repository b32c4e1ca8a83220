"""Every row of the table of unusual input in docs/metrics.md, by the row's own words."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import (
    Forecast,
    TargetScale,
    auroc,
    brier_score,
    catalogue,
    expected_calibration_error,
    fit_noise_variance,
    gaussian_nll,
    root_mean_squared_error,
    score,
    sort_by_score,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"
EVEN = np.full((3, 2, 2), 0.5)
LABELS = np.array([0, 1])
EVERY = {n: m for n, m in catalogue().items() if m.compute and not m.on_request and "law" not in m.needs}
OF_CLASSES = {n: m for n, m in EVERY.items() if m.task == "classification"}
NAMES_OF_CLASSIFICATION = {name for name, metric in OF_CLASSES.items() if "sets" not in metric.needs}
OF_DRAWS = {name for name, metric in OF_CLASSES.items() if {"draws", "disagreement"} & metric.needs}


def _regression(observed: Any, draws: Any, **more: Any) -> Forecast:
    return Forecast("regression", np.asarray(observed), np.asarray(draws), **more)


def _rejects(message: str, make: Callable[[], object]) -> None:
    with pytest.raises(UserError, match=message):
        make()


def _nan_or_infinite() -> None:
    for bad in (math.nan, math.inf, -math.inf):
        _not_finite(bad)


def _not_finite(bad: float) -> None:
    _rejects("observed: 1 of 2 values are NaN or inf.* first at 1", lambda: _regression([0.0, bad], [[0.0, 0.0]]))
    _rejects(r"draws: 1 of 4 .* \(1, 0\)", lambda: _regression([0.0, 0.0], [[0.0, 0.0], [bad, 0.0]]))
    _rejects("mean: 1 of 1", lambda: root_mean_squared_error([0.0], [bad]))
    _rejects("NaN or infinite", lambda: Forecast("classification", LABELS[:1], np.array([[[bad, 0.5]]])))
    _rejects("noise_variance must be finite", lambda: _regression([0.0], [[0.0]], noise_variance=bad))
    _rejects("scores: 1 of 2", lambda: sort_by_score([0.0, bad], [0.0, 0.0]))


def _empty() -> None:
    _rejects("draws: empty", lambda: _regression([], np.empty((3, 0))))
    _rejects("draws: empty", lambda: _regression([1.0], np.empty((0, 1))))
    _rejects("draws: empty", lambda: Forecast("classification", np.array([], dtype=int), np.empty((2, 0, 3))))
    _rejects("observed: empty", lambda: root_mean_squared_error([], []))
    _rejects("positives: empty", lambda: auroc([1.0], []))
    _rejects("confidence: empty", lambda: expected_calibration_error([], []))


def _one_row() -> None:
    values = score(_regression([1.0], [[0.0], [2.0], [4.0]], noise_variance=1.0))
    assert values["rmse"] == values["aurc_rmse"] == 1.0
    assert "r2" not in values
    assert score(Forecast("classification", LABELS[:1], np.array([[[0.2, 0.8]]])))["aurc"] == 1.0


def _one_label() -> None:
    values = score(Forecast("classification", np.zeros(2, dtype=int), np.array([[[0.9, 0.1], [0.4, 0.6]]])))
    assert values["accuracy"] == 0.5
    assert NAMES_OF_CLASSIFICATION - values.keys() == {"accuracy_top5", *OF_DRAWS}


def _one_column() -> None:
    _rejects(
        "one class only; .* two columns 1 - p and p", lambda: Forecast("classification", LABELS, np.ones((3, 2, 1)))
    )
    _rejects("one class only", lambda: brier_score(np.ones((2, 1)), [0, 0]))


def _all_right() -> None:
    values = score(Forecast("classification", LABELS, np.array([[[0.9, 0.1], [0.2, 0.8]]] * 2)))
    assert values["aurc"] == values["e_aurc"] == values["augrc"] == 0.0
    assert not {"error_auroc", "error_aupr", "error_fpr95", "ause"} & values.keys()
    wrong = score(Forecast("classification", 1 - LABELS, np.array([[[0.9, 0.1], [0.2, 0.8]]] * 2)))
    assert wrong["aurc"] == wrong["error_at_80"] == 1.0
    assert not {"error_auroc", "error_aupr", "error_fpr95"} & wrong.keys()


def _one_draw() -> None:
    forecast = _regression([1.0, 2.0], [[1.0, 3.0]])
    assert np.isnan(forecast.variance).all()
    assert set(score(forecast)) == {"rmse", "mae", "r2"}
    assert "nll" in score(_regression([1.0, 2.0], [[1.0, 3.0]], noise_variance=1.0))
    assert "aurc" in score(Forecast("classification", LABELS, EVEN[:1]))


def _zero_variance() -> None:
    values = score(_regression([1.0, 2.0], [[1.0, 1.0], [1.0, 1.0]]))
    assert values["nll_mc"] == math.inf
    assert values["crps"] == values["mae"] == 0.5
    assert values["picp"] == 0.5
    assert gaussian_nll([1.0], [1.0], [0.0]) == math.inf


def _negative_variance() -> None:
    _rejects("draw_variance", lambda: _regression([1.0], [[1.0]], draw_variance=np.array([[-1.0]])))
    _rejects("noise_variance", lambda: _regression([1.0], [[1.0]], noise_variance=-1.0))
    _rejects("variance: lowest value is -1", lambda: gaussian_nll([1.0], [1.0], [-1.0]))


def _label_without_probability() -> None:
    assert score(Forecast("classification", LABELS, np.array([[[1.0, 0.0]] * 2])))["nll_categorical"] == math.inf


def _bad_sums() -> None:
    _rejects("a row's sum is off 1 by 0.1", lambda: Forecast("classification", LABELS, EVEN + 0.05))
    _rejects("sum is off 1", lambda: brier_score([[0.5, 0.4]], [0]))
    _rejects("are these logits", lambda: Forecast("classification", LABELS, EVEN + np.array([1.0, -1.0])))
    for dtype in (np.float16, np.float32):
        thirds = np.full((1, 2, 3), 1 / 3, dtype=dtype)
        assert score(Forecast("classification", LABELS, thirds))["accuracy"] == 0.5
    _rejects("sum is off 1", lambda: Forecast("classification", LABELS, np.ones((1, 2, 2), dtype=bool)))
    within = score(Forecast("classification", LABELS, EVEN + 0.0004))
    assert within["brier"] == pytest.approx(2 * (0.5004**2 + 0.4996**2) / 2, rel=1e-12)


def _bad_labels() -> None:
    _rejects("labels range from 0 to 2, with 2 classes", lambda: Forecast("classification", np.array([0, 2]), EVEN))
    _rejects("labels range from -1", lambda: Forecast("classification", np.array([0, -1]), EVEN))
    _rejects("must be integers", lambda: Forecast("classification", np.array([0.0, 1.0]), EVEN))


def _bad_shapes() -> None:
    _rejects(r"observed: expected shape \[3\], got \[2\]", lambda: _regression([0.0, 1.0], np.zeros((4, 3))))
    _rejects(r"draws: expected shape \[\*, \*\], got \[2\]", lambda: _regression([0.0, 1.0], np.zeros(2)))
    _rejects(r"draws: expected shape \[\*, \*, \*\]", lambda: Forecast("classification", LABELS, EVEN[0]))
    _rejects("draw_variance: expected shape", lambda: _regression([0.0], [[0.0]], draw_variance=np.zeros((2, 1))))
    _rejects("mean: expected shape", lambda: root_mean_squared_error([0.0], [0.0, 1.0]))
    _rejects("observed: expected shape", lambda: fit_noise_variance([0.0], np.zeros((2, 2))))


def _not_numbers() -> None:
    _rejects("observed: expected numbers", lambda: _regression(["a"], [[0.0]]))
    _rejects("draws: expected numbers", lambda: _regression([0.0], [[1j]]))


def _constant_target() -> None:
    scale = TargetScale(mean=1.0, std=0.0, minimum=1.0, maximum=1.0)
    values = score(_regression([1.0, 1.0], [[1.0, 2.0]], noise_variance=1.0, scale=scale))
    assert {"rmse", "mae", "nll"} <= values.keys()
    assert not {"r2", "rmse_std", "mae_std", "rmse_minmax", "mae_minmax", "msll_rw"} & values.keys()


def _wrong_task() -> None:
    _rejects("task must be", lambda: Forecast("ranking", LABELS, EVEN))  # type: ignore[arg-type]
    _rejects("belong to regression", lambda: Forecast("classification", LABELS, EVEN, noise_variance=1.0))


ROWS: dict[str, Callable[[], None]] = {
    "NaN or infinity anywhere": _nan_or_infinite,
    "no rows, or no draws": _empty,
    "one row": _one_row,
    "one label only among the observed": _one_label,
    "one column of probabilities": _one_column,
    "all predictions right, or all wrong": _all_right,
    "T = 1": _one_draw,
    "variance 0": _zero_variance,
    "negative variance": _negative_variance,
    "a label that was given probability 0": _label_without_probability,
    "probabilities that do not sum to 1, or are negative": _bad_sums,
    "labels out of range, or not integers": _bad_labels,
    "shapes that do not match": _bad_shapes,
    "text, complex numbers, objects": _not_numbers,
    "constant target": _constant_target,
    "unknown task, or noise for classes": _wrong_task,
}


@pytest.mark.parametrize("row", ROWS)
def test_row_of_the_table(row: str) -> None:
    ROWS[row]()


def test_the_document_has_these_rows_and_no_others() -> None:
    section = DOCUMENT.read_text(encoding="utf-8").split("## Unusual input", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (.+?) \|", section, flags=re.MULTILINE)
    assert [row for row in rows if row not in ("input", "---")] == list(ROWS)
