"""Generated results, for the checks and tests of reports: no run is needed."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from bench.api import Array, Curves, Kept
from bench.spec.plugin import PluginSpec
from bench.spec.protocol import Protocol
from bench.spec.spec import CellSpec

PLACE = ["suite", "dataset", "split", "method", "seed"]
CELL = ["key", "spec", "status", "message", "training", "environment"]
METRICS = {"line": ("rmse", "nll", "crps", "picp"), "heaps": ("accuracy", "ece", "brier")}


@dataclass(eq=False)
class ExampleResults:
    """The results of a suite, with the attributes of `bench.api.Results`."""

    suite: str = "example"
    title: str = "Example results"
    baseline: str | None = None
    metrics: list[str] = field(default_factory=list)
    frame: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=[*PLACE, "key", "metric", "value"]))
    cells: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=[*PLACE, *CELL]))
    remarks: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["dataset", "method", "text"]))
    rescored: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=["metric", "version", "precision", "values"])
    )
    corrected: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=[*PLACE[1:], "key", "correction", "metric", "value"])
    )
    predictions: dict[str, Curves] = field(default_factory=dict)
    bank: dict[str, Kept] = field(default_factory=dict)

    @property
    def failures(self) -> pd.DataFrame:
        """The cells that failed or diverged, one row each."""
        lost = self.cells[self.cells["status"].isin(["failed", "diverged"])]
        return lost[[*PLACE, "status"]].assign(message=[str(m).partition("\n")[0] for m in lost["message"]])

    def curves(self, key: str) -> Curves | None:
        """Return the predictions of one cell."""
        return self.predictions.get(key)

    def kept(self, key: str) -> Kept | None:
        """Return all predictions of one cell."""
        return self.bank.get(key)

    def arrays(self, key: str) -> dict[str, Array]:
        """Return the arrays of one cell."""
        curves = self.predictions.get(key)
        return {} if curves is None else {name: a for name, a in vars(curves).items() if a is not None}


def example_results(
    methods: Sequence[str] = ("first", "second", "third"),
    datasets: Sequence[str] = ("line", "heaps"),
    seeds: int = 3,
    lost: str = "",
    change: Callable[[float], float] = lambda value: value,
) -> ExampleResults:
    """Return random results of these methods, the same in every call.

    All cells of the method `lost` on the first dataset fail or diverge; `change` is applied to every value.
    """
    random = np.random.default_rng(3)
    values, cells, predictions = [], [], {}
    for number, dataset in enumerate(datasets):
        kind = list(METRICS)[number % 2]
        for method in methods:
            for seed in range(seeds):
                place, key = ("example", dataset, seed, method, seed), f"{number}{methods.index(method)}{seed}" * 8
                gone = method == lost and number == 0
                cells.append((*place, key, _spec(dataset, method, seed), *_outcome(gone, seed)))
                if gone:
                    continue
                for metric in METRICS[kind]:
                    values.append((*place, key, metric, change(float(random.uniform(0.1, 0.9)))))
                if kind == "line":
                    predictions[key] = _curves(random, change)
    blank = ExampleResults()
    return ExampleResults(
        baseline=methods[0],
        metrics=["rmse", "accuracy"],
        frame=pd.DataFrame(values, columns=blank.frame.columns) if values else blank.frame,
        cells=pd.DataFrame(cells, columns=blank.cells.columns),
        remarks=pd.DataFrame([(datasets[0], "", "the rows are generated")], columns=blank.remarks.columns),
        predictions=predictions,
    )


def _spec(dataset: str, method: str, seed: int) -> str:
    rows, noisy = PluginSpec(dataset), PluginSpec(method, options={"level": 0.1})
    protocol = Protocol()
    return CellSpec(
        dataset=rows, data="example", method=noisy, protocol=protocol, split=seed, seed=seed, harness=1
    ).text


def _outcome(gone: bool, seed: int) -> tuple[str, str, str | None, str]:
    environment = json.dumps({"python": "3.11", "device": "cpu", "packages": {"torch": "2.13.0", "seaborn": None}})
    if gone and seed == 0:
        return "failed", "ValueError: example of a failure\n\nTraceback", None, environment
    training = {"epochs": [20], "train_loss": [None if gone else 0.2], "validation_loss": [None if gone else 0.3]}
    status, message = ("diverged", "the loss was not finite") if gone else ("ok", "")
    return status, message, json.dumps(training), environment


def _curves(random: np.random.Generator, change: Callable[[float], float]) -> Curves:
    x = np.linspace(-1, 1, 30)
    observed = np.sin(3 * x) + 0.1 * random.normal(size=30)
    variance = np.full(30, change(0.04))
    return Curves(observed, np.sin(3 * x), variance, x[:, None], np.sin(3 * x))


def _spoil(value: float) -> float:
    return math.inf if value < 0.3 else math.nan if value < 0.5 else value


HOSTILE = (
    "<script>alert(1)</script>",
    "a|b$\\frac{",
    "50% \"quoted\" 'name' & more",
    "../../etc/passwd",
    "多言語 ñ 🙂",
)

SITUATIONS: dict[str, Callable[[], ExampleResults]] = {
    "empty": ExampleResults,
    "normal": example_results,
    "one-method": lambda: example_results(methods=("only",), seeds=1),
    "failed-cells": lambda: example_results(lost="second"),
    "all-failed": lambda: example_results(methods=("only",), datasets=("line",), lost="only"),
    "not-finite": lambda: example_results(change=_spoil),
    "hostile-names": lambda: example_results(methods=HOSTILE, datasets=HOSTILE[:2]),
}
