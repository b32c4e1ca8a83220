"""Where plug-ins come from: the folders, other packages' entry points, and files named on the command line.

A plug-in's name is its file's stem (`mc_dropout.py` is `mc-dropout`). A file on the command line may hold several of
any kind, metrics included: a class that declares a `name` has that name, the only one of its kind without has the
file's, and of several without each is `file:Class`. Listing imports none of the folders' or packages'; loading imports
one. All state is in the `Registry` object.
"""

import ast
import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from bench.errors import UserError, raise_if_stop
from bench.plugins.building import AddressText, PluginError, build, in_one_line
from bench.plugins.unknown import described, unknown_plugin
from bench.plugins.wrapping import complete_inner, is_wrapper
from bench.spec.names import check_name
from bench.spec.plugin import PluginSpec, keyed_options

if TYPE_CHECKING:
    from bench.metrics import Metric

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


@dataclass(frozen=True)
class PluginSource:
    """The content of a plug-in file, which results carry with them."""

    name: str  # of the file, without its folder
    content: bytes

    @property
    def hash(self) -> str:
        """The hash by which keys and stores know it."""
        return hashlib.blake2b(self.content, digest_size=8).hexdigest()

    @property
    def file_name(self) -> str:
        """A name under which it can be written, whatever a foreign store calls it; its plug-ins are named after it."""
        return self.name if re.fullmatch(r"\w[\w-]*\.py", self.name) else f"plugin_{self.hash}.py"


def plugin_name(stem: str) -> str:
    """Return the name of the plug-in in a file of that stem."""
    return stem.replace("_", "-")


class Registry:
    """All plug-ins that can be reached."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._files = [_File(Path(file)) for file in files]
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
            return _class_in(plugin.module(), kind)
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


class _File:
    """A file of the user's: imported at once, because the kinds of its plug-ins are those of its classes."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise UserError(f"--plugin {path}: no such file")
        self.path = path
        self.source = PluginSource(path.name, path.read_bytes())
        module = self._import()
        self.metrics = _metrics_in(module, path)
        self.plugins: dict[Kind, list[Plugin]] = {}
        self.declared: set[str] = set()  # the names that classes declare; the others come from the file's
        summary = _first_line(module)
        for kind in FOLDERS:
            classes = _classes(module, kind)
            names = _names_of(classes, path)
            self.declared |= {_declared_name(cls, path) for cls in classes}
            # Where a file has several plug-ins, each is described by its own class.
            alone = len(classes) == 1
            self.plugins[kind] = [
                Plugin(
                    names[cls],
                    f"file {path}",
                    summary if alone else _first_line(cls) or summary,
                    partial(_narrowed, module, cls),
                    class_name="" if alone else cls.__name__,
                )
                for cls in classes
            ]
        if not self.metrics and not any(self.plugins.values()):
            contracts = ", ".join(name for names in CONTRACTS.values() for name in names)
            raise PluginError(f"--plugin {path}: expected a subclass of {contracts}, or a Metric; found none")

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
        except BaseException as error:  # see Registry.load
            raise_if_stop(error)
            del sys.modules[name]
            raise PluginError(f"--plugin {self.path}: cannot be loaded: {in_one_line(error)}") from error
        return module


def _names_of(classes: Sequence[type[Any]], path: Path) -> dict[type[Any], str]:
    """Return the names of a file's classes of one kind: as declared, else the file's, else `file:Class`."""
    declared = {cls: name for cls in classes if (name := _declared_name(cls, path))}
    stem = plugin_name(path.stem)
    alone = len(classes) - len(declared) == 1
    names = {cls: declared.get(cls) or (stem if alone else f"{stem}:{cls.__name__}") for cls in classes}
    return {cls: check_name(name, "--plugin: name") for cls, name in names.items()}


def _declared_name(cls: type[Any], path: Path) -> str:
    """Return the name that a class declares for itself, `name: ClassVar[str]`; a field of that name is an option."""
    name = vars(cls).get("name")
    is_option = dataclasses.is_dataclass(cls) and "name" in {field.name for field in dataclasses.fields(cls)}
    if name is None or is_option:
        return ""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9]+([._-][A-Za-z0-9]+)*", name):
        raise PluginError(
            f"--plugin {path}: {cls.__name__}.name is {name!r}; use letters, digits, - or _, such as 'my-noise'"
        )
    return name


def _metrics_in(module: ModuleType, path: Path) -> "list[Metric]":
    """Return the metrics of a file: those in its `METRICS`, else every `Metric` that it gives a public name."""
    from bench.metrics import Metric

    listed = vars(module).get("METRICS")
    if listed is None:
        found = [value for name, value in vars(module).items() if isinstance(value, Metric) and name[0] != "_"]
        return list({id(metric): metric for metric in found}.values())
    found = [listed] if isinstance(listed, Metric) else list(listed) if isinstance(listed, list | tuple) else [listed]
    for each in found:
        if not isinstance(each, Metric):
            raise PluginError(
                f"--plugin {path}: METRICS must be a tuple of Metric, found a {type(each).__name__} in it"
            )
    return found


def _first_line(documented: object) -> str:
    text = getattr(documented, "__doc__", None) or ""
    # Python gives a dataclass without a docstring its signature as one; that says nothing.
    if inspect.isclass(documented) and text.startswith(f"{documented.__name__}("):
        return ""
    return inspect.cleandoc(text).partition("\n")[0]


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
    return _narrowed(sys.modules.get(loaded.__module__), loaded)


def _narrowed(module: ModuleType | None, cls: type[Any]) -> ModuleType:
    """Return a module with the documentation of another and one of its classes."""
    narrowed = ModuleType(cls.__module__, module.__doc__ if module else None)
    setattr(narrowed, cls.__name__, cls)
    return narrowed


def _summary(path: Path) -> str:
    try:
        return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
    except (SyntaxError, ValueError):  # of the language, or of the encoding
        return "(cannot be parsed)"


def _classes(module: ModuleType, kind: Kind) -> list[type[Any]]:
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


def _class_in(module: ModuleType, kind: Kind) -> type[Any]:
    classes = _classes(module, kind)
    if len(classes) != 1:
        names = ", ".join(c.__name__ for c in classes) or "none"
        hint = f"; an entry point names one of them, as in {module.__name__}:{classes[0].__name__}" if classes else ""
        wanted = " or ".join(CONTRACTS[kind])
        raise PluginError(f"one plug-in a file: expected one {wanted} class, found {names}{hint}")
    if "__dataclass_fields__" not in vars(classes[0]):
        raise PluginError(f"{classes[0].__name__} must be a frozen dataclass: write @dataclass(frozen=True) above it")
    return classes[0]
