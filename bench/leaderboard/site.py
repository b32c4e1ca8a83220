"""Writing the leaderboard: pages that hold everything they show, and the same as JSON."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.history.view import history_content, shown_line
from bench.leaderboard.collect import Leaderboard
from bench.leaderboard.document import document
from bench.leaderboard.pages import dataset_page, method_page
from bench.leaderboard.rerun import Rerun, rerun
from bench.leaderboard.rows import Row, Unlisted
from bench.leaderboard.view_boards import ShownBoard, shown_boards
from bench.plugins.registry import Registry
from bench.web.names import file_name
from bench.web.templating import templates


def write_site(found: Leaderboard, registry: Registry, out: Path) -> list[Path]:
    """Write `index.html`, `history.html`, a page a method and a dataset, and `leaderboard.json`; return the files."""
    reruns = _reruns(found.rows, registry)
    boards = shown_boards(found)
    pages = templates("bench.leaderboard")
    lines = [shown_line(one, found.settings.level) for one in found.history.lines]
    history = history_content(found.history, lines)
    content: dict[str, str] = {
        "index.html": pages.get_template("index.html").render(_index(found, boards), root=""),
        "history.html": pages.get_template("history.html").render(history, title="History", root=""),
        "leaderboard.json": json.dumps(document(found, reruns), ensure_ascii=False, allow_nan=False) + "\n",
    }
    for method in sorted({row.method for row in found.rows}):
        page = method_page(method, found, boards, lines, reruns, registry)
        path = f"methods/{file_name(method)}.html"
        content[path] = pages.get_template("method.html").render(page, root="../")
    for dataset in sorted({row.dataset for row in found.rows}):
        page = dataset_page(dataset, found, boards, registry)
        path = f"datasets/{file_name(dataset)}.html"
        content[path] = pages.get_template("dataset.html").render(page, root="../")
    content |= {again.file: again.content for again in reruns.values() if again.file}
    try:
        return [_written(out / name, text) for name, text in content.items()]
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror or error}") from error


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Names come from a store and may hold halves of characters.
    path.write_text(text, "utf-8", errors="backslashreplace")
    return path


def _reruns(rows: Iterable[Row], registry: Registry) -> dict[tuple[str, str], Rerun]:
    by_method: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_method.setdefault((row.suite, row.method), []).append(row)
    return {place: rerun(own, registry) for place, own in by_method.items()}


def _index(found: Leaderboard, boards: list[ShownBoard]) -> dict[str, Any]:
    datasets = sorted({row.dataset for row in found.rows})
    return {
        "title": "Leaderboard",
        "found": found,
        "boards": boards,
        "methods": sorted({row.method for row in found.rows}),
        "datasets": datasets,
        "results": sum(len(row.sources) for row in found.rows),
        "codes": sorted({code for row in found.rows for code in row.codes}),
        "lacking": sum(one.provenance for one in found.unlisted),
        "unlisted": _together(found.unlisted),
        "changes": sum(len(line.changes) for line in found.history.lines),
    }


def _together(unlisted: Sequence[Unlisted]) -> list[dict[str, Any]]:
    """Return what is not listed, the datasets of one method and one reason in one line; provenance first."""
    lines: dict[tuple[bool, str, str, str], dict[str, Any]] = {}
    for one in unlisted:
        line = lines.setdefault((not one.provenance, one.suite, one.method, one.reason), {"one": one, "datasets": []})
        line["datasets"].append(one.dataset)
    return [lines[place] for place in sorted(lines)]
