"""What the plug-ins behind a leaderboard say of themselves; a plug-in that is not installed here says nothing."""

import inspect
from dataclasses import dataclass
from typing import Any

from bench.errors import UserError
from bench.plugins.describe import Option, Paragraph, options_of, paragraphs, size
from bench.plugins.registry import Kind, PluginError, Registry
from bench.spec.spec import PluginSpec


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


def about_method(spec: PluginSpec, registry: Registry) -> About:
    """Return what is known of a method, given its part of a cell's specification."""
    try:
        method, changed = _made("method", spec, registry)
        summary, text = _words(registry.plugins("method")[spec.name].module().__doc__, type(method))
        facts = [("networks trained for a result", str(method.networks))]
        if not method.early_stopping:
            facts.append(("early stopping", "no: it trains all epochs"))
        facts += [(f"fails the check {check}", reason) for check, reason in method.expected_failures.items()]
        return About(*_identity(spec), summary, text, tuple(options_of(method)), tuple(facts), absent=changed)
    except Exception as error:  # whatever a plug-in does when it is made must not cost the page
        return _absent(spec, error)


def about_dataset(spec: PluginSpec, registry: Registry) -> About:
    """Return what is known of a dataset."""
    try:
        dataset, changed = _made("dataset", spec, registry)
        summary, text = _words(registry.plugins("dataset")[spec.name].module().__doc__, type(dataset))
        rows, row = size(dataset)
        facts = [("rows", rows), ("one row", row), ("source", dataset.source), ("licence", dataset.licence)]
        facts += [(f"file {file.name}", f"{file.size:,} bytes, from {file.origin.url}") for file in dataset.files]
        told = tuple((kind, text_) for kind, text_ in facts if text_ and text_ != "-")
        notes = tuple(dataset.notes)
        return About(*_identity(spec), summary, text, tuple(options_of(dataset)), told, notes, absent=changed)
    except Exception as error:
        return _absent(spec, error)


def _made(kind: Kind, spec: PluginSpec, registry: Registry) -> tuple[Any, str]:
    """Return the plug-in with the options of the results, or, with a warning, as it is now, where it knows others."""
    try:
        return registry.make(kind, spec.name, spec.options), ""
    except UserError as error:
        if isinstance(error, PluginError):
            raise
        warning = f"The plug-in has changed since, what follows is its present form: {error}"
        return registry.make(kind, spec.name, {}), warning


def _identity(spec: PluginSpec) -> tuple[str, str, str]:
    return spec.name, spec.origin, spec.version


def _words(doc: str | None, cls: type) -> tuple[str, tuple[Paragraph, ...]]:
    """Return the first line, and all that follows in the module and in the class."""
    first, _, rest = inspect.cleandoc(doc or "").partition("\n")
    own = inspect.cleandoc(cls.__doc__ or "")
    return first, (*paragraphs(own), *paragraphs(rest))


def _absent(spec: PluginSpec, error: Exception) -> About:
    reason = " ".join(str(error).split())
    return About(*_identity(spec), "", (), absent=f"The plug-in cannot be asked here: {reason}")
