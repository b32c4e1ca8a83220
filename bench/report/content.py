"""The content of a report: sections with their cells as text, figures drawn and files named, once for all outputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from bench.api import Facts, Figure, Section, Table, Text
from bench.report.drawings import Drawing, Drawings
from bench.report.figures import Image
from bench.report.latex import latex
from bench.report.tables import TextTable, csv_text, text_table
from bench.report.titles import Titles
from bench.web.names import readable_name

MOST_ROWS = 120  # of a figure's numbers on the page; the CSV file has all


@dataclass(frozen=True)
class TableContent:
    """A table, its cells as text, and its files."""

    table: Table
    text: TextTable
    name: str  # of its files, without the suffix
    csv: str
    latex: str


@dataclass(frozen=True)
class FigureContent:
    """A figure as images, and the first rows of its numbers; the figure itself is let go, with all that it holds."""

    caption: str
    drawing: Drawing
    numbers: TextTable
    rows: int  # of all its numbers
    csv: str | None  # the file with all of them

    @property
    def image(self) -> Image:
        """Return the figure as images; waits until it is drawn, and raises what went wrong."""
        return self.drawing.finish()


@dataclass(frozen=True)
class SectionContent:
    """One section, ready to be written."""

    title: str
    blocks: Sequence[Text | Facts | TableContent | FigureContent]
    plugin: str = ""  # the report that it comes from

    def finish_figures(self) -> None:
        """Wait until all figures are drawn; raises what went wrong with one of them."""
        for block in self.blocks:
            if isinstance(block, FigureContent):
                block.drawing.finish()


@dataclass(frozen=True)
class Part:
    """Sections under one heading: those of a suite, or those about all suites."""

    suite: str  # '' for all suites
    title: str
    sections: Sequence[SectionContent]


@dataclass
class FileNames:
    """Names of files that are taken."""

    taken: set[str] = field(default_factory=set)

    def free(self, wanted: str) -> str:
        """Return the name, with a number where another has it already."""
        name, number = wanted, 2
        while name.lower() in self.taken:  # some file systems do not tell cases apart
            name, number = f"{wanted}-{number}", number + 1
        self.taken.add(name.lower())
        return name


def section_content(
    section: Section, suite: str, names: FileNames, titles: Titles, drawings: Drawings, pdf: bool = False
) -> SectionContent:
    """Have the figures of a section drawn, format its tables; raises where a table cannot be written in every form."""
    prefix = f"{readable_name(suite)}-" if suite else ""
    blocks: list[Text | Facts | TableContent | FigureContent] = []
    for block in section.blocks:
        if isinstance(block, Table):
            text = text_table(block.data, block.bold)
            name = names.free(prefix + readable_name(block.name or f"{section.title} {block.caption}"))
            csv = csv_text(block.data if block.numbers is None else block.numbers)
            paper = latex(text, titles.in_words(block.paper_caption or block.caption), name, titles)
            blocks.append(TableContent(block, text, name, csv, paper))
        elif isinstance(block, Figure):
            drawing = drawings.add(block.figure, names.free(prefix + readable_name(block.name)), pdf)
            data = block.data if block.data is not None else pd.DataFrame()
            csv_or_none = None if block.data is None else csv_text(block.data)
            numbers = text_table(data.head(MOST_ROWS))
            blocks.append(FigureContent(block.caption, drawing, numbers, len(data), csv_or_none))
        elif isinstance(block, Text | Facts):
            blocks.append(block)
        else:
            raise TypeError(f"a block is a Text, Facts, a Table or a Figure, got {type(block).__name__}")
    return SectionContent(section.title, blocks)
