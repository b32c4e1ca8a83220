"""A plug-in with its options, as a specification holds it."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StrictStr
from pydantic.dataclasses import dataclass

Name = Annotated[str, Field(min_length=1, strict=True)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class PluginSpec:
    """A plug-in with its options."""

    name: Name
    origin: StrictStr = "built in"  # or the package and its version, or the hash of a file's content
    version: StrictStr = "1"
    options: dict[str, Any] = Field(default_factory=dict)  # plain data, as JSON holds it
