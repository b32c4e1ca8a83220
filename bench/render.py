"""Writing a report: the sections of the report plug-ins as one self-contained HTML page and as Markdown."""

import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined

from bench.api import Block, Figure, Report, Section, Table, Text
from bench.errors import UserError, unknown_name
from bench.registry import Registry, in_one_line
from bench.results import StoredResults
from bench.store import Store


@dataclass(frozen=True)
class Image:
    """A figure, drawn."""

    name: str  # of its file, without the suffix
    png: bytes
    svg: bytes

    @property
    def uri(self) -> str:
        """The picture itself, as an address that a page can hold."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode()


@dataclass(frozen=True)
class SuitePart:
    """The sections of one suite."""

    name: str
    title: str
    sections: Sequence[Section]
    images: Mapping[int, "Image"]  # by the identity of their block

    @property
    def anchor(self) -> str:
        """A name for links that is safe in a page."""
        return "suite-" + _file_name(self.name)


def write_report(store: Store, registry: Registry, out: Path, suites: Sequence[str] = ()) -> list[Path]:
    """Write `index.html`, `report.md` and `figures/` for some suites of a store (all by default); return the files."""
    known = store.suites()
    for suite in suites:
        if suite not in known:
            raise unknown_name("suite", suite, known, f"store {store.shown}")
    if not known:
        raise UserError(f"store {store.shown}: nothing is stored yet; run a suite first: uqbench run quick")
    parts = [_part(StoredResults(store, suite), registry) for suite in (suites or known)]
    try:
        return _write(parts, out)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror or error}") from error


def _part(results: StoredResults, registry: Registry) -> SuitePart:
    plugins: list[tuple[str, Report]] = []
    broken: list[Section] = []
    for name in registry.plugins("report"):
        try:
            plugins.append((name, registry.make("report", name, {})))
        except UserError as error:
            broken.append(Section(name, [Text(str(error))]))
    sections: list[Section] = []
    images: dict[int, Image] = {}
    for name, plugin in sorted(plugins, key=lambda pair: pair[1].order):  # stable: then by name
        try:
            section = plugin.section(results)
            if section is not None:
                images |= _drawn(section, results.suite, {image.name for image in images.values()})
                sections.append(section)
        except Exception as error:  # one broken section must not cost the others
            broken.append(Section(name, [Text(f"This section failed: {in_one_line(error)}")]))
    return SuitePart(results.suite, f"{results.suite}: {results.title}", [*sections, *broken], images)


def _drawn(section: Section, suite: str, taken: set[str]) -> dict[int, Image]:
    """Draw the figures of a section, and so find out whether it can be written at all."""
    images = {}
    for block in section.blocks:
        if isinstance(block, Table):
            _cells(block)
        elif isinstance(block, Figure):
            png, svg = io.BytesIO(), io.BytesIO()
            block.figure.savefig(png, format="png", dpi=150)
            block.figure.savefig(svg, format="svg")
            name = wanted = f"{_file_name(suite)}-{_file_name(block.name)}"
            number = 2
            while name in taken:
                name, number = f"{wanted}-{number}", number + 1
            taken.add(name)
            images[id(block)] = Image(name, png.getvalue(), svg.getvalue())
        elif not isinstance(block, Text):
            raise TypeError(f"a block is a Text, a Table or a Figure, got {type(block).__name__}")
    return images


def _write(parts: Sequence[SuitePart], out: Path) -> list[Path]:
    figures = out / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for image in (image for part in parts for image in part.images.values()):
        for suffix, content in (("png", image.png), ("svg", image.svg)):
            path = figures / f"{image.name}.{suffix}"
            path.write_bytes(content)
            written.append(path)
    page = Environment(autoescape=True, undefined=StrictUndefined).from_string(
        (files("bench") / "page.html").read_text("utf-8")
    )
    shown = [
        {
            "name": part.name, "title": part.title, "anchor": part.anchor,
            "sections": [
                {"title": s.title, "blocks": [_for_page(b, part.images) for b in s.blocks]} for s in part.sections
            ],
        }
        for part in parts
    ]  # fmt: skip
    html, markdown = out / "index.html", out / "report.md"
    html.write_text(page.render(title="uqbench report", suites=shown), "utf-8")
    markdown.write_text(_markdown(parts), "utf-8")
    return [html, markdown, *written]


def _for_page(block: Block, images: Mapping[int, Image]) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"kind": "text", "text": block.text}
    if isinstance(block, Figure):
        return {"kind": "figure", "caption": block.caption, "source": images[id(block)].uri}
    rows = [
        [{"text": text, "bold": (r, c) in block.bold} for c, text in enumerate(row)]
        for r, row in enumerate(_cells(block))
    ]
    return {"kind": "table", "caption": block.caption, "header": [str(c) for c in block.data.columns], "rows": rows}


def _markdown(parts: Sequence[SuitePart]) -> str:
    lines = ["# uqbench report", ""]
    for part in parts:
        lines += [f"## {_escaped(part.title)}", ""]
        for section in part.sections:
            lines += [f"### {_escaped(section.title)}", ""]
            for block in section.blocks:
                if isinstance(block, Text):
                    lines += [_escaped(block.text), ""]
                elif isinstance(block, Figure):
                    source = f"figures/{part.images[id(block)].name}.png"
                    lines += [f"![{_escaped(block.caption)}]({source})", "", _escaped(block.caption), ""]
                else:
                    lines += [f"**{_escaped(block.caption)}**", "", *_markdown_table(block), ""]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_table(table: Table) -> list[str]:
    header = [_escaped(str(name)) for name in table.data.columns]
    lines = [f"| {' | '.join(header)} |", f"| {' | '.join('---' for _ in header)} |"]
    for r, row in enumerate(_cells(table)):
        cells = [f"**{_escaped(text)}**" if (r, c) in table.bold else _escaped(text) for c, text in enumerate(row)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _cells(table: Table) -> list[list[str]]:
    return [[_text(value) for value in row] for row in table.data.itertuples(index=False)]


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "–" if pd.isna(value) else f"{value:.4g}"
    return str(value)


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, no line of its own."""
    return re.sub(r"([\\`*_\[\]<>|#&~])", r"\\\1", " ".join(text.split()))


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "unnamed"
