"""The page of a report: one HTML file that needs no network and no script."""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from bench import __version__
from bench.api import Block, Facts, Figure, Table, Text
from bench.report.tables import cells, numeric

if TYPE_CHECKING:
    from bench.report.write import Part

MOST_ROWS = 120  # of a figure's numbers on the page; the file has all
# Characters from which on a cell may break its line; the first of a row; any other of a table that has a wide one.
WIDE, WIDE_NAME, BESIDE_WIDE = 48, 26, 14
LONG_FACT = 11  # characters that do not fit beside each other at full size
DARK = """color-scheme: dark; --ink: #e6edf3; --muted: #a3adb8; --line: #39424d; --paper: #0e131a; --soft: #171e27;
  --accent: #79b8ff; --good: #7ee0b4; --good-paper: #11392b; --bad: #ffb48a; --bad-paper: #47230f; --even: #9aa4af;
  --even-paper: #262f3a; --open: #f0cf6a; --open-paper: #3a2f0b; --best: #142c47;
  --c0: #4aa8e0; --c1: #f0a732; --c2: #2fc49a; --c3: #f5823b; --c4: #dc93cf; --c5: #d8a67c; --c6: #a9b1ba;
  --c7: #8accf2;"""

# Words of verdicts, and how they are tinted; the word itself says it too.
TONES = {
    "better": "good",
    "reproduced": "good",
    "ok": "good",
    "worse": "bad",
    "not reproduced": "bad",
    "failed": "bad",
    "diverged": "bad",
    "equivalent": "even",
    "not comparable": "even",
    "inconclusive": "open",
    "not run": "open",
}


def page(parts: Sequence["Part"], store: str) -> str:
    """Return the whole page; everything that is shown in it is escaped."""
    text = {name: (files("bench.report") / name).read_text("utf-8") for name in ("page.html", "page.css")}
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(text["page.html"])
    shown = [
        {
            "name": part.name,
            "title": part.title,
            "anchor": f"part-{number}",
            "sections": [
                {
                    "title": section.title,
                    "anchor": f"section-{number}-{place}",
                    "blocks": [_block(block, part) for block in section.blocks],
                }
                for place, section in enumerate(part.sections)
            ],
        }
        for number, part in enumerate(parts)
    ]
    overall: Any = [section for suite in shown if not suite["name"] for section in suite["sections"]]
    suites = [suite for suite in shown if suite["name"]]
    return template.render(
        title="uqbench report",
        css=Markup(text["page.css"].replace("DARK", DARK)),
        overall=overall,
        suites=suites,
        about=_about([str(suite["name"]) for suite in suites]),
        made_by=f"Made by uqbench {__version__} from {store}. This page needs no network and runs no script.",
    )


def _about(names: Sequence[str]) -> str:
    return f"Suite {names[0]}" if len(names) == 1 else f"{len(names)} suites: {', '.join(names)}"


def _block(block: Block, part: "Part") -> Mapping[str, Any]:
    if isinstance(block, Text):
        return {"kind": "text", "text": block.text}
    if isinstance(block, Facts):
        return {
            "kind": "facts",
            "facts": [(word, value, len(value) > LONG_FACT) for word, value in block.facts.items()],
        }
    if isinstance(block, Table):
        name = part.tables[id(block)]
        links = [_link("CSV", f"tables/{name}.csv", block.caption), _link("LaTeX", f"tables/{name}.tex", block.caption)]
        return {"kind": "table", "caption": block.caption, "folded": block.folded, "files": links, **_grid(block)}
    image = part.images[id(block)]
    words = image.name.replace("-", " ")
    kinds = ["PNG", "SVG", *(["CSV"] if block.data is not None else [])]
    links = [_link(kind, f"figures/{image.name}.{kind.lower()}", words) for kind in kinds]
    return {
        "kind": "figure",
        "name": words,
        "id": image.name,
        "caption": block.caption,
        "picture": Markup(image.inline),
        "files": links,
        **_numbers(block),
    }


def _link(name: str, path: str, of: str) -> dict[str, str]:
    return {"name": name, "path": path, "of": of}


def _numbers(figure: Figure) -> Mapping[str, Any]:
    data = figure.data if figure.data is not None else pd.DataFrame()
    more = (
        f"The first {MOST_ROWS} of {len(data):,} rows; the CSV file has all of them." if len(data) > MOST_ROWS else ""
    )
    return {"more": more, **_grid(Table("", data.head(MOST_ROWS)))}


def _grid(table: Table) -> Mapping[str, Any]:
    texts = cells(table)
    numbers = [c > 0 and numeric([row[c] for row in texts]) for c in range(len(table.data.columns))]
    most = BESIDE_WIDE if any(len(text) > WIDE for row in texts for text in row[1:]) else WIDE
    rows = [
        [_cell(text, (r, c) in table.bold, c == 0, numbers[c], most) for c, text in enumerate(row)]
        for r, row in enumerate(texts)
    ]
    # The arrow of a metric stays beside its name.
    names = [re.sub(r" (?=[↓↑→])", "\N{NO-BREAK SPACE}", str(name)) for name in table.data.columns]
    header = [{"text": name, "number": numbers[c]} for c, name in enumerate(names)]
    return {"header": header, "rows": rows}


def _cell(text: str, bold: bool, first: bool, number: bool, most: int) -> dict[str, Any]:
    wide = len(text) > (WIDE_NAME if first else WIDE)
    words = not (first or number or wide) and len(text) > most
    kinds = [kind for kind, has in (("n", number), ("best", bold), ("wide", wide), ("words", words)) if has]
    return {"text": text, "bold": bold, "kind": " ".join(kinds), "tone": TONES.get(text, "")}
