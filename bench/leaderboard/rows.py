"""The rows of a leaderboard: one method on one dataset of a suite, listed or not, and why not."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.spec.spec import CellSpec
from bench.store.provenance import Provenance, provenance

COLUMNS = ("key", "spec", "status", "environment", "seed", "finished", "cpu_seconds", "configurations", "training")


@dataclass(frozen=True)
class Row:
    """The results of one method on one dataset of a suite."""

    suite: str
    dataset: str
    method: str
    planned: int  # cells of the suite
    sources: Mapping[str, Provenance]  # of the cells that have a result, by key
    seeds: tuple[int, ...]  # of these
    states: Mapping[str, int]  # how many are ok, diverged, failed, not run
    started: float  # when the first result was finished
    finished: float  # when the last one was
    cpu_seconds: float  # of a cell, mean; NaN where it is not known
    configurations: int = 1  # the most that the search of one of its cells tried; 1: no search
    submission: Mapping[str, Any] | None = None  # of predictions made elsewhere: who, how, when, what they report

    @property
    def specs(self) -> tuple[CellSpec, ...]:
        """What was run, cell by cell: a row with a cell that does not say it is not listed."""
        return tuple(source.spec for source in self.sources.values() if source.spec is not None)

    @property
    def spec(self) -> CellSpec:
        """What was run; seeds differ in the seed, the split and the data alone."""
        return self.specs[0]

    @property
    def codes(self) -> tuple[str, ...]:
        """The versions of the code that computed it."""
        return tuple(sorted({source.code for source in self.sources.values()}))

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices it was computed on."""
        return tuple(sorted({source.device for source in self.sources.values()}))

    @property
    def data(self) -> tuple[str, ...]:
        """The hashes of the data, one per split."""
        return tuple(sorted({spec.data for spec in self.specs}))


@dataclass(frozen=True)
class Unlisted:
    """A row that is not listed."""

    suite: str
    dataset: str
    method: str
    cells: int
    reason: str
    provenance: bool  # the reason is that something is not known, rather than that there is no result


def list_rows(suite: str, cells: pd.DataFrame) -> tuple[list[Row], list[Unlisted]]:
    """Group the cells of a suite (`StoredResults.cells`) into rows that are listed and rows that are not.

    One cell without full provenance keeps its whole row out: a mean over the rest would be another result.
    """
    rows: list[Row] = []
    unlisted: list[Unlisted] = []
    columns = {name: cells[name].tolist() for name in COLUMNS}
    by_place: dict[tuple[str, str], list[int]] = {}
    for i, pair in enumerate(zip(cells["dataset"].tolist(), cells["method"].tolist(), strict=True)):
        by_place.setdefault(pair, []).append(i)
    for (dataset, method), places in sorted(by_place.items()):
        records = [{name: values[i] for name, values in columns.items()} for i in places]
        states = Counter(_state(record["status"]) for record in records)
        finished = [record for record in records if _state(record["status"]) in ("ok", "diverged")]
        place = (suite, dataset, method)
        if not finished:
            reason = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
            unlisted.append(Unlisted(*place, len(records), f"no result: {reason}", provenance=False))
            continue
        sources = {str(record["key"]): provenance(record) for record in finished}
        if reasons := _reasons(list(sources.values())):
            unlisted.append(Unlisted(*place, len(finished), reasons, provenance=True))
            continue
        times = [float(record["finished"]) for record in finished if not pd.isna(record["finished"])]
        costs = [float(record["cpu_seconds"]) for record in finished if not pd.isna(record["cpu_seconds"])]
        seeds = tuple(sorted({int(record["seed"]) for record in finished}))
        ends = (min(times, default=0.0), max(times, default=0.0))
        cost = sum(costs) / len(costs) if costs else float("nan")
        tried = max(int(record["configurations"]) for record in finished)
        submission = _submission([record["training"] for record in finished])
        rows.append(Row(*place, len(records), sources, seeds, dict(states), *ends, cost, tried, submission))
    return rows, unlisted


def protocol_notes(rows: Sequence[Row]) -> list[str]:
    """Return what a reader must know where the rows of one dataset were not computed under the same conditions."""
    notes = []
    protocols: dict[str, list[str]] = {}
    data: dict[int, set[str]] = {}
    for row in rows:
        protocols.setdefault(repr(row.spec.protocol), []).append(row.method)
        for spec in row.specs:
            data.setdefault(spec.seed, set()).add(spec.data)
    if len(protocols) > 1:
        odd = sorted(protocols.values(), key=len)[:-1]
        others = ", ".join(sorted(method for methods in odd for method in methods))
        notes.append(f"different protocols: {others} trained or drawn differently from the rest")
    if any(len(hashes) > 1 for hashes in data.values()):
        notes.append("different versions of the data: its hashes differ between methods")
    if note := _search_note(rows):
        notes.append(note)
    codes = sorted({code for row in rows for code in row.codes})
    if len(codes) > 1:
        notes.append(f"made with {len(codes)} versions of the code: {', '.join(codes)}")
    return notes


def _search_note(rows: Sequence[Row]) -> str:
    """Return how many configurations each method's search tried: more trials are an advantage."""
    methods: dict[int, list[str]] = {}
    for row in sorted(rows, key=lambda row: row.method):
        methods.setdefault(row.configurations, []).append(row.method)
    if set(methods) <= {1}:
        return ""
    counts = "; ".join(
        f"{tried if tried > 1 else 'none'} by {'all methods' if len(methods) == 1 else ', '.join(names)}"
        for tried, names in sorted(methods.items(), reverse=True)
    )
    return f"configurations that a search tried for each result: {counts}"


def _submission(records: Sequence[Any]) -> dict[str, Any] | None:
    """Return what cells record of the predictions that were submitted; dates and reported values of all of them."""
    texts = dict.fromkeys(text for text in records if isinstance(text, str) and '"submission"' in text)
    found = [record["submission"] for record in map(json.loads, texts) if isinstance(record.get("submission"), dict)]
    if not found:
        return None
    dates = sorted({str(each.get("submitted", "")) for each in found})
    reported: dict[str, list[str]] = {}
    for each in found:
        for name, value in dict(each.get("reported") or {}).items():
            values = reported.setdefault(str(name), [])
            values += [str(value)] * (str(value) not in values)
    together = {name: ", ".join(values) for name, values in reported.items()}
    return {**found[0], "submitted": " and ".join(dates[:1] + dates[1:][-1:]), "reported": together}


def _state(status: Any) -> str:
    return status if isinstance(status, str) else "not run"


def _reasons(sources: Sequence[Provenance]) -> str:
    """Return the missing provenance of the cells of a row; '' where it is complete."""
    counts = Counter(what for source in sources for what in source.missing)
    total = len(sources)
    shares = {what: f"{'all' if count == total else count} of {total} results" for what, count in counts.items()}
    return "; ".join(f"{what} ({share})" for what, share in shares.items())
