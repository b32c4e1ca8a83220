"""How the paper's experiments were done, and in which options a run departs from that.

An experiment has two protocols: as the text says, and as the public code does. Their rules are written in the keys of
suites. Every option of every cell is compared: what is not as a rule says, or has no rule and is not called irrelevant,
is a departure, so an option that nobody thought of is one, too.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from bench.api import CellSpec, plural, read_spec

Source = Literal["text", "code"]
SOURCES: dict[Source, str] = {"text": "the text of the paper", "code": "the public code"}
PLUGINS = ("dataset", "method", "network")


@dataclass(frozen=True)
class Rule:
    """The value that a protocol has for an option."""

    value: Any
    stated: bool  # by the source; otherwise the source leaves it open, and the value is our choice
    reason: str  # the place in the source, or why the choice


@dataclass(frozen=True)
class Protocol:
    """How a source says that an experiment was done."""

    source: Source
    run: str  # the command
    datasets: tuple[str, ...]
    stand_ins: Mapping[str, str]  # datasets that serve as well, and for which
    methods: tuple[str, ...]
    rules: Mapping[str, Rule]  # by the path of an option, such as "training.epochs" or "methods.mc-dropout.rate"
    irrelevant: Mapping[str, str]  # options, or tables of them, that cannot change what is compared; and why
    unwritten: Mapping[str, Any]  # options that specifications leave out where they have these values


@dataclass(frozen=True)
class Run:
    """What was run of an experiment: the options of every kind of cell, by dataset and method."""

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    cells: tuple[tuple[str, str, Mapping[str, Any]], ...]

    def plugin(self, dataset: str) -> str:
        """Return the plug-in behind a dataset, which suites can give another name."""
        return next((str(o["dataset.use"]) for d, _, o in self.cells if d == dataset and "dataset.use" in o), dataset)


def protocols(paper: Mapping[str, Any], experiment: str) -> list[Protocol]:
    """Return the protocols of an experiment."""
    about = paper["experiments"][experiment]
    return [_protocol(source, about, paper["common"], about[source]) for source in SOURCES if source in about]


def _protocol(source: Source, about: Mapping[str, Any], common: Mapping[str, Any], own: Mapping[str, Any]) -> Protocol:
    rules: dict[str, Rule] = {}
    irrelevant: dict[str, str] = {}
    for table in (common["both"], common[source], about.get("both", {}), own):
        for stated, kind, reason in ((True, "stated", "source"), (False, "open", "why")):
            for group in table.get(kind, ()):
                options = {key: value for key, value in group.items() if key != reason}
                rules |= {path: Rule(value, stated, group[reason]) for path, value in flat(options)}
        irrelevant |= table.get("irrelevant", {})
    names = (tuple(about["datasets"]), about.get("stand_ins", {}), tuple(about["methods"]))
    return Protocol(source, own["run"], *names, rules, irrelevant, dict(flat(common["unwritten"])))


def flat(table: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the options of nested tables by their paths."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{start}{name}.")
        else:
            yield f"{start}{name}", value


def run_of(cells: pd.DataFrame, methods: Sequence[str]) -> Run:
    """Return what was run of the cells of some methods, with the facts that only all repeats together show."""
    done = cells[(cells["status"] == "ok") & cells["method"].isin(methods)].dropna(subset="spec")
    found: dict[str, tuple[str, str, Mapping[str, Any]]] = {}
    for (dataset, method), repeats in done.groupby(["dataset", "method"], sort=False):
        specs = [read_spec(text) for text in repeats["spec"]]
        together: dict[str, Any] = {"seeds": int(repeats["seed"].nunique())}
        if together["seeds"] > 1:
            different = len({spec.data for spec in specs})
            together["repeats_share_rows"] = "some" if 1 < different < together["seeds"] else different == 1
        for spec, environment in zip(specs, repeats["environment"], strict=True):
            options = options_of(spec, str(dataset), str(method)) | together | {"device": _device(environment)}
            found.setdefault(
                f"{dataset} {method} {json.dumps(options, sort_keys=True)}", (str(dataset), str(method), options)
            )
    datasets, present = (tuple(dict.fromkeys(done[column])) for column in ("dataset", "method"))
    return Run(datasets, present, tuple(found.values()))


def options_of(spec: CellSpec, dataset: str, method: str) -> dict[str, Any]:
    """Return every option of a cell by its path; repeats of an experiment have the same ones."""
    plain = spec.plain()
    tree = {**plain.pop("protocol"), **plain}
    space = tree.pop("space")
    for kind, label in (("dataset", dataset), ("method", method), ("network", "")):
        plugin = tree.pop(kind)
        tree[kind] = {"version": plugin["version"], **plugin["options"]}
        tree[kind] |= {"kind": plugin["name"]} if kind == "network" else {}
        tree[kind] |= {"use": plugin["name"]} if label and plugin["name"] != label else {}
        tree[kind] |= {"origin": plugin["origin"]} if plugin["origin"] != "built in" else {}
    tree["method"] |= {"grid": space} if space else {}
    return {path: "none" if value is None else value for path, value in flat(tree) if path not in _PER_REPEAT}


_PER_REPEAT = ("seed", "split", "data")  # `seeds` and `repeats_share_rows` say what matters of these


def _device(environment: Any) -> str:
    return str(json.loads(environment).get("device_name", "unknown")) if isinstance(environment, str) else "unknown"


def departures(run: Run, protocol: Protocol) -> list[str]:
    """Return in what a run departs from a protocol, one text each."""
    found: dict[str, list[tuple[str, str]]] = {}
    for dataset, method, options in run.cells:
        for text in _differences(dataset, method, options, protocol):
            found.setdefault(text, []).append((dataset, method))
    covered = {protocol.stand_ins.get(name, name) for name in run.datasets}
    absent = [f"dataset {name} is missing" for name in protocol.datasets if name not in covered]
    absent += [f"dataset {name} is not the paper's" for name in sorted(covered - set(protocol.datasets))]
    for method in protocol.methods:
        without = [name for name in run.datasets if (name, method) not in {cell[:2] for cell in run.cells}]
        if without:
            absent.append(f"method {method} is missing" + f" on {', '.join(without)}" * (method in run.methods))
    return absent + [text + _where(text, places, run) for text, places in found.items()]


def lacking(run: Run, wanted: Mapping[str, Any]) -> list[str]:
    """Return which of some values that all cells must have are not theirs."""
    found = {
        f"{path} is {value_text(path, options.get(path))}, not {value_text(path, value)}": None
        for _, _, options in run.cells
        for path, value in wanted.items()
        if options.get(path) != value
    }
    return list(found)


def _differences(dataset: str, method: str, options: Mapping[str, Any], protocol: Protocol) -> Iterator[str]:
    names = {path.partition(".")[0] for path in options} - {"dataset", "method"}
    rules = _of_cell(protocol.rules, dataset, method, names)
    irrelevant = _of_cell(protocol.irrelevant, dataset, method, names)
    unwritten = _of_cell(protocol.unwritten, dataset, method, names)
    if "repeats_share_rows" not in options:
        rules.pop("repeats_share_rows", None)  # of one repeat nobody can say
    for path in dict.fromkeys((*options, *rules)):
        rule, ours = rules.get(path), options.get(path, unwritten.get(path, "not set"))
        if rule is None:
            if not any(f"{path}.".startswith(f"{known}.") for known in irrelevant) and ours != unwritten.get(path):
                name = _named(path, dataset, method)
                yield f"{name} is {value_text(path, ours)}, about which the protocol says nothing"
        elif not _agrees(path, ours, rule.value):
            name, expected = _named(path, dataset, method), value_text(path, rule.value)
            source = SOURCES[protocol.source]
            wanted = f"in {source} {expected}" if rule.stated else f"not our {expected} for what {source} leaves open"
            yield f"{name} is {value_text(path, ours)}, {wanted}"


def _agrees(path: str, ours: Any, wanted: Any) -> bool:
    if path == "seeds":
        return bool(ours >= wanted)  # more repeats are no other experiment
    return wanted in ours if path == "device" else bool(ours == wanted)  # devices have longer names


def _of_cell(table: Mapping[str, Any], dataset: str, method: str, names: set[str]) -> dict[str, Any]:
    """Return what holds for a cell, by the paths of its own options: a method's own wins over a dataset's."""
    found = {path: value for path, value in table.items() if not path.startswith(("datasets.", "methods."))}
    for kind, label in (("dataset", dataset), ("method", method)):
        start = f"{kind}s.{label}."
        for path, value in table.items():
            if path.startswith(start):
                own = path.removeprefix(start)
                # A method's grid is of its own options; everything else that protocols have, it changes for itself.
                shared = own.partition(".")[0] in names - ({"grid"} if kind == "method" else set())
                found[own if shared else f"{kind}.{own}"] = value
    return found


def _named(path: str, dataset: str, method: str) -> str:
    """Return the name that an option has in suites."""
    kind, _, rest = path.partition(".")
    label = {"dataset": dataset, "method": method}.get(kind)
    return path if label is None else f"{kind}s.{label}.{rest}"


def value_text(path: str, value: Any) -> str:
    """Return the value of an option as it is printed."""
    if path.endswith(".rows") and value == 0:
        return "all"
    return value if isinstance(value, str) else json.dumps(value)


def _where(text: str, places: Sequence[tuple[str, str]], run: Run) -> str:
    """Return for which cells a departure holds, where these are not all and its text does not say so."""
    datasets, methods = ({place[i] for place in places} for i in (0, 1))
    some = len(datasets) < len(run.datasets) and not text.startswith("datasets.")
    parts = [f" on {', '.join(sorted(datasets))}"] if some else []
    some = len(methods) < len(run.methods) and not text.startswith(("methods.", "datasets."))
    return "".join([*parts, f" for {', '.join(sorted(methods))}" if some else ""])


def nearest(run: Run, known: Sequence[Protocol]) -> tuple[Protocol, list[str]]:
    """Return the protocol with the fewest departures, and these."""
    return min(((each, departures(run, each)) for each in known), key=lambda pair: len(pair[1]))


def choices(protocol: Protocol) -> str:
    """Return how much of a protocol is stated, and how much is ours."""
    stated = sum(rule.stated for rule in protocol.rules.values())
    return f"{plural(stated, 'option')} as it states, {len(protocol.rules) - stated} that it leaves open"
