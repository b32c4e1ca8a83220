"""How long a large report takes, how large it is and how fast it opens: 20 methods, 20 seeds, 12 metrics, predictions.

And how long `uqbench report quick` takes from the start of its process to its end, on an idle machine.

python -m pytest tests/benchmarks/test_report_speed.py -o addopts="--import-mode=importlib" -s
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from bench.plugins.registry import Registry
from bench.report.write import write_report
from bench.spec.cell import Cell, Outcome
from bench.spec.protocol import Protocol
from bench.store.store import Store, SuiteRecord
from tests.benchmarks.test_million_values import whole_command

METHODS, SEEDS, ROWS = 20, 20, 60
NUMBERS = [
    "rmse",
    "nll",
    "crps",
    "picp",
    "mpiw",
    "mae",
    "r2",
    "aurc_rmse",
    "nll_mc",
    "sharpness",
    "winkler",
    "ause_rmse",
]
CLASSES = [
    "accuracy",
    "nll_categorical",
    "ece",
    "brier",
    "aurc",
    "mce",
    "error_auroc",
    "augrc",
    "e_aurc",
    "ause",
    "coverage_at_5",
    "error_at_80",
]


def outcomes(random: np.random.Generator, datasets: int) -> Iterator[tuple[Cell, Outcome]]:
    protocol = asdict(Protocol())
    for d in range(datasets):
        names = NUMBERS if d % 2 else CLASSES
        observed = random.normal(size=ROWS) if d % 2 else random.integers(0, 3, ROWS)
        for m in range(METHODS):
            for seed in range(SEEDS):
                about = {
                    "dataset": [f"set-{d:02}", "built in", "1", {}],
                    "protocol": protocol,
                    "seed": seed,
                    "method": [f"method-{m:02}", "built in", "1", {"level": 0.1}],
                    "data": f"{d}-{seed}",
                }
                cell = Cell(f"{d:02}{m:02}{seed:02}", f"set-{d:02}", seed, f"method-{m:02}", seed, json.dumps(about))
                values = dict(zip(names, random.normal(1 + 0.01 * m, 0.1, len(names)), strict=True))
                yield (
                    cell,
                    Outcome(
                        "ok",
                        metrics=values,
                        arrays=_predicted(random, observed, bool(d % 2)),
                        training={"epochs": [20]},
                        environment={"python": "3.11"},
                    ),
                )


def _predicted(random: np.random.Generator, observed: np.ndarray, numbers: bool) -> dict[str, np.ndarray]:
    history = {"history/train_loss": np.exp(-np.linspace(0, 3, 50))[None], "observed": observed}
    if numbers:
        mean, variance = observed + 0.1 * random.normal(size=ROWS), random.gamma(2, 0.1, ROWS)
        return {**history, "mean": mean, "variance": variance}
    mean = random.dirichlet(np.ones(3), ROWS)
    return {**history, "mean": mean, "variance": np.full(mean.shape, 0.1)}


def test_the_report_of_suite_quick(tmp_path: Path) -> None:
    store = os.environ.get("UQBENCH_QUICK")  # a store that has the suite
    if store is None:
        store = str(tmp_path / "quick.db")
        whole_command(["run", "quick"], store)
    took, _, _ = whole_command(["report", "quick", "--out", str(tmp_path / "out")], store)
    assert took < 6.0


@pytest.mark.parametrize(("datasets", "megabytes"), [(8, 3.0), (20, 5.0)])
def test_a_large_report(tmp_path: Path, datasets: int, megabytes: float) -> None:
    store = Store(str(tmp_path / "large.db"))
    made = list(outcomes(np.random.default_rng(0), datasets))
    store.want(SuiteRecord("large", "Large", "method-00", [*NUMBERS, *CLASSES], "{}"), [cell for cell, _ in made])
    store.save(made)
    values = sum(len(outcome.metrics) for _, outcome in made)
    start, work = time.perf_counter(), time.process_time()
    written = write_report(store, Registry(), tmp_path / "out")
    seconds, cpu = time.perf_counter() - start, time.process_time() - work
    size = written[0].stat().st_size / 1e6
    print(
        f"\n{values:,} values: report in {seconds:.1f} s ({cpu:.1f} s of processor time), page {size:.2f} MB, "
        f"{len(written)} files"
    )
    assert "This section failed" not in written[0].read_text("utf-8")
    assert size < megabytes
    assert cpu < 30.0
    if (opened := _milliseconds_to_open(written[0])) is not None:
        print(f"opens in Chromium in {opened:.0f} ms")
        assert opened < 1000


def _milliseconds_to_open(page: Path) -> float | None:
    """Return the time until the page is laid out and its scripts ran, the best of three; None without a Chromium."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        return None
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        times = []
        for _ in range(3):
            tab = browser.new_page(viewport={"width": 1280, "height": 900})
            tab.goto(page.as_uri())
            times.append(float(tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")))
            tab.close()
        browser.close()
    return min(times)
