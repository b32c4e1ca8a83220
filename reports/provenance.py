"""Where the numbers come from: cells and failures, data and fingerprints, methods and options, machines and code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from bench.api import Block, CellSpec, PluginSpec, Report, Results, Section, Table, Text, plural, spec_or_none
from bench.reports._searches import configurations_tried, with_searches

OF_METHODS = ("training", "network", "grid")  # the parts of a protocol that a suite may change for one method
MOST_FAILURES = 60  # on the page; there may be thousands


@dataclass(frozen=True)
class Provenance(Report):
    """What a reader needs to judge or repeat the numbers."""

    order = 90

    def section(self, results: Results) -> Section | None:
        """Return counts, warnings, failures, data, methods and environments."""
        cells = results.cells
        if cells.empty:
            return None
        counts = cells["status"].fillna("not run").value_counts()
        statuses = ", ".join(f"{count:,} {status}" for status, count in counts.items())
        blocks: list[Block] = [Text(f"{plural(len(cells), 'cell')}: {statuses}.")]
        known = cells.dropna(subset="spec")
        specs = [
            (str(dataset), str(method), spec)
            for dataset, method, text in zip(known["dataset"], known["method"], known["spec"], strict=True)
            if (spec := spec_or_none(text)) is not None
        ]
        if unreadable := len(known) - len(specs):
            many = plural(unreadable, "cell")
            blocks.append(Text(f"Warning: the specifications of {many} cannot be read by this version."))
        if not results.rescored.empty:
            blocks.append(_rescored(results.rescored))
        own = _with_own_training(cells)
        blocks += [Text(text) for text in _warnings(specs, cells, own)]
        if not results.remarks.empty:
            blocks.append(Table("Remarks", results.remarks, name="remarks"))
        if not results.failures.empty:
            blocks += _failures(results.failures.drop(columns="suite"))
        blocks += [*_data(specs, cells), *_methods(specs, configurations_tried(results)), *_protocols(specs, own)]
        for number, (text, rows) in enumerate(cells.dropna(subset="environment").groupby("environment"), start=1):
            table = _flat(json.loads(str(text)))
            title = f"Environment {number} ({plural(len(rows), 'cell')})"
            blocks.append(Table(title, table, name=f"environment-{number}"))
        when = _when(cells)
        return Section("Provenance", [*blocks, *([Text(when)] if when else [])])


Spec = tuple[str, str, CellSpec]  # with the names of dataset and method in the suite


def _rescored(rows: pd.DataFrame) -> Block:
    """Say which values no run computed."""
    caption = (
        "Values computed from stored predictions after the runs (those in 16 bits change no built-in metric by more "
        "than 1e-4 of its value)"
    )
    return Table(caption, rows, name="rescored")


def _with_own_training(cells: pd.DataFrame) -> set[str]:
    """Return the methods that the harness did not train: their records say that they are estimators."""
    done = cells[cells["status"] == "ok"].dropna(subset="training")
    records = zip(done["method"], done["training"], strict=True)
    return {str(method) for method, text in records if json.loads(str(text)).get("estimator")}


def _warnings(specs: list[Spec], cells: pd.DataFrame, own: set[str]) -> list[str]:
    """Warn of what makes numbers incomparable or unrepeatable."""
    protocols: dict[str, set[str]] = {}
    for dataset, _, spec in specs:
        protocols.setdefault(dataset, set()).add(repr(_for_all_methods(spec)))
    warnings = [
        f"Warning: the cells of {dataset} were run under {len(found)} different protocols; run the whole suite again "
        "to compare its methods."
        for dataset, found in sorted(protocols.items())
        if len(found) > 1
    ]
    warnings += _different_settings([one for one in specs if one[1] not in own])
    if "dirty" in cells and (changed := int((cells["dirty"] == True).sum())):  # noqa: E712  # also of missing ones
        warnings.append(
            f"Warning: {changed} of {len(cells)} cells were made with code that was changed and not committed: no "
            "commit holds it."
        )
    if "code" in cells and (codes := sorted({str(code) for code in cells["code"].dropna() if code})) and len(codes) > 1:
        warnings.append(f"Note: the cells were made with {len(codes)} versions of the code: {', '.join(codes[:5])}.")
    return warnings


def _for_all_methods(spec: CellSpec) -> dict[str, Any]:
    """Return what of the protocol a suite cannot change for one method alone."""
    return {key: value for key, value in spec.plain()["protocol"].items() if key not in OF_METHODS}


def _different_settings(specs: list[Spec]) -> list[str]:
    """Name the settings of training, network and search in which the methods of a dataset differ."""
    lines: dict[str, list[str]] = {}
    for dataset, methods in _by_method(specs).items():
        leaves = {method: [_leaves(json.loads(text)) for text in texts] for method, texts in methods.items()}
        every = [found for each in leaves.values() for found in each]
        inside = tuple(f"{part}." for part in OF_METHODS)  # not the part itself, which is a leaf where it is empty
        keys = [key for key in dict.fromkeys(k for found in every for k in found) if key.startswith(inside)]
        different = [key for key in keys if len({found.get(key) for found in every}) > 1]
        parts = []
        for key in different:
            values = {m: " and ".join(sorted({f.get(key, "–") for f in each})) for m, each in leaves.items()}
            usual = max(values.values(), key=list(values.values()).count)
            odd = ", ".join(f"{value} for {method}" for method, value in values.items() if value != usual)
            parts.append(f"{key} is {usual}, but {odd}" if odd else f"{key} is {usual}")
        if parts:
            lines.setdefault("; ".join(parts), []).append(dataset)
    return [f"Note: methods were trained differently on {', '.join(names)}: {text}." for text, names in lines.items()]


def _by_method(specs: list[Spec]) -> dict[str, dict[str, list[str]]]:
    """Return the different protocols of every dataset and method as JSON."""
    found: dict[str, dict[str, list[str]]] = {}
    for dataset, method, spec in specs:
        texts = found.setdefault(dataset, {}).setdefault(method, [])
        if (text := json.dumps(spec.plain()["protocol"], sort_keys=True)) not in texts:
            texts.append(text)
    return found


def _failures(failures: pd.DataFrame) -> list[Block]:
    first = failures.head(MOST_FAILURES)
    more = f", the first {MOST_FAILURES} of {len(failures)}; the CSV file has all" if len(failures) > len(first) else ""
    return [Table(f"Cells without a result{more}", first, name="failures", numbers=failures)]


def _data(specs: list[Spec], cells: pd.DataFrame) -> list[Block]:
    prints: dict[str, dict[str, None]] = {}
    about: dict[str, PluginSpec] = {}
    for dataset, _, spec in specs:
        prints.setdefault(dataset, {})[spec.data] = None
        about[dataset] = spec.dataset
    seeds = cells.groupby("dataset")["seed"].agg(lambda s: sorted(set(s)))
    named = dict(zip(cells["dataset"], cells["stored_as"], strict=True)) if "stored_as" in cells else {}
    named = {shown: name for shown, name in named.items() if shown != name}
    rows = [
        {
            "dataset": dataset,
            **({"named": named.get(dataset, dataset)} if named else {}),
            "version": about[dataset].version,
            "options": _options(about[dataset].options),
            "seeds": _span(seeds[dataset]),
            "different splits": len(found),
            "fingerprints of the rows": ", ".join(p[:12] for p in list(found)[:3]) + (" ..." if len(found) > 3 else ""),
        }
        for dataset, found in prints.items()
    ]
    numbers = [(dataset, split) for dataset, found in prints.items() for split in found]
    tidy = pd.DataFrame(numbers, columns=["dataset", "fingerprint"])
    return [Table("Data", pd.DataFrame(rows), name="data", numbers=tidy)] if rows else []


def _span(seeds: list[int]) -> str:
    whole = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))


def _methods(specs: list[Spec], tried: Mapping[str, str]) -> list[Block]:
    rows: dict[str, dict[str, Any]] = {}
    for _, method, spec in specs:
        plugin = spec.method
        identity = {"plug-in": plugin.name, "from": plugin.origin, "version": plugin.version}
        rows.setdefault(method, {"method": method, **identity, "options": _options(plugin.options)})
    table = with_searches(pd.DataFrame(rows.values()), tried)
    return [Table("Methods and their options", table, name="methods")] if rows else []


def _options(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_option(value)}" for name, value in options.items()) or "–"


def _option(value: Any) -> str:
    """Return the value of an option; a plug-in within another by its name and own options."""
    if isinstance(value, Mapping) and "name" in value and "options" in value:
        own = ", ".join(f"{name} = {_option(each)}" for name, each in value["options"].items())
        return f"{value['name']} ({own})" if own else str(value["name"])
    return '""' if value == "" else str(value)


def _protocols(specs: list[Spec], own: set[str]) -> list[Block]:
    """Return the protocol of each dataset, one column for those that are alike; of methods where these differ.

    Methods with a training of their own have no other.
    """
    found: dict[str, list[str]] = {}
    for dataset, methods in _by_method(specs).items():
        of_text: dict[str, list[str]] = {}
        for method, texts in methods.items():
            for text in texts:
                tree = json.loads(text)
                kept = {key: tree[key] for key in tree if method not in own or key not in ("training", "grid")}
                of_text.setdefault(json.dumps(kept), []).append(method)
        for text, names in of_text.items():
            found.setdefault(text, []).append(dataset if len(of_text) == 1 else f"{dataset} ({', '.join(names)})")
    if not found:
        return []
    columns = {", ".join(datasets): _leaves(json.loads(text)) for text, datasets in found.items()}
    keys = list(dict.fromkeys(key for leaves in columns.values() for key in leaves))
    data = {"key": keys, **{name: [leaves.get(key, "–") for key in keys] for name, leaves in columns.items()}}
    return [Table("Protocol of each dataset", pd.DataFrame(data), name="protocol", folded=True)]


def _leaves(tree: Mapping[str, Any], front: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in tree.items():
        found |= _leaves(value, f"{front}{key}.") if isinstance(value, Mapping) and value else {front + key: str(value)}
    return found


def _flat(facts: dict[str, object]) -> pd.DataFrame:
    packages = facts.pop("packages", {})
    lines = {**facts, **(packages if isinstance(packages, dict) else {})}
    return pd.DataFrame(
        {"fact": list(lines), "value": [str(v) if v is not None else "missing" for v in lines.values()]}
    )


def _when(cells: pd.DataFrame) -> str:
    if "finished" not in cells or cells["finished"].isna().all():
        return ""
    finished = cells["finished"].dropna().astype(float)
    first, last = (datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M") for t in (finished.min(), finished.max()))
    return f"Cells were finished between {first} and {last} (UTC)."
