"""Memory of training on a table of a million rows and 20 features from a CSV file.

    make bench

Prints the processor seconds and the peak memory of 'uqbench run' for one epoch with batches of 1,000 rows, the file's
reading included. The bar is a gigabyte.
"""

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

ROWS, FEATURES, MOST = 1_000_000, 20, 10**9
SUITE = """
title = "Large"
seeds = 1
draws = 2
[training]
epochs = 1
patience = 0
batch = 1000
[network]
hidden = [50]
[datasets.large]
use = "csv"
path = "large.csv"
[methods.deterministic]
"""


def test_a_million_rows_train_within_a_gigabyte(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    with (tmp_path / "large.csv").open("w") as file:
        file.write(",".join(f"c{n}" for n in range(FEATURES)) + ",y\n")
        for _ in range(ROWS // 10_000):
            np.savetxt(file, random.normal(size=(10_000, FEATURES + 1)), fmt="%.5f", delimiter=",")
    (tmp_path / "large.toml").write_text(SUITE, "utf-8")
    command = [sys.executable, "-m", "bench", "run", "large.toml", "--store", "l.db", "--engine", "inline", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["failed"] == []
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = used.ru_maxrss * 1024
    print(f"\n{used.ru_utime:.0f} s of the processor, {peak / 1e6:.0f} MB at the peak")
    assert peak < MOST
