"""Writing the leaderboard: pages that hold everything they show, and the same as JSON."""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bench import __version__
from bench.errors import UserError
from bench.leaderboard.collect import Leaderboard
from bench.leaderboard.document import document, moment
from bench.leaderboard.listing import Row, Unlisted
from bench.leaderboard.names import file_name
from bench.leaderboard.pages import dataset_page, method_page
from bench.leaderboard.rerun import Rerun, rerun
from bench.leaderboard.view import ShownBoard, metric_name, shown_boards
from bench.registry import Registry


def write_site(found: Leaderboard, registry: Registry, out: Path) -> list[Path]:
    """Write `index.html`, a page for every method and dataset, and `leaderboard.json`; return the files."""
    reruns = _reruns(found.rows, registry)
    boards = shown_boards(found)
    templates = _templates()
    content: dict[str, str] = {
        "index.html": templates.get_template("index.html").render(_index(found, boards), root=""),
        "leaderboard.json": json.dumps(document(found, reruns), ensure_ascii=False, allow_nan=False) + "\n",
    }
    for method in sorted({row.method for row in found.rows}):
        page = method_page(method, found, boards, reruns, registry)
        path = f"methods/{file_name(method)}.html"
        content[path] = templates.get_template("method.html").render(page, root="../")
    for dataset in sorted({row.dataset for row in found.rows}):
        page = dataset_page(dataset, found, boards, registry)
        path = f"datasets/{file_name(dataset)}.html"
        content[path] = templates.get_template("dataset.html").render(page, root="../")
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


def _templates() -> Environment:
    script = _own("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        loader=PackageLoader("bench.leaderboard"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.globals |= {
        "style": Markup(_own("style.css").replace("DARK", _own("dark.css"))),  # by the system's wish, or the reader's
        "script": Markup(script),
        # Only this script runs, whatever a name in the store may hold.
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "version": __version__,
    }
    environment.filters |= {"page_name": file_name, "metric_name": metric_name, "moment": moment}
    return environment


def _own(name: str) -> str:
    return (files("bench.leaderboard") / "templates" / name).read_text("utf-8")


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
    }


def _together(unlisted: Sequence[Unlisted]) -> list[dict[str, Any]]:
    """Return what is not listed, the datasets of one method and one reason in one line; provenance first."""
    lines: dict[tuple[bool, str, str, str], dict[str, Any]] = {}
    for one in unlisted:
        line = lines.setdefault((not one.provenance, one.suite, one.method, one.reason), {"one": one, "datasets": []})
        line["datasets"].append(one.dataset)
    return [lines[place] for place in sorted(lines)]
