"""Decides whether two stored cells are the same cell of different versions.

A key changes with the harness and with the versions of plug-ins, so the cells that a suite wants today are not those
that it wanted then. They are recognised by what they are: the same plug-ins, options, protocol and search, whatever the
versions, data and seed. A version may lack an option that another one has:

- What a spec lacks of the protocol stands at its default, which is known.
- The default of a plug-in's option is not known here: specs agree where all options that both have are the same.
- A default that changed makes another spec of the same cell: specs that differ only where the suite gives no value are
  versions of one cell, if no version has two of them.

Agreeing is not enough to be joined. A form that agrees with several labels of a suite belongs to none of them, forms
that contradict each other are not both somebody's past, and of one version at most one form is.
"""

import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import combinations
from typing import Any, TypeVar

from bench.probes import make_probe, probe_types
from bench.spec.plugin import is_spec
from bench.spec.protocol import Protocol
from bench.spec.spec import REPEATED, CellSpec

Label = TypeVar("Label", bound=Hashable)
VersionName = TypeVar("VersionName", bound=Hashable)


# From seed to seed and from version to version, beside the versions of plug-ins. A metric changes no other number.
CHANGING = REPEATED | {"harness", "metrics"}


# What a search tries is one value, and other plug-ins are other cells, whoever chose them.
ALWAYS_GIVEN = frozenset({"dataset", "method", "network", "space", "grid"})


@dataclass(frozen=True)
class Form:
    """What a cell is, without what changes from version to version and from seed to seed."""

    text: str  # canonical: two forms are the same where their texts are
    parts: Mapping[str, Any] = field(compare=False, repr=False)  # by name: 'method rate', 'training.epochs'

    @property
    def plugins(self) -> tuple[str, str]:
        """The names of dataset and method: forms of other plug-ins never agree."""
        return self.parts["dataset"], self.parts["method"]

    def agrees_with(self, other: "Form") -> bool:
        """Whether all that both have is the same."""
        return not self.differs_in(other)

    def differs_in(self, other: "Form") -> set[str]:
        """Return the names of the parts that both have, with other values."""
        both = self.parts.keys() & other.parts.keys()
        return {name for name in both if self.parts[name] != other.parts[name]}

    def agrees_but_for_defaults(self, other: "Form", given: frozenset[str] | None) -> bool:
        """Whether all that both have and a suite gives is the same; None: what it gives is not known."""
        return given is not None and not self.differs_in(other) & (given | ALWAYS_GIVEN)

    def beside(self, other: "Form") -> str:
        """Return in words what this form has otherwise than another."""
        own = [name for name, value in self.parts.items() if name not in other.parts or other.parts[name] != value]
        return ", ".join(f"{name} = {json.dumps(self.parts[name])}" for name in own)


def form_of(spec: CellSpec) -> Form:
    """Return the form of a cell's specification."""
    return _form(json.dumps({k: v for k, v in spec.plain().items() if k not in CHANGING}, sort_keys=True))


@cache  # the seeds of a row share one
def _form(content: str) -> Form:
    parts: dict[str, Any] = {}
    for name, value in json.loads(content).items():
        if name in ("dataset", "method"):
            parts |= _plugin_parts(name, value)
        elif name == "protocol":
            parts |= _plugin_parts("network", value.pop("network"))
            parts |= _completed(value, _defaults(value["probe"]["kind"]))
        else:  # one value: a search over other options is another search
            parts[name] = value
    return Form(json.dumps(parts, sort_keys=True), parts)


def _plugin_parts(kind: str, plugin: Mapping[str, Any]) -> dict[str, Any]:
    parts: dict[str, Any] = {kind: plugin["name"]}
    for option, value in plugin["options"].items():
        # The inner method of a wrapper has versions, too.
        parts |= _plugin_parts(f"{kind} {option}", value) if is_spec(value) else {f"{kind} {option}": value}
    return parts


@cache
def _defaults(probe: str) -> dict[str, Any]:
    """Return the defaults of a protocol as JSON has them; every kind of probe has its own."""
    defaults = {name: value for name, value in asdict(Protocol()).items() if name != "network"}
    kind = probe or defaults["probe"]["kind"]
    defaults["probe"] = make_probe({"kind": kind}).spec if kind in probe_types() else {"kind": kind}
    plain: dict[str, Any] = json.loads(json.dumps(defaults))
    return plain


