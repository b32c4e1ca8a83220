import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.leaderboard import Leaderboard, collect
from bench.leaderboard.score_histograms import BINS, ScoreHistogram, is_of_scores
from bench.leaderboard.site import write_site
from bench.plugins.registry import Registry
from bench.spec.cell import Outcome
from bench.store.store import Store
from tests.fixtures.results import ENVIRONMENT, save_outcomes

CLASSES = 4


def probabilities(entropies: list[bool], random: np.random.Generator) -> Any:
    """Rows that are certain of a class, or have all classes alike."""
    rows = np.full((len(entropies), CLASSES), 1 / CLASSES)
    for number, uncertain in enumerate(entropies):
        if not uncertain:
            rows[number] = np.eye(CLASSES)[random.integers(CLASSES)]
    return rows


def outcome(seed: int, *, scores: bool = True) -> Outcome:
    """Of ten test rows two are uncertain, of the twenty foreign ones all but one."""
    mean = probabilities([True] * 2 + [False] * 8, np.random.default_rng(seed))
    arrays = {"mean": mean, "observed": np.zeros(10, dtype=np.int64), "variance": mean * (1 - mean)}
    foreign = np.array([0.0] + [math.log(CLASSES)] * 19, dtype=np.float32)
    values = {"accuracy": 0.9, "ood_auroc@letters": 0.9 + 0.001 * seed, "ood_auroc@fog:3": 0.6 + 0.001 * seed}
    return Outcome(
        "ok",
        metrics=values,
        arrays={**arrays, "scores/entropy@letters": foreign} if scores else arrays,
        timing={"seconds": 1.0, "cpu_seconds": 0.5, "finished": 1.7e9},
        environment=ENVIRONMENT,
    )


@pytest.fixture
def found(store: Store) -> Leaderboard:
    outcomes = {("digits", "whole", seed): outcome(seed) for seed in range(6)}
    outcomes |= {("digits", "partly", seed): outcome(seed, scores=seed > 1) for seed in range(6)}
    outcomes |= {("digits", "without", seed): outcome(seed, scores=False) for seed in range(6)}
    save_outcomes(store, "made", outcomes, ["ood_auroc@letters", "ood_auroc@fog:3"])
    return collect(store)


def test_scores_are_counted_over_all_repeats(found: Leaderboard) -> None:
    ((place, methods),) = found.scores.items()
    assert place == ("made", "digits", "letters")
    assert methods.keys() == {"whole", "partly"}
    whole, partly = methods["whole"], methods["partly"]
    middle = (0,) * (BINS - 2)
    assert whole == ScoreHistogram((48, *middle, 12), (6, *middle, 114), math.log(CLASSES), 6, 6)
    assert (sum(partly.own), sum(partly.foreign), partly.repeats, partly.planned) == (40, 80, 4, 6)
    assert whole.overlap == pytest.approx(0.05 + 0.2)  # min of the shares: 0.05 certain, 0.2 uncertain
    assert ScoreHistogram((3, 0), (0, 5), 1.0, 1, 1).overlap == 0.0
    assert ScoreHistogram((3, 1), (6, 2), 1.0, 1, 1).overlap == 1.0


def test_only_the_detection_of_foreign_sets_has_scores() -> None:
    assert is_of_scores("ood_auroc@letters")
    assert is_of_scores("ood_fpr95@letters")
    for metric in ("ood_auroc", "ood_auroc@fog:3", "ood_auroc_mutual_information@letters", "accuracy@letters"):
        assert not is_of_scores(metric)


def test_histograms_stand_beside_their_numbers(found: Leaderboard, tmp_path: Path) -> None:
    write_site(found, Registry(), tmp_path)
    for page in ("index.html", "datasets/digits.html"):
        text = (tmp_path / page).read_text("utf-8")
        assert text.count('<svg class="scores"') == 2
        assert "overlap 25 %<" in text
        assert ", scores of 4 of 6 repeats<" in text
        assert "No histogram of scores" not in text
    (file,) = (tmp_path / "data").glob("*ood_auroc-letters*.json")
    scores = json.loads(file.read_text("utf-8"))["scores"]
    assert [(one["method"], sum(one["own"]), sum(one["foreign"])) for one in scores] == [
        ("partly", 40, 80),
        ("whole", 60, 120),
    ]


def test_a_store_without_scores_says_so(store: Store, tmp_path: Path) -> None:
    outcomes = {("digits", method, seed): outcome(seed, scores=False) for method in "ab" for seed in range(6)}
    save_outcomes(store, "made", outcomes, ["ood_auroc@letters", "ood_auroc@fog:3"])
    write_site(collect(store), Registry(), tmp_path)
    text = (tmp_path / "index.html").read_text("utf-8")
    assert text.count("No histogram of scores: the store has none for these results.") == 1


def test_damaged_scores_do_not_cost_the_site(found: Leaderboard, store: Store) -> None:
    for path in Path(f"{store.path}.arrays").rglob("*.npz"):
        path.write_bytes(b"damaged")
    assert collect(store).scores == {}
