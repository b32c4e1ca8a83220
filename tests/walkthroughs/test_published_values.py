"""A sample of the published leaderboard is run again and held to what was published, as docs/rules.md says."""

import json
from pathlib import Path

import pytest

from bench.gate.baseline import read_baseline
from tests.fixtures.commands import Command
from tools.published_results import merged

ROOT = Path(__file__).parents[2]
BASELINE = ROOT / "baselines" / "leaderboard-sample.json"


def test_the_baseline_has_the_published_values() -> None:
    held = read_baseline(BASELINE).measured
    with merged(ROOT / "results") as store:
        rows = store.values("leaderboard-uci")
    published = {(row["dataset"], row["method"], row["metric"], row["seed"]): row["value"] for row in rows}
    compared = 0
    for (dataset, method), metrics in held.values.items():
        for metric, values in metrics.items():
            for seed, value in zip(held.seeds, values, strict=True):
                assert published[dataset, method, metric, seed] == value
                compared += 1
    assert compared > 200


@pytest.mark.slow
def test_the_published_values_are_found_again(command: Command, real_data: Path) -> None:
    done = command("gate", "leaderboard-sample", "--baseline", str(BASELINE), "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["passed"]
    assert found["values"] > 200
    assert found["counts"].keys() <= {"identical", "equivalent", "inconclusive"}  # not identical on another machine
