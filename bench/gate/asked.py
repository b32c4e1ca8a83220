"""What a suite asks for, and whether it is still what its baseline was made from.

Cell keys are no help here: they also change with the harness. What counts is what the suite file says about datasets,
methods and protocol; its title, its seeds and its gate may change.
"""

import json
from collections.abc import Mapping
from typing import Any

from bench.errors import UserError
from bench.gate.baseline import Baseline
from bench.suite import Suite

ASKED = ("baseline", "datasets", "methods", "protocol")  # what of a suite decides about its numbers


def asked_of(suite: Suite) -> dict[str, Any]:
    """Return what of a suite decides about its numbers."""
    content = suite.model_dump(mode="json")
    return {name: content[name] for name in ASKED}


def asked_differently(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what a suite asks for differently, a key a line; datasets and methods on one side only are left out."""
    found = []
    for name in ASKED:
        a, b = then.get(name), now.get(name)
        if name in ("datasets", "methods"):
            common = {key for key in a or {} if key in (b or {})}
            a, b = ({key: value for key, value in (side or {}).items() if key in common} for side in (a, b))
        found += _different(a, b, name)
    return found


def _different(a: Any, b: Any, place: str) -> list[str]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = sorted({*a, *b})
        return [line for key in keys for line in _different(a.get(key), b.get(key), f"{place}.{key}")]
    return [] if a == b else [f"{place.removeprefix('protocol.')} was {_said(a)} and is {_said(b)}"]


def _said(value: Any) -> str:
    return "not given" if value is None else json.dumps(value)


def check_suite_against(suite: Suite, baseline: Baseline, path: str) -> None:
    """Refuse a baseline of another suite, or of the same one when it asked for something else."""
    if suite.name != baseline.suite:
        raise UserError(f"{path} is the baseline of suite {baseline.suite}, not of {suite.name}")
    if changed := asked_differently(baseline.asked, asked_of(suite)):
        more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        raise UserError(
            f"{suite.where} asks for something else than {path}: {changed[0]}{more}; make the baseline anew with "
            f"'uqbench baseline {suite.name} --out {path} --update --why REASON'"
        )
