"""A method that does not say what it computes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from bench.api import Method


@dataclass(frozen=True)
class Undocumented(Method):
    """No equation, no reference."""

    expected_failures: ClassVar[Mapping[str, str]] = {"variance-shrinks": "it has one function only"}
