"""Values after a scaling stand beside boards of calibration, in their data too, and in no place."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.leaderboard import Leaderboard, collect
from bench.leaderboard.site import write_site
from bench.metrics import score
from bench.metrics.recalibration import recalibrated
from bench.plugins.registry import Registry
from bench.store.store import Store
from tests.fixtures.banks import outcome, predicted
from tests.fixtures.results import ENVIRONMENT, save_outcomes

SEEDS, METHODS = 3, ("first", "second")
MADE = {(m, s): predicted(10 * n + s, "classification", rows=60) for n, m in enumerate(METHODS) for s in range(SEEDS)}
AFTER = "ece after temperature scaling"


@pytest.fixture
def found(store: Store) -> Leaderboard:
    timing = {"seconds": 1.0, "cpu_seconds": 0.5, "finished": 1.7e9}
    outcomes = {
        ("classes", method, seed): replace(outcome(kept), timing=timing, environment=ENVIRONMENT)
        for (method, seed), kept in MADE.items()
    }
    save_outcomes(store, "made", outcomes, ["accuracy", "ece"])
    return collect(store)


def test_calibration_has_a_column_that_no_ranking_reads(found: Leaderboard, tmp_path: Path) -> None:
    ((place, column),) = found.recalibrated.items()
    assert place == ("made", "classes")
    expected = {
        method: (
            np.mean([score(MADE[method, seed].test, ["ece"])["ece"] for seed in range(SEEDS)]),
            np.mean([score(recalibrated(MADE[method, seed])["temperature"], ["ece"])["ece"] for seed in range(SEEDS)]),
        )
        for method in METHODS
    }
    for method, pair in expected.items():
        assert column.pairs[method] == pytest.approx(pair, rel=1e-3)  # predictions are kept in 16 bits
    write_site(found, Registry(), tmp_path)
    page = (tmp_path / "index.html").read_text("utf-8")
    boards = dict(
        re.findall(r'<section class="board" id="(?:b|t)\d+".*?data-metric="(.*?)".*?>(.*?)</section>', page, re.S)
    )
    head = f'<th scope="col" class="n aside" title="{column.note}">recalibrated ece</th>'
    assert {name: head in text for name, text in boards.items()} == {"": True, "accuracy": False, "ece": True}
    assert "→ " + f"{column.pairs['first'][1]:.3f}"[:5] in boards["ece"]
    assert not any(metric.startswith("recalibrated") for metric in found.metrics)


def test_the_data_of_a_view_have_the_column_too(found: Leaderboard, tmp_path: Path) -> None:
    write_site(found, Registry(), tmp_path)
    tables = {
        path.name: list(csv.DictReader(io.StringIO(path.read_text("utf-8")))) for path in tmp_path.glob("data/*.csv")
    }
    having = {name for name, rows in tables.items() if rows and AFTER in rows[0]}
    assert sorted(name.split("-classes-")[1].partition("-made")[0] for name in having) == ["all-metrics", "ece"]
    for name in having:
        values = {row["method"]: float(row[AFTER]) for row in tables[name]}
        assert values == {method: pair[1] for method, pair in found.recalibrated["made", "classes"].pairs.items()}
        content = json.loads((tmp_path / "data" / name).with_suffix(".json").read_text("utf-8"))
        (one,) = content["recalibrated"]
        assert (one["metric"], one["correction"], one["repeats"]) == ("ece", "temperature", SEEDS)
        assert {each["method"]: each["recalibrated"] for each in one["values"]} == values
