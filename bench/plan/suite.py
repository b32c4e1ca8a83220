"""Suites: what to run, in a TOML file that is checked to the last key.

A suite names datasets and methods (each a table with its options) and a protocol that holds for all of them; a dataset
may change parts of the protocol for itself, and a method its training, its network and what is searched. A method's own
settings win over a dataset's, the command line's `--set` over both.
"""

import copy
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, StrictBool, ValidationError

from bench.errors import UserError, unknown_name
from bench.machine.files import read_document
from bench.plan.changes import METHOD_KEYS, PROTOCOL_KEYS, Changes, apply_changes, table
from bench.probes import make_probe
from bench.spec.mistakes import first_mistake
from bench.spec.names import check_name
from bench.spec.protocol import DEFAULT_NETWORK, Protocol, Searched, Training
from bench.spec.sizes import MOST_SEEDS

if TYPE_CHECKING:
    from bench.metrics.margins import Margin

SEARCHED = frozenset(get_args(Searched))  # what a grid may hold besides the options of a method


class MethodEntry(BaseModel):
    """A method under the name it has in this suite: its options, and what it changes of the protocol."""

    model_config = ConfigDict(extra="allow", frozen=True)
    use: str = ""  # the plug-in, where it is not the table's own name

    @property
    def options(self) -> dict[str, Any]:
        """The options for the plug-in."""
        return {k: v for k, v in (self.model_extra or {}).items() if k not in METHOD_KEYS}

    @property
    def changes(self) -> dict[str, Any]:
        """What this method changes of the protocol."""
        changes = {k: v for k, v in (self.model_extra or {}).items() if k in METHOD_KEYS}
        if isinstance(grid := changes.pop("grid", None), Mapping):
            own = {name: values for name, values in grid.items() if name in SEARCHED}
            changes |= {"grid": own} if own else {}
        return changes

    @property
    def space(self) -> dict[str, list[Any]]:
        """The values that a search tries for options of the plug-in, instead of those of its search space."""
        return {k: v for k, v in ((self.model_extra or {}).get("grid") or {}).items() if k not in SEARCHED}


class DatasetEntry(BaseModel):
    """A dataset under the name it has in this suite: its options, and what it changes of the protocol."""

    model_config = ConfigDict(extra="allow", frozen=True)
    use: str = ""
    optional: StrictBool = False  # run only when it is selected by name
    most_seeds: Annotated[int, Field(gt=0, strict=True)] | None = None  # where it has fewer splits than the suite seeds

    @property
    def options(self) -> dict[str, Any]:
        """The options for the plug-in."""
        return {k: v for k, v in (self.model_extra or {}).items() if k not in PROTOCOL_KEYS}

    @property
    def changes(self) -> dict[str, Any]:
        """What this dataset changes of the suite's protocol."""
        return {k: v for k, v in (self.model_extra or {}).items() if k in PROTOCOL_KEYS}


