"""What suite `uci` takes a worker, cell by cell and end to end, beside an ordinary loop and a JAX version.

    pip install 'uqbench[bench,peers]'
    UQBENCH_DATA=DIR UQBENCH_TABLE=rows.jsonl python -m pytest tests/benchmarks/test_uci_speed.py -s \
        -o addopts=--import-mode=importlib

Prints a table with a row for each set and method, and each row as soon as it is measured. Every cell runs in a process
of its own, and all processes have one core: that is what a worker of a busy machine has. A row is from a warm compile
cache: a run that compiled a graph is repeated.

    UQBENCH_SETS=boston,yacht       these sets; all but protein where it is not given, for protein takes hours in all
    UQBENCH_METHODS=mc-dropout      these methods
    UQBENCH_COLD=1                  every cell also from an empty compile cache; UQBENCH_COLD=only: from it alone
    UQBENCH_TABLE=rows.jsonl        rows are added to this file; python -m tools.speed_table makes its tables
    UQBENCH_JAX_PYTHON=PATH         the Python that has JAX, where it is not this one
    UQBENCH_JAX_STEPS=20000000      steps of all members of a search after which JAX ends; 5,000,000 if not given
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bench.machine.data_files import find_file
from tests.benchmarks.ordinary_loop import new_module, new_optimizer
from tests.benchmarks.uci_cell import starts
from tools.speed_table import Row, large, large_table

ROOT = Path(__file__).resolve().parents[2]
SETS = ("boston", "concrete", "energy", "kin8nm", "power", "wine-red", "yacht")
METHODS = ("deterministic", "mc-dropout", "mcni-fixed", "mcni-learned", "deep-ensemble")
JAX_PYTHON = os.environ.get("UQBENCH_JAX_PYTHON", sys.executable)
JAX_STEPS = os.environ.get("UQBENCH_JAX_STEPS", "5000000")


def chosen_names(variable: str, default: tuple[str, ...]) -> list[str]:
    """Return the names that an environment variable lists."""
    return [name for name in os.environ.get(variable, "").split(",") if name] or list(default)


def json_printed_by(python: str, *arguments: str, **environment: str) -> Any:
    """Return the JSON that a module prints in a process of its own."""
    command = [python, "-m", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def has_jax() -> bool:
    return not subprocess.run([JAX_PYTHON, "-c", "import jax"], capture_output=True, check=False).returncode


@pytest.fixture
def one_core() -> Iterator[None]:
    """Give the processes that are started one core, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    yield
    os.sched_setaffinity(0, before)


def measured_row(dataset: str, method: str, folder: Path, has_jax: bool) -> Row:
    problem, environment = str(folder / "problem.npz"), {}
    row: Row = {"set": dataset, "method": method}
    cell = ("tests.benchmarks.uci_cell", dataset, method, problem)
    cold = os.environ.get("UQBENCH_COLD")
    if cold:
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "graphs")
        row["cold"] = json_printed_by(sys.executable, *cell, **environment)
        if cold == "only":
            return row
    row["warm"] = json_printed_by(sys.executable, *cell, **environment)
    if row["warm"]["graphs_compiled"]:
        row["warm"] = json_printed_by(sys.executable, *cell, **environment)
    if has_jax:
        row["jax"] = json_printed_by(JAX_PYTHON, "tests.benchmarks.jax_peer", problem, JAX_STEPS)
    return row


@pytest.mark.skipif(find_file("uci/yacht/data.txt") is None, reason="the UCI files are not here (UQBENCH_DATA)")
@pytest.mark.usefixtures("one_core")
def test_suite_uci_cell_by_cell(tmp_path: Path, has_jax: bool) -> None:
    rows: list[Row] = []
    if not has_jax:
        print(f"\n{JAX_PYTHON} has no JAX, which is then not compared with: pip install 'uqbench[peers]'")
    for dataset in chosen_names("UQBENCH_SETS", SETS):
        for method in chosen_names("UQBENCH_METHODS", METHODS):
            folder = tmp_path / f"{dataset}-{method}"
            folder.mkdir()
            rows.append(measured_row(dataset, method, folder, has_jax))
            lines = large_table(rows[-1:])
            print("\n".join(["", *lines] if len(rows) == 1 else lines[2:]), flush=True)
            if path := os.environ.get("UQBENCH_TABLE"):
                with Path(path).open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    print(f"\n{large(rows)}")


@pytest.mark.usefixtures("one_core")
def test_headline() -> None:
    found = json_printed_by(sys.executable, "tests.benchmarks.headline")
    print(
        f"\n120 MLPs 8-50-1, compiled, set-up not included: {found['step_us']:.1f} us per member-step, "
        f"loop {found['loop_us']:.0f} us: {found['loop_us'] / found['step_us']:.0f}x"
    )


