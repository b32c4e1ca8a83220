"""The kinds of plug-ins, their classes, and what is known of a plug-in before it is used."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from bench.plugins.building import PluginError

Kind = Literal["method", "dataset", "network", "report"]
# The classes of `bench.api` that a plug-in of each kind may subclass.
CONTRACTS: dict[Kind, tuple[str, ...]] = {
    "method": ("Method", "Estimator", "Wrapper"),
    "dataset": ("Dataset",),
    "network": ("Network",),
    "report": ("Report",),
}
FOLDERS: dict[Kind, str] = {kind: f"bench.{kind}s" for kind in CONTRACTS}


@dataclass(frozen=True)
class Plugin:
    """One plug-in that was found, not yet imported."""

    name: str
    origin: str
    summary: str
    module: Callable[[], ModuleType]
    path: Path | None = None  # of the folders' plug-ins
    class_name: str = ""  # of those in files on the command line

    def __str__(self) -> str:
        place = f"{self.origin} ({self.path})" if self.path else self.origin
        return f"{place}, class {self.class_name}" if self.class_name else place


def plugin_name(stem: str) -> str:
    """Return the name of the plug-in in a file of that stem."""
    return stem.replace("_", "-")


def classes_of(module: ModuleType, kind: Kind) -> list[type[Any]]:
    """Return the public classes of one kind that a module defines."""
    from bench import api

    contracts = tuple(getattr(api, name) for name in CONTRACTS[kind])
    return [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, contracts)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]


def only_class_of(module: ModuleType, kind: Kind) -> type[Any]:
    """Return the one plug-in class of a module, or raise with what is there instead."""
    classes = classes_of(module, kind)
    if len(classes) != 1:
        names = ", ".join(c.__name__ for c in classes) or "none"
        hint = f"; an entry point names one of them, as in {module.__name__}:{classes[0].__name__}" if classes else ""
        wanted = " or ".join(CONTRACTS[kind])
        raise PluginError(f"one plug-in a file: expected one {wanted} class, found {names}{hint}")
    if "__dataclass_fields__" not in vars(classes[0]):
        raise PluginError(f"{classes[0].__name__} must be a frozen dataclass: write @dataclass(frozen=True) above it")
    return classes[0]


def narrowed(module: ModuleType | None, cls: type[Any]) -> ModuleType:
    """Return a module with the documentation of another and one of its classes."""
    found = ModuleType(cls.__module__, module.__doc__ if module else None)
    setattr(found, cls.__name__, cls)
    return found


def first_line(documented: object) -> str:
    """Return the first line of a docstring."""
    text = getattr(documented, "__doc__", None) or ""
    # Python gives a dataclass without a docstring its signature as one; that says nothing.
    if inspect.isclass(documented) and text.startswith(f"{documented.__name__}("):
        return ""
    return inspect.cleandoc(text).partition("\n")[0]
