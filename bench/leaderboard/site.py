"""Writing the leaderboard: self-contained pages, and the same as JSON."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from bench.counts import plural
from bench.history.repository import NO_REPOSITORY, Repository
from bench.history.view import line_view, page_content
from bench.leaderboard.collect import Leaderboard
from bench.leaderboard.document import document
from bench.leaderboard.equations import equation
from bench.leaderboard.method_summaries import method_summaries
from bench.leaderboard.pages import dataset_page, method_page
from bench.leaderboard.reading import reading_page
from bench.leaderboard.references import linked
from bench.leaderboard.rerun import Rerun, rerun
from bench.leaderboard.rows import Row, Unlisted
from bench.leaderboard.view_boards import INDEX, BoardView, board_views, suite_pages
from bench.leaderboard.view_files import HISTORY, data_files, view_files
from bench.leaderboard.view_tables import TableView, table_views
from bench.machine.files import write_output
from bench.plugins.registry import Registry
from bench.web.names import file_name
from bench.web.templating import SCRIPT, page_script, templates


def write_site(found: Leaderboard, registry: Registry, out: Path, repository: Repository = NO_REPOSITORY) -> list[Path]:
    """Write the pages, the data of every view and `leaderboard.json`; return the files, `index.html` first."""
    reruns = _reruns(found, registry)
    summaries = method_summaries(found.rows, registry)
    boards = board_views(found, summaries)
    tables = table_views(boards, summaries)
    lines = [line_view(line, found.settings.level) for line in found.history.lines]
    environment = templates("bench.history", "bench.leaderboard")
    environment.globals |= page_script(SCRIPT, files("bench.leaderboard") / "templates" / "site.js")
    environment.filters |= {"equation": equation, "linked": linked, "data_files": data_files, "plural": plural}
    environment.globals["commit_address"] = repository.commit

    def render(template: str, page: dict[str, Any], root: str = "") -> str:
        return environment.get_template(template).render(page, root=root)

    pages = suite_pages(boards)
    contents: dict[str, str | bytes] = {
        name: render("index.html", _boards_page(suite, pages, found, boards, tables), "../" * name.count("/"))
        for suite, name in pages.items()
    }
    contents |= {
        "reading.html": render("reading.html", reading_page(found, boards)),
        "history.html": render(
            "history.html", {**page_content(found.history, lines), "title": "History", "data": HISTORY}
        ),
        "leaderboard.json": json.dumps(document(found, reruns), ensure_ascii=False, allow_nan=False) + "\n",
    }
    methods = sorted({row.method for row in found.rows})
    for method in methods:
        page = method_page(method, found, boards, lines, reruns, registry)
        contents[f"methods/{file_name(method)}.html"] = render("method.html", page, "../")
    for dataset in sorted({row.dataset for row in found.rows}):
        page = dataset_page(dataset, found, boards, registry)
        contents[f"datasets/{file_name(dataset)}.html"] = render("dataset.html", page, "../")
    views = [*([board] for board in found.boards), *(table.every for table in tables)]
    contents |= view_files(found, views, methods)
    contents |= {again.file: again.content for again in reruns.values() if again.file}
    contents |= {name: content for again in reruns.values() for name, content in again.plugins.items()}
    return [write_output(out / name, content) for name, content in contents.items()]


def _reruns(found: Leaderboard, registry: Registry) -> dict[tuple[str, str], Rerun]:
    by_method: dict[tuple[str, str], list[Row]] = {}
    for row in found.rows:
        by_method.setdefault((row.suite, row.method), []).append(row)
    return {place: rerun(own, registry, found.plugins) for place, own in by_method.items()}


def _boards_page(
    suite: str, pages: Mapping[str, str], found: Leaderboard, boards: Sequence[BoardView], tables: Sequence[TableView]
) -> dict[str, Any]:
    """Return the page with the boards of a suite; that of the first one, `index.html`, also lists what the site has."""
    names = {f"{kind}s": sorted({getattr(row, kind) for row in found.rows}) for kind in ("method", "dataset")}
    counts = {
        "results": sum(len(row.sources) for row in found.rows),
        "plugins": len({(row.spec.method.name, row.spec.method.origin) for row in found.rows}),
        "lacking": sum(one.provenance for one in found.unlisted),
        "changes": sum(len(line.changes) for line in found.history.lines),
    }
    lists = {"codes": sorted({code for row in found.rows for code in row.codes}), "unlisted": _unlisted(found.unlisted)}
    first = pages[suite] == INDEX
    return {
        "title": "Leaderboard" if first else suite,
        "first": first,
        "suite": suite,
        "pages": pages,
        "found": found,
        "boards": [view for view in boards if view.board.suite == suite],
        "tables": [view for view in tables if view.boards[0].board.suite == suite],
        **names,
        **lists,
        **counts,
    }


def _unlisted(unlisted: Sequence[Unlisted]) -> list[dict[str, Any]]:
    """Return the rows that are not listed, datasets of one method and one reason in one line; provenance first."""
    lines: dict[tuple[bool, str, str, str], dict[str, Any]] = {}
    for one in unlisted:
        line = lines.setdefault((not one.provenance, one.suite, one.method, one.reason), {"one": one, "datasets": []})
        line["datasets"].append(one.dataset)
    return [lines[place] for place in sorted(lines)]
