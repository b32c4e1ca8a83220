"""How long a large leaderboard takes and how large it is: 20 methods, 20 datasets, 20 seeds, 12 metrics.

python -m pytest tests/benchmarks/test_leaderboard_speed.py -o addopts="--import-mode=importlib" -s
"""

import time
from pathlib import Path

from bench.leaderboard import collect
from bench.leaderboard.site import write_site
from bench.plugins.registry import Registry
from bench.store.store import Store
from tests.fixtures.results import fill, steps

METHODS = [f"method-{number:02}" for number in range(20)]
NUMBERS = ["rmse", "nll", "crps", "picp", "mpiw", "mae", "r2", "nll_mc", "sharpness", "winkler", "mpiw95", "picp95"]
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


def test_a_large_leaderboard(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store.db"))
    value = steps(METHODS, gap=0.15, noise=0.4)
    for suite, metrics in (("numbers", NUMBERS), ("classes", CLASSES)):
        datasets = [f"{suite}-{number:02}" for number in range(10)]
        fill(
            store,
            value,
            suite=suite,
            methods=METHODS,
            datasets=datasets,
            seeds=20,
            metrics=metrics,
            shown=metrics[:6],
            one_split=False,
        )
    clock, processor = time.perf_counter(), time.process_time()
    written = write_site(collect(store), Registry(), tmp_path / "site")
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    sizes = {path.relative_to(tmp_path / "site").as_posix(): path.stat().st_size for path in written}
    print(
        f"\n{clock:.1f} s, {processor:.1f} s of the processor; {len(sizes)} files, {sum(sizes.values()) / 1e6:.1f} MB"
    )
    largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
    print(", ".join(f"{name} {sizes[name] / 1e6:.2f} MB" for name in largest))
    assert max(sizes.values()) < 5e6
