"""From a store to the content of a leaderboard."""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd

from bench.errors import UserError, unknown_name
from bench.history.changes import Histories, with_changes
from bench.history.identity import Wanted, form_of, given_parts
from bench.history.series import Label, read_series
from bench.leaderboard.boards import Board, Selection, dataset_board
from bench.leaderboard.frozen import Frozen
from bench.leaderboard.overall import overall_board
from bench.leaderboard.recalibrated import Columns, recalibrated_columns
from bench.leaderboard.rows import Row, Unlisted, list_rows
from bench.leaderboard.score_histograms import ScoreHistogram, score_histograms
from bench.metrics import Metric, catalogue, declaration, find_declaration
from bench.plugins.files import PluginSource
from bench.stats import CellCounts, ScaledColumn, Settings, StoredRows, methods_with_equal_draws
from bench.stats.stored_rows import ARRAYS
from bench.store.results import StoredResults
from bench.store.store import Store

ALL = "all"  # the value of --metric for every stored metric


@dataclass(frozen=True)
class SuiteSummary:
    """A suite of a leaderboard."""

    name: str
    title: str
    baseline: str | None
    metrics: tuple[str, ...]  # of its boards, in their order


@dataclass(frozen=True)
class Leaderboard:
    """The content of a leaderboard."""

    suites: tuple[SuiteSummary, ...]
    metrics: Mapping[str, Metric]
    rows: tuple[Row, ...]
    unlisted: tuple[Unlisted, ...]
    boards: tuple[Board, ...]
    history: Histories
    tasks: Mapping[str, str]  # of every dataset
    remarks: Mapping[str, tuple[str, ...]]  # on every dataset
    settings: Settings
    plugins: Mapping[str, PluginSource] = field(default_factory=dict)  # the files of the results' plug-ins, by hash
    version: str = ""  # under which it is published
    frozen: Frozen | None = None  # the version that it continues
    scores: Mapping[tuple[str, str, str], Mapping[str, ScoreHistogram]] = field(default_factory=dict)
    recalibrated: Columns = field(default_factory=dict)

    @cached_property
    def updated(self) -> float:
        """When the last result was finished: a build from the same store has the same date."""
        return max((row.finished for row in self.rows), default=0.0)


def collect(
    store: Store,
    suites: Sequence[str] = (),
    metrics: Sequence[str] = (),
    settings: Settings = Settings(),
    *,
    version: str = "",
    frozen: Frozen | None = None,
) -> Leaderboard:
    """Read a store: all suites, or those named; by the metrics they show, or by those named ('all' for every one).

    `frozen` is a published version whose places are kept; else the site is published as `version`.
    """
    known = store.suites()
    for name in suites:
        if name not in known:
            raise unknown_name("suite", name, known, f"--store {store.address}")
    for name in metrics:
        if (declared := find_declaration(name)) is not None and not declared.has_better:
            raise UserError(f"--metric {name}: it describes predictions; no value of it is better, so it has no board")
    if not known:
        raise UserError(f"--store {store.address}: no results yet; make some with 'uqbench run SUITE'")
    about: list[SuiteSummary] = []
    rows: list[Row] = []
    unlisted: list[Unlisted] = []
    boards: list[Board] = []
    tasks: dict[str, str] = {}
    remarks: dict[str, dict[str, None]] = {}
    stored: set[str] = set()
    scores: dict[tuple[str, str, str], dict[str, ScoreHistogram]] = {}
    recalibrated: dict[tuple[str, str], ScaledColumn] = {}
    for name in dict.fromkeys(suites or known):
        results = StoredResults(store, name)
        stored |= set(results.columns.metrics)
        names = board_metrics(results, metrics)
        listed, missing = list_rows(name, results.cells)
        about.append(SuiteSummary(name, results.title, results.baseline, tuple(names)))
        rows += listed
        unlisted += missing
        own = {dataset: _task(part["metric"]) for dataset, part in results.frame.groupby("dataset")}
        tasks |= {str(dataset): task for dataset, task in own.items()}
        for remark in results.remarks.to_dict("records"):
            if not remark["method"]:
                remarks.setdefault(str(remark["dataset"]), {})[str(remark["text"])] = None
        boards += _boards(listed, results, names, tasks, settings, frozen)
        scores |= score_histograms(listed, names, store.load_arrays)
        recalibrated |= recalibrated_columns(results, listed, names, tasks)
    # Suites with most rows come first.
    sizes = Counter(row.suite for row in rows)
    about.sort(key=lambda suite: (-sizes[suite.name], suite.name))
    position = {suite.name: n for n, suite in enumerate(about)}
    boards.sort(key=lambda board: position[board.suite])
    for metric in metrics:
        if metric != ALL and metric not in stored:
            raise unknown_name("metric", metric, stored, f"--store {store.address} has no values")
    history = _history(store, rows, {suite.name: suite.metrics for suite in about})
    declarations = {name: declaration(name) for suite in about for name in suite.metrics}
    content = (tuple(rows), tuple(unlisted), tuple(boards))
    texts = {dataset: tuple(own) for dataset, own in remarks.items()}
    kept = (store.plugins(), frozen.version if frozen else version, frozen)
    return Leaderboard(
        tuple(about), declarations, *content, history, tasks, texts, settings, *kept, scores, recalibrated
    )


