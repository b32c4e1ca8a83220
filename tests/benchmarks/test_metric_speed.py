"""Speed of the metrics beside torchmetrics and scikit-learn: both sides in one run, on the same arrays.

    python -m pytest tests/benchmarks/test_metric_speed.py -o addopts="--import-mode=importlib" -s

Times are the best of several rounds, so that another process on the machine disturbs neither side for long.
"""

import importlib
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.metrics import (
    Forecast,
    adaptive_calibration_error,
    auroc,
    brier_score,
    categorical_nll,
    class_wise_calibration_error,
    crps_fair,
    expected_calibration_error,
    score,
    smooth_calibration_error,
)

ROWS, CLASSES = 1_000_000, 10
CRPS_ROWS, CRPS_DRAWS = 20_000, 100


def _load(module: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(module)


@pytest.fixture(scope="module")
def torch() -> Any:
    """PyTorch with as many threads as it takes by itself on this machine."""
    module = _load("torch")
    print(f"\ntorch {module.__version__}, {module.get_num_threads()} threads; numpy {np.__version__}")
    return module


@pytest.fixture(scope="module")
def classes() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(CLASSES, 0.3), size=ROWS)
    labels = np.where(rng.random(ROWS) < 0.7, p.argmax(axis=1), rng.integers(0, CLASSES, ROWS))
    return p, labels


def _best(call: Callable[[], object], rounds: int = 5) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _report(name: str, ours: float, theirs: float, whose: str) -> float:
    print(f"{name:<36}{ours * 1e3:9.1f} ms {theirs * 1e3:10.1f} ms ({whose})  ratio {theirs / ours:7.1f}x")
    return theirs / ours


def test_all_classification_metrics_of_a_million_rows(
    benchmark: Any, torch: Any, classes: tuple[NDArray[np.float64], NDArray[np.int64]]
) -> None:
    p, labels = classes
    values = benchmark.pedantic(lambda: score(Forecast("classification", labels, p[None])), rounds=3, warmup_rounds=1)
    everything = float(benchmark.stats.stats.min)
    functional = _load("torchmetrics.functional.classification")
    metrics, curves = _load("sklearn.metrics"), _load("sklearn.calibration")
    tensor, target = torch.from_numpy(p), torch.from_numpy(labels)
    confidence, correct = p.max(axis=1), p.argmax(axis=1) == labels

    def their_ece(validate: bool = True) -> float:
        return float(
            functional.multiclass_calibration_error(tensor, target, CLASSES, n_bins=15, validate_args=validate)
        )

    def our_ece() -> float:
        return expected_calibration_error(*_top(p, labels))

    assert values["ece"] == pytest.approx(their_ece(), abs=1e-6)
    print(f"\nN = {ROWS:,}, C = {CLASSES}: {len(values)} metrics and all checks in {everything * 1e3:.0f} ms")
    ours = _best(our_ece)
    _report("ece, from probabilities", ours, _best(their_ece), "torchmetrics")
    _report("ece, from probabilities", ours, _best(lambda: their_ece(False)), "torchmetrics, unchecked")
    _report(
        "ece, from confidences",
        _best(lambda: expected_calibration_error(confidence, correct)),
        _best(lambda: curves.calibration_curve(correct, confidence, n_bins=15)),
        "scikit-learn calibration_curve",
    )
    _report(
        "nll_categorical",
        _best(lambda: categorical_nll(p, labels)),
        _best(lambda: metrics.log_loss(labels, p), 2),
        "scikit-learn",
    )
    _report(
        "brier",
        _best(lambda: brier_score(p, labels)),
        _best(lambda: _their_brier(metrics, p, labels), 2),
        "scikit-learn",
    )
    _report(
        "error_auroc",
        _best(lambda: auroc(-confidence[correct], -confidence[~correct])),
        _best(lambda: metrics.roc_auc_score(~correct, -confidence), 2),
        "scikit-learn",
    )
    print(f"ece_adaptive {_best(lambda: adaptive_calibration_error(confidence, correct)) * 1e3:.1f} ms, ", end="")
    print(f"ece_classwise {_best(lambda: class_wise_calibration_error(p, labels)) * 1e3:.1f} ms, ", end="")
    print(f"ece_smooth {_best(lambda: smooth_calibration_error(confidence, correct)) * 1e3:.1f} ms")


def _top(p: NDArray[np.float64], labels: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    best = p.argmax(axis=1)
    return p[np.arange(best.size), best], best == labels


def _their_brier(metrics: Any, p: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    return float(metrics.brier_score_loss(labels, p, labels=np.arange(CLASSES), scale_by_half=False))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sample_crps_is_at_least_50_times_as_quick(benchmark: Any, torch: Any, dtype: str) -> None:
    rng = np.random.default_rng(2)
    draws = rng.normal(size=(CRPS_DRAWS, CRPS_ROWS)).astype(dtype)
    y = rng.normal(size=CRPS_ROWS).astype(dtype)
    # Each side gets the layout it asks for: draws first for ours, rows first for theirs.
    tensor, target = torch.from_numpy(np.ascontiguousarray(draws.T)), torch.from_numpy(y)
    theirs = _load("torchmetrics.functional.regression").continuous_ranked_probability_score
    value = benchmark.pedantic(lambda: crps_fair(y, draws), rounds=10, warmup_rounds=2)
    plain = float(np.abs(draws.astype(np.float64) - y).mean())
    fair = plain - (plain - float(theirs(tensor, target))) * CRPS_DRAWS / (CRPS_DRAWS - 1)
    assert value == pytest.approx(fair, abs=1e-5 if dtype == "float32" else 1e-9)
    name = f"crps_sample N={CRPS_ROWS:,} T={CRPS_DRAWS} {dtype}"
    print()
    assert (
        _report(name, float(benchmark.stats.stats.min), _best(lambda: theirs(tensor, target), 3), "torchmetrics") >= 50
    )


def test_sample_crps_memory_is_linear() -> None:
    rng = np.random.default_rng(3)
    print()
    peaks = []
    for count in (50, 100, 200):
        draws, y = rng.normal(size=(count, CRPS_ROWS)), rng.normal(size=CRPS_ROWS)
        tracemalloc.start()
        crps_fair(y, draws)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        print(f"crps_sample N={CRPS_ROWS:,} T={count}: {peaks[-1] / 1e6:.1f} MB, draws {draws.nbytes / 1e6:.0f} MB")
        assert peaks[-1] < draws.nbytes
