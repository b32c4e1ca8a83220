"""The page of findings has the numbers of the exports, and its words are the verdicts of the statistics."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from bench.spec.cell import Outcome
from bench.store.store import Store
from tests.fixtures.results import ENVIRONMENT, save_outcomes
from tools.draw_findings import worse_with_fewer
from tools.findings import Exports, Means, names, number, probability
from tools.published_results import pack
from tools.results_page import FINDINGS, page, pair

DATASETS, SEEDS = [f"set-{k}" for k in range(6)], 12


def exports_of_two_methods(tmp_path: Path, gain: float) -> tuple[Exports, dict[tuple[str, str, int], float]]:
    """Return exports of two methods, the second of which is better by `gain` of the spread over seeds."""
    random = np.random.default_rng(3)
    values = {}
    for dataset in DATASETS:
        for seed in range(SEEDS):
            shared = random.normal()
            values[dataset, "plain", seed] = 5 + shared + 0.1 * random.normal()
            values[dataset, "better", seed] = 5 - gain + shared + 0.1 * random.normal()
    outcomes = {
        place: Outcome("ok", metrics={"rmse": value}, environment=ENVIRONMENT, timing=timing(place[1]))
        for place, value in values.items()
    }
    with Store(str(tmp_path / "made.db")) as store:
        save_outcomes(store, "made", outcomes, ["rmse"])
    pack(str(tmp_path / "made.db"), tmp_path / "made.tar.xz", [])
    return Exports(tmp_path), values


def timing(method: str) -> dict[str, float]:
    return {"seconds": 1.0, "cpu_seconds": 3.0 if method == "better" else 1.5, "finished": 1.7e9}


@pytest.mark.parametrize(("gain", "verdict"), [(1.0, "better"), (-1.0, "worse"), (0.0, "")])
def test_a_pair_is_told_by_its_verdicts_and_means(gain: float, verdict: str, tmp_path: Path) -> None:
    exports, values = exports_of_two_methods(tmp_path, gain)
    with exports:
        found = pair(exports, "Title", "better", "plain", ("rmse",), "Why.", "made")
    assert found is not None
    if verdict:
        assert f"is {verdict} on 6 of 6 datasets; over datasets {verdict}" in found.text
        assert found.table.count(f"**{verdict}**") == len(DATASETS)
    else:
        assert "better on" not in found.text
        assert "**" not in found.table
    assert "takes 2.0 times the processor time. Why." in found.text
    rows = dict(re.findall(r"\| (set-\d) \| (.*?) against", found.table))
    assert rows == {
        dataset: number(float(np.mean([values[dataset, "better", seed] for seed in range(SEEDS)])))
        for dataset in DATASETS
    }
    assert "uqbench compare better plain made --metric rmse\n" in found.markdown(1)


def test_findings_without_their_suite_are_left_out(tmp_path: Path) -> None:
    exports, _ = exports_of_two_methods(tmp_path, 1.0)
    with exports:
        assert [make(exports) for make in FINDINGS] == [None] * len(FINDINGS)
        results = exports.results("made")
        assert results is not None
        means = Means(results, ["rmse"])
        assert math.isnan(means.value("set-0", "plain", "nll"))
        assert means.text("set-0", "none", "rmse") == "–"
        text = page(exports)
    assert "## 1." not in text
    assert "| `made` |" in text


def test_first_draws_are_worse_where_their_scores_are(tmp_path: Path) -> None:
    random, outcomes = np.random.default_rng(4), {}
    for dataset in DATASETS:
        for seed in range(SEEDS):
            whole, noise = 1 + random.normal(), 0.1 * random.normal(size=2)
            scores = {"rmse": whole, "rmse@T=1": whole + 1 + noise[0], "rmse@T=5": whole + noise[1]}
            outcomes[dataset, "mc-dropout", seed] = Outcome("ok", metrics=scores, environment=ENVIRONMENT)
    with Store(str(tmp_path / "made.db")) as store:
        results = save_outcomes(store, "made", outcomes, ["rmse"])
        assert worse_with_fewer(results, ["rmse"], (1, 5)) == {1: len(DATASETS), 5: 0}


def test_words_and_numbers() -> None:
    assert names(["a"]) == "`a`"
    assert names(["a", "b", "c"]) == "`a`, `b` and `c`"
    assert [number(value) for value in (0.12345, 12345.0, -0.0, math.nan)] == ["0.123", "12,345", "-0", "–"]
    assert [probability(value) for value in (0.0001, 0.0567)] == ["p < 0.001", "p = 0.057"]