FOLDS, ROWS, HELD, FEATURES, HIDDEN, BATCH, EPOCHS = 2, 640, 100, 5, 20, 32, 3
RATES, DECAYS, LEVEL = (1e-4, 1e-3, 1e-2), (0.1, 1e-5, 0.01), 0.6


def small_problem(method: str, configurations: int) -> dict[str, Any]:
    """Return a problem whose batches are given, for any number of configurations."""
    source = np.random.default_rng(0)
    x = source.normal(size=(FOLDS, ROWS + HELD, FEATURES)).astype(np.float32)
    orders = [[source.permutation(ROWS).reshape(-1, BATCH) for _ in range(FOLDS)] for _ in range(EPOCHS)]
    which = np.arange(configurations) % len(RATES)
    return {
        "method": method,
        "batch": BATCH,
        "patience": 100,
        "most_epochs": 100,
        "learning_rate": np.array(RATES, np.float32)[which],
        "weight_decay": np.array(DECAYS, np.float32)[which],
        "level": np.full(configurations, LEVEL, np.float32),
        "search_x": x,
        "search_y": np.sin(x.sum(-1)),
        "search_train": np.tile(np.arange(ROWS), (FOLDS, 1)),
        "search_validation": np.tile(np.arange(ROWS, ROWS + HELD), (FOLDS, 1)),
        "orders": np.array(orders),
        # Larger than usual: the noise, which grows with the weights, is to be seen in the losses.
        **{f"search_{name}": 3 * array for name, array in starts(FEATURES, HIDDEN, FOLDS).items()},
    }


def torch_losses(problem: dict[str, Any], configuration: int, fold: int) -> tuple[list[float], float]:
    """Return the losses of every step and the best validation loss in PyTorch."""
    module = new_module(problem["method"], FEATURES, HIDDEN, LEVEL)
    own = {name.removeprefix("search_"): value[fold] for name, value in problem.items() if name.startswith("search_")}
    tensors = {name: torch.from_numpy(value) for name, value in own.items()}
    with torch.no_grad():
        for number, layer in enumerate((layer for layer in module if isinstance(layer, nn.Linear)), start=1):
            layer.weight.copy_(tensors[f"w{number}"].T)
            layer.bias.copy_(tensors[f"b{number}"])
    optimizer = new_optimizer(module, RATES[configuration], DECAYS[configuration])
    losses, best = [], float("inf")
    for order in problem["orders"][:, fold]:
        module.train()
        for rows in order:
            optimizer.zero_grad()
            loss = F.mse_loss(module(tensors["x"][rows])[:, 0], tensors["y"][rows])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        module.eval()
        held = tensors["validation"]
        best = min(best, F.mse_loss(module(tensors["x"][held])[:, 0], tensors["y"][held]).item())
    return losses, best


def jax_losses(problem: dict[str, Any], path: Path) -> tuple[Any, Any]:
    """Return the losses `[steps, configurations, folds]` and the best validation losses in JAX."""
    np.savez(path, **problem)
    found = json_printed_by(JAX_PYTHON, "tests.benchmarks.jax_peer", str(path))
    steps = EPOCHS * ROWS // BATCH
    return np.array(found["losses"]).reshape(steps, -1, FOLDS), np.array(found["best"]).reshape(-1, FOLDS)


def test_jax_trains_as_torch_does(tmp_path: Path, has_jax: bool) -> None:
    if not has_jax:
        pytest.skip(f"{JAX_PYTHON} has no JAX")
    problem = small_problem("deterministic", len(RATES))
    losses, best = jax_losses(problem, tmp_path / "problem.npz")
    for configuration in range(len(RATES)):
        for fold in range(FOLDS):
            expected, expected_best = torch_losses(problem, configuration, fold)
            np.testing.assert_allclose(losses[:, configuration, fold], expected, atol=1e-4)
            np.testing.assert_allclose(best[configuration, fold], expected_best, atol=1e-4)


@pytest.mark.parametrize("method", ["mc-dropout", "mcni-fixed", "mcni-learned"])
def test_jax_noise_has_the_law_of_torch(method: str, tmp_path: Path, has_jax: bool) -> None:
    """Compare the mean losses of many trainings that differ in their noise alone: of each step, and over all steps."""
    if not has_jax:
        pytest.skip(f"{JAX_PYTHON} has no JAX")
    problem, last = small_problem(method, 100 * len(RATES)), len(RATES) - 1
    losses = jax_losses(problem, tmp_path / "problem.npz")[0][:, last :: len(RATES), 0]
    torch.manual_seed(0)
    expected = np.array([torch_losses(problem, last, 0)[0] for _ in range(60)]).T
    found, wanted = (np.vstack([each, each.mean(0)]) for each in (losses, expected))
    z = (found.mean(1) - wanted.mean(1)) / np.sqrt(found.var(1) / found.shape[1] + wanted.var(1) / wanted.shape[1])
    assert abs(z).max() < 4.5, z
    assert np.median(losses.std(1) / expected.std(1)) == pytest.approx(1, abs=0.2)
