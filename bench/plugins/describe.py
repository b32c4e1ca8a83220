"""Descriptions of plug-ins, as data: the paragraphs of a docstring, the options and their meaning, the look."""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from bench.api import Dataset
from bench.api.style import Look
from bench.counts import plural
from bench.errors import UserError
from bench.plugins.registry import Registry
from bench.spec.plugin import PluginSpec


@dataclass(frozen=True)
class Paragraph:
    """A part of a docstring: words, or equations that stand as they were written."""

    text: str
    equation: bool


@dataclass(frozen=True)
class Option:
    """A field of a plug-in."""

    name: str
    kind: str
    default: str  # '' where there is none
    meaning: str  # the comment behind it

    def markdown(self) -> str:
        """Return the option in one line of Markdown."""
        default = f"default {self.default}" if self.default else "no default"
        return f"`{self.name}`: {self.kind}, {default}" + (f"; {self.meaning}" if self.meaning else "")


def paragraphs(doc: str) -> list[Paragraph]:
    """Return the paragraphs of a cleaned docstring; those that are indented throughout are equations."""
    found = []
    for part in re.split(r"\n\s*\n", doc.strip("\n")):
        lines = [line for line in part.splitlines() if line.strip()]
        apart = all(line.startswith("    ") for line in lines)
        if lines:
            found.append(Paragraph(textwrap.dedent(part) if apart else part, apart))
    return found


def options_of(plugin: object) -> list[Option]:
    """Return the options of a plug-in, in the order of its fields."""
    return [_option(field, plugin) for field in fields(plugin)]  # type: ignore[arg-type]  # plug-ins are dataclasses


def _option(field: "Field[Any]", plugin: object) -> Option:
    kind = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
    if kind == "Literal":
        kind = " or ".join(option_text(value) for value in field.type.__args__)  # type: ignore[union-attr]
    elif hasattr(field.type, "__args__"):
        kind = re.sub(r"(?:[\w.]*Sequence|tuple)\[(\w+)(?:, \.\.\.)?\]", r"list of \1", str(field.type))
        kind = kind.replace(" | None", " or none")
    # The inner method of a wrapper is named as a suite names it.
    usual = field.default.name if isinstance(field.default, PluginSpec) else option_text(field.default)
    default = "" if field.default is MISSING else usual
    return Option(field.name, kind, default, comment(type(plugin), field.name))


def option_text(value: Any) -> str:
    """Return the value of an option as a suite file would have it; TOML has no word for none."""
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(option_text, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{name} = {option_text(each)}' for name, each in value.items())} }}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


def comment(cls: type[Any], option: str) -> str:
    """Return the comment behind a field or attribute, in the class that declares it."""
    for owner in cls.__mro__:
        if option in vars(owner).get("__annotations__", {}):
            found = re.search(rf"^    {option}:[^#\n]*#\s*([^\n]*)$", inspect.getsource(owner), re.MULTILINE)
            return re.sub(r"^(type: ignore|noqa).*", "", found[1]).strip() if found else ""
    return ""


def size(dataset: Dataset) -> tuple[str, str]:
    """Return how many rows there are and what one is, as text."""
    shape = dataset.shape
    if not shape and dataset.skip() is None:
        split = dataset.load(0)
        held = 0 if split.test_x is split.train_x else len(split.test_y)
        shape = (len(split.train_y) + held, *split.problem.inputs)
    if not shape:
        return "-", "-"
    if len(shape) == 2:
        return f"{shape[0]:,}", plural(shape[1], "feature")
    return f"{shape[0]:,}", f"image {' x '.join(map(str, shape[1:]))}"


def declared_look(registry: Registry, method: str) -> Look | None:
    """Return how a method declares to be drawn, by its name; None where no plug-in of that name can be loaded."""
    plugin = registry.plugins("method").get(method)
    if plugin is not None and plugin.path is not None and (written := _look_in(plugin.path)) is not None:
        return written
    try:
        look = registry.load("method", method).look
    except UserError:
        return None
    return look if isinstance(look, Look) else None


@cache
def _look_in(path: Path) -> Look | None:
    """Return the look that a file writes down, `look = Look("red", "-", "o")`: a page loads no torch for a colour."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Assign(
                targets=[ast.Name("look")], value=ast.Call(func=ast.Name("Look"), args=values, keywords=[])
            ) if all(isinstance(value, ast.Constant) for value in values):
                return Look(*(ast.literal_eval(value) for value in values))
    return None
