"""A store as the producers of all sections fill it: shift, latency, softmax, levels, histories, failures, odd names."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from bench.probes.latency.conditions import FACTS, FACTS_PER_SERIES
from bench.spec.cell import Cell, Outcome
from bench.spec.protocol import Protocol
from bench.store.results import StoredResults
from bench.store.store import Store, SuiteRecord

PAPER = ("deterministic", "mc-dropout", "mcni-fixed", "mcni-learned")


def spec(dataset: str, method: str, seed: int, options: dict[str, Any] | None = None, **protocol: Any) -> str:
    """The specification of a cell; keys of the protocol are merged into the default one."""
    whole = asdict(Protocol())
    for key, value in protocol.items():
        whole[key] = {**whole[key], **value} if isinstance(value, dict) else value
    about = {
        "dataset": [dataset, "built in", "1", options or {}],
        "method": [method, "built in", "1", {}],
        "protocol": whole,
        "data": f"{dataset}-{seed}",
        "seed": seed,
    }
    return json.dumps(about, sort_keys=True)


def saved(
    store: Store,
    suite: str,
    outcomes: dict[tuple[str, str, int], Outcome],
    shown: Sequence[str] = (),
    baseline: str | None = None,
    specs: dict[tuple[str, str, int], str] | None = None,
) -> StoredResults:
    """Store outcomes by (dataset, method, seed) and return them as reports see them."""
    cells = {
        place: Cell(
            f"{suite}/{place}", place[0], place[2], place[1], place[2], (specs or {}).get(place) or spec(*place)
        )
        for place in outcomes
    }
    store.want(SuiteRecord(suite, suite.title(), baseline, shown, "{}"), cells.values())
    store.save(((cells[place], outcome) for place, outcome in outcomes.items()), suite)
    return StoredResults(store, suite)


def shifted(store: Store) -> StoredResults:
    """Accuracy that falls by 0.1 a severity for one method and by 0.05 for the other; ECE that rises."""
    outcomes = {}
    for method, step in (("mc-dropout", 0.1), ("mcni-fixed", 0.05)):
        for seed in range(3):
            values = {"ood_auroc@letters": 0.8 + 0.01 * seed, "accuracy": 0.9, "ece": 0.02}
            for corruption in ("gaussian-noise", "fog"):
                for severity in range(4):
                    values[f"accuracy@{corruption}:{severity}"] = 0.9 - step * severity + 0.001 * seed
                    values[f"ece@{corruption}:{severity}"] = 0.02 + 0.01 * severity
            outcomes["digits", method, seed] = Outcome("ok", metrics=values)
    return saved(store, "shift-digits", outcomes, ["accuracy", "ece"], "mc-dropout")


def timed(store: Store) -> StoredResults:
    """T draws take T ms naively; by the engine 1 + T / 10 ms. Accuracies at two of the T; one method dominated."""
    outcomes = {}
    for method, accuracy, factor in (("mc-dropout", 0.7, 1.0), ("mcni-fixed", 0.8, 1.5), ("sgld", 0.6, 2.0)):
        for seed in range(5):
            values = {"accuracy": accuracy, "accuracy@T=1": accuracy, "accuracy@T=10": accuracy + 0.05}
            arrays = {}
            for draws in (1, 10, 100):
                ms = factor * (1 + draws / 10) + 0.001 * seed
                values[f"latency_forward@T={draws}"] = ms
                values[f"latency_total@T={draws}"] = ms + 1
                values[f"latency_forward@T={draws},mode=naive"] = factor * draws
                arrays[f"latency/latency_forward@T={draws}"] = np.full(10, ms)
            outcomes["digits", method, seed] = Outcome("ok", metrics=values, arrays=arrays, training=measured(values))
    return saved(store, "latency", outcomes, ["accuracy"], "mc-dropout")


def measured(values: Mapping[str, float]) -> dict[str, Any]:
    """How times were measured, without which the store takes none."""
    conditions = {name.partition("@")[2] for name in values if "@" in name}
    series = {condition: dict.fromkeys(FACTS_PER_SERIES, 1) for condition in conditions}
    return {"latency": {"facts": dict.fromkeys(FACTS, "x"), "series": series}}


def softmax(store: Store) -> StoredResults:
    """The rival's mean passes at level 0.2 for one method and never for the other."""
    levels = np.array([0.0, 0.1, 0.2, 0.3])
    outcomes = {}
    for method, slope in (("mc-dropout", 3.0), ("mcni-fixed", 0.5)):
        for seed in range(5):
            true = 0.9 - slope * levels[:, None] + 0.1 * levels[:, None] * np.linspace(-1, 1, 20)[None, :]
            both = np.stack([true, 1 - true], axis=-1)
            flips = levels[both.mean(axis=1)[:, 1] > both.mean(axis=1)[:, 0]]
            metrics = {"flip_level": float(flips[0])} if len(flips) else {}
            outcomes["digits", method, seed] = Outcome(
                "ok", metrics=metrics, arrays={"levels": levels, "softmax": both}
            )
    return saved(store, "softmax-demo", outcomes)


def learned(store: Store) -> StoredResults:
    """Two layers of levels around 0.1 and 0.3, and histories of two networks of which one stopped earlier."""
    history = np.array([[4.0, 2.0, 1.0, 0.5], [8.0, 4.0, np.nan, np.nan]])
    arrays = {
        "inspect/layers.0.weight": np.full((4, 5), 0.1),
        "inspect/layers.1.weight": np.full((5, 1), 0.3),
        "history/train_loss": history,
        "history/validation_loss": history + 1,
    }
    outcomes = {
        ("toy", "mcni-learned", seed): Outcome("ok", metrics={"rmse": 1.0}, arrays=arrays, training={"epochs": [4, 2]})
        for seed in range(2)
    }
    return saved(store, "toy", outcomes)
