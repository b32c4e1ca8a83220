"""The page of a report: one HTML file that needs no network; without scripts only sorting and filters are missing."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from markupsafe import Markup, escape

from bench.api import Facts, Text
from bench.report.content import MOST_ROWS, FigureContent, Part, SectionContent, TableContent
from bench.report.tables import TextTable
from bench.web.templating import SCRIPT, page_script, templates

# Characters from which on a cell is a text that breaks its lines; the first of a row; any other that may break where
# there is little room; the same in a table that has a text.
WIDE, WIDE_NAME, WORDS, BESIDE_WIDE = 48, 26, 24, 14
OWN_SCRIPT = files("bench.report") / "templates" / "report.js"  # makes what the shared script then serves
# Pixels of a character, between columns, and of the page beside its contents on a screen of 1280: a table that would be
# wider has the spread or interval of its numbers on a second line, and smaller letters where that is not enough.
LETTER, BETWEEN, PAGE = 8.6, 15, 1003
SPREAD = re.compile(r"(?P<value>\S+(?: %)?) (?P<spread>[±(\[].*?)(?P<marks>[†‡*]*)")
SENTENCE = 60  # characters from which on facts are sentences, one below the other
LONG_FACT = 11  # characters that do not fit beside each other at full size
DIRECTION = re.compile("[↓↑→]")  # in the name of a column: it holds a metric
FEWER = re.compile(r"\(\d[\d,]* of \d[\d,]*\)")  # beside a mean or a method: fewer repeats than others have

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
    shown = []
    for number, part in enumerate(parts):
        sections = [_section(section, f"section-{number}-{place}") for place, section in enumerate(part.sections)]
        name = part.suite or part.title
        shown.append({"name": name, "title": part.title, "anchor": f"part-{number}", "sections": sections})
    names = [part.suite for part in parts if part.suite]
    about = f"Suite {names[0]}" if len(names) == 1 else f"{len(names)} suites: {', '.join(names)}"
    template = templates("bench.report").get_template("report.html")
    content = {"title": "uqbench report", "about": about, "parts": shown, "store": store}
    return template.render(**content, **page_script(OWN_SCRIPT, SCRIPT))


def _section(section: SectionContent, anchor: str) -> Mapping[str, Any]:
    return {"title": section.title, "anchor": anchor, "blocks": [_block(block) for block in section.blocks]}


def _joined(text: str) -> str:
    """Return a text whose line breaks neither before a per cent sign nor between a metric and its arrow."""
    return re.sub(r" (?=[%↓↑→])", "\N{NO-BREAK SPACE}", text)


def _block(block: Text | Facts | TableContent | FigureContent) -> Mapping[str, Any]:
    if isinstance(block, Text):
        return {"kind": "text", "text": _joined(block.text), "warning": block.warning}
    if isinstance(block, Facts):
        facts = [(_joined(word), _joined(value), len(value) > LONG_FACT) for word, value in block.facts.items()]
        return {"kind": "facts", "facts": facts, "prose": any(len(value) > SENTENCE for value in block.facts.values())}
    if isinstance(block, TableContent):
        caption, path = block.table.caption, f"tables/{block.name}"
        links = [_link("CSV", f"{path}.csv", caption), _link("LaTeX", f"{path}.tex", caption)]
        # Columns of metrics, which are known by the direction in which they are better, can be hidden.
        metrics = sum(bool(DIRECTION.search(name)) for name in block.text.header)
        about = {"caption": _joined(caption), "folded": block.table.folded, "files": links, "columns": metrics > 2}
        return {"kind": "table", **about, **table_cells(block.text, block.table.asides)}
    image = block.image
    name = image.name.replace("-", " ")
    more = (
        f"The first {MOST_ROWS} of {block.rows:,} rows; the CSV file has all of them." if block.rows > MOST_ROWS else ""
    )
    kinds = ["PNG", "SVG", *(["PDF"] if image.pdf is not None else []), *(["CSV"] if block.csv is not None else [])]
    links = [_link(kind, f"figures/{image.name}.{kind.lower()}", name) for kind in kinds]
    picture, cells = Markup(image.inline), table_cells(block.numbers)
    content = {"id": image.name, "name": name, "caption": _joined(block.caption), "picture": picture, "more": more}
    return {"kind": "figure", **content, "files": links, **cells}


def _link(name: str, path: str, of: str) -> dict[str, str]:
    return {"name": name, "path": path, "of": of}


def table_cells(table: TextTable, asides: Mapping[str, str] = MappingProxyType({})) -> Mapping[str, Any]:
    """Return header and rows of a table with the classes of their cells; columns beside the results have a note.

    Means over fewer repeats are not compared with others: whoever sorts by a metric finds them behind, in their order.
    """
    table = table if _width(table) <= PAGE else _on_two_lines(table)
    most = BESIDE_WIDE if any(len(text) > WIDE for row in table.rows for text in row[1:]) else WORDS
    metrics = [bool(DIRECTION.search(name)) for name in table.header]
    rows = [
        [
            {
                **_cell(text, (r, c) in table.bold, c == 0, table.numeric[c], most, table.header[c] in asides),
                "apart": metrics[c] and bool(FEWER.search(row[0]) or FEWER.search(text)),
            }
            for c, text in enumerate(row)
        ]
        for r, row in enumerate(table.rows)
    ]
    names = [_joined(name) for name in table.header]
    dense = _width(table) > PAGE
    header = [
        {"text": _breakable(name) if dense else name, "number": number, "note": asides.get(own, "")}
        for name, own, number in zip(names, table.header, table.numeric, strict=True)
    ]
    return {"header": header, "rows": rows, "dense": dense}


def _breakable(name: str) -> Markup:
    """Return the name of a metric that may break its line between its words, and before its condition."""
    return Markup(re.sub(r"(?<=\w)(?=@)|(?<=[_:,=])(?=\w)", "<wbr>", str(escape(name))))


def _width(table: TextTable) -> float:
    """Return about how many pixels wide a table is, where only texts and names break their lines."""
    total = 0.0
    for c, name in enumerate(table.header):
        cells = [max(map(len, row[c].split("\n"))) for row in table.rows]
        widest = min(max(cells, default=0), WIDE_NAME if c == 0 else WIDE if table.numeric[c] else WORDS)
        total += BETWEEN + LETTER * max(widest, *map(len, _joined(name).split(" ")), 1)
    return total


def _on_two_lines(table: TextTable) -> TextTable:
    """Return a table whose numbers have their spread or interval below them."""

    def broken(text: str) -> str:
        found = SPREAD.fullmatch(text)
        if found is None:
            return text
        # Neither a sign and its number nor the repeats behind a mean are torn apart on paper.
        spread = found["spread"].replace("± ", "±\N{NO-BREAK SPACE}").replace(" (", "\n(")
        return f"{found['value']}{found['marks']}\n{spread}"

    rows = [
        [broken(text) if number else text for text, number in zip(row, table.numeric, strict=True)]
        for row in table.rows
    ]
    return replace(table, rows=rows)


def _cell(text: str, bold: bool, first: bool, number: bool, most: int, aside: bool) -> dict[str, Any]:
    wide = max(map(len, text.split("\n"))) > (WIDE_NAME if first else WIDE)
    words = not (first or number or wide) and len(text) > most
    known = (("n", number), ("best", bold), ("wide", wide), ("words", words), ("aside", aside))
    kinds = [kind for kind, has in known if has]
    first_line, _, second = text.partition("\n")
    verdict, qualified, how = first_line.partition(" under ")  # such as "reproduced under departures"
    tone = TONE_OF.get(verdict, "")
    if tone and qualified:
        first_line, second = verdict, f"under {how}"
    return {"text": first_line, "second": second, "bold": bold, "kind": " ".join(kinds), "tone": tone}
