"""What a study with a grid search would take one training at a time, from the study's own record.

    UQBENCH_DATA=DIR uqbench run uci-small --seeds 1 --store study.db
    UQBENCH_DATA=DIR UQBENCH_STUDY=study.db python -m pytest tests/benchmarks/test_search_speed.py -s \
        -o addopts=--import-mode=importlib

The record says how many epochs every configuration trained on every fold. An ordinary loop (one model, one batch, fused
Adam, the method's noise, a validation pass an epoch) is measured on a slice of each dataset's and method's trainings
and extrapolated to that number of steps: the loop's total is an estimate, the study's time is measured.
"""

import json
import os
import time
from collections import defaultdict
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bench.plugins.registry import Registry
from bench.spec.spec import read_spec
from bench.store.store import Store
from bench.training.folds import folds
from bench.training.limits import threads

STUDY = os.environ.get("UQBENCH_STUDY", "")
SLICE = 300  # steps measured for every dataset and method


def loop_seconds(x: torch.Tensor, y: torch.Tensor, hidden: int, batch: int, method: str) -> tuple[float, float]:
    """Seconds of a training step and of a validation pass in an ordinary loop, at one thread, which suits it best."""
    module = nn.Sequential(nn.Linear(x.shape[1], hidden), nn.ReLU(), nn.Dropout(0.05), nn.Linear(hidden, 1))
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3, weight_decay=1e-5, fused=True)
    noisy = method.startswith("mcni")
    layers = [layer for layer in module if isinstance(layer, nn.Linear)]
    alphas = [torch.full_like(layer.weight, 0.05, requires_grad=True) for layer in layers]
    train, held = folds(len(x), 5, 0)[0]
    if method != "mc-dropout":
        module[2] = nn.Identity()
    if method == "mcni-learned":
        optimizer.add_param_group({"params": alphas})

    def outputs(rows: torch.Tensor) -> torch.Tensor:
        if not noisy:
            return module(rows)[:, 0]  # type: ignore[no-any-return]
        weights = [
            layer.weight + alpha * layer.weight.detach().std() * torch.randn_like(layer.weight)
            for layer, alpha in zip(layers, alphas, strict=True)
        ]
        inner = F.relu(F.linear(rows, weights[0], layers[0].bias))
        return F.linear(inner, weights[1], layers[1].bias)[:, 0]

    with threads(1):
        order = train[torch.randperm(len(train))].split(batch)[: len(train) // batch]
        began = time.perf_counter()
        for step in range(SLICE):
            chosen = order[step % len(order)]
            optimizer.zero_grad()
            F.mse_loss(outputs(x[chosen]), y[chosen]).backward()
            optimizer.step()
        step_seconds = (time.perf_counter() - began) / SLICE
        began = time.perf_counter()
        for _ in range(20):
            with torch.no_grad():
                F.mse_loss(module.eval()(x[held])[:, 0], y[held]).item()
        return step_seconds, (time.perf_counter() - began) / 20


@pytest.mark.skipif(not Path(STUDY).is_file(), reason="UQBENCH_STUDY names no store of a study")
def test_a_study_against_the_loop() -> None:
    store = Store(STUDY, create=False, writable=False)
    (suite,) = store.suites()
    registry = Registry()
    steps: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    measured: dict[str, float] = defaultdict(float)
    seen = set()
    for row in store.cells(suite):
        spec, training = read_spec(row["spec"]), json.loads(row["training"])
        data = registry.make("dataset", spec.dataset.name, spec.dataset.options).load(row["split"])
        x = torch.from_numpy(data.train_x).float()
        y = torch.from_numpy(data.train_y).float()
        protocol = spec.protocol
        batch, hidden = protocol.training.batch, protocol.network.options["hidden"][0]
        step, validation = loop_seconds(x, (y - y.mean()) / y.std(), hidden, batch, row["method"])
        per_fold = (len(x) - len(x) // protocol.folds) // batch
        search = json.loads(store.searches([row["key"]]).get(row["key"], "{}"))
        tried = json.dumps([row["dataset"], row["split"], search.get("losses")])
        epochs = 0 if tried in seen else sum(map(sum, search["epochs"]))  # a shared search was done once
        seen.add(tried)
        final = (len(x) - round(protocol.validation * len(x))) // batch
        finals = sum(training["epochs"])
        steps[row["dataset"]] += epochs * per_fold + finals * final
        seconds[row["dataset"]] += epochs * (per_fold * step + validation) + finals * (final * step + validation)
        measured[row["dataset"]] += row["seconds"]
    print(f"\n{'dataset':<10} {'member-steps':>13} {'loop (est.)':>12} {'workers':>9} {'ratio':>7}")
    for name, count in steps.items():
        ratio = seconds[name] / measured[name]
        print(f"{name:<10} {count:>13,} {seconds[name]:>10,.0f} s {measured[name]:>7,.0f} s {ratio:>6.0f}x")
    total, ours = sum(seconds.values()), sum(measured.values())
    print(f"{'all':<10} {sum(steps.values()):>13,} {total:>10,.0f} s {ours:>7,.0f} s {total / ours:>6.0f}x a worker")
