"""From a store to everything a leaderboard shows."""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from bench.errors import UserError, unknown_name
from bench.history.changes import Histories, with_changes
from bench.history.identity import Wanted, form_of
from bench.history.series import Label, read_series
from bench.leaderboard.boards import Board, dataset_board
from bench.leaderboard.overall import overall_board
from bench.leaderboard.rows import Row, Unlisted, listing
from bench.metrics import Metric, catalogue, declaration
from bench.stats import Settings
from bench.store.results import StoredResults
from bench.store.store import Store

SETTINGS = Settings(resamples=4_000)  # thousands of intervals of which two digits are shown
ALL = "all"  # what --metric says for every metric that is stored


@dataclass(frozen=True)
class SuiteAbout:
    """A suite of a leaderboard."""

    name: str
    title: str
    baseline: str | None
    metrics: tuple[str, ...]  # those that are shown, in their order


@dataclass(frozen=True)
class Leaderboard:
    """All there is to show."""

    suites: tuple[SuiteAbout, ...]
    metrics: Mapping[str, Metric]
    rows: tuple[Row, ...]
    unlisted: tuple[Unlisted, ...]
    boards: tuple[Board, ...]
    history: Histories
    tasks: Mapping[str, str]  # of every dataset
    remarks: Mapping[str, tuple[str, ...]]  # on every dataset
    settings: Settings

    @cached_property
    def updated(self) -> float:
        """When the last result was finished: a build from the same store has the same date."""
        return max((row.finished for row in self.rows), default=0.0)


def collect(
    store: Store, suites: Sequence[str] = (), metrics: Sequence[str] = (), settings: Settings = SETTINGS
) -> Leaderboard:
    """Read a store: all suites, or those named; by the metrics they show, or by those named ('all' for every one)."""
    known = store.suites()
    for name in suites:
        if name not in known:
            raise unknown_name("suite", name, known, f"--store {store.address}")
    if not known:
        raise UserError(f"--store {store.address}: no results yet; make some with 'uqbench run SUITE'")
    about: list[SuiteAbout] = []
    rows: list[Row] = []
    unlisted: list[Unlisted] = []
    boards: list[Board] = []
    tasks: dict[str, str] = {}
    remarks: dict[str, dict[str, None]] = {}
    stored: set[str] = set()
    for name in dict.fromkeys(suites or known):
        results = StoredResults(store, name)
        stored |= set(results.frame["metric"])
        shown = shown_metrics(results, metrics)
        found = listing(name, results.cells)
        about.append(SuiteAbout(name, results.title, results.baseline, tuple(shown)))
        rows += found.rows
        unlisted += found.unlisted
        own = {dataset: _task(part["metric"]) for dataset, part in results.frame.groupby("dataset")}
        tasks |= {str(dataset): task for dataset, task in own.items()}
        for remark in results.remarks.to_dict("records"):
            if not remark["method"]:
                remarks.setdefault(str(remark["dataset"]), {})[str(remark["text"])] = None
        boards += _boards(found.rows, results, shown, tasks, settings)
    # What has most to show stands first.
    sizes = Counter(row.suite for row in rows)
    about.sort(key=lambda suite: (-sizes[suite.name], suite.name))
    position = {suite.name: n for n, suite in enumerate(about)}
    boards.sort(key=lambda board: position[board.suite])
    for metric in metrics:
        if metric != ALL and metric not in stored:
            raise unknown_name("metric", metric, stored, f"--store {store.address} has no values")
    used = dict.fromkeys(metric for suite in about for metric in suite.metrics)
    history = _history(store, rows, {suite.name: suite.metrics for suite in about})
    return Leaderboard(
        tuple(about),
        {name: declaration(name) for name in used},
        tuple(rows),
        tuple(unlisted),
        tuple(boards),
        history,
        tasks,
        {dataset: tuple(texts) for dataset, texts in remarks.items()},
        settings,
    )


