"""Shared by the generated pages of docs/: the plug-ins that they describe, and writing a page or a part of one."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.plugins.kinds import Kind
from bench.plugins.registry import Registry


def built_in(registry: Registry, kind: Kind) -> dict[str, tuple[str, Any]]:
    """Return the docstring of the module and an instance of every built-in plug-in of a kind, by name."""
    found = {name: plugin for name, plugin in registry.plugins(kind).items() if plugin.origin == "built in"}
    return {name: (plugin.module().__doc__ or "", registry.make(kind, name, {})) for name, plugin in found.items()}


def write_page(about: str | None, page: Callable[[], str]) -> None:
    """Write a page to the file named on the command line."""
    arguments = argparse.ArgumentParser(description=about)
    arguments.add_argument("file", type=Path, help="the page to write")
    arguments.parse_args().file.write_text(page() + "\n", "utf-8")


def replace_part(page: str, part: str, text: str) -> str:
    """Return a page with `text` between the two comments that mark a part of it, such as <!-- gate: begin -->."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    if begin not in page or end not in page:
        raise UserError(f"the page lacks the marks {begin!r} and {end!r}")
    return f"{page.partition(begin)[0]}{begin}\n{text}\n{end}{page.partition(end)[2]}"


def print_or_replace_part(path: Path | None, part: str, text: str) -> None:
    """Write a part of a page, or print it where there is no page."""
    if path is None:
        print(text)
    else:
        path.write_text(replace_part(path.read_text("utf-8"), part, text), "utf-8")
