"""Where plug-ins come from: the folders, other packages' entry points, and files named on the command line.

A plug-in's name is its file's stem (`mc_dropout.py` is `mc-dropout`). Listing imports none of them; loading imports
one. All state is in the `Registry` object.
"""

import ast
import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import json
import sys
import typing
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from bench.errors import UserError, unknown_name

Kind = Literal["method", "dataset", "report"]
FOLDERS: dict[Kind, str] = {"method": "bench.methods", "dataset": "bench.datasets", "report": "bench.reports"}
CONTRACTS: dict[Kind, str] = {"method": "Method", "dataset": "Dataset", "report": "Report"}


class PluginError(UserError):
    """A plug-in that exists but cannot be loaded."""


@dataclass(frozen=True)
class Plugin:
    """One plug-in that was found, not yet imported."""

    name: str
    origin: str
    summary: str
    module: Callable[[], ModuleType]
    path: Path | None = None  # of the folders' plug-ins

    def __str__(self) -> str:
        return f"{self.origin} ({self.path})" if self.path else self.origin


def plugin_name(stem: str) -> str:
    """Return the name of the plug-in in a file of that stem."""
    return stem.replace("_", "-")


class Registry:
    """All plug-ins that can be reached."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._files = [_FilePlugin(Path(file)) for file in files]
        self._found: dict[Kind, dict[str, Plugin]] = {}

    @property
    def files(self) -> list[Path]:
        """The files that were named on the command line."""
        return [file.path for file in self._files]

    def plugins(self, kind: Kind) -> Mapping[str, Plugin]:
        """Return every plug-in of a kind by name, importing none of the folders' or packages'."""
        if kind not in self._found:
            found: dict[str, Plugin] = {}
            for plugin in (*_in_folder(kind), *_in_packages(kind), *(f.plugin for f in self._files if f.kind == kind)):
                if plugin.name in found:
                    raise UserError(f"two {kind}s are named {plugin.name!r}: {found[plugin.name]}, and {plugin}")
                found[plugin.name] = plugin
            self._found[kind] = dict(sorted(found.items()))
        return self._found[kind]

    def load(self, kind: Kind, name: str, where: str = "") -> type[Any]:
        """Import one plug-in and return its class."""
        plugins = self.plugins(kind)
        if name not in plugins:
            raise unknown_name(kind, name, plugins, where)
        plugin = plugins[name]
        try:
            return _class_in(plugin.module(), kind)
        except (Exception, SystemExit) as error:  # a plug-in's own mistake, of any type, must not end the others
            raise PluginError(f"{kind} {name!r} ({plugin.origin}) cannot be loaded: {in_one_line(error)}") from error

    def identity(self, kind: Kind, name: str) -> tuple[str, str]:
        """Return what identifies the code of a plug-in: its name, and the package's version or the file's hash."""
        name, _ = _addressed(name, {})
        plugin = self.plugins(kind)[name]
        own = next((file for file in self._files if file.plugin is plugin), None)
        if own is not None:
            return name, hashlib.blake2b(own.path.read_bytes(), digest_size=8).hexdigest()
        return name, plugin.origin

    def make(self, kind: Kind, name: str, given: Mapping[str, Any], where: str = "") -> Any:
        """Load a plug-in and build it with the given options, checked against its fields."""
        plugin, given = _addressed(name, given)
        return build(self.load(kind, plugin, where), given, where or f"{kind} {name!r}")


def _addressed(name: str, given: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Take `NAME:PATH?option=text&option=text` apart: the plug-in, and its option `path` beside the others."""
    plugin, colon, rest = name.partition(":")
    if not colon:
        return name, given
    path, _, query = rest.partition("?")
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    return plugin, {"path": path, **{key: text for key, _, text in pairs}, **given}


