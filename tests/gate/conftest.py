"""A suite that is gated in a moment, and its baseline."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

TINY = """
title = "Tiny"
seeds = 6
draws = 5
metrics = ["rmse", "crps"]

[gate]
alpha = 0.01

[training]
epochs = 2
batch = 100

[network]
hidden = [4]

[datasets.toy]
rows = 40

[methods.deterministic]

[methods.mc-dropout]
"""


@pytest.fixture(scope="session")
def tiny_baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tiny.toml, its baseline tiny.json and its results tiny.db."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "tiny.toml").write_text(TINY, "utf-8")
    from bench.gate.baseline import Baseline, Reason, write_baseline
    from bench.gate.measure import Measuring, store_for
    from bench.gate.same_suite import asked_of
    from bench.plan.suite import load_suite
    from bench.plugins.registry import Registry

    suite = load_suite(str(folder / "tiny.toml"))
    with store_for(str(folder / "tiny.db")) as store:
        made = Measuring(suite, Registry(), store)(6)
    write_baseline(Baseline("tiny", asked_of(suite), made, (Reason("2026-01-01", "", "first"),)), folder / "tiny.json")
    return folder


@pytest.fixture
def tiny_files(tiny_baseline: Path, tmp_path: Path) -> Path:
    """The same in the test's own folder."""
    for path in tiny_baseline.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


Change = Callable[[float, str, str], None]


@pytest.fixture
def change(tiny_files: Path) -> Change:
    """Change numbers of the baseline, as if the code had been better or worse."""

    def scale(factor: float, method: str, metric: str) -> None:
        path = tiny_files / "tiny.json"
        content = json.loads(path.read_text("utf-8"))
        row = content["values"]["toy"][method][metric]
        content["values"]["toy"][method][metric] = [value * factor * (1 + 0.001 * k) for k, value in enumerate(row)]
        path.write_text(json.dumps(content), "utf-8")

    return scale
