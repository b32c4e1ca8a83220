"""Values over versions, read from stores.

A store keeps every result with the code that computed it, also of cells that are no longer in a suite. A version is the
code together with the versions of the plug-ins and of the harness; its values are those of its cells, one per seed.
"""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from sqlalchemy import select

from bench.errors import UserError
from bench.gate.environment_diff import MACHINE
from bench.history.commits import COMMIT, labels, subjects
from bench.history.identity import Form, Wanted, form_of, given_parts, lineages
from bench.metrics import declaration
from bench.spec.plugin import inner_spec
from bench.spec.spec import ON_REQUEST, CellSpec, spec_or_none
from bench.stats.tests import Array
from bench.store.database import chunks
from bench.store.provenance import provenance
from bench.store.store import Store
from bench.store.tables import cells, environments, metrics

VersionName = tuple[str, str]  # the code, and the versions of plug-ins and harness
SHORT = 7  # characters of a commit, as git shows them
Place = tuple[int, str]  # of a cell: the number of its store, and its key


@dataclass(frozen=True)
class Version:
    """The code and the plug-ins that computed some cells."""

    code: str  # the commit, marked where the code was changed since; else the package's number, or ''
    plugins: str  # versions of the method, the dataset and the harness
    since: float  # when its first cell ended
    finished: float  # when its last one did
    subject: str = ""  # the first line of the commit's message, where this repository has it
    options: tuple[str, ...] = ()  # those in which the versions of a line differ: defaults that changed
    label: str = ""  # the tags of the commit, where this repository has it

    @property
    def name(self) -> str:
        """The code, or "unknown"."""
        return self.code or "unknown"

    @property
    def short(self) -> str:
        """The label, or as much of the code as fits an axis."""
        return self.label or (self.code[:SHORT] if COMMIT.fullmatch(self.code.removesuffix("-dirty")) else self.code)


@dataclass(frozen=True)
class Label:
    """One method on one dataset of a suite."""

    suite: str
    dataset: str
    method: str
    options: str = ""  # what distinguishes it from others of this name, where stores have several


@dataclass(frozen=True, eq=False)
class Series:
    """One metric of one label: values `[versions, seeds]`, the oldest version first, NaN where there is none."""

    label: Label
    metric: str
    versions: tuple[Version, ...]
    seeds: tuple[int, ...]
    values: Array
    machines: int  # on how many different ones it was computed
    runs: tuple[tuple[float, ...], ...]  # of every version: the means of its runs, one per store

    @property
    def comparable(self) -> bool:
        """Whether versions may be compared: times only where they were taken on one machine."""
        return self.machines == 1 or declaration(self.metric).family != "cost"

    @property
    def shares_noise(self) -> bool:
        """Whether the values of one run have noise in common: times do, by what else the machine did."""
        return declaration(self.metric).family == "cost"

    def changed_plugins(self, at: int) -> str:
        """Return in words what differs of plug-ins, defaults and harness from the version before; '' if nothing."""
        if at == 0:
            return ""
        sides = (self.versions[number] for number in (at - 1, at))
        before, after = ({*side.plugins.split(", "), *side.options} for side in sides)
        old, new = ", ".join(sorted(before - after)), ", ".join(sorted(after - before))
        return f"changed: {old or 'none'} -> {new or 'none'}" if old or new else ""


@dataclass(frozen=True)
class _Stored:
    """One cell that has a result."""

    place: Place
    form: Form
    version: VersionName
    repeat: tuple[int, int]  # seed and split
    finished: float
    machine: tuple[str, ...]


Runs = Mapping[VersionName, Sequence[_Stored]]


