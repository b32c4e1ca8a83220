"""Stores made through the store's own interface, with numbers whose truth is known."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bench.spec.cell import Cell, Outcome
from bench.spec.protocol import Protocol
from bench.store.store import Store, SuiteRecord

HOSTILE = (
    "<script>document.title='owned'</script>",
    "\"quoted\" & 'single' </td></table><h1>big</h1>",
    "a-very-long-name-without-any-place-to-break-" * 4,
    "🚀 émoji 🧪",
    "שיטה ימנית \u202e reversed",
    "javascript:alert(1)",
)

ENVIRONMENT: Mapping[str, Any] = {
    "code": "0123456789ab",
    "cores": 2,
    "cpu": "Made CPU",
    "device": "cpu",
    "device_name": "Made CPU",
    "packages": {"uqbench": "0.1.0", "torch": "2.13.0", "numpy": "2.4.0"},
    "python": "3.11.7",
    "system": "Linux 6",
    "threads": 1,
    "wait_policy": "PASSIVE",
}

Value = Callable[[str, str, int, str], float]  # dataset, method, seed, metric


def spec_of(
    dataset: str, method: str, seed: int, *, version: str = "1", one_split: bool = False, **protocol: Any
) -> dict[str, Any]:
    """What a plan writes of a cell."""
    rows = hashlib.blake2b(f"{dataset} {0 if one_split else seed}".encode(), digest_size=16).hexdigest()
    return {
        "harness": 2,
        "dataset": [dataset, "built in", "1", {}],
        "method": [method, "built in", version, {"rate": 0.1}],
        "protocol": {**json.loads(json.dumps(asdict(Protocol()))), **protocol},
        "space": {},
        "data": rows,
        "seed": seed,
    }


def cell_of(dataset: str, method: str, seed: int, spec: Mapping[str, Any]) -> Cell:
    """The cell of a specification, keyed as a plan does."""
    text = json.dumps(spec, sort_keys=True)
    return Cell(hashlib.blake2b(text.encode(), digest_size=16).hexdigest(), dataset, seed, method, seed, text)


def fill(
    store: Store,
    value: Value,
    *,
    suite: str = "made",
    methods: Sequence[str] = ("a", "b", "c"),
    datasets: Sequence[str] = ("one",),
    seeds: int = 6,
    metrics: Sequence[str] = ("rmse",),
    shown: Sequence[str] = (),
    environment: Mapping[str, Any] = ENVIRONMENT,
    one_split: bool = True,
    title: str = "A made suite",
    wanted: bool = True,
    finished: float = 1.7e9,
    version: str = "1",
) -> list[Cell]:
    """Store a suite: the metrics of every dataset, method and seed as `value` says; NaN stores a diverged cell."""
    cells, results = [], []
    for dataset in datasets:
        for method in methods:
            for seed in range(seeds):
                spec = spec_of(dataset, method, seed, one_split=one_split, version=version)
                cell = cell_of(dataset, method, seed, spec)
                numbers = {metric: value(dataset, method, seed, metric) for metric in metrics}
                diverged = any(np.isnan(number) for number in numbers.values())
                outcome = Outcome(
                    "diverged" if diverged else "ok",
                    metrics={} if diverged else numbers,
                    timing={"seconds": 1.0, "cpu_seconds": 0.5, "finished": finished + seed},
                    environment=environment,
                )
                cells.append(cell)
                results.append((cell, outcome))
    if wanted:
        store.want(SuiteRecord(suite, title, None, list(shown), "{}"), cells)
    store.save(results, suite)
    return cells


def steps(methods: Sequence[str], gap: float = 1.0, noise: float = 0.1, seed: int = 0) -> Value:
    """Methods that are `gap` apart in the order given, on every dataset, with noise of their own and a common one."""

    def value(dataset: str, method: str, repeat: int, metric: str) -> float:
        common = np.random.default_rng([seed, repeat, *dataset.encode()]).normal()
        own = np.random.default_rng([seed, repeat, *f"{dataset} {method} {metric}".encode()]).normal()
        return float(10.0 + gap * methods.index(method) + noise * own + common)

    return value


def show_case(path: Path) -> Store:
    """A store with something of everything: ties, a tail, losses, two devices, versions, rows that are not listed."""
    store = Store(str(path))
    methods = ["deep-ensemble", "mcni-learned", "mc-dropout", "swag", "laplace", "mcni-fixed", "sgld", "deterministic"]
    datasets = ["boston", "wine-red", "yacht"]
    level = {m: 0.5 * (i // 2) for i, m in enumerate(methods)}

    def value(dataset: str, method: str, seed: int, metric: str) -> float:
        generator = np.random.default_rng([seed, *f"{dataset} {method} {metric}".encode()])
        common = np.random.default_rng([seed, *dataset.encode()]).normal()
        if method == "sgld" and dataset == "yacht" and seed < 2:
            return float("nan")
        if metric == "picp":
            return float(np.clip(0.997 - 0.02 * level[method] + 0.004 * generator.normal(), 0, 1))
        extra = 40.0 if method == "sgld" and metric == "nll" else 0.0
        return float(3.0 + level[method] + 0.3 * generator.normal() + 0.5 * common + extra)

    metrics = ["rmse", "nll", "picp"]
    place: dict[str, Any] = {"suite": "regression-study", "title": "Regression on three tables", "metrics": metrics}
    place |= {"shown": metrics, "one_split": False, "seeds": 10, "datasets": datasets}

    def earlier(dataset: str, method: str, seed: int, metric: str) -> float:
        """Before a change that made one method better and the other worse, each by one metric."""
        noise = np.random.default_rng([seed, 1, *f"{dataset} {method} {metric}".encode()]).normal()
        moved = {("deep-ensemble", "rmse"): 0.8, ("mcni-learned", "nll"): -0.7}.get((method, metric), 0.0)
        return value(dataset, method, seed, metric) + moved + (0.0005 if metric == "picp" else 0.05) * noise

    for version, code, finished in (("0.1", "aaaa00000001", 1.6e9), ("0.2", "aaaa00000002", 1.65e9)):
        old = {**ENVIRONMENT, "code": code}
        fill(
            store,
            earlier,
            methods=methods[:2],
            **place,
            environment=old,
            wanted=False,
            finished=finished,
            version=version,
        )
    fill(store, value, methods=methods, **place)
    level |= {"pep": 0.2, "drop-connect": 0.0}
    gpu = {**ENVIRONMENT, "device": "cuda", "device_name": "Made GPU"}
    fill(store, value, methods=["pep"], **{**place, "datasets": ["boston"]}, environment=gpu)
    lacking = {**ENVIRONMENT, "packages": {}, "code": "0123456789ab-dirty"}
    fill(store, value, methods=["drop-connect"], **place, environment=lacking)

    def accuracy(dataset: str, method: str, seed: int, metric: str) -> float:
        generator = np.random.default_rng([seed, *f"{dataset} {method} {metric}".encode()])
        return float(np.clip(0.95 - 0.02 * level[method] + 0.005 * generator.normal(), 0, 1))

    fill(
        store,
        accuracy,
        suite="digits-study",
        title="Digits",
        methods=methods[:4],
        datasets=["digits", "two-moons"],
        metrics=["accuracy", "ece"],
        shown=["accuracy", "ece"],
        seeds=5,
        one_split=True,
    )
    store.remark("digits-study", "digits", "", ["Rows of one writer are in both parts."])
    return store
