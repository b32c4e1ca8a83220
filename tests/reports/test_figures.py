"""Figures: what panels say agrees with closed forms, and twenty methods neither hide nor squeeze each other."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.text import Text as MatplotlibText
from scipy.stats import norm

from bench.api import Curves, Figure, Report, Section, Table, style
from bench.plugins.registry import Registry
from bench.reports._highlights import HIGHLIGHTED
from bench.reports.risk_coverage import _finding
from bench.spec.cell import Outcome
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures import studies
from tests.fixtures.results import save_outcomes


def section(name: str, results: StoredResults) -> Section:
    report: Report = Registry().make("report", name, {})
    found = report.section(results)
    assert found is not None
    return found


def figures(found: Section) -> list[Figure]:
    return [block for block in found.blocks if isinstance(block, Figure)]


def texts(axis: Any) -> str:
    return "\n".join(text.get_text() for text in axis.texts)


def sure_classes(store: Store) -> StoredResults:
    """100 rows of confidence 0.8 of which 70 are right, and 100 of confidence 1 that are all right: an ECE of 0.05."""
    observed = np.zeros(200, dtype=int)
    mean = np.tile([0.8, 0.2], (200, 1))
    mean[70:100] = [0.2, 0.8]
    mean[100:] = [1.0, 0.0]
    arrays = {"observed": observed, "mean": mean, "variance": mean * 0}
    return save_outcomes(store, "s", {("digits", "a", seed): Outcome("ok", arrays=arrays) for seed in range(2)})


def test_a_reliability_diagram_has_its_error_and_the_histogram_of_confidence(store: Store) -> None:
    (figure,) = figures(section("reliability", sure_classes(store)))
    (axis,) = figure.figure.axes
    assert texts(axis) == "ECE 0.050"
    (bars,) = [patch for patch in axis.patches if hasattr(patch, "get_data")]
    assert bars.get_data().values.tolist() == pytest.approx([0] * 8 + [0.5, 0.5])
    data: Any = figure.data
    assert data["confidence"].tolist() == pytest.approx([0.8, 1.0])
    assert data["observed share"].tolist() == pytest.approx([0.7, 1.0])
    assert "Lowest ECE: a (0.050" in figure.caption


def test_the_error_of_all_seeds_is_printed_where_it_is_stored(store: Store) -> None:
    arrays = {"observed": np.zeros(50, dtype=int), "mean": np.tile([0.9, 0.1], (50, 1)), "variance": np.ones((50, 2))}
    outcomes = {("d", "a", seed): Outcome("ok", metrics={"ece": 0.02 * seed}, arrays=arrays) for seed in range(9)}
    (figure,) = figures(section("reliability", save_outcomes(store, "s", outcomes)))
    assert texts(figure.figure.axes[0]) == "ECE 0.080"


def normal_rows(noise: float | None, variance: float) -> dict[str, np.ndarray]:
    """Observations at the quantiles of a standard normal; the prediction is 0 with some variance."""
    observed = norm.ppf((np.arange(1000) + 0.5) / 1000)
    arrays = {"observed": observed, "mean": np.zeros(1000), "variance": np.full(1000, variance)}
    return arrays if noise is None else {**arrays, "noise": np.array([noise])}


def test_regression_is_drawn_with_the_draws_alone_and_with_observation_noise(store: Store) -> None:
    rows = {"draws": normal_rows(0.96, 0.04), "point": normal_rows(1.0, np.nan), "old": normal_rows(None, 1.0)}
    outcomes = {("d", name, seed): Outcome("ok", arrays=arrays) for name, arrays in rows.items() for seed in range(2)}
    (figure,) = figures(section("reliability", save_outcomes(store, "s", outcomes)))
    data: Any = figure.data
    lines = data.groupby(["method", "variance"])["quantile error"].first()
    assert set(lines.index) == {
        ("draws", "draws alone"),
        ("draws", "with observation noise"),
        ("point", "with observation noise"),
        ("old", "draws alone"),
    }
    # 0.04 + 0.96 = 1 is the variance of the observations; alone, the mean over p of |Phi(0.2 z_p) - p| is far off.
    levels = np.linspace(0, 1, 100)
    alone = float(np.abs(norm.cdf(0.2 * norm.ppf(levels)) - levels).mean())
    assert lines["draws", "with observation noise"] == pytest.approx(0.0, abs=1e-3)
    assert lines["point", "with observation noise"] == pytest.approx(0.0, abs=1e-3)
    assert lines["draws", "draws alone"] == pytest.approx(alone, abs=2e-3)
    assert "draws alone: old (0.000" in figure.caption


def test_the_variance_of_an_observation_adds_the_noise_to_that_of_the_draws() -> None:
    def total(variance: list[float], noise: list[float] | None) -> Any:
        mean = np.zeros(len(variance))
        return Curves(mean, mean, np.array(variance), noise=None if noise is None else np.array(noise))

    assert total([1.0, 2.0], [0.5]).observation_variance.tolist() == [1.5, 2.5]
    assert total([np.nan, np.nan], [0.5]).observation_variance.tolist() == [0.5, 0.5]
    assert total([1.0, 2.0], None).observation_variance is None


def twenty(store: Store) -> StoredResults:
    """Twenty methods whose errors grow with their number; the baseline is the last."""
    random = np.random.default_rng(0)
    observed, outcomes = random.normal(size=80), {}
    for number in range(20):
        for seed in range(3):
            mean = observed + random.normal(size=80) * (1 + 0.2 * number)
            arrays = {"observed": observed, "mean": mean, "variance": np.square(mean - observed) + random.random(80)}
            outcomes["d", f"method-with-a-long-name-{number:02}", seed] = Outcome("ok", arrays=arrays)
    return save_outcomes(store, "s", outcomes, baseline="method-with-a-long-name-19")


def drawn_inside(figure: MatplotlibFigure, artists: Iterable[Any]) -> bool:
    """Whether artists lie within the figure once its layout is solved."""
    figure.draw_without_rendering()
    boxes = [artist.get_window_extent() for artist in artists]
    width, height = figure.get_size_inches() * figure.dpi
    return all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width + 1 and box.y1 <= height + 1 for box in boxes)


def test_of_twenty_curves_the_best_and_the_baseline_have_names_that_do_not_overlap(store: Store) -> None:
    (figure,) = figures(section("risk-coverage", twenty(store)))
    (axis,) = figure.figure.axes
    assert len(axis.lines) == 20
    assert sum(line.get_color() == style.EVEN for line in axis.lines) == 20 - HIGHLIGHTED - 1
    assert len(axis.texts) == HIGHLIGHTED + 1
    assert drawn_inside(figure.figure, axis.texts)
    boxes = [MatplotlibText.get_window_extent(text) for text in axis.texts]  # without the lines to the curves
    places = sorted((box.y0, box.y1) for box in boxes)
    assert all(above[0] >= below[1] - 1 for below, above in pairwise(places))
    assert "Of 20 methods the 5 best" in figure.caption


def test_twenty_reliability_panels_are_not_squeezed(store: Store) -> None:
    (figure,) = figures(section("reliability", twenty(store)))
    figure.figure.draw_without_rendering()
    sizes = [np.array(axis.get_window_extent().size) / figure.figure.dpi for axis in figure.figure.axes]
    assert len(sizes) == 20
    assert np.min(sizes) > 1.1  # inches


def test_axes_of_an_ablation_say_which_side_is_better(store: Store) -> None:
    from bench.api import catalogue
    from bench.reports._words import direction

    assert direction(catalogue()["rmse"]).startswith("← better")
    assert direction(catalogue()["accuracy"]).endswith("better →")
    assert direction(catalogue()["picp95"]).endswith("target 0.95")


def test_the_figures_of_latency_stand_before_its_tables(store: Store) -> None:
    blocks = [block for block in section("latency", studies.timed(store)).blocks if isinstance(block, Figure | Table)]
    kinds = [isinstance(block, Table) for block in blocks]
    assert kinds == sorted(kinds)
    assert sum(kinds) == 2


def test_figures_have_the_titles_of_plugins(store: Store) -> None:
    with style.declared_titles(lambda name: {"mc-dropout": "MC dropout", "digits": "Digits"}.get(name, name)):
        mean, _ = figures(section("shift", studies.shifted(store)))
    (legend,) = mean.figure.legends
    assert "MC dropout" in [text.get_text() for text in legend.get_texts()]
    assert mean.caption.startswith("Digits:")


def test_curves_that_are_all_alike_have_no_lowest_one() -> None:
    """Where no method makes an error, the first of the alphabet was called the lowest."""
    flat = np.zeros((2, 20))
    assert _finding({"a": flat, "b": flat}, {"a": 0.0, "b": 0.0}, set()) == "the same for all methods"
    assert _finding({"a": flat, "b": flat + 1}, {"a": 0.0, "b": 1.0}, set()) == "a"
