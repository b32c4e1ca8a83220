"""Where plug-ins come from: the folders, other packages' entry points, and files named on the command line.

A plug-in's name is its file's stem (`mc_dropout.py` is `mc-dropout`). A file on the command line may hold several of
any kind, metrics included: a class that declares a `name` has that name, the only one of its kind without has the
file's, and of several without each is `file:Class`. Listing imports none of the folders' or packages'; loading imports
one. All state is in the `Registry` object.
"""

import ast
import dataclasses
import importlib
import importlib.util
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bench.errors import UserError, raise_if_stop
from bench.plugins.building import AddressText, PluginError, build, in_one_line
from bench.plugins.files import PluginFile, PluginSource
from bench.plugins.kinds import FOLDERS, Kind, Plugin, narrowed, only_class_of, plugin_name
from bench.plugins.unknown import described, unknown_plugin
from bench.plugins.wrapping import complete_inner, is_wrapper
from bench.spec.names import check_name
from bench.spec.plugin import PluginSpec, keyed_options

if TYPE_CHECKING:
    from bench.metrics import Metric


class Registry:
    """All plug-ins that can be reached."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._files = [PluginFile(Path(file)) for file in files]
        self._found: dict[Kind, dict[str, Plugin]] = {}

    @property
    def files(self) -> list[Path]:
        """The files that were named on the command line."""
        return [file.path for file in self._files]

    @property
    def sources(self) -> list[PluginSource]:
        """The content of these files, as it was when they were imported."""
        return [file.source for file in self._files]

    @cached_property
    def metrics(self) -> "dict[str, Metric]":
        """Every metric by name: built-in ones, those of packages and those of the files (see `using_metrics`)."""
        from bench.metrics.discovery import assemble_with

        return assemble_with([(metric, f"file {file.path}") for file in self._files for metric in file.metrics])

    @property
    def metric_files(self) -> dict[str, Path]:
        """The files of the metrics that were declared in one, by the name of the metric."""
        return {metric.name: file.path for file in self._files for metric in file.metrics}

    @property
    def metric_hashes(self) -> dict[str, str]:
        """The hashes of these files: the part of a cell's key that says which of them scored it."""
        return {metric.name: file.source.hash for file in self._files for metric in file.metrics}

    def plugins(self, kind: Kind) -> Mapping[str, Plugin]:
        """Return every plug-in of a kind by name, importing none of the folders' or packages'."""
        if kind not in self._found:
            found: dict[str, Plugin] = {}
            in_files = (plugin for file in self._files for plugin in file.plugins.get(kind, ()))
            for plugin in (*_in_folder(kind), *_in_packages(kind), *in_files):
                if plugin.name in found:
                    raise UserError(f"two {kind}s are named {plugin.name!r}: {found[plugin.name]}, and {plugin}")
                found[plugin.name] = plugin
            self._found[kind] = dict(sorted(found.items()))
        return self._found[kind]

    def load(self, kind: Kind, name: str, where: str = "") -> type[Any]:
        """Import one plug-in and return its class."""
        plugins = self.plugins(kind)
        if name not in plugins:
            raise self.unknown(kind, name, where)
        plugin = plugins[name]
        try:
            return only_class_of(plugin.module(), kind)
        except BaseException as error:  # a plug-in's own mistake, of any type, must not end the others
            raise_if_stop(error)
            raise PluginError(f"{kind} {name!r} ({plugin.origin}) cannot be loaded: {in_one_line(error)}") from error

    def unknown(self, kind: Kind, name: str, where: str = "", others: Iterable[str] = ()) -> UserError:
        """Return the error for a name that is neither a plug-in's nor one of these others: labels of a suite."""
        return unknown_plugin(kind, name, {*self.plugins(kind), *others}, self._given(kind), where)

    def require_from_file(self, kind: Kind, name: str) -> None:
        """Raise if files were given and none of them has this plug-in: it is not the one that the user means."""
        given = self._given(kind)
        if given and name in self.plugins(kind) and all(name not in dict(names) for names in given.values()):
            origin = self.plugins(kind)[name].origin
            raise UserError(f"{kind} {name!r} is {origin}, not from --plugin: {described(kind, given)}")

    def _given(self, kind: Kind) -> dict[Path, list[tuple[str, bool]]]:
        """Return the names that each file gives its plug-ins of a kind, and whether its classes declare them."""
        return {file.path: [(p.name, p.name in file.declared) for p in file.plugins[kind]] for file in self._files}

    def identity(self, kind: Kind, name: str) -> tuple[str, str]:
        """Return what identifies the code of a plug-in: its name, and the package's version or the file's hash."""
        name, _ = self._addressed(kind, name, {})
        plugin = self.plugins(kind)[name]
        own = next((file for file in self._files if plugin in file.plugins.get(kind, ())), None)
        return name, plugin.origin if own is None else own.source.hash

    def make(self, kind: Kind, name: str, given: Mapping[str, Any], where: str = "") -> Any:
        """Load a plug-in and build it with the given options, checked against its fields."""
        plugin, given = self._addressed(kind, name, given)
        cls, where = self.load(kind, plugin, where), where or f"{kind} {name!r}"
        if kind == "method" and is_wrapper(cls):
            given = complete_inner(self, cls, given, where)
        return build(cls, given, where)

    def inner(self, method: Any) -> Any:
        """Return what is trained for a method: the one that a wrapper is around, or itself."""
        return self.make("method", method.method.name, method.method.options) if is_wrapper(type(method)) else method

    def spec(self, kind: Kind, name: str, plugin: object) -> PluginSpec:
        """Return the part of a cell's specification that describes a plug-in."""
        from bench.api import options

        # What was a tuple is a list when it is read again.
        plain = json.loads(json.dumps(keyed_options(plugin, options(plugin)), default=_plain))
        return PluginSpec(*self.identity(kind, name), str(plugin.version), plain)  # type: ignore[attr-defined]

    def _addressed(self, kind: Kind, name: str, given: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return the plug-in that a name stands for: `file:Class` is a name as it is, others may give options."""
        return (name, given) if name in self.plugins(kind) else _addressed(name, given)


def _plain(value: object) -> dict[str, Any]:
    """Return an option that is no plain data as JSON holds it: the inner method of a wrapper."""
    if isinstance(value, PluginSpec):
        return dataclasses.asdict(value)
    raise TypeError(f"an option of type {type(value).__name__} is not JSON serializable")


def _addressed(name: str, given: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Take `NAME:PATH?option=text&option=text` apart: the plug-in, and its option `path` beside the others."""
    plugin, colon, rest = name.partition(":")
    if not colon:
        return name, given
    path, _, query = rest.partition("?")
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    return plugin, {"path": path, **{key: AddressText(text) for key, _, text in pairs}, **given}


def _in_folder(kind: Kind) -> Iterable[Plugin]:
    package = FOLDERS[kind]
    spec = importlib.util.find_spec(package)
    for folder in spec.submodule_search_locations or () if spec else ():
        for path in sorted(Path(folder).glob("[!_]*.py")):
            module = f"{package}.{path.stem}"
            load = partial(importlib.import_module, module)
            yield Plugin(plugin_name(path.stem), "built in", _summary(path), load, path)


def _in_packages(kind: Kind) -> Iterable[Plugin]:
    for entry in entry_points(group=FOLDERS[kind]):
        package = f"package {entry.dist.name} {entry.dist.version}" if entry.dist else "a package"
        name = check_name(plugin_name(entry.name), f"{package}: {kind}")
        yield Plugin(name, package, f"{entry.value}", partial(_entry_module, entry))


def _entry_module(entry: EntryPoint) -> ModuleType:
    """Return the module an entry point names; an attribute after the colon narrows it to that class."""
    loaded = entry.load()
    if isinstance(loaded, ModuleType):
        return loaded
    return narrowed(sys.modules.get(loaded.__module__), loaded)


def _summary(path: Path) -> str:
    try:
        return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
    except (SyntaxError, ValueError):  # of the language, or of the encoding
        return "(cannot be parsed)"
