"""Every kind of claim on results made so that the answer is known: one shown, one refuted, one that is open."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from bench.api import stats
from bench.reports._paper_claims import Held, judge
from bench.reports._paper_claims_held import Evidence, _together, all_of, at_least, one_of
from bench.reports._paper_claims_runs import rank_among
from tests.fixtures.made_results import SEEDS, MadeResults, around

Values = Mapping[str, Sequence[float]]  # by method
JOINT = {"kind": "better", "metrics": ["mpiw", "picp"], "higher": ["picp"], "method": ["a"], "over": ["b"]}


@pytest.mark.parametrize(
    ("coverage", "verdict"),
    [
        (around(0.7, seed=1), "reproduced"),
        (around(0.5, seed=1), "not reproduced"),
        (around(0.62, 0.2, seed=1), "cannot be decided"),
    ],
)
def test_narrower_and_higher_coverage_is_one_claim(coverage: Sequence[float], verdict: str) -> None:
    results = MadeResults().add("a", {"mpiw": around(0.3), "picp": coverage})
    results.add("b", {"mpiw": around(0.4, seed=2), "picp": around(0.6, seed=3)})
    found = results.judged(JOINT)
    assert found.verdict == verdict
    wins = sum(ours > theirs for ours, theirs in zip(coverage, around(0.6, seed=3), strict=True))
    assert f"by all of them in {wins} of {SEEDS} repeats" in found.numbers
    assert results.judged({**JOINT, "metrics": ["mpiw"]}).verdict == "reproduced"


SAME = {"kind": "same", "metric": "mpiw", "margin": "0.03", "method": ["a"], "over": ["b"]}


@pytest.mark.parametrize(
    ("mean", "spread", "verdict"),
    [
        (0.3, 0.01, "reproduced"),
        (0.32, 0.001, "reproduced"),  # a difference that is certain, and inside the margin
        (0.34, 0.001, "not reproduced"),
        (0.34, 0.05, "cannot be decided"),  # a difference, perhaps inside the margin
        (0.3, 0.2, "cannot be decided"),
    ],
)
def test_equality_is_shown_within_the_margin_and_refuted_beyond_it(mean: float, spread: float, verdict: str) -> None:
    results = MadeResults().add("a", {"mpiw": around(mean, spread)}).add("b", {"mpiw": around(0.3, 0.001, seed=1)})
    found = results.judged(SAME)
    assert (found.verdict, "margin 0.03" in found.numbers) == (verdict, True)
    assert bool(found.needs) == (verdict == "cannot be decided")


def test_the_datasets_say_how_repeats_are_related() -> None:
    claim = {"kind": "better", "metric": "mpiw", "method": ["a"], "over": ["b"]}
    for repeats, test in (("independent", "paired t-test of mpiw"), ("splits", "corrected resampled t-test of mpiw")):
        results = MadeResults().add("a", {"mpiw": around(0.3)}, repeats=repeats)
        assert results.add("b", {"mpiw": around(0.4, seed=1)}, repeats=repeats).judged(claim).test == test


def test_numbers_of_seeds_in_the_same_words_are_one_range() -> None:
    margin = "for a difference as large as the margin"
    needs = [f"51 seeds {margin}", f"1,311 seeds {margin}; at least 5 seeds", f"94 seeds {margin}", "more seeds"]
    assert _together(needs) == [f"51 to 1,311 seeds {margin}", "at least 5 seeds", "more seeds"]
    assert _together([f"7 seeds {margin}", f"7 seeds {margin}"]) == [f"7 seeds {margin}"]
    assert _together([]) == []


def test_all_numbers_of_a_comparison_have_the_decimals_of_its_interval() -> None:
    results = MadeResults().add("a", {"mpiw": around(0.4)}).add("b", {"mpiw": around(0.4, seed=1)})
    numbers = results.judged({"kind": "better", "metric": "mpiw", "method": ["a"], "over": ["b"]}).numbers
    means, difference = numbers.removeprefix("a against b: ").split(", difference ")
    found = re.findall(r"\d\.(\d+)", f"{means} {difference.partition(']')[0]}")
    assert len(found) == 5
    assert len({len(digits) for digits in found}) == 1


def test_what_was_not_run_is_another_word_than_what_cannot_be_decided() -> None:
    results = MadeResults().add("a", {"mpiw": [0.3] * 3}).add("b", {"mpiw": [0.4] * 3})
    few = results.judged({"kind": "better", "metric": "mpiw", "method": ["a"], "over": ["b"]})
    assert (few.verdict, few.needs) == ("cannot be decided", "at least 5 seeds")
    other = results.judged({"kind": "better", "metric": "mpiw", "method": ["c"], "over": ["b"]})
    assert (other.verdict, other.needs) == ("not run", "no mpiw of c in suite made")
    theorem = results.judged({"kind": "none", "why": "a theorem"})
    assert (theorem.verdict, theorem.needs) == ("no experiment", "a theorem")


DATASETS = ("one", "two", "three", "four", "five", "six")


def on_datasets(gains: Sequence[float], spread: float = 0.1) -> MadeResults:
    results = MadeResults()
    for number, (dataset, gain) in enumerate(zip(DATASETS, gains, strict=False)):
        results.add("a", {"rmse": around(10.0 - gain, spread, seed=number)}, dataset=dataset)
        results.add("b", {"rmse": around(10.0, spread, seed=100 + number)}, dataset=dataset)
    return results


BETTER = {"kind": "better", "metric": "rmse", "method": ["a"], "over": ["b"]}


@pytest.mark.parametrize(
    ("gains", "everywhere", "most"),
    [
        ([1, 1, 1, 1, 1], "reproduced", "reproduced"),
        ([1, 1, 1, 1, -1], "not reproduced", "reproduced"),
        ([1, -1, -1, -1, -1], "not reproduced", "not reproduced"),
        ([1, 1, 0.06, 0.06, 0.06], "cannot be decided", "cannot be decided"),
    ],
)
def test_on_all_datasets_and_on_most(gains: Sequence[float], everywhere: str, most: str) -> None:
    results = on_datasets(gains)
    assert results.judged(BETTER, *DATASETS[:5]).verdict == everywhere
    assert results.judged({**BETTER, "datasets": "most"}, *DATASETS[:5]).verdict == most


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ([1, 1, 2, 1, 1, 1], "reproduced"),
        ([-1, -1, -2, -1, -1, -1], "not reproduced"),
        ([1, -1, 1, -1, 1, -1], "cannot be decided"),
    ],
)
def test_over_datasets_each_counts_once(gains: Sequence[float], verdict: str) -> None:
    assert on_datasets(gains).judged({**BETTER, "by": "datasets"}, *DATASETS).verdict == verdict


@pytest.mark.parametrize(
    ("gains", "spread", "verdict"),
    [([5, 4, -1], 0.1, "reproduced"), ([5, 4, -9], 0.1, "not reproduced"), ([5, 4, -4.5], 1.0, "cannot be decided")],
)
def test_losses_are_small_beside_the_gains_elsewhere(gains: Sequence[float], spread: float, verdict: str) -> None:
    found = on_datasets(gains, spread).judged({**BETTER, "kind": "small-losses"}, *DATASETS[:3])
    assert found.verdict == verdict
    assert "on three" in found.numbers


@pytest.mark.parametrize(
    ("levels", "verdict"),
    [(around(0.02), "reproduced"), (around(0.09), "not reproduced"), (around(0.045, 0.05), "cannot be decided")],
)
def test_a_quantity_is_higher_under_another_condition(levels: Sequence[float], verdict: str) -> None:
    arrays = [{"inspect/weight": np.array([level, -level])} for level in levels]  # signs have no meaning
    claim = {
        "kind": "rises",
        "derived": "levels",
        "metric": "size",
        "conditions": ["learned", "start"],
        "method": ["a"],
    }
    assert MadeResults().add("a", arrays=arrays, options={"alpha": 0.05}).judged(claim).verdict == verdict
    penalised = MadeResults().add("a", arrays=arrays, options={"alpha": 0.05, "penalty": 0.1})
    assert penalised.judged(claim).verdict == "not run"  # the claim is about levels without a penalty


def test_rows_are_kept_by_their_predicted_variance() -> None:
    """The confident row is the one of high variance: sorted by confidence the risk would fall with coverage."""
    probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.55, 0.45], [0.95, 0.05]])
    curves = {
        "observed": np.array([1, 0, 0, 1]),
        "mean": probabilities,
        "variance": np.array([[0.2, 0.2], [0.01, 0.01], [0.01, 0.01], [0.2, 0.2]]),
    }
    claim = {"kind": "rises", "derived": "risk", "metric": "risk", "conditions": ["half", "all"], "method": ["a"]}
    found = MadeResults().add("a", arrays=[curves] * 8, repeats="seeds").judged(claim)
    assert found.verdict == "reproduced"
    assert found.numbers.startswith("a, all against half: 0.5000 and 0.0000,")


def test_the_value_of_one_run_among_ours() -> None:
    claim = {"kind": "one-run", "by": "signs", "method": ["a"]}
    results = MadeResults().add("a", {"mpiw": around(0.3, seeds=90), "picp": around(0.6, seeds=90)})
    assert results.judged({**claim, "values": {"mpiw": 0.301, "picp": 0.601}}).verdict == "reproduced"
    assert results.judged({**claim, "values": {"mpiw": 0.301, "picp": 0.7}}).verdict == "not reproduced"
    few = MadeResults().add("a", {"mpiw": around(0.3, seeds=20)}).judged({**claim, "values": {"mpiw": 0.3}})
    assert (few.verdict, few.needs) == ("cannot be decided", "at least 40 seeds")


def test_a_run_like_ours_is_rarely_called_another() -> None:
    """The values of a run go together, and an infinite one is the highest."""
    random = np.random.default_rng(0)
    p = []
    for _ in range(1000):
        runs = random.normal(size=(60, 1)) + 0.5 * random.normal(size=(60, 2))
        runs[runs[:, 1] > 1.0, 1] = np.inf
        p.append(rank_among(runs[0], runs[1:]))
    assert 0.025 < np.mean(np.array(p) < 0.05) < 0.066  # 3 standard errors above; many ties are conservative
    runs = np.stack([np.arange(60.0)] * 2, axis=1)
    # The least likely pair among runs whose two values always agree: each value by itself is among theirs.
    assert rank_among(np.array([10.5, 49.5]), runs) == pytest.approx(1 / 61)
    assert rank_among(np.array([70.0]), runs[:, :1]) == pytest.approx(2 / 61)


def test_combined_evidence_keeps_its_level() -> None:
    """The worst case of each: for "all" one statement is at its boundary, for "one of" and "most" as many as can be."""
    random = np.random.default_rng(0)
    studies, pairs, parts = 20_000, 8, 5
    shared = random.normal(size=(studies, 1, pairs))  # statements of one study are not independent
    p = np.asarray(stats.t_test(random.normal(size=(studies, parts, pairs)) + shared))
    for count in (1, 3, 5):
        true = np.zeros((studies, count - 1))  # statements that hold, and are shown
        found = np.concatenate([true, p[:, : parts - count + 1]], axis=1)
        steps = np.sort(found, axis=1)[:, count - 1] * (parts - count + 1)
        assert np.mean(steps < 0.05) < 0.054
        one = at_least(count, [Evidence(float(value), 1.0) for value in found[0]])
        assert one.p == pytest.approx(min(1.0, steps[0]))
    assert all_of([Evidence(0.01, 1.0), Evidence(0.2, 0.03)]) == Evidence(0.2, 0.06)
    assert one_of([Evidence(0.01, 1.0), Evidence(0.2, 0.03)]) == Evidence(0.02, 1.0)
    assert at_least(2, [Evidence(float("nan"), 1.0), Evidence(0.01, 1.0)]).p == 1.0  # no test shows nothing


def test_metrics_of_the_code_take_the_place_of_ours_where_they_are_stored() -> None:
    results = MadeResults().add("a", {"mpiw": around(0.5), "mpiw_captured": around(0.3), "picp": around(0.6)})
    results.add("b", {"mpiw": around(0.4, seed=1), "mpiw_captured": around(0.4, seed=1), "picp": around(0.5, seed=1)})
    ours, theirs = (Held(results, ("toy",), {"mpiw": other}) for other in ("not stored", "mpiw_captured"))
    assert (judge(JOINT, ours).verdict, judge(JOINT, theirs).verdict) == ("not reproduced", "reproduced")
    assert "by mpiw_captured and picp jointly" in judge(JOINT, theirs).test
