"""Checks of what a plug-in declares: options, version, documentation, expected failures."""

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from bench.api import Look
from bench.plugins.building import build
from bench.plugins.registry import Registry
from bench.testing.check import Check, require

YEAR = re.compile(r"\b(1[89]|20)\d\d\b|arxiv", re.IGNORECASE)


class Subject(Protocol):
    """A plug-in under test; each kind has its own class, with what several checks need computed once."""

    @property
    def plugin(self) -> Any:
        """The plug-in itself."""


def expected_failures_check(checks: Callable[[], Iterable[Check[Any]]]) -> Check[Subject]:
    """Return the check of `expected_failures` for a kind of plug-in with these checks."""
    proves = "every expected failure names an existing check and gives a reason"
    return Check("expected-failures", proves, partial(_check_expected_failures, checks=checks))


def _check_expected_failures(subject: Subject, checks: Callable[[], Iterable[Check[Any]]]) -> None:
    names = sorted(check.name for check in checks())
    for name, reason in subject.plugin.expected_failures.items():
        require(name in names, f"expected_failures names {name!r}, which is no check; known: {', '.join(names)}")
        sentence = isinstance(reason, str) and len(reason.split()) >= 3
        require(sentence, f"expected_failures[{name!r}] must give the reason in a sentence, got {reason!r}")


def _check_options(subject: Subject) -> None:
    cls: type[Any] = type(subject.plugin)
    own = vars(cls).get("__dataclass_params__")  # inherited ones would not know the fields of this class
    frozen = own is not None and own.frozen
    require(frozen, f"{cls.__name__} must be a frozen dataclass; write @dataclass(frozen=True) above the class")
    missing = dataclasses.MISSING
    bare = [f.name for f in dataclasses.fields(cls) if f.init and f.default is f.default_factory is missing]
    require(not bare, f"the options {', '.join(bare)} have no default; give each a value that works everywhere")
    build(cls, {}, cls.__name__)


def _check_version(subject: Subject) -> None:
    version = subject.plugin.version
    good = isinstance(version, str) and version.strip() == version != ""
    require(good, f"version is {version!r}; write a short text such as version = '1'")


OPTIONS = Check("options", "it is a frozen dataclass and every option has a default", _check_options)
VERSION = Check("version", "its version is a text that can be part of a key", _check_version)


def documentation(plugin: object) -> str:
    """Return the docstring of a plug-in's file, then of its class."""
    cls = type(plugin)
    module = sys.modules.get(cls.__module__)
    # Python gives a dataclass without a docstring its signature as one; that says nothing.
    own = "" if (cls.__doc__ or "").startswith(f"{cls.__name__}(") else inspect.cleandoc(vars(cls).get("__doc__") or "")
    return "\n\n".join(part for part in (inspect.cleandoc(getattr(module, "__doc__", None) or ""), own) if part)


def check_first_line(subject: Subject) -> None:
    """A docstring whose first line says what the plug-in is."""
    first = documentation(subject.plugin).partition("\n")[0].strip()
    require(len(first.split()) >= 3, "the docstring's first line must say what this is; lists print it")


def check_method_docstring(subject: Subject) -> None:
    """A first line, an equation (an indented line with = or ~) and a reference."""
    check_first_line(subject)
    text = documentation(subject.plugin)
    equations = [line for line in text.splitlines() if re.match(r"\s{4,}\S", line) and re.search(r"[=~]", line)]
    require(equations, "the docstring has no equation; write it on a line indented by four spaces")
    require(YEAR.search(text), "the docstring has no reference; name authors and year, or an arXiv number")


def check_search_space(subject: Subject) -> None:
    """Every value in the search space can be built."""
    space = subject.plugin.search_space
    require(isinstance(space, Mapping), "search_space must be a mapping from option to values")
    for name, values in space.items():
        fine = isinstance(values, list | tuple) and len(values) > 0
        require(fine, f"search_space[{name!r}] must be a non-empty list of values, got {values!r}")
        for value in values:
            build(type(subject.plugin), {name: value}, f"search_space[{name!r}]")


def _check_look(subject: Subject) -> None:
    plugin, example = subject.plugin, "look = Look('blue', '--', 'o')"
    fields = getattr(plugin, "__dataclass_fields__", {})
    is_option = "look" in fields and fields["look"] in dataclasses.fields(plugin)  # a ClassVar is none
    require(not is_option, f"look is an option and would be part of every key; write {example} without an annotation")
    own = plugin.look
    require(own is None or isinstance(own, Look), f"look is {own!r}; write {example}, or leave it out")
    if own is None:
        return  # drawn by a look that depends on its name alone
    require(own.filled, "an open marker means that no look is declared; leave out filled=False")
    registry = Registry()
    built_in = [name for name, found in registry.plugins("method").items() if found.origin == "built in"]
    for name in built_in:
        other = registry.load("method", name)
        same = other.look == own and other.__qualname__ != type(plugin).__qualname__
        require(
            not same, f"{name} has the same look, so figures could not tell the two apart; choose another {example}"
        )


LOOK = Check("look", "figures draw it as no built-in method is drawn, or by its name alone", _check_look)


def check_reason(reason: object) -> None:
    """`skip` returns None, or a reason in one line."""
    good = reason is None or (isinstance(reason, str) and reason.strip() and "\n" not in reason)
    require(good, f"skip returned {reason!r}; return None, or one line that says why and what to do")


def check_reasons(reasons: Sequence[object]) -> None:
    """Each is None or a reason, and one of them is None: a plug-in skips not every task."""
    for reason in reasons:
        check_reason(reason)
    require(None in reasons, "skip refuses both regression and classification on rows of numbers")
