"""What the generated pages of docs/ share: the plug-ins they describe, and a command that writes a page to a file."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.plugins.registry import Kind, Registry


def built_in(registry: Registry, kind: Kind) -> dict[str, tuple[str, Any]]:
    """Return the docstring of the module and an instance of every built-in plug-in of a kind, by name."""
    found = {name: plugin for name, plugin in registry.plugins(kind).items() if plugin.origin == "built in"}
    return {name: (plugin.module().__doc__ or "", registry.make(kind, name, {})) for name, plugin in found.items()}


def write_page(about: str | None, page: Callable[[], str]) -> None:
    """Write a page to the file named on the command line."""
    arguments = argparse.ArgumentParser(description=about)
    arguments.add_argument("file", type=Path, help="what is written")
    arguments.parse_args().file.write_text(page() + "\n", "utf-8")