def _history(store: Store, rows: Sequence[Row], metrics: Mapping[str, Sequence[str]]) -> Histories:
    """Return the values of the rows over all versions in the store."""
    suites = {name: record["content"] for name, record in store.suites().items()}
    wanted = {
        Label(*place): Wanted(form_of(row.spec), given=given_parts(suites[row.suite], *place[1:]))
        for row in rows
        for place in [(row.suite, row.dataset, row.method)]
    }
    return with_changes(read_series([store], wanted, metrics, full_provenance=True, fewest=2))


def board_metrics(results: StoredResults, chosen: Sequence[str]) -> list[str]:
    """Return the metrics of a suite's boards: those named, else what the suite shows first, and what it costs.

    A metric that is stored under conditions only (`NAME@CONDITION`) is shown under each of them; one without a better
    has no board.
    """
    stored = list(results.columns.metrics)
    known = [name for name in stored if (metric := find_declaration(name)) is not None and metric.has_better]
    if chosen and ALL not in chosen:
        return [name for name in dict.fromkeys(chosen) if name in known]
    if chosen or not results.metrics:
        return known
    names: list[str] = []
    for wanted in results.metrics:
        names += [wanted] if wanted in known else [name for name in known if name.partition("@")[0] == wanted]
    costs = [name for name in known if declaration(name).family == "cost"]
    return list(dict.fromkeys([*names, *costs]))


def _task(metrics: "pd.Series[str]") -> str:
    """Return the task of a dataset, from the metrics that were computed on it."""
    tasks = {declaration(name).task for name in metrics.unique() if name.partition("@")[0] in catalogue()} - {"any"}
    return tasks.pop() if len(tasks) == 1 else "any"


def _boards(
    rows: Sequence[Row],
    results: StoredResults,
    metrics: Sequence[str],
    tasks: Mapping[str, str],
    settings: Settings,
    frozen: Frozen | None,
) -> Iterator[Board]:
    """Yield the boards of a suite: over all datasets first, then every dataset."""
    sources = {key: source.device for row in rows for key, source in row.sources.items()}
    frame = results.frame[results.frame["key"].isin(sources) & results.frame["metric"].isin(list(metrics))]
    frame = frame.assign(device=frame["key"].map(sources))
    cells = results.cells.assign(device=results.cells["key"].map(sources))
    counts = CellCounts.of(results.cells)
    stored = StoredRows(partial(results.store.load_arrays, only=ARRAYS))

    def selected(chosen: Selection, dataset: str | None) -> tuple[Selection, tuple[str, ...]]:
        """Return the selection with its baseline and what a frozen version says of its board."""
        chosen = replace(chosen, baseline=results.baseline, stored=stored)
        place = (results.suite, dataset, chosen.metric.name, chosen.device)
        if frozen is None or place not in frozen.places:
            return chosen, ()
        entered = frozenset(row.method for row in chosen.rows) - set(frozen.places[place])
        return replace(chosen, entered=entered, version=frozen.version), frozen.datasets[place]

    def noted(board: Board, *notes: str) -> Board:
        more = [*notes, *(frozen.changed(board) if frozen else ())]
        return replace(board, notes=(*board.notes, *more)) if more else board

    for metric in map(declaration, metrics):
        values = frame[frame["metric"] == metric.name]
        for task in sorted({tasks[dataset] for dataset in set(values["dataset"])}):
            of_task = [row for row in rows if tasks.get(row.dataset) == task]
            part = values[values["dataset"].isin({row.dataset for row in of_task})]
            for chosen in _by_device(of_task, part, metric, task):
                there = cells if chosen.device is None else cells[cells["device"] == chosen.device]
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")  # statistics of degenerate tables (all tied) divide by zero
                    own_selection, only = selected(chosen, None)
                    board = overall_board(own_selection, there, settings, only)
                if board is not None:
                    yield noted(board)
            for dataset, own in part.groupby("dataset", sort=True):
                methods = [row.method for row in of_task if row.dataset == dataset]
                methods, note = methods_with_equal_draws(metric, [str(dataset)], methods, counts)
                on_dataset = [row for row in of_task if row.dataset == dataset and row.method in methods]
                for chosen in _by_device(on_dataset, own[own["method"].isin(methods)], metric, task):
                    board = dataset_board(selected(chosen, str(dataset))[0], settings, counts)
                    yield noted(board, *([note] if note else []))


def _by_device(rows: Sequence[Row], values: pd.DataFrame, metric: Metric, task: str) -> Iterator[Selection]:
    """Yield rows and values by device; quality does not depend on it, so it is also pooled over several devices."""
    devices = sorted({device for row in rows for device in row.devices})
    if len(devices) > 1 and metric.family != "cost":
        yield Selection(_having(rows, values), values, metric, task, None)
    for device in devices:
        own = values[values["device"] == device]
        yield Selection(_having([row for row in rows if device in row.devices], own), own, metric, task, device)


def _having(rows: Sequence[Row], values: pd.DataFrame) -> list[Row]:
    """Return the rows that have the metric, or would have it had they not diverged in every cell."""
    places = set(zip(values["dataset"], values["method"], strict=True))
    return [r for r in rows if (r.dataset, r.method) in places or r.states.get("diverged", 0) == r.planned]
