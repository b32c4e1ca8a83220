"""Changes of single keys of a suite, from the command line (`--set`) or from Python, before it is checked."""

import copy
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from bench.errors import UserError, unknown_name
from bench.spec.protocol import DEFAULT_NETWORK, Protocol

PROTOCOL_KEYS = frozenset(Protocol.__dataclass_fields__)
METHOD_KEYS = frozenset({"training", "network", "grid"})  # what a method may change of the protocol for itself
NETWORK_KIND = ("network", "kind")

Changes = Mapping[Any, Any] | Sequence[str]  # {"training.epochs": 20}, or ["training.epochs=20"] as on the command line
_Change = tuple[tuple[str, ...], Any, str]  # path, value, how errors name it


def apply_changes(raw: dict[str, Any], changes: Changes) -> None:
    """Change single keys of a suite's content."""
    pairs = _flat(changes, ()) if isinstance(changes, Mapping) else [_parsed(text) for text in changes]
    # The network before its options: those of another one are forgotten with it.
    for path, value, change in sorted(pairs, key=lambda pair: pair[0] != NETWORK_KIND):
        if path == NETWORK_KIND:
            _forget_other_networks(raw, value)
        _set(raw, path, value, change)


def _forget_other_networks(raw: dict[str, Any], kind: Any) -> None:
    """Remove the options of other networks than the one that the command line chooses."""
    own = raw.get("network", {})
    usual = own.get("kind", DEFAULT_NETWORK) if isinstance(own, dict) else kind
    for table in (raw, *_entries(raw, "datasets"), *_entries(raw, "methods")):
        network = table.get("network") if isinstance(table, dict) else None
        if isinstance(network, dict) and network.get("kind", usual) != kind:
            del table["network"]


def _flat(changes: Mapping[Any, Any], before: tuple[str, ...]) -> list[_Change]:
    """Return the single keys of a mapping: `{"training.epochs": 20}`, `{"training": {"epochs": 20}}`, or tuples."""
    found: list[_Change] = []
    for key, value in changes.items():
        path = (*before, *(key if isinstance(key, tuple) else str(key).split(".")))
        if isinstance(value, Mapping):
            found += _flat(value, path)
        else:
            plain = value.item() if hasattr(value, "item") else value  # of numpy
            found.append((path, plain, f"change {'.'.join(path)}={value!r}"))
    return found


def _parsed(text: str) -> _Change:
    """Return one `key.key=value` of the command line."""
    key, equals, content = text.partition("=")
    path = tuple(part for part in key.strip().split(".") if part)
    if not equals or not path:
        raise UserError(f"--set {text}: expected key=value, such as training.epochs=20 or methods.mc-dropout.rate=0.2")
    try:
        parsed = tomllib.loads(f"value = {content}")
    except tomllib.TOMLDecodeError:
        parsed = {}
    return path, parsed["value"] if len(parsed) == 1 else content, f"--set {text}"  # a bare word is a string


def _set(raw: dict[str, Any], path: tuple[str, ...], value: Any, change: str) -> None:
    """Change one key; `change` names it in errors."""
    if path[0] in ("datasets", "methods"):
        listed = raw.get(path[0])
        if len(path) < 3:
            raise UserError(f"{change}: expected {path[0]}.NAME.OPTION=value")
        if isinstance(listed, dict) and path[1] not in listed:
            raise unknown_name(path[0][:-1], path[1], listed, change)
    _put(raw, path, copy.deepcopy(value), change)
    # What is given a value is not searched.
    if path[0] == "training":
        _remove(raw, ["grid", path[-1]])
        for entry in _entries(raw, "methods"):
            _remove(entry, ["grid", path[-1]])
    if path[0] == "methods" and path[2] != "grid":
        _remove(raw["methods"][path[1]], ["grid", path[-1]])
    if path[0] in PROTOCOL_KEYS:
        # A change on the command line holds for every dataset and every method.
        for entry in _entries(raw, "datasets"):
            _remove(entry, path)
    if path[0] in METHOD_KEYS:
        for entry in _entries(raw, "methods"):
            _remove(entry, path)


def _entries(raw: Mapping[str, Any], kind: str) -> list[Any]:
    return list(table(raw, kind).values())


def table(raw: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return the table of datasets or methods; an empty one where a suite has something else in its place."""
    listed = raw.get(kind)
    return listed if isinstance(listed, Mapping) else {}


def _put(table: dict[str, Any], path: Sequence[str], value: Any, change: str) -> None:
    for part in path[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise UserError(f"{change}: {part} is a value, not a table")
    table[path[-1]] = value


def _remove(table: Any, path: Sequence[str]) -> None:
    for part in path[:-1]:
        table = table.get(part, {}) if isinstance(table, dict) else {}
    if isinstance(table, dict):
        table.pop(path[-1], None)
