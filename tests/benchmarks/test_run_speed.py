"""What planning, engines and the store cost beside the training, and what a second worker brings.

The second needs the UCI files: UQBENCH_DATA=DIR make bench.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.machine.data_files import find_file

NOTHING = '''
"""Nothing: two rows to train on, two to test."""
from dataclasses import dataclass
import numpy as np
from bench.api import Dataset, Split

@dataclass(frozen=True)
class Nothing(Dataset):
    """Two rows."""
    task = "regression"
    def load(self, split):
        x = np.array([[0.0], [1.0]]) + split
        return Split("regression", x, x[:, 0], x, x[:, 0])
'''
IDLE = '''
"""Idle: an ordinary network under a number."""
from dataclasses import dataclass
from bench.api import Method

@dataclass(frozen=True)
class Idle(Method):
    """Does nothing of its own."""
    number: int = 0
'''


def uqbench(*arguments: str) -> float:
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "bench", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - began


def test_ten_thousand_cells_that_do_nothing(tmp_path: Path) -> None:
    for name, text in (("nothing", NOTHING), ("idle", IDLE)):
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
    methods = "\n".join(f'[methods.idle{n}]\nuse = "idle"\nnumber = {n}' for n in range(100))
    suite = tmp_path / "idle.toml"
    suite.write_text(
        'title = "Nothing to do"\nseeds = 100\ndraws = 1\nvalidation = 0.0\n[training]\nepochs = 1\n'
        f"[network]\nhidden = [1]\n[datasets.nothing]\n{methods}\n",
        "utf-8",
    )
    plugins = [part for name in ("nothing", "idle") for part in ("--plugin", str(tmp_path / f"{name}.py"))]
    only = ["--dataset", "nothing", *(part for n in range(100) for part in ("--method", f"idle{n}"))]
    store = str(tmp_path / "idle.db")
    engine = ["--engine", "local", "--workers", "2"]
    seconds = uqbench("run", str(suite), *plugins, *only, *engine, "--store", store)
    told = subprocess.run(
        [sys.executable, "-m", "bench", "status", "--json", "--store", store],
        capture_output=True,
        text=True,
        check=True,
    )
    print(f"\n10,000 cells through planner, local engine (2 workers) and store: {seconds:.1f} s")
    assert "10000" in told.stdout.replace(",", "")
    print(json.dumps(json.loads(told.stdout))[:300])


@pytest.mark.skipif(find_file("uci/yacht/data.txt") is None, reason="the UCI files are not here (UQBENCH_DATA)")
def test_a_second_worker(tmp_path: Path) -> None:
    seeds = os.environ.get("UQBENCH_SEEDS", "5")
    taken = {}
    # The first run fills the compiler's cache, and is not compared.
    for number, workers in enumerate(("2", "1", "2")):
        store = str(tmp_path / f"{number}.db")
        arguments = ["--engine", "local", "--workers", workers, "--seeds", seeds, "--store", store]
        taken[workers] = uqbench("run", "uci-fixed", *arguments)
    ratio = taken["1"] / taken["2"]
    print(f"\nuci-fixed, {seeds} seeds: 1 worker {taken['1']:.0f} s, 2 workers {taken['2']:.0f} s: {ratio:.2f}x")
