"""Plug-in files of the user's: what is in them, and under which names."""

import dataclasses
import hashlib
import importlib.util
import re
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bench.errors import UserError, raise_if_stop
from bench.plugins.building import PluginError, in_one_line
from bench.plugins.kinds import CONTRACTS, Kind, Plugin, classes_of, first_line, narrowed, plugin_name
from bench.spec.names import check_name

if TYPE_CHECKING:
    from bench.metrics import Metric


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


class PluginFile:
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
        summary = first_line(module)
        for kind in CONTRACTS:
            classes = classes_of(module, kind)
            names = _names_of(classes, path)
            self.declared |= {_declared_name(cls, path) for cls in classes}
            # Where a file has several plug-ins, each is described by its own class.
            alone = len(classes) == 1
            self.plugins[kind] = [
                Plugin(
                    names[cls],
                    f"file {path}",
                    summary if alone else first_line(cls) or summary,
                    partial(narrowed, module, cls),
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