def _completed(given: Mapping[str, Any], defaults: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return what is given and the defaults of what is not, by name; only tables that have fields are opened."""
    full: dict[str, Any] = {}
    for key in sorted({*given, *defaults}):
        value, usual = given.get(key, defaults.get(key)), defaults.get(key)
        if isinstance(value, Mapping) and isinstance(usual, Mapping) and usual:
            full |= _completed(value, usual, f"{before}{key}.")
        else:
            full[f"{before}{key}"] = value
    return full


@dataclass(frozen=True)
class Wanted:
    """What a label of a suite stands for: its form today, and the forms that stores knew by the same name."""

    form: Form
    earlier: tuple[Form, ...] = ()
    given: frozenset[str] | None = None  # the parts that its suite gives a value; None: not known


def given_parts(content: str, dataset: str, method: str) -> frozenset[str] | None:
    """Return the names of the parts to which a suite, as it is stored, gives a value for one dataset and method.

    Everything else stands at a default of the code. None: the suite is not stored with its content.
    """
    suite = json.loads(content)
    tables = [suite.get(kind, {}).get(name) for kind, name in (("datasets", dataset), ("methods", method))]
    if None in tables:
        return None
    found = _names(suite.get("protocol", {}), "protocol")
    for kind, table in zip(("dataset", "method"), tables, strict=True):
        own = {name: value for name, value in table.items() if name in Protocol.__dataclass_fields__}
        found |= _names(own, "protocol") | _names({name: v for name, v in table.items() if name not in own}, kind)
    return frozenset(found)


def _names(table: Mapping[str, Any], kind: str) -> set[str]:
    """Return the names of parts that a table of a suite gives: of the protocol, or of the options of a plug-in."""
    found = set()
    for key, value in table.items():
        inner = set(value) if isinstance(value, Mapping) else set()
        if kind != "protocol":
            found |= {f"{kind} {key}", *(f"{kind} {key} {name}" for name in inner)}
        elif key == "network":
            found |= {f"network {name}" for name in inner}
        else:
            found |= {key, *(f"{key}.{name}" for name in inner)}
    return found


def lineages(
    wanted: Mapping[Label, Wanted], stored: Mapping[Form, Iterable[VersionName]]
) -> dict[Label, dict[VersionName, Form]]:
    """Return for every label of one suite the form in which each version has it, where that is beyond doubt."""
    owners: dict[Form, dict[Label, None]] = {}
    for label, its in wanted.items():
        for form in (its.form, *its.earlier):
            owners.setdefault(form, {})[label] = None
    by_plugins: dict[tuple[str, str], list[Form]] = {}
    for form in {its.form for its in wanted.values()}:
        by_plugins.setdefault(form.plugins, []).append(form)
    named: dict[Label, list[Form]] = {label: [] for label in wanted}
    alike: dict[Label, list[Form]] = {label: [] for label in wanted}
    defaulted: dict[Label, list[Form]] = {label: [] for label in wanted}
    for form in stored:
        if form in owners:
            for label in owners[form]:
                named[label].append(form)
            continue
        candidates = [today for today in by_plugins.get(form.plugins, ()) if form.agrees_with(today)]
        if len(candidates) == 1:
            for label in owners[candidates[0]]:
                if wanted[label].form == candidates[0]:
                    alike[label].append(form)
        for label in [] if candidates else _heirs(form, wanted):
            defaulted[label].append(form)
    found: dict[Label, dict[VersionName, Form]] = {}
    for label, its in wanted.items():
        today = [form for form in named[label] if form == its.form]
        earlier = [form for form in named[label] if form != its.form]
        ranks = [today, earlier, _without_contradictions(alike[label]), defaulted[label]]
        found[label] = _by_version(ranks, stored)
    return found


def _heirs(form: Form, wanted: Mapping[Label, Wanted]) -> list[Label]:
    """Return the labels of which a form may be an earlier version with another default; none where it is in doubt."""
    agreeing = [
        label
        for label, its in wanted.items()
        if its.form.plugins == form.plugins and form.agrees_but_for_defaults(its.form, its.given)
    ]
    return agreeing if len({wanted[label].form for label in agreeing}) == 1 else []


def _without_contradictions(forms: list[Form]) -> list[Form]:
    doubtful = {form for pair in combinations(forms, 2) if not pair[0].agrees_with(pair[1]) for form in pair}
    return [form for form in forms if form not in doubtful]


def _by_version(ranks: Iterable[list[Form]], stored: Mapping[Form, Iterable[VersionName]]) -> dict[VersionName, Form]:
    """Return one form per version, of the first rank that has any; none where that rank has two."""
    found: dict[VersionName, Form | None] = {}
    for forms in ranks:
        claims: dict[VersionName, list[Form]] = {}
        for form in forms:
            for version in stored[form]:
                claims.setdefault(version, []).append(form)
        for version, claiming in claims.items():
            found.setdefault(version, claiming[0] if len(claiming) == 1 else None)
    return {version: form for version, form in found.items() if form is not None}