def wanted_labels(stores: Sequence[Store], suite: str | None) -> dict[Label, Wanted]:
    """Return the forms of a suite's labels in some stores: the newest, with the earlier ones that agree with it.

    A store of an earlier version may have a label with options that contradict today's: that is a separate label.
    """
    ended: dict[tuple[str, str, str], dict[Form, float]] = {}
    given: dict[tuple[tuple[str, str, str], Form], frozenset[str] | None] = {}
    for store in stores:
        name = _suite_of(store, suite)
        content = store.suites()[name]["content"]
        for row in store.cells(name):
            if (spec := spec_or_none(row["spec"])) is not None:
                form, place = form_of(spec), (name, row["dataset"], row["method"])
                forms = ended.setdefault(place, {})
                forms[form] = max(forms.get(form, 0.0), float(row["finished"] or 0.0))
                if (place, form) not in given:  # the seeds of a row share one
                    given[place, form] = given_parts(content, *place[1:])
    found: dict[Label, Wanted] = {}
    for place, forms in sorted(ended.items()):
        heads: list[Wanted] = []
        for form in sorted(forms, key=lambda form: (-forms[form], form.text)):
            one = Wanted(form, given=given[place, form])
            own = next((n for n, head in enumerate(heads) if _same_cell(one, head)), None)
            if own is None:
                heads.append(one)
            else:
                heads[own] = replace(heads[own], earlier=(*heads[own].earlier, form))
        for head in heads:
            others = [other.form for other in heads if other is not head]
            found[Label(*place, options="; ".join(dict.fromkeys(head.form.beside(other) for other in others)))] = head
    return found


def _same_cell(one: Wanted, other: Wanted) -> bool:
    """Whether two forms of one label are the same cell of different versions."""
    either = None if one.given is None or other.given is None else one.given | other.given
    return one.form.agrees_with(other.form) or one.form.agrees_but_for_defaults(other.form, either)


def _suite_of(store: Store, suite: str | None) -> str:
    names = list(store.suites())
    if suite is None and len(names) != 1:
        raise UserError(f"--store {store.address} holds {len(names)} suites; name one with --suite: {', '.join(names)}")
    if suite is not None:
        store.require_suite(suite)
    return suite or names[0]


def read_series(
    stores: Sequence[Store],
    wanted: Mapping[Label, Wanted],
    metrics: Mapping[str, Sequence[str]],
    *,
    full_provenance: bool = False,
    fewest: int = 1,
) -> list[Series]:
    """Return the series of the labels, for the metrics of each suite.

    With `full_provenance`, results without it are left out. Series of fewer versions than `fewest` are not returned.
    """
    runs: dict[tuple[Form, VersionName], list[_Stored]] = {}
    versions: dict[Form, dict[VersionName, None]] = {}
    for cell in _stored(stores, full_provenance):
        runs.setdefault((cell.form, cell.version), []).append(cell)
        versions.setdefault(cell.form, {})[cell.version] = None
    by_suite: dict[str, dict[Label, Wanted]] = {}
    for label, its in wanted.items():
        by_suite.setdefault(label.suite, {})[label] = its
    found: dict[Label, Runs] = {}
    for own in by_suite.values():
        for label, lineage in lineages(own, versions).items():
            if len(lineage) >= fewest:
                found[label] = {version: runs[form, version] for version, form in lineage.items()}
    every = [cell for of_label in found.values() for cells in of_label.values() for cell in cells]
    values = _values(stores, every, {metric for names in metrics.values() for metric in names})
    codes = {cell.version[0] for cell in every}
    messages, tags = subjects(codes), labels(codes)
    pairs = [(label, metric) for label in wanted if label in found for metric in metrics[label.suite]]
    series = [_series(label, metric, found[label], values[metric], messages, tags) for label, metric in pairs]
    return [each for each in series if len(each.versions) >= max(1, fewest)]


def _stored(stores: Sequence[Store], full_provenance: bool) -> Iterator[_Stored]:
    columns = (cells.c.key, cells.c.spec, cells.c.finished, environments.c.content.label("environment"))
    query = select(*columns).join(environments, environments.c.hash == cells.c.environment, isouter=True)
    for number, store in enumerate(stores):
        for row in store.database.rows(query.where(cells.c.status == "ok").order_by(cells.c.key)):
            source = provenance(row)
            spec = source.spec
            if spec is None or (full_provenance and source.missing):
                continue
            machine = tuple(str(source.environment.get(fact)) for fact in MACHINE)
            place, version = (number, str(row["key"])), (source.code, _plugins(spec))
            repeat, finished = (spec.seed, spec.split), float(row["finished"] or 0.0)
            yield _Stored(place, form_of(spec), version, repeat, finished, machine)


