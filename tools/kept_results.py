"""Results of a suite in one small file of the repository: values per seed, specifications, and verdicts on claims.

Pages that are made from such files can be made again by everybody. Arrays are left out, so verdicts that need them are
kept as they were given.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from bench.api import Array, Curves, Kept, Results, read_spec

DIGITS = 6  # significant ones, of a value
FACTS = ("device_name", "packages", "python")  # of the environment of the first cell; versions of the code are all kept
PLACE = ["suite", "dataset", "split", "method", "seed"]


class KeptResults:
    """The results in such a file, as reports see them."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content
        self.suite: str = content["suite"]
        self.title: str = content["title"]
        self.baseline: str | None = content["baseline"]
        self.metrics: list[str] = content["metrics"]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Metric values, one row each."""
        rows = [
            (*place, metric, float(value))
            for kind, places in self._places()
            for metric, values in kind["values"].items()
            for place, value in zip(places, values, strict=True)
            if value is not None
        ]
        return pd.DataFrame(rows, columns=[*PLACE, "key", "metric", "value"])

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Cells that ended well, one row each."""
        rows = []
        for kind, places in self._places():
            for place in places:
                data = self.content["data"][place[1]][str(place[4])]
                spec = replace(read_spec(kind["spec"]), split=place[2], seed=place[4], data=data)
                about = (spec.text, "ok", None, json.dumps(kind["training"]))
                rows.append((*place, *about, json.dumps(self.content["environment"])))
        columns = [*PLACE, "key", "spec", "status", "message", "training", "environment"]
        return pd.DataFrame(rows, columns=columns)

    @property
    def remarks(self) -> pd.DataFrame:
        """None are kept."""
        return pd.DataFrame(columns=["dataset", "method", "text"])

    @property
    def failures(self) -> pd.DataFrame:
        """None are kept."""
        return pd.DataFrame(columns=[*PLACE, "status", "message"])

    @property
    def corrected(self) -> pd.DataFrame:
        """None are kept."""
        return pd.DataFrame(columns=["dataset", "split", "method", "seed", "key", "correction", "metric", "value"])

    @property
    def rescored(self) -> pd.DataFrame:
        """None are kept."""
        return pd.DataFrame(columns=["metric", "version", "precision", "values"])

    def kept(self, key: str) -> Kept | None:
        """Return None: predictions are not kept."""
        return None

    def curves(self, key: str) -> Curves | None:
        """Return None: arrays are not kept."""
        return None

    def arrays(self, key: str) -> Mapping[str, Array]:
        """Return nothing: arrays are not kept."""
        return {}

    def _places(self) -> Iterator[tuple[Mapping[str, Any], list[tuple[Any, ...]]]]:
        for kind in self.content["kinds"]:
            names = kind["dataset"], kind["method"]
            yield (
                kind,
                [
                    (self.suite, names[0], split, names[1], seed, f"{' '.join(names)} {seed}")
                    for split, seed in zip(kind["splits"], kind["seeds"], strict=True)
                ],
            )


def kept(results: Results, metrics: set[str], command: str) -> dict[str, Any]:
    """Return the content of the file of some results: the named metrics of all cells that ended well."""
    cells = results.cells[results.cells["status"] == "ok"]
    values = results.frame[results.frame["metric"].isin(metrics)]
    table = values.pivot_table(index=["dataset", "method", "seed"], columns="metric", values="value", sort=False)
    kinds: list[dict[str, Any]] = []
    data: dict[str, dict[str, str]] = {}
    for (dataset, method), own in cells.groupby(["dataset", "method"], sort=False):
        specs = [read_spec(text) for text in own["spec"]]
        data.setdefault(str(dataset), {}).update(
            {str(seed): spec.data for seed, spec in zip(own["seed"], specs, strict=True)}
        )
        found = table.reindex([(dataset, method, seed) for seed in own["seed"]]).dropna(axis=1, how="all")
        kinds.append(
            {
                "dataset": dataset,
                "method": method,
                "spec": specs[0].text,  # of the first repeat
                "training": {
                    key: v for key, v in json.loads(own["training"].iloc[0] or "{}").items() if key == "repeats"
                },
                "seeds": own["seed"].tolist(),
                "splits": own["split"].tolist(),
                "values": {str(metric): [_number(value) for value in found[metric]] for metric in found},
            }
        )
    environments = [json.loads(text) for text in cells["environment"]]
    code = ", ".join(sorted({str(each.get("code", "unknown")) for each in environments}))
    return {
        "suite": results.suite,
        "title": results.title,
        "baseline": results.baseline,
        "metrics": results.metrics,
        "command": command,
        "environment": {"code": code, **{key: environments[0][key] for key in FACTS if key in environments[0]}},
        "data": data,
        "kinds": kinds,
    }


def joined(content: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of some cells with what was kept before of other datasets and methods of the suite."""
    if content["suite"] != before["suite"]:
        raise ValueError(f"results of {content['suite']} cannot be added to those of {before['suite']}")
    own = {(kind["dataset"], kind["method"]) for kind in content["kinds"]}
    others = [kind for kind in before["kinds"] if (kind["dataset"], kind["method"]) not in own]
    data = {name: dict(before["data"].get(name, {})) for name in {**before["data"], **content["data"]}}
    for name, seeds in content["data"].items():
        if any(data[name].get(seed, found) != found for seed, found in seeds.items()):
            raise ValueError(f"{name}: the rows are not those of the results that are kept")
        data[name] |= seeds
    code = {part for each in (before, content) for part in each["environment"]["code"].split(", ")}
    kinds = sorted([*others, *content["kinds"]], key=lambda kind: (kind["dataset"], kind["method"]))
    environment = {**content["environment"], "code": ", ".join(sorted(code))}
    return {**content, "environment": environment, "data": data, "kinds": kinds}


def _number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(value)


def write(content: Mapping[str, Any], path: Path) -> None:
    """Write a file, a list of values in one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lists = re.compile(r"\[[^\[\]{}]*\]")
    text = lists.sub(lambda found: " ".join(found[0].split()), json.dumps(content, indent=1, ensure_ascii=False))
    path.write_text(text + "\n", "utf-8")


def read(path: Path) -> KeptResults:
    """Return the results of a file."""
    return KeptResults(json.loads(path.read_text("utf-8")))
