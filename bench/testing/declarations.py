"""Checks of what a plug-in says of itself: options, version, documentation, excuses."""

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from bench.plugins.registry import build
from bench.testing.check import require

YEAR = re.compile(r"\b(1[89]|20)\d\d\b|arxiv", re.IGNORECASE)


def check_options(plugin: object) -> None:
    """A frozen dataclass whose every option has a default."""
    cls: type[Any] = type(plugin)
    own = vars(cls).get("__dataclass_params__")  # inherited ones would not know the fields written here
    require(
        own is not None and own.frozen,
        f"{cls.__name__} must be a frozen dataclass; write @dataclass(frozen=True) above the class",
    )
    missing = dataclasses.MISSING
    bare = [f.name for f in dataclasses.fields(cls) if f.init and f.default is f.default_factory is missing]
    require(not bare, f"the options {', '.join(bare)} have no default; give each a value that works everywhere")
    build(cls, {}, cls.__name__)


def check_version(plugin: Any) -> None:
    """A version that can be part of a key."""
    version = plugin.version
    good = isinstance(version, str) and version.strip() == version != ""
    require(good, f"version is {version!r}; write a short text such as version = '1'")


def documentation(plugin: object) -> str:
    """Return the docstring of a plug-in's file, then of its class."""
    cls = type(plugin)
    module = sys.modules.get(cls.__module__)
    # A dataclass without a docstring is given its signature as one; that says nothing.
    own = "" if (cls.__doc__ or "").startswith(f"{cls.__name__}(") else inspect.cleandoc(vars(cls).get("__doc__") or "")
    return "\n\n".join(part for part in (inspect.cleandoc(getattr(module, "__doc__", None) or ""), own) if part)


def equations(text: str) -> list[str]:
    """Return the indented lines of a docstring that say what equals or follows what."""
    return [line.strip() for line in text.splitlines() if re.match(r"\s{4,}\S", line) and re.search(r"[=~]", line)]


def check_first_line(plugin: object) -> None:
    """A docstring whose first line tells what it is."""
    first = documentation(plugin).partition("\n")[0].strip()
    require(len(first.split()) >= 3, "the docstring's first line must tell what this is; lists print it")


def check_method_docstring(plugin: object) -> None:
    """A first line, an equation, a reference."""
    check_first_line(plugin)
    text = documentation(plugin)
    require(equations(text), "the docstring has no equation; write it on a line indented by four spaces")
    require(YEAR.search(text), "the docstring has no reference; name authors and year, or an arXiv number")


def check_search_space(plugin: Any) -> None:
    """Every value that is declared worth trying can be built."""
    space = plugin.search_space
    require(isinstance(space, Mapping), "search_space must be a mapping from option to values")
    for name, values in space.items():
        fine = isinstance(values, list | tuple) and len(values) > 0
        require(fine, f"search_space[{name!r}] must be a non-empty list of values, got {values!r}")
        for value in values:
            build(type(plugin), {name: value}, f"search_space[{name!r}]")


def check_expected_failures(plugin: Any, known: Iterable[str]) -> None:
    """Excuses are about checks that exist, and each has a reason."""
    names = sorted(known)
    for name, reason in plugin.expected_failures.items():
        require(name in names, f"expected_failures names {name!r}, which is no check; known: {', '.join(names)}")
        wordy = isinstance(reason, str) and len(reason.split()) >= 3
        require(wordy, f"expected_failures[{name!r}] must give the reason in a sentence, got {reason!r}")


def check_reason(reason: object, hook: str) -> None:
    """`skip` returns None, or a reason in one line."""
    good = reason is None or (isinstance(reason, str) and reason.strip() and "\n" not in reason)
    require(good, f"{hook} returned {reason!r}; return None, or one line that says why and what to do")
