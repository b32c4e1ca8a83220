"""A report as Markdown; names and messages in it are text, never markup."""

import re
from collections.abc import Sequence

from bench.api import Facts, Text
from bench.report.content import FigureContent, Part, SectionContent, TableContent
from bench.report.tables import TextTable
from bench.text_tables import markdown_table


def markdown(parts: Sequence[Part]) -> str:
    """Return the whole report; it links to the figures in `figures/`."""
    lines = ["# uqbench report", ""]
    for part in parts:
        if part.sections:
            lines += [f"## {escape(part.title)}", ""]
        for section in part.sections:
            lines += section_lines(section)
    return "\n".join(lines).rstrip() + "\n"


def section_lines(section: SectionContent) -> list[str]:
    """Return the lines of one section; raises where a text in it is no text."""
    blocks = [line for block in section.blocks for line in (*block_lines(block), "")]
    return [f"### {escape(section.title)}", "", *blocks]


def block_lines(block: Text | Facts | TableContent | FigureContent) -> list[str]:
    """Return the lines of one block."""
    if isinstance(block, Text):
        return [escape(block.text)]
    if isinstance(block, Facts):
        return [f"- {escape(word)}: {escape(value)}" for word, value in block.facts.items()]
    if isinstance(block, FigureContent):
        caption = escape(block.caption)
        return [f"![{caption}](figures/{block.drawing.name}.png)", "", caption]
    return [f"**{escape(block.table.caption)}**", "", *table_lines(block.text)]


def table_lines(table: TextTable) -> list[str]:
    """Return the lines of a table, the best cells in bold."""
    rows = [
        [f"**{escape(cell)}**" if (r, c) in table.bold else escape(cell) for c, cell in enumerate(row)]
        for r, row in enumerate(table.rows)
    ]
    return markdown_table([escape(name) for name in table.header], rows)


def escape(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, no line of its own."""
    return re.sub(r"([\\`*_\[\]<>|#&~])", r"\\\1", " ".join(text.split()))
