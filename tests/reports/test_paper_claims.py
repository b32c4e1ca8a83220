"""Every kind of claim on results made so that the answer is known: one shown, one refuted, one that is open."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.api import Curves, Kept, Table, stats
from bench.plugins.registry import Registry
from bench.reports._paper_claims import Held, Judged, judge
from bench.reports._paper_claims_held import Evidence, all_of, at_least, one_of
from bench.reports._paper_claims_runs import rank_among
from bench.reports._paper_experiments import Found, find_sweep, reference
from tests.fixtures.results import spec

SEEDS = 12
Values = Mapping[str, Sequence[float]]  # by method


@dataclass
class MadeResults:
    """Results of one suite that are in no store."""

    suite: str = "made"
    title: str = "Made"
    baseline: str | None = None
    metrics: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    made: list[dict[str, Any]] = field(default_factory=list)
    stored: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.rows, columns=["dataset", "split", "method", "seed", "key", "metric", "value"])

    @cached_property
    def cells(self) -> pd.DataFrame:
        return pd.DataFrame(self.made)

    @cached_property
    def remarks(self) -> pd.DataFrame:
        return pd.DataFrame()

    @cached_property
    def failures(self) -> pd.DataFrame:
        return pd.DataFrame()

    @cached_property
    def corrected(self) -> pd.DataFrame:
        return pd.DataFrame(columns=["dataset", "split", "method", "seed", "key", "correction", "metric", "value"])

    @cached_property
    def rescored(self) -> pd.DataFrame:
        return pd.DataFrame()

    def kept(self, key: str) -> Kept | None:
        return None

    def arrays(self, key: str) -> Mapping[str, Any]:
        return self.stored[key]

    def curves(self, key: str) -> Curves | None:
        arrays = self.stored[key]
        return Curves(**arrays) if "observed" in arrays else None

    def add(
        self,
        method: str,
        values: Mapping[str, Sequence[float]] | None = None,
        *,
        dataset: str = "toy",
        arrays: Sequence[Mapping[str, Any]] | None = None,
        plugin: str = "",
        options: Mapping[str, Any] | None = None,
        repeats: str = "independent",
    ) -> "MadeResults":
        """Add a method: values of every seed by metric, or the arrays of every seed."""
        for name in ("frame", "cells"):
            self.__dict__.pop(name, None)
        values = values or {}
        count = len(arrays) if arrays is not None else len(next(iter(values.values())))
        share = 0.1 if repeats == "splits" else 0.0
        training = json.dumps({"repeats": {"kind": repeats, "test_share": share}})
        for seed in range(count):
            split, key = 0 if repeats == "seeds" else seed, f"{dataset} {method} {seed}"
            place = {"dataset": dataset, "split": split, "method": method, "seed": seed, "key": key}
            about = json.dumps(spec(dataset, plugin or method, seed, options=options, one_split=repeats == "seeds"))
            self.made.append(
                {
                    **{**place, "suite": self.suite, "status": "ok", "message": "", "spec": about},
                    **{"training": training, "environment": None},
                }
            )
            self.stored[key] = {} if arrays is None else arrays[seed]
            self.rows += [{**place, "metric": metric, "value": float(own[seed])} for metric, own in values.items()]
        return self

    def judged(self, claim: Mapping[str, Any], *datasets: str) -> Judged:
        return judge(claim, Held(self, datasets or ("toy",)))


def around(mean: float, spread: float = 0.01, seeds: int = SEEDS, seed: int = 0) -> Sequence[float]:
    """Numbers whose mean and standard deviation are exactly these."""
    noise = np.random.default_rng(seed).normal(size=seeds)
    return list(mean + spread * (noise - noise.mean()) / noise.std(ddof=1))


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
    assert found.numbers.startswith("a: 0.5 to 0,")


def sweep(means: Mapping[float, tuple[float, float]], spread: float = 0.001) -> MadeResults:
    """Variants of two plug-ins: rivals at (1, 0.5), (2, 0.6), (3, 0.7), ours with (mpiw, picp) by level."""
    results = MadeResults()
    rivals = {0.1: (1.0, 0.5), 0.2: (2.0, 0.6), 0.3: (3.0, 0.7)}
    for plugin, option, levels, first in (("ours", "alpha", means, 0), ("rival", "rate", rivals, 100)):
        for number, (level, (mpiw, picp)) in enumerate(levels.items()):
            values = {
                "mpiw": around(mpiw, spread, seed=first + number),
                "picp": around(picp, spread, seed=first + 10 + number),
            }
            results.add(f"{plugin}-{level:g}", values, plugin=plugin, options={option: level})
    return results


SWEEP = {"metrics": ["mpiw", "picp"], "higher": ["picp"], "levels": {"ours": "alpha", "rival": "rate"}}
CONSISTENTLY = {**SWEEP, "kind": "consistently", "method": ["ours"], "over": ["rival"]}


def test_consistently_is_for_every_level_of_the_rival() -> None:
    good = sweep({0.01: (0.9, 0.55), 0.02: (1.9, 0.65), 0.03: (2.9, 0.75)}).judged(CONSISTENTLY)
    assert good.verdict == "reproduced"
    assert "rival-0.3: beaten by ours-0.03" in good.numbers
    # The widest rival is beaten by none: what is narrower covers less.
    assert sweep({0.01: (0.9, 0.55), 0.02: (1.9, 0.65), 0.03: (2.9, 0.6)}).judged(CONSISTENTLY).verdict == (
        "not reproduced"
    )
    noisy = sweep({0.01: (0.9, 0.55), 0.02: (1.9, 0.65), 0.03: (2.9, 0.75)}, spread=1.0)
    assert noisy.judged(CONSISTENTLY).verdict == "cannot be decided"
    assert sweep({0.01: (0.9, 0.55)}).judged(CONSISTENTLY).verdict == "not run"


def test_a_trend_rises_over_the_sweep_and_no_step_falls() -> None:
    claim = {**SWEEP, "kind": "trend"}
    assert sweep({0.01: (1, 0.4), 0.02: (2, 0.5), 0.03: (3, 0.6)}).judged(claim).verdict == "reproduced"
    fallen = sweep({0.01: (1, 0.4), 0.02: (2, 0.6), 0.03: (3, 0.5)}).judged(claim)
    assert fallen.verdict == "not reproduced"
    assert "1 of 2 steps falling" in fallen.numbers
    assert "shown to fall from 0.02 to 0.03" in fallen.numbers
    assert sweep({0.01: (1, 0.4), 0.02: (2, 0.5), 0.03: (3, 0.6)}, 5.0).judged(claim).verdict == "cannot be decided"


def test_variants_are_the_same_as_the_reference() -> None:
    claim = {"kind": "same", "metric": "picp", "margin": "0.05", "levels": {"ours": "alpha"}}
    results = sweep({0.01: (1, 0.5), 0.02: (1, 0.51), 0.03: (1, 0.7)})
    assert results.judged({**claim, "values": [0.01, 0.02]}).verdict == "reproduced"
    assert results.judged({**claim, "values": [0.01, 0.02, 0.03]}).verdict == "not reproduced"
    assert results.judged({**claim, "values": [0.01, 0.04]}).verdict == "not run"
    noisy = sweep({0.01: (1, 0.5), 0.02: (1, 0.5)}, spread=0.2)
    assert noisy.judged({**claim, "values": [0.01, 0.02]}).verdict == "cannot be decided"


LEVELS = np.array([0.0, 0.1, 0.2, 0.3])


def image(first_wrong: int | None, rival: int = 9) -> Mapping[str, Any]:
    """The softmax outputs of one run, wrong from a level on (None: at no level)."""
    mean = np.where(np.arange(4) < (4 if first_wrong is None else first_wrong), 0.8, 0.3)
    outputs = np.stack([mean, 1 - mean], axis=-1)[:, None, :] + np.zeros((4, 5, 2))
    return {"levels": LEVELS, "softmax": outputs, "classes": np.array([8, rival])}


def flips(**runs: Sequence[int | None]) -> MadeResults:
    results = MadeResults()
    for method, own in runs.items():
        results.add(method, arrays=[image(first) for first in own], repeats="seeds")
    return results


FLIP = {"by": "signs", "derived": "flip", "metric": "first wrong level", "method": ["a"], "over": ["b"]}


def test_an_image_that_never_flips_is_beyond_the_highest_level() -> None:
    claim = {**FLIP, "kind": "better"}
    longer = flips(a=[None] * 8, b=[2] * 8).judged(claim)  # without values a would not take part
    assert (longer.verdict, "higher in 8" in longer.numbers) == ("reproduced", True)
    assert flips(a=[2] * 8, b=[None] * 8).judged(claim).verdict == "not reproduced"
    neither = flips(a=[None] * 8, b=[None] * 8).judged(claim)
    assert (neither.verdict, "both beyond the highest level in 8" in neither.numbers) == ("cannot be decided", True)


def test_equal_flip_levels() -> None:
    claim = {**FLIP, "kind": "same", "margin": 0.05}
    assert flips(a=[2] * 8, b=[2] * 8).judged(claim).verdict == "reproduced"
    assert flips(a=[None] * 8, b=[2] * 8).judged(claim).verdict == "not reproduced"
    assert flips(a=[None] * 8, b=[None] * 8).judged(claim).verdict == "cannot be decided"


def test_the_rival_class_of_most_runs() -> None:
    claim = {"kind": "most-runs", "by": "signs", "derived": "class", "class": 9, "metric": "class", "method": ["a"]}

    def runs(trucks: int, others: int, never: int) -> str:
        arrays = [image(2)] * trucks + [image(2, rival=0)] * others + [image(None)] * never
        return MadeResults().add("a", arrays=arrays, repeats="seeds").judged(claim).verdict

    assert runs(8, 0, 0) == "reproduced"
    assert runs(0, 8, 0) == "not reproduced"
    assert runs(6, 0, 6) == "cannot be decided"  # what never flips may be either


def test_the_value_of_one_run_among_ours() -> None:
    claim = {"kind": "one-run", "by": "signs", "method": ["a"]}
    results = MadeResults().add("a", {"mpiw": around(0.3, seeds=90), "picp": around(0.6, seeds=90)})
    assert results.judged({**claim, "values": {"mpiw": 0.301, "picp": 0.601}}).verdict == "reproduced"
    assert results.judged({**claim, "values": {"mpiw": 0.301, "picp": 0.7}}).verdict == "not reproduced"
    few = MadeResults().add("a", {"mpiw": around(0.3, seeds=20)}).judged({**claim, "values": {"mpiw": 0.3}})
    assert (few.verdict, few.needs) == ("cannot be decided", "at least 40 seeds")
    never = MadeResults().add("a", arrays=[image(None)] * 41).judged({**claim, "derived": "flip", "values": {"x": 0.1}})
    assert never.verdict == "not reproduced"


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


def timed(factor: float, spread: float, rounds: int = 10, *, together: bool = True, without: str = "") -> MadeResults:
    """Two methods of which the first takes `factor` times as long; times grow by a tenth per draw."""
    results, random = MadeResults(), np.random.default_rng(0)
    drift = 1 + random.random(rounds)  # of the machine, in common
    for method, own in (("a", factor), ("b", 1.0)):
        arrays = {
            f"latency/latency_total@T={draws}": own
            * (1 + draws / 10)
            * drift
            * np.exp(spread * random.normal(size=rounds))
            for draws in (1, 10)
        }
        plain = drift if together else random.random(rounds)
        results.add(method, arrays=[{**arrays, "latency/plain": plain}])
    series = {f"T={draws}": {"mode": "engine", "batch": 500} for draws in (1, 10)}
    facts = dict.fromkeys(("device", "device_name", "driver", "libraries", "dtype", "batch", "floor", "gpu"), "known")
    facts.pop(without, None)
    for cell in results.made:
        cell["training"] = json.dumps({**json.loads(cell["training"]), "latency": {"facts": facts, "series": series}})
    return results


@pytest.mark.parametrize(
    ("factor", "spread", "verdict"),
    [(1.02, 0.01, "reproduced"), (1.3, 0.01, "not reproduced"), (1.05, 0.5, "cannot be decided")],
)
def test_times_are_the_same_at_every_number_of_draws(factor: float, spread: float, verdict: str) -> None:
    claim = {"kind": "same", "by": "rounds", "draws": [1, 10], "margin": 1.1, "method": ["a"], "over": ["b"]}
    found = timed(factor, spread).judged(claim)
    assert found.verdict == verdict
    assert found.numbers.count("10 rounds") == 2  # a quotient with its interval at each
    assert timed(factor, spread).judged({**claim, "draws": [1, 10, 50]}).verdict == "not run"
    apart = timed(factor, spread, together=False).judged(claim)
    assert (apart.verdict, "in one run" in apart.needs) == ("cannot be decided", True)


@pytest.mark.parametrize("fact", ["driver", "libraries", "dtype", "floor"])
def test_times_that_do_not_say_how_they_were_measured_decide_nothing(fact: str) -> None:
    same = {"kind": "same", "by": "rounds", "draws": [1, 10], "margin": 1.1, "method": ["a"], "over": ["b"]}
    ratio = {"kind": "ratio", "by": "rounds", "draws": [10, 1], "most": 2.0, "method": ["a"]}
    for claim in (same, ratio):
        assert timed(1.0, 0.01).judged(claim).verdict == "reproduced"
        found = timed(1.0, 0.01, without=fact).judged(claim)
        assert found.verdict == "cannot be decided"
        assert f"those of a lack {fact}" in found.needs


@pytest.mark.parametrize(
    ("most", "spread", "verdict"),
    [(2.0, 0.01, "reproduced"), (1.25, 0.01, "not reproduced"), (1.82, 0.2, "cannot be decided")],
)
def test_the_quotient_of_times_has_an_interval(most: float, spread: float, verdict: str) -> None:
    claim = {"kind": "ratio", "by": "rounds", "draws": [10, 1], "most": most, "method": ["a"]}
    assert timed(1.0, spread).judged(claim).verdict == verdict  # 2 / 1.1


def test_times_that_the_run_warned_of_decide_nothing() -> None:
    same = {"kind": "same", "by": "rounds", "draws": [1, 10], "margin": 1.1, "method": ["a"], "over": ["b"]}
    ratio = {"kind": "ratio", "by": "rounds", "draws": [10, 1], "most": 2.0, "method": ["a"]}
    results = timed(1.0, 0.01)
    assert {results.judged(claim).verdict for claim in (same, ratio)} == {"reproduced"}
    doubt = "the middle half of the repeats spreads over more than 10% of the median in 2 of 2 series"
    results.made[1]["message"] = doubt  # of the second method
    results.__dict__.pop("cells")
    found = results.judged(same)
    assert (found.verdict, found.needs) == ("cannot be decided", f"steady times: {doubt}")
    assert found.numbers.count("10 rounds, unsteady") == 2
    assert results.judged(ratio).verdict == "reproduced"  # it is about the first method alone


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


def test_a_sweep_departs_in_everything_but_its_levels() -> None:
    claim = next(claim for claim in reference()["claims"] if claim["kind"] == "consistently")
    results = MadeResults()
    for plugin, option in claim["levels"].items():
        for level in (0.1, 0.3, 0.5):
            values = {"mpiw": around(level), "picp": around(level, seed=1)}
            results.add(f"{plugin}-{level:g}", values, plugin=plugin, options={option: level})
    found = find_sweep(claim, [results])
    assert isinstance(found, Found)
    assert any(text.startswith("training.epochs is ") for text in found.departures)
    assert not any(name in text for text in found.departures for name in (".rate is", ".alpha is", "missing"))
    assert find_sweep(claim, [sweep({0.01: (1, 0.5)})]) == []  # of other plug-ins
    section = Registry().make("report", "paper", {}).overall([results])  # of a page with the sweep alone
    tables = {block.name: block.data for block in section.blocks if isinstance(block, Table)}
    assert claim["text"] in set(tables["claims"]["claim"])
    assert set(tables["claims-not-run"]["verdict"]) == {"not run", "no experiment"}


def test_metrics_of_the_code_take_the_place_of_ours_where_they_are_stored() -> None:
    results = MadeResults().add("a", {"mpiw": around(0.5), "mpiw_captured": around(0.3), "picp": around(0.6)})
    results.add("b", {"mpiw": around(0.4, seed=1), "mpiw_captured": around(0.4, seed=1), "picp": around(0.5, seed=1)})
    ours, theirs = (Held(results, ("toy",), {"mpiw": other}) for other in ("not stored", "mpiw_captured"))
    assert (judge(JOINT, ours).verdict, judge(JOINT, theirs).verdict) == ("not reproduced", "reproduced")
    assert "by mpiw_captured and picp jointly" in judge(JOINT, theirs).test
