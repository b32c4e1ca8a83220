"""The short form of `make validity`: tests keep their level, intervals cover, the planner's promise holds.

Bars leave room for the noise of so few studies: 2,000 studies of a rate of 5 % have a standard deviation of 0.5 points.
"""

from pathlib import Path

import numpy as np
import pytest

from bench.stats import t_test, trimmed_mean
from bench.stats.tests import Array
from tools.simulated_studies import (
    NOISES,
    Noise,
    lopsided_differences,
    noise,
    overlapping_splits,
    repeated_runs,
    unusual_differences,
)
from tools.validity_of_estimands import false_positives_of_estimands, trimmed_mean_of
from tools.validity_of_families import (
    false_positives_of_a_page,
    false_positives_of_boards,
    false_positives_on_other_rows,
    power_of_boards,
)
from tools.validity_of_histories import SCORE, TIME, changed, histories
from tools.validity_of_plans import planned_power, plans_for_heavy_tails
from tools.validity_rates import (
    coverage,
    false_equivalences,
    false_positives_of_ranks,
    false_positives_on_many_datasets,
    false_positives_on_one_dataset,
    false_positives_with_overlap,
    false_positives_with_shared_splits,
    power_curves,
    rates_under_skew,
)
from tools.validity_tables import main

STUDIES = 2_000
BAR = 0.065


@pytest.mark.parametrize("kind", NOISES)
def test_no_test_on_one_dataset_is_too_eager(kind: Noise) -> None:
    generator = np.random.default_rng(1)

    def draw(pairs: int) -> Array:
        a, b = repeated_runs(kind, (STUDIES, pairs), 2, generator)
        return np.asarray(a - b)

    for name, rates in false_positives_on_one_dataset(draw, generator).items():
        assert max(rates) < BAR, name
        assert rates[2] > 0.025, name  # and none is asleep at 20 seeds


@pytest.mark.parametrize("kind", NOISES)
def test_nor_in_a_family_of_eight_datasets(kind: Noise) -> None:
    for name, rates in false_positives_on_many_datasets(kind, 500, np.random.default_rng(2)).items():
        assert max(rates) < 0.08, name


def test_nor_is_any_family_of_a_page() -> None:
    for name, rates in false_positives_of_a_page("gaussian", 400, np.random.default_rng(11)).items():
        assert max(rates) < (0.2 if name.startswith("whole page") else 0.08), name  # of 400 studies


def test_nor_is_a_board_of_twenty_methods_and_it_can_decide() -> None:
    for name, rates in false_positives_of_boards("gaussian", 400, np.random.default_rng(12)).items():
        assert max(rates) < 0.08, name  # of 400 studies
    found = power_of_boards([1.5], 200, np.random.default_rng(13))
    assert found["20 methods, against the baseline"][0] > 0.7
    assert found["20 methods, Wilcoxon and Holm against the baseline"][0] == 0.0


def test_other_test_rows_need_a_test_over_rows() -> None:
    for name, rates in false_positives_on_other_rows(400, np.random.default_rng(14)).items():
        assert (max(rates) > 0.1) if "wrong here" in name else (max(rates) < 0.08), name  # of 400 studies


def test_under_skew_and_rare_failures_the_sign_test_keeps_its_level_and_the_t_test_does_not() -> None:
    for name, rates in rates_under_skew(1_000, np.random.default_rng(7)).items():
        if name.startswith("sign test"):
            assert max(rates) < BAR, name
        if name.startswith("paired t"):
            assert max(rates) > 0.1, name
        if name == "studies with a note, gaussian":
            assert max(rates) < 0.04


def test_where_seeds_share_splits_the_means_of_splits_keep_the_level() -> None:
    rates = false_positives_with_shared_splits([(5, 4)], 2 * STUDIES, np.random.default_rng(8))
    for name, (rate,) in rates.items():
        if name.startswith("means of splits"):
            assert rate < BAR, name
        elif "independent splits, seeds vary 1 times" in name:
            assert rate > 0.15


def test_change_points_of_times_are_as_rare_as_promised_although_runs_share_noise() -> None:
    same = histories(120, 10, 1, 0.3, np.random.default_rng(1))
    assert changed(same, TIME) < 0.05
    assert changed(same[:20], SCORE) > 0.9
    assert changed(histories(40, 4, 4, 0.1, np.random.default_rng(2), step=1.5), TIME) > 0.9


