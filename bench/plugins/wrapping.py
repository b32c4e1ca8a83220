"""The inner method of a wrapper: how a suite names it, and how a specification holds it."""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from typing import TYPE_CHECKING, Any

from bench.errors import UserError
from bench.spec.plugin import PluginSpec, is_spec

if TYPE_CHECKING:
    from bench.plugins.registry import Registry


def is_wrapper(cls: type[Any]) -> bool:
    """Return whether a plug-in's class is a method around another one."""
    from bench.api import Wrapper

    return issubclass(cls, Wrapper)


def read_inner(given: object, where: str) -> PluginSpec:
    """Read the option `method` of a wrapper: a name, a table with a name and options, or a specification."""
    if isinstance(given, PluginSpec):
        return given
    if isinstance(given, Mapping) and is_spec(given):
        return PluginSpec(**given)
    table = {"name": given} if isinstance(given, str) else given
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str) or not table["name"]:
        form = '"NAME" or { name = "NAME", option = value }'
        raise UserError(f"{where}: method: expected the method to wrap, as {form}, got {given!r:.60}")
    return PluginSpec(table["name"], options={name: value for name, value in table.items() if name != "name"})


def inner_table(spec: PluginSpec) -> dict[str, Any]:
    """Return the table `method` of a suite that names this inner method."""
    return {"name": spec.name, **spec.options}


def complete_inner(registry: "Registry", cls: type[Any], given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return the options given to a wrapper with its inner method in full: identity, version and all options."""
    defaults = {field.name: field.default for field in fields(cls) if field.default is not MISSING}
    if "method" not in given and "method" not in defaults:
        return given
    wanted = read_inner(given.get("method", defaults.get("method")), where)
    place = f"{where}: method"
    if wanted.name in registry.plugins("method") and is_wrapper(registry.load("method", wanted.name)):
        raise UserError(f"{place}: {wanted.name!r} is a wrapper, too; name a method that is trained")
    inner = registry.make("method", wanted.name, wanted.options, place)
    return {**given, "method": asdict(registry.spec("method", wanted.name, inner))}


def given_options(plugin: object, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options that a suite gives to what is trained: of a wrapper those of its inner method."""
    if not is_wrapper(type(plugin)):
        return given
    return read_inner(given["method"], "").options if "method" in given else {}


def with_option(plugin: object, given: Mapping[str, Any], option: str, value: object) -> dict[str, Any]:
    """Return the options given to a method with one that is searched: of a wrapper it is the inner method's."""
    if not is_wrapper(type(plugin)):
        return {**given, option: value}
    return {**given, "method": {**inner_table(plugin.method), option: value}}  # type: ignore[attr-defined]