class GateEntry(BaseModel):
    """How 'uqbench gate' judges a suite."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    metrics: list[str] = Field(default_factory=list)  # what is gated; by default what the tables show
    alpha: Annotated[float, Field(gt=0, lt=1, strict=True)] = 0.01  # the chance that a gate fails without a cause
    # How large a change must be to matter, by family or metric: 0.02 in the metric's unit, "5%" of the baseline.
    margins: dict[str, float | str] = Field(default_factory=dict)


class Suite(BaseModel):
    """An experiment: datasets x methods x seeds under a protocol."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    title: str
    seeds: Annotated[int, Field(gt=0, le=MOST_SEEDS, strict=True)] = 5
    splits: Annotated[int, Field(gt=0, strict=True)] | None = None  # that the seeds share in turn; None: one each
    baseline: str | None = None  # the method that relative metrics (the paper's MSLL) are measured against
    metrics: list[str] = Field(default_factory=list)  # what the tables show first; everything is stored
    gate: GateEntry = Field(default_factory=GateEntry)
    protocol: dict[str, Any] = Field(default_factory=dict)
    datasets: Annotated[dict[str, DatasetEntry], Field(min_length=1)]
    methods: Annotated[dict[str, MethodEntry], Field(min_length=1)]
    _where: str = PrivateAttr("")
    _whole: bool = PrivateAttr(True)
    _added: frozenset[tuple[str, str]] = PrivateAttr(frozenset())
    _protocols: dict[tuple[str, str], Protocol] = PrivateAttr(default_factory=dict)  # '': of all other methods
    _margins: "dict[str, Margin]" = PrivateAttr(default_factory=dict)

    def model_post_init(self, context: Any, /) -> None:
        """Validate the protocols of all datasets and methods; the context is the file's name for errors, if any."""
        self._where = context or f"suite {self.name}"
        _protocol(self.protocol, self._where)
        own = {
            label: method for label, method in self.methods.items() if METHOD_KEYS & (method.model_extra or {}).keys()
        }
        for label, method in own.items():
            _check_grid(method, f"{self._where}: methods.{label}")
        for name, entry in self.datasets.items():
            merged = _merged(self.protocol, entry.changes)
            self._protocols[name, ""] = _protocol(merged, f"{self._where}: datasets.{name}")
            for label, method in own.items():
                changed = _merged(_without_given(merged, method.changes), method.changes)
                self._protocols[name, label] = _protocol(changed, f"{self._where}: methods.{label}")

    @property
    def whole(self) -> bool:
        """Are these all datasets and methods of the suite?"""
        return self._whole

    @property
    def added(self) -> frozenset[tuple[str, str]]:
        """What the suite itself does not list: ("dataset" or "method", its name)."""
        return self._added

    @property
    def where(self) -> str:
        """The file, as errors name it."""
        return self._where

    @property
    def margins(self) -> "Mapping[str, Margin]":
        """How large a change must be to matter in a gate, by family or metric."""
        return self._margins

    def protocol_for(self, dataset: str, method: str = "") -> Protocol:
        """Return the protocol for one dataset, with what a method changes of it."""
        return self._protocols.get((dataset, method), self._protocols[dataset, ""])

    def seeds_of(self, dataset: str) -> int:
        """Return how many seeds are run on a dataset."""
        return min(self.seeds, self.datasets[dataset].most_seeds or self.seeds)

    def only(self, datasets: Sequence[str], methods: Sequence[str]) -> "Suite":
        """Return the suite with only some datasets and methods; an empty choice keeps all that are not optional.

        The title of chosen datasets ends at its colon: what follows is about those of the file.
        """
        kept: dict[str, Any] = {"title": self.title.partition(": ")[0]} if datasets else {}
        for kind, chosen, entries in (("dataset", datasets, self.datasets), ("method", methods, self.methods)):
            for name in chosen:
                if name not in entries:
                    raise unknown_name(kind, name, entries, self.where)
            kept[f"{kind}s"] = {name: e for name, e in entries.items() if not chosen or name in chosen}
        named = {name: self.datasets[name].model_copy(update={"optional": False}) for name in datasets}
        kept["datasets"] = {n: named.get(n, e) for n, e in kept["datasets"].items() if n in named or not e.optional}
        chosen_part = self.model_copy(update=kept)
        chosen_part._whole = not datasets and not methods and len(kept["datasets"]) == len(self.datasets)
        return chosen_part


def suite_names() -> dict[str, str]:
    """Return the built-in suites and their titles."""
    folder = files("bench.plan") / "suites"
    texts = {
        Path(entry.name).stem: entry.read_text("utf-8") for entry in folder.iterdir() if entry.name.endswith(".toml")
    }
    return {name: str(tomllib.loads(text).get("title", "")) for name, text in sorted(texts.items())}


def load_suite(
    source: str | Path | Mapping[str, Any],
    changes: Changes = (),
    methods: Sequence[str] = (),
    datasets: Sequence[str] = (),
) -> Suite:
    """Read a built-in suite by name, a suite file by path, or a mapping with the keys of a file and a `name`.

    `methods` and `datasets` are added where the suite does not list them; then come the changes of single keys.
    """
    raw, where = _mapping_content(source) if isinstance(source, Mapping) else _file_content(str(source))
    added = set()
    for kind, names in (("method", methods), ("dataset", datasets)):
        listed = raw.setdefault(f"{kind}s", {})
        if isinstance(listed, dict):
            added |= {(kind, each) for each in names if each not in listed}
            for each in names:
                listed.setdefault(each, {})
    apply_changes(raw, changes)
    suite = check_suite(raw, where)
    suite._added = frozenset(added)
    return suite