def test_tests_beside_that_of_the_mean_keep_the_level_that_they_promise() -> None:
    for name, rates in false_positives_of_estimands(1_000, np.random.default_rng(3), sizes=(20,)).items():
        assert max(rates) < (0.11 if "no promise" in name else 0.075), name


def test_the_true_trimmed_means_are_those_of_large_samples() -> None:
    for kind in ("lognormal", "2 % failures"):
        d, _, _ = unusual_differences(kind, (1_000_000,), np.random.default_rng(0))
        assert float(trimmed_mean(d)) == pytest.approx(trimmed_mean_of(kind), abs=0.004)


def test_nor_are_tests_of_ranks() -> None:
    for name, rates in false_positives_of_ranks("gaussian", STUDIES, np.random.default_rng(3)).items():
        assert max(rates) < BAR, name


@pytest.mark.slow
@pytest.mark.parametrize("kind", NOISES)
def test_overlapping_splits_need_the_correction(kind: Noise) -> None:
    rates = false_positives_with_overlap(kind, 1_000, np.random.default_rng(4))
    assert max(rates["corrected resampled t"]) < 0.07
    assert rates["paired t (wrong here)"][2] > 0.2
    assert rates["misses of the hull of corrected t and widened BCa"][2] < 0.07


def test_equivalence_is_not_claimed_too_often() -> None:
    for name, rates in false_equivalences("heavy-tailed", STUDIES, np.random.default_rng(5)).items():
        assert max(rates) < BAR, name


@pytest.mark.parametrize("kind", [*NOISES, "lopsided"])
def test_intervals_cover_at_twenty_seeds(kind: Noise) -> None:
    generator = np.random.default_rng(6)

    def draw(pairs: int) -> Array:
        if kind not in NOISES:
            return lopsided_differences((STUDIES, pairs), generator)
        return noise(kind, (STUDIES, pairs), generator) - noise(kind, (STUDIES, pairs), generator)

    shown = coverage(draw, generator, resamples=1_000)["hull of t and BCa (shown)"]
    assert 0.93 <= shown[2] <= 0.97


def test_power_is_as_forecast() -> None:
    rates = power_curves((0.5, 1.0), STUDIES, np.random.default_rng(7))
    for pairs in (5, 10, 20):
        np.testing.assert_allclose(rates[f"{pairs} pairs, gaussian"], rates[f"{pairs} pairs, forecast"], atol=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("pilot", [5, 20])
def test_the_planners_promise_holds(pilot: int) -> None:
    """80 % less 5 points at least, although the pilot's deviation is a guess; believing it would not do."""
    most: dict[Noise, float] = {"gaussian": 0.92, "heavy-tailed": 0.88}  # more would be seeds wasted
    for kind, bound in most.items():
        planned, _, believed = planned_power(0.75, pilot, 1_500, np.random.default_rng(8), kind=kind)
        assert 0.75 <= planned <= bound
        assert believed < planned


@pytest.mark.slow
def test_and_within_five_points_where_differences_have_heavy_tails() -> None:
    for name, rates in plans_for_heavy_tails((0.25, 0.5), 1_500, np.random.default_rng(8)).items():
        assert min(rates) > 0.735, name  # 75 %, less the noise of 1,500 studies


def test_the_simulated_learners_do_not_differ_but_their_splits_correlate() -> None:
    d = overlapping_splits("gaussian", 1_500, 4, np.random.default_rng(9))
    assert float(t_test(d.mean(axis=1))) > 0.001
    correlation = np.asarray(np.corrcoef(d.T))[np.triu_indices(4, 1)].mean()
    assert 0.05 < correlation < 0.15  # Nadeau and Bengio guess the share that is tested, 0.1


@pytest.mark.parametrize("kind", NOISES)
def test_noise_is_standardised(kind: Noise) -> None:
    x = noise(kind, (400_000,), np.random.default_rng(10))
    assert x.mean() == pytest.approx(0.0, abs=0.01)
    assert np.median(np.abs(x - np.median(x))) < 0.7  # of the normal 0.67; heavy tails and skewness have less
    if kind != "heavy-tailed":
        assert x.std() == pytest.approx(1.0, abs=0.01)


def test_the_report_is_written_between_its_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.validity_tables.report", lambda studies: [f"{studies} studies"])
    page = tmp_path / "page.md"
    old = "before\n<!-- validity: begin -->\nold\n<!-- validity: end -->\nafter\n"
    page.write_text(old, "utf-8")
    main([str(page), "7"])
    assert page.read_text("utf-8") == old.replace("old", "7 studies")
