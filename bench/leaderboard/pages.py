"""What stands on the page of a method and on the page of a dataset."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bench.history.view import LineView
from bench.leaderboard.collect import Leaderboard
from bench.leaderboard.plugins import About, about_dataset, about_method
from bench.leaderboard.rerun import Rerun, suite_text
from bench.leaderboard.rows import Row
from bench.leaderboard.view_boards import BoardView
from bench.plugins.registry import Registry
from bench.spec.spec import PluginSpec


def method_page(
    method: str,
    found: Leaderboard,
    boards: Sequence[BoardView],
    lines: Sequence[LineView],
    reruns: Mapping[tuple[str, str], Rerun],
    registry: Registry,
) -> dict[str, Any]:
    """Return the page of a method: its words, its options in every suite, its results, its history, how to rerun it."""
    rows = [row for row in found.rows if row.method == method]
    about = _each((row.spec.method for row in rows), registry, about_method)
    results = [one for one in _lines(method, boards) if not one["board"].overall]
    suites = {}
    for suite in sorted({row.suite for row in rows}):
        own = [row for row in rows if row.suite == suite]
        suites[suite] = {
            "rerun": reruns[suite, method],
            "text": suite_text(own, max(row.planned for row in own)),
            "options": own[0].spec.method.options,
            "space": own[0].spec.space,
            "rows": own,
        }
    return {
        "title": method,
        "about": about,
        "suites": suites,
        "results": results,
        "rows": rows,
        "overall": [one for one in _lines(method, boards) if one["board"].overall],
        "metrics": list(dict.fromkeys(result["board"].name for result in results)),
        "history": [one for one in lines if one.label.method == method],
        "correction": found.history.correction,
        "environments": _environments(rows),
        "updated": found.updated,
    }


def _lines(method: str, boards: Sequence[BoardView]) -> list[dict[str, Any]]:
    """Return the lines of a method, with their boards."""
    return [
        {"board": board, "line": one, "of": len(board.lines)}
        for board in boards
        for one in board.lines
        if one.method == method
    ]


def dataset_page(dataset: str, found: Leaderboard, boards: Sequence[BoardView], registry: Registry) -> dict[str, Any]:
    """Return the page of a dataset: its card, its flaws, the ranking on it by every metric."""
    rows = [row for row in found.rows if row.dataset == dataset]
    about = _each((row.spec.dataset for row in rows), registry, about_dataset)
    notes = dict.fromkeys([note for one in about for note in one.notes])
    notes |= dict.fromkeys(found.remarks.get(dataset, ()))
    own = [board for board in boards if board.board.dataset == dataset]
    return {
        "title": dataset,
        "about": about,
        "task": found.tasks.get(dataset, ""),
        "notes": list(notes),
        "boards": own,
        "rows": rows,
        "hashes": sorted({print_ for row in rows for print_ in row.data}),
        "updated": found.updated,
        "given": rows[0].spec.dataset.options,
        "suites": sorted({row.suite for row in rows}),
        "devices": len({board.board.device for board in own}),
    }


def _each(
    specs: Iterable[PluginSpec], registry: Registry, describe: Callable[[PluginSpec, Registry], About]
) -> list[About]:
    """Return what is said of every version of a plug-in that was used, each once."""
    seen: dict[str, About] = {}
    for spec in specs:
        name = f"{spec.name} {spec.origin} {spec.version}"
        if name not in seen:
            seen[name] = describe(spec, registry)
    return list(seen.values())


def _environments(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the distinct surroundings of the results, with how many were made in each."""
    counts: dict[str, dict[str, Any]] = {}
    for row in rows:
        for source in row.sources.values():
            facts = source.environment
            packages = ", ".join(f"{name} {number}" for name, number in facts["packages"].items() if number)
            machine = f"{facts['cpu']}, {facts['cores']} cores, {facts['threads']} threads, {facts['system']}"
            name = f"{source.code} {source.device} {machine} {packages} {facts['python']}"
            told = counts.setdefault(
                name,
                {
                    "code": source.code,
                    "device": source.device,
                    "machine": machine,
                    "python": facts["python"],
                    "packages": packages,
                    "results": 0,
                },
            )
            told["results"] += 1
    return list(counts.values())