def _mapping_content(source: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return a copy of a suite that is given as a mapping, and its name for errors."""
    if not isinstance(source.get("name"), str) or not source["name"]:
        raise UserError("suite: name: this key is required where a suite is not a file")
    return copy.deepcopy(dict(source)), f"suite {check_name(source['name'], 'suite')}"


def _file_content(name: str) -> tuple[dict[str, Any], str]:
    """Return the content of a suite file or of a built-in suite, with its name, and its path for errors."""
    path = Path(name)
    try:
        if path.suffix == ".toml":
            if not path.is_file():
                raise UserError(f"suite {name}: no such file")
            text, where, stem = read_document(path), name, path.stem
        elif name in suite_names():
            entry = files("bench.plan") / "suites" / f"{name}.toml"
            text, where, stem = entry.read_text("utf-8"), f"suite {name}", name
        elif Path(f"{name}.toml").is_file():
            raise UserError(f"unknown suite {name!r}; a suite of your own is named by its file: {name}.toml")
        else:
            raise unknown_name("suite", name, suite_names(), "")
        raw = tomllib.loads(text)
    except OSError as error:
        raise UserError(f"suite {name}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{name}: not valid TOML: the file is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{where}: not valid TOML: {error}") from None
    if "name" in raw:
        raise UserError(f"{where}: name: a suite's name is its file's; remove the key")
    return {"name": check_name(stem, "suite"), **raw}, where


def check_suite(raw: Mapping[str, Any], where: str) -> Suite:
    """Check a suite's content."""
    content = {k: v for k, v in raw.items() if k not in PROTOCOL_KEYS}
    content["protocol"] = {k: v for k, v in raw.items() if k in PROTOCOL_KEYS}
    if "protocol" in raw:
        raise UserError(f"{where}: protocol: write its keys at the top level: {', '.join(sorted(PROTOCOL_KEYS))}")
    for kind in ("dataset", "method"):
        for name in table(raw, f"{kind}s"):
            check_name(str(name), f"{where}: {kind}")
    try:
        suite = Suite.model_validate(content, context=where)
    except ValidationError as error:
        known = (Suite.model_fields.keys() - {"protocol", "name"}) | PROTOCOL_KEYS
        raise UserError(f"{where}: {first_mistake(error, {'': known, 'gate': GateEntry.model_fields})}") from None
    if all(entry.optional for entry in suite.datasets.values()):
        raise UserError(f"{where}: datasets: at least one must not be optional, or nothing runs unless it is named")
    _check_shared_splits(suite, where)
    if suite.baseline is not None and suite.baseline not in suite.methods:
        raise unknown_name("method", suite.baseline, suite.methods, f"{where}: baseline")
    if suite.metrics or suite.gate.metrics or suite.gate.margins:
        from bench.metrics import catalogue
        from bench.metrics.margins import read_margins

        for key, named in (("metrics", suite.metrics), ("gate.metrics", suite.gate.metrics)):
            for metric in named:
                if metric.partition("@")[0] not in catalogue():
                    raise unknown_name("metric", metric, catalogue(), f"{where}: {key}")
                if key == "gate.metrics" and not catalogue()[metric.partition("@")[0]].has_better:
                    raise UserError(f"{where}: {key}: no value of {metric} is better than another: it is never gated")
        suite._margins = read_margins(suite.gate.margins, catalogue(), f"{where}: gate.margins")
    return suite


def _check_shared_splits(suite: Suite, where: str) -> None:
    for seeds in (suite.seeds, *map(suite.seeds_of, suite.datasets)):
        if suite.splits is not None and seeds % suite.splits:
            even = suite.splits * -(-seeds // suite.splits)
            raise UserError(
                f"{where}: splits: {seeds} seeds cannot be shared evenly by {suite.splits} splits; seeds counts all "
                f"repeats, such as seeds = {even}: {even // suite.splits} on each split"
            )


def _protocol(raw: Mapping[str, Any], where: str) -> Protocol:
    try:
        protocol = Protocol(**raw)
    except ValidationError as error:
        keys = {"": PROTOCOL_KEYS, "training": Training.__dataclass_fields__}
        raise UserError(f"{where}: {first_mistake(error, keys)}") from None
    return replace(protocol, probe=make_probe(protocol.probe, where).spec)


def _check_grid(method: MethodEntry, where: str) -> None:
    """Refuse a method's grid that is no table of lists, or that tries options which are also given a value."""
    grid = (method.model_extra or {}).get("grid", {})
    if not isinstance(grid, Mapping):
        raise UserError(f"{where}: grid: expected a table with the values to try of each option, got {grid!r:.60}")
    for name, values in grid.items():
        if not isinstance(values, list) or not values:
            raise UserError(f"{where}: grid.{name}: expected a list of values to try, got {values!r:.60}")
        training = (method.model_extra or {}).get("training")
        if name in method.options or (isinstance(training, Mapping) and name in training and name in SEARCHED):
            raise UserError(f"{where}: grid.{name}: it is also given a value; remove one of the two")


def _without_given(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a protocol without the grid of what a method's training gives a value, which is not searched."""
    grid, training = base.get("grid"), changes.get("training")
    if not isinstance(grid, Mapping) or not isinstance(training, Mapping):
        return base
    return {**base, "grid": {name: values for name, values in grid.items() if name not in training}}


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        if key == "network" and _another_network(old, value):
            old = None  # the options of one network are not those of another
        merged[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _another_network(old: Any, new: Any) -> bool:
    kinds = [table.get("kind", DEFAULT_NETWORK) for table in (old, new) if isinstance(table, Mapping)]
    return isinstance(new, Mapping) and "kind" in new and len(set(kinds)) > 1
