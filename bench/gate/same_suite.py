"""What a suite asks for, and whether it is still what its baseline was made from.

Cell keys are no help here: they also change with the harness. What counts is what the suite file says about datasets,
methods and protocol; its title, its seeds and its gate may change.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from bench.errors import UserError
from bench.gate.baseline import Baseline
from bench.plan.suite import DatasetEntry, MethodEntry, Suite


def asked_of(suite: Suite) -> dict[str, Any]:
    """Return what of a suite decides about its numbers, as it says it."""
    entries = {kind: _entries(getattr(suite, kind)) for kind in ("datasets", "methods")}
    return {"baseline": suite.baseline, **entries, "protocol": dict(suite.protocol)}


def _entries(entries: Mapping[str, DatasetEntry | MethodEntry]) -> dict[str, Any]:
    return {name: entry.model_dump(mode="json", exclude_defaults=True) for name, entry in entries.items()}


def asked_differently(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what a suite asks for differently, a key a line; datasets and methods on one side only are left out.

    Both are read by the present rules: a key that was not there yet has its default on both sides.
    """
    try:
        old, new = (Suite.model_validate({"name": "asked", "title": "asked", **asked}) for asked in (then, now))
        datasets = [name for name in old.datasets if name in new.datasets]
        protocols = {
            name: _different(asdict(old.protocol_for(name)), asdict(new.protocol_for(name)), "protocol")
            for name in datasets
        }
    except (ValidationError, UserError) as error:
        return [f"what it asked for is not understood any more ({' '.join(str(error).split())[:200]})"]
    found = _different(old.baseline, new.baseline, "baseline")
    for kind in ("datasets", "methods"):
        a, b = getattr(old, kind), getattr(new, kind)
        for name in a:
            if name in b:
                was, is_ = ({"use": side[name].use or name, **side[name].options} for side in (a, b))
                found += _different(was, is_, f"{kind}.{name}")
    everywhere = [
        line for line in next(iter(protocols.values()), []) if all(line in each for each in protocols.values())
    ]
    own = [f"datasets.{name}.{line}" for name, lines in protocols.items() for line in lines if line not in everywhere]
    return [*found, *everywhere, *own]


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
