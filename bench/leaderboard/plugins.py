"""Descriptions of the plug-ins of a leaderboard, from their docstrings and declarations, where they are installed."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.api import Wrapper
from bench.errors import UserError, raise_if_stop
from bench.leaderboard.references import Reference, cited_in
from bench.plugins.building import PluginError
from bench.plugins.describe import Option, Paragraph, option_text, options_of, paragraphs, size
from bench.plugins.kinds import Kind
from bench.plugins.registry import Registry
from bench.spec.plugin import SUBMITTED, PluginSpec
from bench.submissions.scoring import VERIFIED


@dataclass(frozen=True)
class About:
    """The description of a plug-in."""

    plugin: str
    origin: str
    version: str
    summary: str
    text: tuple[Paragraph, ...]
    options: tuple[Option, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()  # flaws, and what readers should know
    absent: str = ""  # why there is no description, or why it may not fit

    @property
    def references(self) -> tuple[Reference, ...]:
        """The publications that the description cites."""
        return cited_in(" ".join(part.text for part in self.text if not part.equation))


def about_method(spec: PluginSpec, registry: Registry) -> About:
    """Return the description of a method, given its part of a cell's specification."""
    if spec.origin == SUBMITTED:
        summary = f"Predictions of {spec.options['who']}, made elsewhere: {spec.options['how']}."
        verified = ("verified here", f"{'; '.join(VERIFIED)}, by the machine and the code under Provenance")
        reported = ("only reported, not re-run", "who predicted, how, and what it took")
        return About(*_identity(spec), summary, (), facts=(verified, reported))
    try:
        method, changed = _build("method", spec, registry)
        summary, text = _docstrings(registry.plugins("method")[spec.name].module().__doc__, type(method))
        facts = _facts_of_training(registry.inner(method), method.folds if isinstance(method, Wrapper) else 0)
        facts += [(f"fails the check {check}", reason) for check, reason in method.expected_failures.items()]
        return About(*_identity(spec), summary, text, tuple(options_of(method)), tuple(facts), absent=changed)
    except BaseException as error:  # whatever a plug-in does when it is made must not cost the page
        raise_if_stop(error)
        return _absent(spec, error)


def changed_options(spec: PluginSpec, registry: Registry) -> tuple[tuple[str, str, str], ...]:
    """Return the options that differ from the plug-in's defaults: name, value and default; none where it is absent."""
    usual = {option.name: option.default for option in about_method(spec, registry).options}
    given = {name: option_text(value) for name, value in spec.options.items() if not isinstance(value, Mapping)}
    return tuple((name, text, usual[name]) for name, text in given.items() if usual.get(name, text) != text)


def _facts_of_training(method: Any, folds: int) -> list[tuple[str, str]]:
    """Return how a method, or the inner one of a wrapper with so many folds, is trained."""
    if method.alone:
        return [("training", "its own, in a process by itself")]
    stopping = [] if method.early_stopping else [("early stopping", "no: it trains all epochs")]
    return [("networks trained for a result", str(method.networks * max(1, folds))), *stopping]


def about_dataset(spec: PluginSpec, registry: Registry) -> About:
    """Return the description of a dataset, given its part of a cell's specification."""
    try:
        dataset, changed = _build("dataset", spec, registry)
        summary, text = _docstrings(registry.plugins("dataset")[spec.name].module().__doc__, type(dataset))
        rows, row = size(dataset)
        facts = [("rows", rows), ("one row", row), ("source", dataset.source), ("licence", dataset.licence)]
        facts += [(f"file {file.name}", f"{file.size_text}, from {file.origin.url}") for file in dataset.files]
        known = tuple(fact for fact in facts if fact[1] not in ("", "-"))
        notes = tuple(dataset.notes)
        return About(*_identity(spec), summary, text, tuple(options_of(dataset)), known, notes, absent=changed)
    except BaseException as error:
        raise_if_stop(error)
        return _absent(spec, error)


def _build(kind: Kind, spec: PluginSpec, registry: Registry) -> tuple[Any, str]:
    """Return the plug-in with the options of the results; where its options are others now, defaults and a warning."""
    try:
        return registry.make(kind, spec.name, spec.options), ""
    except UserError as error:
        if isinstance(error, PluginError):
            raise
        changed = f"The plug-in has changed since; this is its present form: {error}"
        return registry.make(kind, spec.name, {}), changed


def _identity(spec: PluginSpec) -> tuple[str, str, str]:
    return spec.name, spec.origin, spec.version


def _docstrings(doc: str | None, cls: type) -> tuple[str, tuple[Paragraph, ...]]:
    """Return the first line of the module, and the paragraphs of the class and of the rest of the module."""
    first, _, rest = inspect.cleandoc(doc or "").partition("\n")
    own = inspect.cleandoc(cls.__doc__ or "")
    return first, (*paragraphs(own), *paragraphs(rest))


def _absent(spec: PluginSpec, error: BaseException) -> About:
    reason = " ".join(str(error).split())
    return About(*_identity(spec), "", (), absent=f"The plug-in cannot be loaded here: {reason}")
