"""History: the values of one metric over the versions of the code, with the places where they changed.

A store keeps every result with the commit that made it. A version's values are its cells by seed; a change point is a
version from which on the values are others: the segment is cut where the paired t over seeds, of the means after minus
the means before, is largest, as long as it is significant (Bonferroni over all places that could be cut, in all series)
and beyond the metric's margin. Then both halves are looked at (binary segmentation).
"""

import csv
import json
import math
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.errors import UserError, unknown_name
from bench.gate.margins import margin_of
from bench.gate.measured import declared
from bench.gate.stored_values import Value, stored_values
from bench.gate.verdicts import FEWEST_PAIRS, one_sided
from bench.metrics import Metric, catalogue
from bench.stats.paired import Array
from bench.store import Store

ALPHA = 0.01  # the chance of any false change point on a page


@dataclass(frozen=True)
class Version:
    """The code of some cells."""

    code: str  # the commit, marked where the code was changed since; '' outside a checkout
    since: float  # when its first cell ended
    subject: str = ""  # of the commit, where this checkout knows it

    @property
    def name(self) -> str:
        """A word for it."""
        return self.code or "unknown"


@dataclass(frozen=True)
class Change:
    """A version from which on the values are others."""

    code: str
    subject: str
    before: float
    after: float
    p: float
    better: bool


@dataclass(frozen=True, eq=False)
class Series:
    """One method on one dataset: values `[versions, seeds]`, NaN where a version has none."""

    dataset: str
    method: str
    versions: tuple[Version, ...]
    seeds: tuple[int, ...]
    values: Array
    changes: tuple[Change, ...] = ()


def histories(stores: Sequence[Store], metric: str, suite: str | None = None) -> list[Series]:
    """Return the series of a metric from all cells of some stores, whatever suite wants them now."""
    about = declared(metric)
    if about is None:
        raise unknown_name("metric", metric, catalogue(), "--metric")
    rows = [row for store in stores for row in stored_values(store, metric, _suite_of(store, suite))]
    if not rows:
        shown = ", ".join(store.shown for store in stores)
        raise UserError(f"--metric {metric}: no value of it is stored in {shown}; see 'uqbench list metrics'")
    subjects = {row.code: _subject(row.code) for row in rows}
    places: dict[tuple[str, str], list[Value]] = {}
    for row in rows:
        places.setdefault((row.dataset, row.method), []).append(row)
    series = [_series(place, its, subjects) for place, its in sorted(places.items())]
    cuts = sum(max(0, len(each.versions) - 1) for each in series)
    return [_with_changes(each, about, ALPHA / max(1, cuts)) for each in series]


def _suite_of(store: Store, suite: str | None) -> str:
    names = list(store.suites())
    if suite is None and len(names) != 1:
        raise UserError(f"--store {store.shown} holds {len(names)} suites; name one with --suite: {', '.join(names)}")
    if suite is not None and suite not in names:
        raise unknown_name("suite", suite, names, f"--store {store.shown}")
    return suite or names[0]


def _series(place: tuple[str, str], rows: Sequence[Value], subjects: Mapping[str, str]) -> Series:
    first: dict[str, float] = {}
    for row in rows:
        first[row.code] = min(first.get(row.code, math.inf), row.finished)
    versions = tuple(Version(code, since, subjects[code]) for code, since in sorted(first.items(), key=lambda v: v[1]))
    seeds = tuple(sorted({row.seed for row in rows}))
    line = {version.code: number for number, version in enumerate(versions)}
    values = np.full((len(versions), len(seeds)), np.nan)
    for row in sorted(rows, key=lambda row: row.finished):
        values[line[row.code], seeds.index(row.seed)] = row.value
    return Series(*place, versions, seeds, values)


