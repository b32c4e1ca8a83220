"""The provenance of a stored result: code, packages, machine, seed and data, and which of these are unknown.

A leaderboard lists only results whose provenance is complete.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bench.spec.spec import CellSpec, SpecError, read_spec

MACHINE = ("system", "cpu", "cores", "threads", "device", "device_name")
SOFTWARE = ("torch", "numpy")  # what computes the numbers


@dataclass(frozen=True)
class Provenance:
    """The provenance of one result."""

    spec: CellSpec | None  # None where it is missing or cannot be read
    environment: Mapping[str, Any]
    missing: tuple[str, ...]  # what is unknown

    @property
    def code(self) -> str:
        """The version of the code: a commit, or the version of the installed package."""
        commit = str(self.environment.get("code") or "")
        return commit or f"uqbench {_packages(self.environment).get('uqbench', '')}".strip()

    @property
    def device(self) -> str:
        """The name of the device, with its kind unless it is the processor."""
        kind, name = str(self.environment.get("device", "")), str(self.environment.get("device_name", ""))
        return name if kind == "cpu" else f"{name} ({kind})"


def provenance(cell: Mapping[str, Any]) -> Provenance:
    """Return the provenance of a stored cell (a row of `Store.cells`)."""
    content, text = cell.get("environment"), cell.get("spec")
    spec: CellSpec | None = None
    unreadable: frozenset[str] = frozenset()
    try:
        spec = read_spec(text if isinstance(text, str) else "")
    except SpecError as error:
        unreadable = error.parts
    return Provenance(spec, _environment(content), (*_unknown_environment(content), *_unspecified(unreadable)))


def _unspecified(parts: frozenset[str]) -> list[str]:
    """Return in words what a specification with these parts missing or wrong does not say."""
    seed, data = {"seed", "split"}, {"data"}
    known = ((seed, "the seed"), (data, "the hash of the data"))
    rest = ["what was run (plug-ins, options, protocol)"] if parts - seed - data else []
    return [*(words for names, words in known if parts & names), *rest]


@lru_cache(maxsize=1000)  # thousands of cells share a few environments
def _unknown_environment(content: str | None) -> tuple[str, ...]:
    facts = _environment(content)
    packages, code = _packages(facts), str(facts.get("code") or "")
    missing = []
    if code.endswith("-dirty"):
        missing.append("the code: it was changed since its last commit")
    elif not code and not packages.get("uqbench"):
        missing.append("the version of the code")
    if not facts.get("python") or any(not packages.get(name) for name in SOFTWARE):
        missing.append("the versions of the packages")
    if any(facts.get(name) in (None, "") for name in MACHINE):
        missing.append("the machine")
    return tuple(missing)


@lru_cache(maxsize=1000)
def _environment(content: str | None) -> Mapping[str, Any]:
    return _object(content)


def _packages(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    packages = facts.get("packages")
    return packages if isinstance(packages, dict) else {}


def _object(content: Any) -> dict[str, Any]:
    """Return a JSON object, or an empty one for anything else, which a foreign store may hold."""
    try:
        found = json.loads(content) if isinstance(content, str) else {}
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
