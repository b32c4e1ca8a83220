"""What a board says of a method beside its name."""

from collections.abc import Iterable
from dataclasses import dataclass

from bench.leaderboard.plugins import about_method, changed_options
from bench.leaderboard.references import Reference
from bench.leaderboard.rows import Row
from bench.plugins.registry import Registry
from bench.spec.plugin import SUBMITTED, inner_spec


@dataclass(frozen=True)
class MethodSummary:
    """What a method is, in a few words, and where it was published."""

    kind: str = ""
    references: tuple[Reference, ...] = ()

    @property
    def hover(self) -> str:
        """What it is and every reference, in one text."""
        return ". ".join(text for text in (self.kind, *(one.text for one in self.references)) if text)


def method_summaries(rows: Iterable[Row], registry: Registry) -> dict[str, MethodSummary]:
    """Return the summary of each method, by its name.

    The kind is the first line of its plug-in up to a colon, with the method that a wrapper is around.
    """
    found = {}
    for name, spec in {row.method: row.spec.method for row in rows}.items():
        about, inner = about_method(spec, registry), inner_spec(spec)
        kind = about.summary.partition(":")[0].rstrip(".")
        kind = kind if inner is None else f"{kind or spec.name} around {inner.name}"
        if name != spec.name and spec.origin != SUBMITTED:  # a variant: its options tell it from the others
            kind = ", ".join([kind, *(f"{option} = {value}" for option, value, _ in changed_options(spec, registry))])
        found[name] = MethodSummary(kind, about.references)
    return found