def _history(store: Store, rows: Sequence[Row], shown: Mapping[str, Sequence[str]]) -> Histories:
    """Return how the rows went over the versions of which the store has results."""
    wanted = {Label(row.suite, row.dataset, row.method): Wanted(form_of(row.spec)) for row in rows}
    return with_changes(read_series([store], wanted, shown, full_provenance=True, fewest=2))


def shown_metrics(results: StoredResults, chosen: Sequence[str]) -> list[str]:
    """Return the metrics of a suite's boards: those named, else what the suite shows first, and what it costs.

    A metric that is stored under conditions only (`NAME@CONDITION`) is shown under each of them.
    """
    stored = sorted(set(results.frame["metric"]))
    known = [name for name in stored if name.partition("@")[0] in catalogue()]
    if chosen and ALL not in chosen:
        return [name for name in dict.fromkeys(chosen) if name in known]
    if chosen or not results.metrics:
        return known
    shown: list[str] = []
    for wanted in results.metrics:
        shown += [wanted] if wanted in known else [name for name in known if name.partition("@")[0] == wanted]
    costs = [name for name in known if declaration(name).family == "cost"]
    return list(dict.fromkeys([*shown, *costs]))


def _task(metrics: "pd.Series[str]") -> str:
    """Return what a dataset is about, told by the metrics that were computed on it."""
    tasks = {declaration(name).task for name in set(metrics) if name.partition("@")[0] in catalogue()} - {"any"}
    return tasks.pop() if len(tasks) == 1 else "any"


def _boards(
    rows: Sequence[Row], results: StoredResults, shown: Sequence[str], tasks: Mapping[str, str], settings: Settings
) -> Iterator[Board]:
    """Yield the boards of a suite: over all datasets first, then every dataset."""
    sources = {key: source.device for row in rows for key, source in row.sources.items()}
    frame = results.frame[results.frame["key"].isin(sources) & results.frame["metric"].isin(list(shown))]
    frame = frame.assign(device=frame["key"].map(sources))
    cells = results.cells.assign(device=results.cells["key"].map(sources))
    for metric in shown:
        measure = declaration(metric)
        values = frame[frame["metric"] == metric]
        for task in sorted({tasks[dataset] for dataset in set(values["dataset"])}):
            of_task = [row for row in rows if tasks.get(row.dataset) == task]
            part = values[values["dataset"].isin({row.dataset for row in of_task})]
            for device, on_it, own in _by_device(of_task, part, measure):
                there = cells if device is None else cells[cells["device"] == device]
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")  # statistics of degenerate tables (all tied) divide by zero
                    board = overall_board(on_it, own, there, measure, task=task, device=device, settings=settings)
                if board is not None:
                    yield board
            for dataset, one in part.groupby("dataset", sort=True):
                for device, on_it, own in _by_device([row for row in of_task if row.dataset == dataset], one, measure):
                    yield dataset_board(on_it, own, measure, task=task, device=device, settings=settings)


def _by_device(
    rows: Sequence[Row], values: pd.DataFrame, measure: Metric
) -> Iterator[tuple[str | None, list[Row], pd.DataFrame]]:
    """Yield rows and values by device, where there are several; quality does not depend on it and is pooled too."""
    devices = sorted({device for row in rows for device in row.devices})
    if len(devices) > 1 and measure.family != "cost":
        yield None, *_having(rows, values)
    for device in devices:
        yield device, *_having([row for row in rows if device in row.devices], values[values["device"] == device])


def _having(rows: Sequence[Row], values: pd.DataFrame) -> tuple[list[Row], pd.DataFrame]:
    """Return the rows that have the metric, or would have it had they not diverged in every cell."""
    places = set(zip(values["dataset"], values["method"], strict=True))
    kept = [r for r in rows if (r.dataset, r.method) in places or r.states.get("diverged", 0) == r.planned]
    return kept, values
