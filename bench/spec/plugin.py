"""A plug-in with its options, as a specification holds it."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StrictStr
from pydantic.dataclasses import dataclass

SUBMITTED = "submitted, not re-run"  # the origin of a method whose predictions were made elsewhere
Name = Annotated[str, Field(min_length=1, strict=True)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class PluginSpec:
    """A plug-in with its options."""

    name: Name
    origin: StrictStr = "built in"  # or the package and its version, or the hash of a file's content
    version: StrictStr = "1"
    options: dict[str, Any] = Field(default_factory=dict)  # plain data, as JSON holds it


def keyed_options(plugin: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are part of a key: all but those in `plugin.later` that have their defaults.

    A plug-in may so be given another option, and what was stored without it keeps its key.
    """
    defaults = {field.name: field.default for field in fields(plugin)}
    return {name: value for name, value in values.items() if name not in plugin.later or value != defaults[name]}


def is_spec(value: object) -> bool:
    """Return whether plain data is the specification of a plug-in."""
    return isinstance(value, Mapping) and set(value) == set(PluginSpec.__dataclass_fields__)


def inner_spec(spec: PluginSpec) -> PluginSpec | None:
    """Return the specification of the method that a wrapper is around, its option `method`; None of other plug-ins."""
    inner = spec.options.get("method")
    return PluginSpec(**inner) if isinstance(inner, Mapping) and is_spec(inner) else None
