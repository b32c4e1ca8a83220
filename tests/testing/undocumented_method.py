"""A method that does not say what it computes."""

from dataclasses import dataclass

from bench.api import Method


@dataclass(frozen=True)
class Undocumented(Method):
    """No equation, no reference."""

    spread = "aleatoric"