def _with_changes(series: Series, metric: Metric, level: float) -> Series:
    found = sorted(_cuts(series.values, metric, level, 0, len(series.versions)))
    ends = [0, *(cut for cut, _ in found), len(series.versions)]
    changes = []
    for number, (cut, p) in enumerate(found):
        before, after = (
            float(np.nanmean(series.values[ends[k] : ends[k + 1]])) for k in (number, number + 1)
        )  # fmt: skip
        version = series.versions[cut]
        changes.append(Change(version.name, version.subject, before, after, p, metric.better(after, before)))
    return Series(series.dataset, series.method, series.versions, series.seeds, series.values, tuple(changes))


def _cuts(values: Array, metric: Metric, level: float, begin: int, end: int) -> Iterator[tuple[int, float]]:
    """Yield the versions at which the values change, between two of them."""
    best: tuple[float, int] | None = None
    for cut in range(begin + 1, end):
        p = _p_of_cut(values[begin:cut], values[cut:end], metric)
        if p < level and (best is None or (p, cut) < best):
            best = p, cut
    if best is not None:
        yield best[1], best[0]
        yield from _cuts(values, metric, level, begin, best[1])
        yield from _cuts(values, metric, level, best[1], end)


def _p_of_cut(before: Array, after: Array, metric: Metric) -> float:
    """Return two-sided p that the values after differ from those before; 1 where they do so within the margin."""
    complete = np.isfinite(before).any(axis=0) & np.isfinite(after).any(axis=0)
    if complete.sum() < FEWEST_PAIRS:
        return 1.0
    old, new = (np.nanmean(part[:, complete], axis=0) for part in (before, after))
    moved = new - old
    if abs(float(moved.mean())) <= margin_of(metric, {}).of(float(old.mean())):
        return 1.0
    return min(1.0, 2.0 * min(one_sided(moved), one_sided(-moved)))


def _subject(code: str) -> str:
    """Return the first line of a commit's message, where this folder's repository knows the commit."""
    commit = code.removesuffix("-dirty")
    if not commit:
        return ""
    with suppress(OSError, subprocess.SubprocessError):
        command = ["git", "log", "-1", "--format=%s", commit, "--"]
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    return ""


def history_page(stores: Store | Sequence[Store], metric: str, out: Path, suite: str | None = None) -> list[Path]:
    """Write `history-METRIC.html` (self-contained), `.json` and `.csv` into a folder; return the files."""
    from bench.gate.history_page import page

    series = histories([stores] if isinstance(stores, Store) else list(stores), metric, suite)
    name = "history-" + "".join(c if c.isalnum() or c in "_-" else "-" for c in metric)
    files = [out / f"{name}{ending}" for ending in (".html", ".json", ".csv")]
    try:
        out.mkdir(parents=True, exist_ok=True)
        files[0].write_text(page(metric, series), "utf-8")
        files[1].write_text(json.dumps(_content(metric, series), indent=1, allow_nan=False) + "\n", "utf-8")
        with files[2].open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(_table(series))
    except OSError as error:
        raise UserError(f"--out {out}: cannot be written: {error.strerror or error}") from None
    return files


def _content(metric: str, series: Sequence[Series]) -> dict[str, Any]:
    return {
        "metric": metric,
        "series": [
            {
                "dataset": each.dataset, "method": each.method, "seeds": list(each.seeds),
                "versions": [asdict(version) for version in each.versions],
                "values": [[v if math.isfinite(v) else None for v in row] for row in each.values.tolist()],
                "changes": [asdict(change) for change in each.changes],
            }
            for each in series
        ],
    }  # fmt: skip


def _table(series: Sequence[Series]) -> Iterator[Sequence[Any]]:
    yield ("dataset", "method", "code", "seed", "value", "change_point")
    for each in series:
        changed = {change.code for change in each.changes}
        for version, row in zip(each.versions, each.values.tolist(), strict=True):
            for seed, value in zip(each.seeds, row, strict=True):
                if math.isfinite(value):
                    yield each.dataset, each.method, version.name, seed, value, int(version.name in changed)
