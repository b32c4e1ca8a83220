"""The specification of a cell: everything that can change its numbers, under one name each.

It has one canonical text, which is stored with the result and handed to workers, and one key, the hash of that text. A
plan builds specifications, everybody else reads them here. Format 1, which stores of earlier versions hold, is still
read; its keys were hashes of its own text, so a suite that is run again makes new cells.
"""

import hashlib
import json
from functools import cache, lru_cache
from typing import Any

from pydantic import ConfigDict, Field, StrictInt, StrictStr, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from bench.errors import UserError
from bench.spec.plugin import Name, PluginSpec, inner_spec
from bench.spec.protocol import Protocol, Training

FORMAT = 2  # of the text: raise it when a field is renamed or removed, and teach `read_spec` the earlier form
HARNESS = 2  # part of every key: raise it when training, drawing or scoring give other numbers than before
ON_REQUEST = "on request"  # in the place of the hash of a file: a metric that is computed only where a suite names it

_CLOSED = ConfigDict(extra="forbid")


class SpecError(UserError):
    """A text that is no specification of a cell; `parts` are the fields that are missing or wrong."""

    def __init__(self, reason: str, parts: frozenset[str]) -> None:
        super().__init__(f"the specification of a cell cannot be read: {reason}")
        self.parts = parts


@dataclass(frozen=True, config=_CLOSED, kw_only=True)
class CellSpec:
    """Everything that can change the numbers of one cell."""

    dataset: PluginSpec
    data: Name  # the fingerprint of the rows
    method: PluginSpec
    protocol: Protocol
    space: dict[str, list[Any]] = Field(default_factory=dict)  # the options of the method that are searched
    # Those of plug-in files, with the hash of the file, and those on request.
    metrics: dict[str, StrictStr] = Field(default_factory=dict)
    split: StrictInt
    seed: StrictInt
    harness: StrictInt
    device: Name = "cpu"  # the kind that computes it, whose generator makes its random numbers: "cpu", "cuda", ...

    def plain(self) -> dict[str, Any]:
        """Return the fields as JSON holds them; the device came later, and a CPU is not named."""
        own: Any = type(self)
        plain: dict[str, Any] = _adapter(own).dump_python(self)
        return {name: value for name, value in plain.items() if name != "device" or value != "cpu"}

    @property
    def text(self) -> str:
        """The canonical text."""
        plain = self.plain()
        plain["protocol"] = _without_later(_USUAL, plain["protocol"])
        plain["protocol"]["training"] = _without_later(_USUAL.training, plain["protocol"]["training"])
        return json.dumps({"format": FORMAT, **plain}, sort_keys=True)

    @property
    def key(self) -> str:
        """The name of the result."""
        return hashlib.blake2b(self.text.encode(), digest_size=16).hexdigest()


_USUAL = Protocol()  # plans ask for the text of every cell: it is made once


def _without_later(default: Protocol | Training, plain: dict[str, Any]) -> dict[str, Any]:
    """Return the fields without later ones that have their defaults: what is run again has the key that it had."""
    return {name: v for name, v in plain.items() if name not in default.later or v != getattr(default, name)}


FIELDS = frozenset(CellSpec.__dataclass_fields__)
REPEATED = frozenset({"data", "split", "seed"})  # in which the repeats of one experiment differ


@lru_cache(maxsize=20_000)  # reports and leaderboards read the same thousands several times
def read_spec(text: str) -> CellSpec:
    """Return the specification that a text holds; a `SpecError` says what is wrong with it."""
    try:
        content = json.loads(text)
    except (TypeError, ValueError):
        raise SpecError("it is not JSON", FIELDS) from None
    if not isinstance(content, dict):
        raise SpecError("it is not a JSON object", FIELDS)
    version = content.pop("format", 1)
    if version == 1:
        content = _from_format_1(content)
    elif version != FORMAT:
        raise SpecError(f"it has format {version!r}, this uqbench reads 1 and {FORMAT}", FIELDS)
    try:
        return CellSpec(**{name: _shared(name, value) for name, value in content.items()})
    except ValidationError as error:
        first = error.errors()[0]
        parts = frozenset(str(each["loc"][0]) for each in error.errors())
        raise SpecError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", parts) from None


def _shared(name: str, value: Any) -> Any:
    """Return the part of a specification that thousands of cells have in common as one object, if it is valid."""
    if name not in ("dataset", "method", "protocol") or not isinstance(value, dict):
        return value
    try:
        return _part(name, json.dumps(value))
    except ValidationError:
        return value  # which is invalid in its place, too, and the message is that of its place


@lru_cache(maxsize=1_000)
def _part(name: str, text: str) -> PluginSpec | Protocol:
    return (Protocol if name == "protocol" else PluginSpec)(**json.loads(text))


def spec_or_none(text: object) -> CellSpec | None:
    """Return the specification that a stored value holds; None where it holds none that can be read."""
    try:
        return read_spec(text) if isinstance(text, str) else None
    except SpecError:
        return None


def foreign_plugins(spec: CellSpec) -> dict[str, str]:
    """Return the plug-ins of a cell that are not built in, with their package and version or the hash of their file."""
    inner = inner_spec(spec.method)
    made = [("method", spec.method), ("dataset", spec.dataset), ("network", spec.protocol.network)]
    made += [] if inner is None else [("method", inner)]
    found = {f"{kind} {each.name}": each.origin for kind, each in made if each.origin != "built in"}
    return found | {f"metric {name}": file for name, file in spec.metrics.items() if file != ON_REQUEST}


def _from_format_1(content: dict[str, Any]) -> dict[str, Any]:
    """Name what stood in lists. The split was the seed; the oldest texts had no origins and no space."""
    named = {"space": {}, **content, **({"split": content["seed"]} if "seed" in content else {})}
    for kind in ("dataset", "method"):
        match content.get(kind):
            case [name, origin, version, options]:
                named[kind] = {"name": name, "origin": origin, "version": str(version), "options": options}
            case [name, version, options]:
                named[kind] = {"name": name, "version": str(version), "options": options}
    return named


@cache
def _adapter(cls: type) -> TypeAdapter[Any]:
    return TypeAdapter(cls)
