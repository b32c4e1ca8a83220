"""One cell of suite `uci` in this process: search, final fit and scores, beside an ordinary loop. Prints JSON.

    UQBENCH_DATA=DIR python -m tests.benchmarks.uci_cell yacht mc-dropout problem.npz

Imports are done before the clock starts; tracing, compiling or loading graphs, training, drawing and scoring are
inside. The loop runs before and after the cell, so that a busy machine disturbs both. The file is for `jax_peer`: the
same folds and configurations, and starts of the same law.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import torch

from bench.machine.compiled_cache import compiled_folder
from bench.plan.cells import Task, plan
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.job import Job
from bench.run.jobs import run_jobs
from bench.spec.cell import Outcome
from bench.spec.spec import read_spec
from bench.training.member import Rows
from bench.training.rows import prepare, search_folds
from bench.training.search import Selection
from bench.training.usage import counted
from tests.benchmarks.ordinary_loop import new_module, seconds_per_step

# By scoring and by torch's compiler, which simplifies its indices with sympy.
IMPORTED_ON_THE_WAY = (
    "scipy.special",
    "sympy.physics.units",
    "torch._inductor.compile_fx",
    "torch.utils.cpp_extension",
)
LOOP_STEPS = 1000  # before the cell, and again after it


@dataclass(frozen=True)
class Cell:
    """One cell with the rows of its folds and of its final fit."""

    label: str
    job: Job
    folds: Sequence[Rows]
    final: Rows

    @property
    def hidden(self) -> int:
        """Units of the hidden layer."""
        (units,) = self.job.protocol.network.options["hidden"]
        return int(units)

    @property
    def networks(self) -> int:
        """Networks of the final fit."""
        return int(self.job.method.networks)


def make_cell(dataset: str, label: str) -> Cell:
    """Return the first repeat of a dataset and method of suite `uci`."""
    suite = load_suite("uci", {"seeds": 1}).only([dataset], [label])
    (task,) = plan(suite, Registry())
    assert isinstance(task, Task), task
    spec = read_spec(task.cells[0].spec)
    (split,), protocol, seed = task.splits, task.protocol, spec.seed
    job = Job(task.plugin, protocol, split, seed, data=spec.data, space=spec.space)
    held = search_folds(len(split.train_x), protocol, seed)
    folds = [prepare(split, protocol, seed, "cpu", fold).rows for fold in held]
    return Cell(label, job, folds, prepare(split, protocol, seed, "cpu").rows)


def measured(cell: Cell) -> dict[str, Any]:
    """Run the cell; return its steps and its time."""
    search: Selection | None = None
    outcome: Outcome | None = None
    graphs = _kept_graphs()
    with counted() as usage:
        began, began_cpu = time.perf_counter(), time.process_time()
        for _, event in run_jobs([cell.job]):
            search = event if isinstance(event, Selection) else search
            outcome = event if isinstance(event, Outcome) else outcome
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    assert outcome is not None
    assert search is not None
    assert outcome.status == "ok", outcome.message
    batch = cell.job.protocol.training.batch
    trained = sum(map(sum, search.epochs)) * (len(cell.folds[0].train) // batch)
    trained += sum(outcome.training["epochs"]) * (len(cell.final.train) // batch)
    assert usage.member_steps == trained, f"{usage.member_steps} steps were counted, the record has {trained}"
    return {
        "member_steps": usage.member_steps,
        "slot_steps": usage.slot_steps,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "graphs_compiled": _kept_graphs() - graphs,
        "rmse": outcome.metrics["rmse"],
    }


def _kept_graphs() -> int:
    return len(list((compiled_folder() / "graphs").glob("*.py")))


def loop(cell: Cell, steps: int = LOOP_STEPS) -> tuple[float, float]:
    """Return the microseconds of a step of the ordinary loop, and those of the processor."""
    training = replace(cell.job.protocol.training, learning_rate=1e-3, weight_decay=1e-5)
    seconds, cpu_seconds = seconds_per_step(cell.label, cell.folds, cell.hidden, training, steps)
    return seconds * 1e6, cpu_seconds * 1e6


def starts(inputs: int, hidden: int, count: int) -> dict[str, Any]:
    """Return the weights of new networks, inputs in front."""
    torch.manual_seed(0)
    modules = [list(new_module("", inputs, hidden).parameters()) for _ in range(count)]
    names = ("w1", "b1", "w2", "b2")
    stacked = {name: torch.stack(list(p)).detach() for name, p in zip(names, zip(*modules, strict=True), strict=True)}
    return {name: (p.mT if p.ndim == 3 else p).contiguous().numpy() for name, p in stacked.items()}


def problem(cell: Cell) -> dict[str, Any]:
    """Return the cell for `jax_peer`."""
    training, tried = cell.job.protocol.training, cell.job.configurations()
    found: dict[str, Any] = {
        "method": cell.label,
        "batch": training.batch,
        "patience": training.patience,
        "most_epochs": training.epochs,
        "learning_rate": np.array([one.training["learning_rate"] for one in tried], np.float32),
        "weight_decay": np.array([one.training["weight_decay"] for one in tried], np.float32),
        "level": np.array([next(iter(one.method.values()), 0.0) for one in tried], np.float32),
    }
    for stage, parts, count in (("search", cell.folds, len(cell.folds)), ("final", [cell.final], cell.networks)):
        for name in ("x", "y", "train", "validation"):
            found[f"{stage}_{name}"] = torch.stack([getattr(rows, name) for rows in parts]).numpy()
        weights = starts(parts[0].x.shape[1], cell.hidden, count)
        found |= {f"{stage}_{name}": array for name, array in weights.items()}
    return found


if __name__ == "__main__":
    compiled_folder()  # before torch's compiler is imported, which would choose another
    for name in IMPORTED_ON_THE_WAY:
        import_module(name)

    cell = make_cell(sys.argv[1], sys.argv[2])
    np.savez(sys.argv[3], **problem(cell))
    loop(cell, 200)
    before, row, after = loop(cell), measured(cell), loop(cell)
    (*loop_us,), (*loop_cpu_us,) = zip(before, after, strict=True)
    print(json.dumps(row | {"loop_us": loop_us, "loop_cpu_us": loop_cpu_us}))
