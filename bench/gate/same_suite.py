"""Whether a suite is still the experiment that its baseline was made from.

Cell keys do not decide it: they also change with the harness. Datasets, methods and protocol of the suite file do; its
title, its seeds and its gate may change.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from bench.errors import UserError
from bench.gate.baseline import Baseline
from bench.plan.suite import DatasetEntry, MethodEntry, Suite


def suite_content(suite: Suite) -> dict[str, Any]:
    """Return the parts of a suite that its numbers depend on, as its file has them."""
    entries = {kind: _entries(getattr(suite, kind)) for kind in ("datasets", "methods")}
    shared = {} if suite.splits is None else {"splits": suite.splits}
    return {"baseline": suite.baseline, **shared, **entries, "protocol": dict(suite.protocol)}


def _entries(entries: Mapping[str, DatasetEntry | MethodEntry]) -> dict[str, Any]:
    return {name: entry.model_dump(mode="json", exclude_defaults=True) for name, entry in entries.items()}


def suite_differences(then: Mapping[str, Any], new: Suite) -> list[str]:
    """Return how a suite differs from earlier content, a key per line; datasets and methods of one side are left out.

    The earlier content is read by the present rules: a key that was not there yet has its default.
    """
    try:
        old = Suite.model_validate({"name": new.name, "title": new.title, **then})
    except (ValidationError, UserError) as error:
        return [f"its earlier content cannot be read any more ({' '.join(str(error).split())[:200]})"]
    protocols = {
        name: _different(asdict(old.protocol_for(name)), asdict(new.protocol_for(name)), "protocol")
        for name in old.datasets
        if name in new.datasets
    }
    found = _different(old.baseline, new.baseline, "baseline") + _different(old.splits, new.splits, "splits")
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
    known = {line for lines in protocols.values() for line in lines}
    return [*found, *_of_methods(old, new, known), *everywhere, *own]


def _of_methods(old: Suite, new: Suite, known: Collection[str]) -> list[str]:
    """Return how the training, the network and the searches of single methods differ, beside what is known."""
    found: list[str] = []
    for name in (name for name in old.methods if name in new.methods):
        found += _different(old.methods[name].space, new.methods[name].space, f"methods.{name}.grid")
        lines: dict[str, None] = {}
        for dataset in (each for each in old.datasets if each in new.datasets):
            was, is_ = (asdict(suite.protocol_for(dataset, name)) for suite in (old, new))
            lines |= dict.fromkeys(_different(was, is_, "protocol"))
        found += [f"methods.{name}.{line}" for line in lines if line not in known]
    return found


def _different(a: Any, b: Any, place: str) -> list[str]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = sorted({*a, *b})
        return [line for key in keys for line in _different(a.get(key), b.get(key), f"{place}.{key}")]
    return [] if a == b else [f"{place.removeprefix('protocol.')} was {_text(a)} and is {_text(b)}"]


def _text(value: Any) -> str:
    return "not given" if value is None else json.dumps(value)


def check_suite_against(suite: Suite, baseline: Baseline, path: str) -> None:
    """Refuse a baseline of another suite, or of the same one with other content."""
    if suite.name != baseline.suite:
        raise UserError(f"{path} is the baseline of suite {baseline.suite}, not of {suite.name}")
    if changed := suite_differences(baseline.asked, suite):
        more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        raise UserError(
            f"{suite.where} is another experiment than {path}: {changed[0]}{more}; make the baseline anew with "
            f"'uqbench baseline {suite.name} --out {path} --update --why REASON'"
        )
