"""The page of a report: one HTML file that needs no network and no script."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from bench.api import Facts, Text
from bench.report.content import MOST_ROWS, FigureContent, Part, SectionContent, TableContent
from bench.report.tables import TextTable
from bench.web.templating import templates

# Characters from which on a cell may break its line; the first of a row; any other of a table that has a wide one.
WIDE, WIDE_NAME, BESIDE_WIDE = 48, 26, 14
LONG_FACT = 11  # characters that do not fit beside each other at full size

# How verdicts are tinted: the words of each tone; the word itself says it too.
TONES = {
    "good": ("better", "reproduced", "ok"),
    "bad": ("worse", "not reproduced", "failed", "diverged"),
    "even": ("equivalent", "no experiment"),
    "open": ("inconclusive", "cannot be decided", "not run"),
}
TONE_OF = {word: tone for tone, words in TONES.items() for word in words}


def page(parts: Sequence[Part], store: str) -> str:
    """Return the whole page; everything in it that comes from the store is escaped."""
    overall, suites = [], []
    for number, part in enumerate(parts):
        sections = [_section(section, f"section-{number}-{place}") for place, section in enumerate(part.sections)]
        if part.suite:
            suites.append({"name": part.suite, "title": part.title, "anchor": f"part-{number}", "sections": sections})
        else:
            overall += sections
    names = [part.suite for part in parts if part.suite]
    about = f"Suite {names[0]}" if len(names) == 1 else f"{len(names)} suites: {', '.join(names)}"
    template = templates("bench.report").get_template("report.html")
    return template.render(title="uqbench report", about=about, overall=overall, suites=suites, store=store)


def _section(section: SectionContent, anchor: str) -> Mapping[str, Any]:
    return {"title": section.title, "anchor": anchor, "blocks": [_block(block) for block in section.blocks]}


def _block(block: Text | Facts | TableContent | FigureContent) -> Mapping[str, Any]:
    if isinstance(block, Text):
        return {"kind": "text", "text": block.text}
    if isinstance(block, Facts):
        facts = [(word, value, len(value) > LONG_FACT) for word, value in block.facts.items()]
        return {"kind": "facts", "facts": facts}
    if isinstance(block, TableContent):
        caption, path = block.table.caption, f"tables/{block.name}"
        links = [_link("CSV", f"{path}.csv", caption), _link("LaTeX", f"{path}.tex", caption)]
        cells = table_cells(block.text)
        return {"kind": "table", "caption": caption, "folded": block.table.folded, "files": links, **cells}
    figure, image = block.figure, block.image
    name = image.name.replace("-", " ")
    rows = 0 if figure.data is None else len(figure.data)
    more = f"The first {MOST_ROWS} of {rows:,} rows; the CSV file has all of them." if rows > MOST_ROWS else ""
    kinds = ["PNG", "SVG", *(["PDF"] if image.pdf is not None else []), *(["CSV"] if figure.data is not None else [])]
    links = [_link(kind, f"figures/{image.name}.{kind.lower()}", name) for kind in kinds]
    picture, cells = Markup(image.inline), table_cells(block.numbers)
    content = {"id": image.name, "name": name, "caption": figure.caption, "picture": picture, "more": more}
    return {"kind": "figure", **content, "files": links, **cells}


def _link(name: str, path: str, of: str) -> dict[str, str]:
    return {"name": name, "path": path, "of": of}


def table_cells(table: TextTable) -> Mapping[str, Any]:
    """Return header and rows of a table with the classes of their cells."""
    most = BESIDE_WIDE if any(len(text) > WIDE for row in table.rows for text in row[1:]) else WIDE
    rows = [
        [_cell(text, (r, c) in table.bold, c == 0, table.numeric[c], most) for c, text in enumerate(row)]
        for r, row in enumerate(table.rows)
    ]
    # The arrow of a metric stays beside its name.
    names = [re.sub(r" (?=[↓↑→])", "\N{NO-BREAK SPACE}", name) for name in table.header]
    header = [{"text": name, "number": number} for name, number in zip(names, table.numeric, strict=True)]
    return {"header": header, "rows": rows}


def _cell(text: str, bold: bool, first: bool, number: bool, most: int) -> dict[str, Any]:
    wide = len(text) > (WIDE_NAME if first else WIDE)
    words = not (first or number or wide) and len(text) > most
    kinds = [kind for kind, has in (("n", number), ("best", bold), ("wide", wide), ("words", words)) if has]
    # A verdict may be qualified, such as "reproduced under departures".
    return {"text": text, "bold": bold, "kind": " ".join(kinds), "tone": TONE_OF.get(text.partition(" under ")[0], "")}
