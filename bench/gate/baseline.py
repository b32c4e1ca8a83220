"""Baselines: the values of a suite in a file that people read, review and keep under version control.

JSON with sorted keys and one line per metric, so that a change of one number is a change of one line. Numbers are
written with all their digits: a gate can compare to the last bit.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.errors import UserError
from bench.gate.values import Measured, Place
from bench.machine.files import read_document, write_output
from bench.stats.tests import Array
from bench.store.schema import content_hash

FORMAT = 1


@dataclass(frozen=True)
class Reason:
    """Why a baseline is what it is."""

    date: str
    code: str
    why: str


@dataclass(frozen=True, eq=False)
class Baseline:
    """The values that a suite is compared with."""

    suite: str
    asked: Mapping[str, Any]
    measured: Measured
    reasons: tuple[Reason, ...]

    @property
    def suite_hash(self) -> str:
        """The hash of what the suite asked for."""
        return content_hash(json.dumps(self.asked, sort_keys=True))

    @property
    def code(self) -> str:
        """The versions of the code that computed the values."""
        return ", ".join(self.measured.codes) or "unknown"


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Write a baseline; the file is never left half written."""
    values = {p: {m: _plain(row) for m, row in rows.items()} for p, rows in baseline.measured.values.items()}
    content = {
        "asked": baseline.asked,
        "code": baseline.code,
        "environment": dict(baseline.measured.environment),
        "format": FORMAT,
        "forms": _nested(baseline.measured.forms),
        "lost": _nested(baseline.measured.lost),
        "plugins": dict(baseline.measured.plugins or {}),
        "reasons": [vars(reason) for reason in baseline.reasons],
        "seeds": list(baseline.measured.seeds),
        "suite": baseline.suite,
        "suite_hash": baseline.suite_hash,
        "values": _nested(values),
    }
    text = _dump(content) + "\n"
    write_output(path, text, durable=True)


def read_baseline(path: Path) -> Baseline:
    """Read a baseline; raise UserError with what is wrong about a file that is not one."""
    try:
        raw = json.loads(read_document(path))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; make it with 'uqbench baseline SUITE --out {path}'") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a baseline: not valid JSON: {error}") from None
    if not isinstance(raw, dict) or "format" not in raw:
        raise UserError(f"{path}: not a baseline; make one with 'uqbench baseline SUITE --out {path}'")
    if raw["format"] != FORMAT:
        raise UserError(f"{path}: format {raw['format']} of baselines is not known, only {FORMAT}")
    try:
        return _read(raw)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise UserError(f"{path}: a damaged baseline ({problem}); restore it from version control") from None


def _read(raw: Mapping[str, Any]) -> Baseline:
    seeds = tuple(int(seed) for seed in raw["seeds"])
    values: dict[Place, dict[str, Array]] = {}
    for dataset, methods in raw["values"].items():
        for method, metrics in methods.items():
            for metric, row in metrics.items():
                if len(row) != len(seeds):
                    raise ValueError(f"{dataset} {method} {metric} has {len(row)} values for {len(seeds)} seeds")
                numbers = np.array([math.nan if value is None else float(value) for value in row])
                values.setdefault((dataset, method), {})[metric] = numbers
    lost = {
        place: {status: tuple(which) for status, which in statuses.items()}
        for place, statuses in _places(raw["lost"]).items()
    }
    codes = {raw["code"]: 0} if raw["code"] else {}
    plugins = raw.get("plugins")  # earlier baselines do not have them
    plugins = None if plugins is None else {**plugins}
    forms = _places(raw.get("forms", {}))  # nor these
    measured = Measured(seeds, values, lost, raw["environment"], codes, plugins=plugins, forms=forms)
    return Baseline(raw["suite"], raw["asked"], measured, tuple(Reason(**each) for each in raw["reasons"]))


def _nested(places: Mapping[Place, Any]) -> dict[str, dict[str, Any]]:
    nested: dict[str, dict[str, Any]] = {}
    for (dataset, method), content in places.items():
        nested.setdefault(dataset, {})[method] = content
    return nested


def _places(nested: Mapping[str, Mapping[str, Any]]) -> dict[Place, Any]:
    return {(dataset, method): content for dataset, methods in nested.items() for method, content in methods.items()}


def _plain(row: Array) -> list[float | str | None]:
    """Return values for JSON, which has neither NaN (null here) nor infinity (a string here)."""
    return [None if math.isnan(v) else v if math.isfinite(v) else str(v) for v in row.tolist()]


def _dump(value: Any, indent: str = "") -> str:
    """Return JSON with sorted keys, objects over several lines, lists of plain values on one."""
    deeper = indent + "  "
    if isinstance(value, Mapping) and value:
        rows = [f"{deeper}{json.dumps(str(k))}: {_dump(value[k], deeper)}" for k in sorted(value)]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        return "[\n" + ",\n".join(f"{deeper}{_dump(each, deeper)}" for each in value) + f"\n{indent}]"
    return json.dumps(list(value) if isinstance(value, tuple) else value, allow_nan=False)
