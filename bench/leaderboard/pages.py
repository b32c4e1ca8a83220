"""The content of the pages of methods and datasets."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bench.counts import plural
from bench.history.view import LineView
from bench.leaderboard.collect import Leaderboard
from bench.leaderboard.plugins import About, about_dataset, about_method, changed_options
from bench.leaderboard.rerun import Rerun, suite_text
from bench.leaderboard.rows import Row
from bench.leaderboard.view_boards import BoardView
from bench.leaderboard.view_files import method_name
from bench.plugins.describe import option_text
from bench.plugins.registry import Registry
from bench.spec.plugin import SUBMITTED, PluginSpec, inner_spec


def method_page(
    method: str,
    found: Leaderboard,
    boards: Sequence[BoardView],
    lines: Sequence[LineView],
    reruns: Mapping[tuple[str, str], Rerun],
    registry: Registry,
) -> dict[str, Any]:
    """Return the page of a method: description, options in every suite, results, history, how to rerun it."""
    rows = [row for row in found.rows if row.method == method]
    entries = [(board, line) for board in boards for line in board.lines if line.method == method]
    tables: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for board, line in entries:
        tables[board.overall].append({"board": board, "line": line})
    suites = {suite: _suite(suite, method, rows, reruns) for suite in sorted({row.suite for row in rows})}
    return {
        "title": method,
        "data": method_name(method),
        "about": _descriptions((row.spec.method for row in rows), registry, about_method),
        "suites": suites,
        "settings": settings(suites),
        "variants": variants(method, (row.spec.method for row in rows), registry),
        "methods": {row.method for row in found.rows},
        "results": tables[False],
        "rows": rows,
        "overall": tables[True],
        "metrics": list(dict.fromkeys(board.name for board, _ in entries if not board.overall)),
        "history": [line for line in lines if line.label.method == method],
        "correction": found.history.correction,
        "environments": _environments(rows),
    }


def _suite(suite: str, method: str, rows: Sequence[Row], reruns: Mapping[tuple[str, str], Rerun]) -> dict[str, Any]:
    """Return what a suite fixes for a method, and how to run it again."""
    own = [row for row in rows if row.suite == suite]
    text = suite_text(own, max(row.planned for row in own))
    spec = own[0].spec
    inner = inner_spec(spec.method)
    options = {name: option_text(value) for name, value in spec.method.options.items()}
    if inner is not None:
        given = ", ".join(f"{name} = {option_text(value)}" for name, value in inner.options.items())
        options["method"] = f"{inner.name} ({given})" if given else inner.name
    space = {name: ", ".join(option_text(value) for value in values) for name, values in spec.space.items()}
    return {"rerun": reruns[suite, method], "text": text, "options": options, "space": space}


Changes = tuple[tuple[str, str, str], ...]  # options, their values, their defaults


def variants(method: str, specs: Iterable[PluginSpec], registry: Registry) -> list[tuple[str, Changes]]:
    """Return the plug-ins behind a name that is not theirs, each with the options that are not its defaults."""
    others = (spec for spec in specs if spec.name != method and spec.origin != SUBMITTED)
    return list(dict.fromkeys((spec.name, changed_options(spec, registry)) for spec in others))


def settings(suites: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what suites fix for a method, those that fix the same together under all their names."""
    groups: list[tuple[list[str], dict[str, Any]]] = []
    for name, one in suites.items():
        same = next((g for g in groups if all(g[1][part] == one[part] for part in ("options", "space"))), None)
        if same is None:
            groups.append(([name], one))
        else:
            same[0].append(name)
    return {", ".join(names): one for names, one in groups}


def dataset_page(dataset: str, found: Leaderboard, boards: Sequence[BoardView], registry: Registry) -> dict[str, Any]:
    """Return the page of a dataset: description, known flaws, the ranking on it by every metric."""
    rows = [row for row in found.rows if row.dataset == dataset]
    about = _descriptions((row.spec.dataset for row in rows), registry, about_dataset)
    own = [board for board in boards if board.board.dataset == dataset]
    return {
        "title": dataset,
        "about": about,
        "task": found.tasks.get(dataset, ""),
        "notes": list(dict.fromkeys([*(note for one in about for note in one.notes), *found.remarks.get(dataset, ())])),
        "boards": own,
        "hashes": sorted({fingerprint for row in rows for fingerprint in row.data}),
        "given": rows[0].spec.dataset.options,
        "suites": sorted({row.suite for row in rows}),
        "devices": len({board.board.device for board in own}),
    }


def _descriptions(
    specs: Iterable[PluginSpec], registry: Registry, describe: Callable[[PluginSpec, Registry], About]
) -> list[About]:
    """Return the description of every version of a plug-in that was used."""
    versions: dict[tuple[str, str, str], PluginSpec] = {}
    for spec in specs:
        versions.setdefault((spec.name, spec.origin, spec.version), spec)
    return [describe(spec, registry) for spec in versions.values()]


def _environments(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the distinct environments of the results, with the number of results of each."""
    counts: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        for source in row.sources.values():
            facts = source.environment
            packages = ", ".join(f"{name} {number}" for name, number in facts["packages"].items() if number)
            parts = (facts["cpu"], plural(facts["cores"], "core"), plural(facts["threads"], "thread"), facts["system"])
            machine = ", ".join(parts)
            counts[source.code, source.device, machine, str(facts["python"]), packages] += 1
    names = ("code", "device", "machine", "python", "packages")
    return [{**dict(zip(names, place, strict=True)), "results": count} for place, count in counts.items()]
