"""Speed of the statistics: a whole study's bootstrap, beside scipy's on a part of it.

python -m pytest tests/benchmarks/test_stats_speed.py -o addopts="--import-mode=importlib" -s
"""

import os
import time
from typing import Any

import numpy as np
import scipy.stats

from bench.stats import bca_interval, permutation_test

RESAMPLES, METHOD_PAIRS, DATASETS, SEEDS = 10_000, 50, 20, 20


def test_the_bootstrap_of_a_study_takes_less_than_ten_seconds(benchmark: Any) -> None:
    d = np.random.default_rng(0).normal(size=(METHOD_PAIRS, DATASETS, SEEDS))

    def whole() -> object:
        return bca_interval(d, np.random.default_rng(1), resamples=RESAMPLES)

    ends = benchmark.pedantic(whole, rounds=3, warmup_rounds=1)
    ours = float(benchmark.stats.stats.min)
    start = time.perf_counter()
    for row in d[0, :5]:
        scipy.stats.bootstrap((row,), np.mean, n_resamples=RESAMPLES, method="BCa", rng=np.random.default_rng(1))
    theirs = (time.perf_counter() - start) / 5 * METHOD_PAIRS * DATASETS
    print(
        f"\n{RESAMPLES:,} BCa resamples x {METHOD_PAIRS} pairs x {DATASETS} datasets, {SEEDS} seeds: {ours:.2f} s "
        f"({os.cpu_count()} cores; scipy one by one, from 5 of 1,000: {theirs:.1f} s)"
    )
    assert ends.shape == (METHOD_PAIRS, DATASETS, 2)
    assert ours < 10.0


def test_the_permutation_tests_of_a_study(benchmark: Any) -> None:
    d = np.random.default_rng(0).normal(size=(METHOD_PAIRS, DATASETS, SEEDS))
    benchmark.pedantic(lambda: permutation_test(d, np.random.default_rng(1)), rounds=3, warmup_rounds=1)
    print(f"\n9,999 sign flips x {METHOD_PAIRS} pairs x {DATASETS} datasets: {float(benchmark.stats.stats.min):.2f} s")
