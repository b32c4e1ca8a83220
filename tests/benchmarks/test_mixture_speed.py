"""Speed of forecasts as distributions: a million normals, and mixtures of 100 draws at 20,000 rows.

python -m pytest tests/benchmarks/test_mixture_speed.py -o addopts="--import-mode=importlib" -s
"""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from bench.metrics import Mixture, Normal, Points
from bench.metrics.mixture import LEVELS


def _case(draws: int, rows: int, noise: str = "stated") -> tuple[Mixture, Any]:
    rng = np.random.default_rng(5)
    mean = rng.normal(size=(draws, rows))
    fitted = noise == "fitted"  # one variance for all; a stated one differs between draws and rows
    parts = Points(mean).with_noise(0.5) if fitted else Normal(mean, noise_variance=rng.gamma(2.0, size=mean.shape))
    return Mixture(parts), rng.normal(size=rows)


@pytest.mark.parametrize(
    ("draws", "rows", "noise"), [(1, 1_000_000, "stated"), (100, 20_000, "stated"), (100, 20_000, "fitted")]
)
@pytest.mark.parametrize("name", ["log_density", "cdf", "crps", "quantile"])
def test_distribution_speed(benchmark: Any, name: str, draws: int, rows: int, noise: str) -> None:
    mixture, y = _case(draws, rows, noise)
    argument = LEVELS if name == "quantile" else y
    values = benchmark.pedantic(lambda: getattr(mixture, name)(argument), rounds=2, warmup_rounds=1)
    assert np.isfinite(values).all()
    print(f"\n{name:<12} T={draws:<4} N={rows:>9,} {noise} noise: {benchmark.stats.stats.min * 1e3:9.1f} ms")


def test_memory_does_not_grow_with_the_draws() -> None:
    mixture, y = _case(100, 20_000)
    size = mixture.parts.centre.nbytes
    for name in ("log_density", "cdf", "crps", "quantile"):
        tracemalloc.start()
        getattr(mixture, name)(LEVELS if name == "quantile" else y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < size, name