def build(cls: type[Any], given: Mapping[str, Any], where: str) -> Any:
    """Build a plug-in from options, with errors that name the option and what is allowed."""
    from pydantic import TypeAdapter, ValidationError

    try:
        hints = typing.get_type_hints(cls)
    except Exception as error:  # the names in a plug-in's annotations are its own
        raise PluginError(f"{where}: {cls.__name__}: {in_one_line(error)}") from error
    fields = [field for field in dataclasses.fields(cls) if field.init]
    known = {field.name: hints[field.name] for field in fields}
    checked = {}
    for name, value in given.items():
        if name not in known:
            raise unknown_name("option", name, known, where)
        try:
            # As JSON: a suite and a stored spec have lists where an option may be a tuple.
            checked[name] = TypeAdapter(known[name]).validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            raise UserError(f"{where}: {name}: {error.errors()[0]['msg']}, got {value!r}") from None
        except TypeError:
            raise UserError(f"{where}: {name}: expected plain data, got {value!r}") from None
    for field in fields:
        if field.name not in checked and field.default is field.default_factory is dataclasses.MISSING:
            raise UserError(f"{where}: the option {field.name!r} has no default; give it a value")
    try:
        return cls(**checked)
    except (ValueError, TypeError) as error:
        raise UserError(f"{where}: {error}") from None
    except Exception as error:  # see Registry.load
        raise PluginError(f"{where}: {in_one_line(error)}") from error


class _FilePlugin:
    """A plug-in in a file of the user's: imported at once, because its kind is that of its class."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise UserError(f"--plugin {path}: no such file")
        self.path = path
        module = self._import()
        kinds: list[Kind] = [kind for kind in FOLDERS if _classes(module, kind)]
        if len(kinds) != 1:
            raise PluginError(
                f"--plugin {path}: expected one subclass of Method, Dataset or Report, found {len(kinds) or 'none'}"
            )
        self.kind = kinds[0]
        summary = (inspect.getdoc(module) or "").partition("\n")[0]
        self.plugin = Plugin(plugin_name(path.stem), f"file {path}", summary, lambda: module)

    def _import(self) -> ModuleType:
        # Two files of the same name in different folders are two modules.
        name = f"bench_plugin_{self.path.stem}_{zlib.crc32(bytes(self.path.resolve())):08x}"
        spec = importlib.util.spec_from_file_location(name, self.path)
        if spec is None or spec.loader is None:
            raise PluginError(f"--plugin {self.path}: not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look their module up there
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:  # see Registry.load
            del sys.modules[name]
            raise PluginError(f"--plugin {self.path}: cannot be loaded: {in_one_line(error)}") from error
        return module


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
        yield Plugin(plugin_name(entry.name), package, f"{entry.value}", partial(_entry_module, entry))


def _entry_module(entry: EntryPoint) -> ModuleType:
    """Return the module an entry point names; an attribute after the colon narrows it to that class."""
    loaded = entry.load()
    if isinstance(loaded, ModuleType):
        return loaded
    narrowed = ModuleType(loaded.__module__)
    setattr(narrowed, loaded.__name__, loaded)
    return narrowed


def _summary(path: Path) -> str:
    try:
        return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
    except (SyntaxError, ValueError):  # of the language, or of the encoding
        return "(cannot be parsed)"


def _classes(module: ModuleType, kind: Kind) -> list[type[Any]]:
    from bench import api

    contract = getattr(api, CONTRACTS[kind])
    return [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, contract)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]


def _class_in(module: ModuleType, kind: Kind) -> type[Any]:
    classes = _classes(module, kind)
    if len(classes) != 1:
        names = ", ".join(c.__name__ for c in classes) or "none"
        raise PluginError(f"one plug-in a file: expected one {CONTRACTS[kind]} class, found {names}")
    if "__dataclass_fields__" not in vars(classes[0]):
        raise PluginError(f"{classes[0].__name__} must be a frozen dataclass: write @dataclass(frozen=True) above it")
    return classes[0]


def in_one_line(error: BaseException) -> str:
    """Return the message of a plug-in's exception, without its traceback."""
    text = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
