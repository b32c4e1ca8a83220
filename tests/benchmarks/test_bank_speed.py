"""A new metric over a whole board from its stored predictions, and the size of these.

    python -m pytest tests/benchmarks/test_bank_speed.py -o addopts="--import-mode=importlib" -s

20 methods on the 8 UCI datasets, 20 splits and 100 draws each: 3,200 cells. The rows are as many as in suite `uci`
(10 % test rows, 10 % of the others for validation), the predictions are made up.
"""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bench
from bench.metrics import Forecast, Points, TargetScale
from bench.metrics.kept import Kept, pack
from bench.spec.cell import Cell, Outcome
from bench.store.bank import load_predictions
from bench.store.status import status
from bench.store.store import Store, SuiteRecord

ROWS = {"boston": 506, "concrete": 1030, "energy": 768, "kin8nm": 8192}
ROWS |= {"power": 9568, "protein": 45730, "wine-red": 1599, "yacht": 308}
METHODS, SPLITS, DRAWS = 20, 20, 100
MEAN, STD = 22.0, 9.0
METRIC = """
import numpy as np
from bench.api import Forecast, Metric


def score(forecast: Forecast) -> float:
    draws = np.sort(forecast.draws, axis=0)
    count = len(draws)
    pairs = (2 * np.arange(count) - count + 1) @ draws / count**2
    return float(np.abs(draws - forecast.observed).mean() - pairs.mean())


METRIC = Metric(
    name="score_of_draws", task="regression", family="predictive", direction="lower", target=None,
    unit="target unit", needs=frozenset({"draws"}), formula="E|f - y| - E|f - f'| / 2", source="CRPS", compute=score,
)
"""


def outcome(rng: np.random.Generator, rows: int) -> Outcome:
    """A cell with normal draws around a mean, in single precision as networks have it."""
    scale = TargetScale(MEAN, STD, 0.0, 50.0)
    made = []
    for count in (round(0.1 * rows), round(0.09 * rows)):
        draws: Any = rng.standard_normal((DRAWS, count), dtype=np.float32)
        draws *= 0.3
        draws += rng.standard_normal(count, dtype=np.float32)
        observed = rng.normal(MEAN, STD, count)
        made.append(Forecast.of(Points(draws).affine(STD, MEAN), observed, 10.0, scale))
    kept = Kept(made[0], made[1], (MEAN, STD))
    content = pack(kept, "compact", {})
    assert content is not None
    arrays = {"observed": kept.test.observed, "mean": kept.test.mean, "variance": kept.test.variance}
    return Outcome("ok", metrics={"rmse": 1.0}, arrays=arrays, predictions=content)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Store:
    place = os.environ.get("UQBENCH_BOARD")  # a store that an earlier run has made
    path = Path(place) if place else tmp_path_factory.mktemp("board") / "store.db"
    if path.is_file():
        return Store(str(path))
    store, rng, cells = Store(str(path)), np.random.default_rng(0), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bench.metrics.kept._close", lambda *given: True)  # scoring all cells twice is not measured here
        for number, (dataset, rows) in enumerate(ROWS.items()):
            for method in range(METHODS):
                own = []
                for split in range(SPLITS):
                    key = f"{number:02x}{method:02x}{split:028x}"
                    own.append((Cell(key, dataset, split, f"method-{method:02}", split, "{}"), outcome(rng, rows)))
                store.save(own)
                cells += [cell for cell, _ in own]
    store.want(SuiteRecord("board", "Board", None, ["rmse"], "{}"), cells)
    return store


def test_a_new_metric_over_a_board_of_3200_cells(board: Store, tmp_path: Path) -> None:
    (tmp_path / "metric.py").write_text(METRIC, "utf-8")
    used = status(board).predictions
    began, worked = time.perf_counter(), time.process_time()
    done = bench.rescore(board, metrics=["score_of_draws"], plugins=[tmp_path / "metric.py"], progress=False)
    seconds, processor = time.perf_counter() - began, time.process_time() - worked
    size = f"{used.cells:,} cells, {used.bytes / 1e9:.2f} GB"
    print(f"\nbank: {size}; a new metric: {seconds:.1f} s, {processor:.1f} s of processor time")
    assert used.cells == len(ROWS) * METHODS * SPLITS
    assert used.left_out == 0
    assert used.bytes < 2e9
    assert done.values == used.cells
    assert processor < 60
    again = time.process_time()
    assert bench.rescore(board, metrics=["score_of_draws"], plugins=[tmp_path / "metric.py"]).values == 0
    print(f"nothing to do: {time.process_time() - again:.1f} s of processor time")


def test_moments_of_the_bank_are_the_stored_ones(board: Store) -> None:
    """The largest difference, as a share of the standard deviation of the draws of the row."""
    worst = np.zeros(2)
    for number in range(len(ROWS)):
        key = f"{number:02x}{number:02x}{number:028x}"
        kept, arrays = load_predictions(board, key, validation=False), board.load_arrays(key)
        assert kept is not None
        assert arrays is not None
        mean = np.abs(kept.test.mean - arrays["mean"]) / np.sqrt(arrays["variance"])
        variance = np.abs(kept.test.variance / arrays["variance"] - 1)
        worst = np.maximum(worst, [mean.max(), variance.max()])
    print(f"\nmoments: means within {worst[0]:.1e} standard deviations, variances within {worst[1]:.1e} of their value")
    assert worst.max() < 1e-4