def _plugins(spec: CellSpec) -> str:
    """Return the versions that a specification names. A plug-in that is a file is known by its content."""
    words, inner = [], inner_spec(spec.method)
    named = [("method", spec.method), ("dataset", spec.dataset), ("network", spec.protocol.network)]
    for kind, plugin in [*named, *([] if inner is None else [("inner method", inner)])]:
        words.append(f"{kind} {plugin.version}{'' if plugin.origin == 'built in' else f' ({plugin.origin})'}")
    words += [f"metric {name} ({file})" for name, file in spec.metrics.items() if file != ON_REQUEST]
    return f"{', '.join(words)}, harness {spec.harness}"


def _values(stores: Sequence[Store], runs: Iterable[_Stored], names: Collection[str]) -> dict[str, dict[Place, float]]:
    """Return the stored values of some metrics, by metric and cell."""
    found: dict[str, dict[Place, float]] = {name: {} for name in names}
    keys: dict[int, dict[str, None]] = {}
    for cell in runs:
        keys.setdefault(cell.place[0], {})[cell.place[1]] = None
    for number, own in keys.items():
        with stores[number].database.reading() as connection:
            for part in chunks(sorted(own)):
                query = select(metrics).where(metrics.c.key.in_(part), metrics.c.metric.in_(sorted(names)))
                for row in connection.execute(query):
                    found[row.metric][number, row.key] = row.value
    return found


def _series(
    label: Label,
    metric: str,
    runs: Runs,
    values: Mapping[Place, float],
    messages: Mapping[str, str],
    tags: Mapping[str, str],
) -> Series:
    finite = {name: [c for c in own if math.isfinite(values.get(c.place, math.nan))] for name, own in runs.items()}
    finite = {name: own for name, own in finite.items() if own}
    options = _changed_options({name: own[0].form for name, own in finite.items()})
    versions = [
        Version(
            *name,
            min(c.finished for c in own),
            max(c.finished for c in own),
            messages.get(name[0], ""),
            options[name],
            tags.get(name[0], ""),
        )
        for name, own in finite.items()
    ]
    versions.sort(key=lambda version: (version.since, version.code, version.plugins))
    repeats = sorted({cell.repeat for own in finite.values() for cell in own})
    column = {repeat: number for number, repeat in enumerate(repeats)}
    table = np.full((len(versions), len(repeats)), np.nan)
    means: list[tuple[float, ...]] = []
    for row, version in zip(table, versions, strict=True):
        by_store: dict[int, list[float]] = {}
        # Where one version has a repeat twice (in two stores, on other data), the later result counts.
        for cell in sorted(finite[version.code, version.plugins], key=lambda cell: (cell.finished, cell.place)):
            row[column[cell.repeat]] = values[cell.place]
            by_store.setdefault(cell.place[0], []).append(values[cell.place])
        means.append(tuple(sum(own) / len(own) for own in by_store.values()))
    machines = {cell.machine for own in finite.values() for cell in own}
    seeds = tuple(seed for seed, _ in repeats)
    return Series(label, metric, tuple(versions), seeds, table, len(machines), tuple(means))


def _changed_options(forms: Mapping[VersionName, Form]) -> dict[VersionName, tuple[str, ...]]:
    """Return the options of every version that are not the same in all of them, in words."""
    names = sorted({name for a, b in combinations(forms.values(), 2) for name in a.differs_in(b)})
    return {
        version: tuple(f"{name} = {json.dumps(form.parts[name])}" for name in names if name in form.parts)
        for version, form in forms.items()
    }
