"""Probes: what is measured on the networks of a cell. A suite chooses one in its table `[probe]`.

A probe is one module (or folder) of this package with one subclass of `Probe`; `bench.probes.base` says what it writes.
Whatever lies here is found, so nothing else names it. Modules whose names begin with an underscore are no probes.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from bench.errors import UserError, unknown_name

if TYPE_CHECKING:
    from bench.probes.base import Probe
    from bench.spec.cell import Outcome


def probe_types() -> "Mapping[str, type[Probe]]":
    """Return the class of every probe by its kind."""
    return _types_in(tuple(__path__))


def make_probe(table: Mapping[str, Any], where: str = "") -> "Probe":
    """Build the probe of a table `[probe]`; errors name the key and begin with `where`."""
    from pydantic import ValidationError

    from bench.spec.mistakes import first_mistake

    options = {name: value for name, value in table.items() if name != "kind"}
    types, before = probe_types(), f"{where}: " if where else ""
    if table["kind"] not in types:
        raise unknown_name("kind", table["kind"], types, f"{before}probe")
    cls = types[table["kind"]]
    try:
        return cls(**options)
    except ValidationError as error:
        keys = {"": ["kind", *inspect.signature(cls).parameters]}
        raise UserError(f"{before}{first_mistake(error, keys, 'probe')}") from None


def check_outcome(outcome: "Outcome") -> None:
    """Raise a UserError where an outcome lacks what a probe requires of stored values."""
    for cls in probe_types().values():
        cls.check_outcome(outcome)


@cache
def _types_in(folders: tuple[str, ...]) -> "dict[str, type[Probe]]":
    from bench.probes.base import Probe

    found: dict[str, type[Probe]] = {}
    for entry in pkgutil.iter_modules(folders, f"{__name__}."):
        if entry.name == Probe.__module__ or entry.name.startswith(f"{__name__}._"):
            continue
        module = importlib.import_module(entry.name)
        values = [value for value in vars(module).values() if inspect.isclass(value) and issubclass(value, Probe)]
        own = [value for value in values if f"{value.__module__}.".startswith(f"{entry.name}.")]
        if len(own) != 1:
            raise TypeError(f"{entry.name}: expected one subclass of Probe, found {len(own)}")
        if own[0].kind in found:
            raise TypeError(f"two probes are named {own[0].kind!r}: {found[own[0].kind]} and {own[0]}")
        found[own[0].kind] = own[0]
    return found
