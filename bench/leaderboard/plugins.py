"""What the plug-ins behind a leaderboard say of themselves; a plug-in that is not installed here says nothing."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.errors import UserError
from bench.plugins.describe import Option, Paragraph, options_of, paragraphs, size
from bench.plugins.registry import Kind, PluginError, Registry


@dataclass(frozen=True)
class About:
    """A plug-in in its own words."""

    plugin: str
    origin: str
    version: str
    summary: str
    text: tuple[Paragraph, ...]
    options: tuple[Option, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()  # flaws, and what readers should know
    absent: str = ""  # why there are no words


def about_method(spec: Sequence[object], registry: Registry) -> About:
    """Return what is known of a method, given its part of a cell's specification."""
    name, origin, version, given = _parts(spec)
    try:
        method, changed = _made("method", name, given, registry)
        summary, text = _words(registry.plugins("method")[name].module().__doc__, type(method))
        facts = [("networks trained for a result", str(method.networks))]
        if not method.early_stopping:
            facts.append(("early stopping", "no: it trains all epochs"))
        facts += [(f"fails the check {check}", reason) for check, reason in method.expected_failures.items()]
        return About(name, origin, version, summary, text, tuple(options_of(method)), tuple(facts), absent=changed)
    except Exception as error:  # whatever a plug-in does when it is made must not cost the page
        return _absent(name, origin, version, error)


def about_dataset(spec: Sequence[object], registry: Registry) -> About:
    """Return what is known of a dataset."""
    name, origin, version, given = _parts(spec)
    try:
        dataset, changed = _made("dataset", name, given, registry)
        summary, text = _words(registry.plugins("dataset")[name].module().__doc__, type(dataset))
        rows, row = size(dataset)
        facts = [("rows", rows), ("one row", row), ("source", dataset.source), ("licence", dataset.licence)]
        facts += [(f"file {file.name}", f"{file.size:,} bytes, from {file.origin.url}") for file in dataset.files]
        told = tuple((kind, text_) for kind, text_ in facts if text_ and text_ != "-")
        notes = tuple(dataset.notes)
        return About(name, origin, version, summary, text, tuple(options_of(dataset)), told, notes, absent=changed)
    except Exception as error:
        return _absent(name, origin, version, error)


def _made(kind: Kind, name: str, given: dict[str, object], registry: Registry) -> tuple[Any, str]:
    """Return the plug-in with the options of the results, or, with a warning, as it is now, where it knows others."""
    try:
        return registry.make(kind, name, given), ""
    except UserError as error:
        if isinstance(error, PluginError):
            raise
        return registry.make(
            kind, name, {}
        ), f"The plug-in has changed since, what follows is its present form: {error}"


def _parts(spec: Sequence[object]) -> tuple[str, str, str, dict[str, object]]:
    name, origin, version, given = spec
    return str(name), str(origin), str(version), given if isinstance(given, dict) else {}


def _words(doc: str | None, cls: type) -> tuple[str, tuple[Paragraph, ...]]:
    """Return the first line, and all that follows in the module and in the class."""
    first, _, rest = inspect.cleandoc(doc or "").partition("\n")
    own = inspect.cleandoc(cls.__doc__ or "")
    return first, (*paragraphs(own), *paragraphs(rest))


def _absent(name: str, origin: str, version: str, error: Exception) -> About:
    reason = " ".join(str(error).split())
    return About(name, origin, version, "", (), absent=f"The plug-in cannot be asked here: {reason}")
