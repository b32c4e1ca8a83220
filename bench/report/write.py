"""Writing a report: the sections of the report plug-ins as one self-contained page, as Markdown and as files."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.api import Facts, Figure, Report, Section, Table, Text, style
from bench.errors import UserError, unknown_name
from bench.plugins.describe import declared_look
from bench.plugins.registry import Registry, in_one_line
from bench.report.figures import Image, drawn
from bench.report.tables import cells, csv_text, escaped, latex, markdown
from bench.store.results import StoredResults
from bench.store.store import Store


@dataclass(frozen=True)
class Part:
    """Some sections under one heading: those of a suite, or those about all suites."""

    name: str  # '' for all suites
    title: str
    sections: Sequence[Section]
    images: Mapping[int, Image]  # by the identity of their block
    tables: Mapping[int, str]  # names of files, the same way


@dataclass
class Names:
    """Names of files that are taken."""

    taken: set[str] = field(default_factory=set)

    def free(self, wanted: str) -> str:
        """Return the name, with a number where another has it already."""
        name, number = wanted, 2
        while name.lower() in self.taken:  # some file systems do not tell cases apart
            name, number = f"{wanted}-{number}", number + 1
        self.taken.add(name.lower())
        return name


def write_report(store: Store, registry: Registry, out: Path, suites: Sequence[str] = ()) -> list[Path]:
    """Write `index.html`, `report.md`, `figures/` and `tables/` for some suites of a store (all by default)."""
    known = store.suites()
    for suite in suites:
        if suite not in known:
            raise unknown_name("suite", suite, known, f"store {store.address}")
    if not known:
        raise UserError(f"store {store.address}: nothing is stored yet; run a suite first: uqbench run quick")
    results = [StoredResults(store, suite) for suite in dict.fromkeys(suites or known)]
    plugins, broken = _plugins(registry)
    names = Names()
    with style.declared_looks(partial(declared_look, registry)):
        parts = [_made("", "All suites", plugins, lambda plugin: plugin.overall(results), names)]
        for one in results:
            parts.append(_made(one.suite, f"{one.suite}: {one.title}", plugins, _of(one), names, broken))
    try:
        return _write(parts, out, store.address)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror or error}") from error


def _of(results: StoredResults) -> Callable[[Report], Section | None]:
    return lambda plugin: plugin.section(results)


def _plugins(registry: Registry) -> tuple[list[tuple[str, Report]], list[Section]]:
    plugins: list[tuple[str, Report]] = []
    broken: list[Section] = []
    for name in registry.plugins("report"):
        try:
            plugins.append((name, registry.make("report", name, {})))
        except UserError as error:
            broken.append(Section(name, [Text(str(error))]))
    return sorted(plugins, key=lambda pair: pair[1].order), broken  # stable: then by name


def _made(
    name: str,
    title: str,
    plugins: Iterable[tuple[str, Report]],
    make: Callable[[Report], Section | None],
    names: Names,
    broken: Iterable[Section] = (),
) -> Part:
    sections: list[Section] = []
    failed = list(broken)
    images: dict[int, Image] = {}
    tables: dict[int, str] = {}
    for plugin_name, plugin in plugins:
        try:
            section = make(plugin)
            if section is not None:
                pictures, files = _drawn(section, name, names)
                images |= pictures
                tables |= files
                sections.append(section)
        except Exception as error:  # one broken section must not cost the others
            failed.append(Section(plugin_name, [Text(f"This section failed: {in_one_line(error)}")]))
    return Part(name, title, [*sections, *failed], images, tables)


def _drawn(section: Section, suite: str, names: Names) -> tuple[dict[int, Image], dict[int, str]]:
    """Draw the figures and name the tables of a section, and so find out whether it can be written at all."""
    images, tables = {}, {}
    front = f"{file_name(suite)}-" if suite else ""
    for block in section.blocks:
        if isinstance(block, Table):
            cells(block)
            tables[id(block)] = names.free(front + file_name(block.name or f"{section.title} {block.caption}"))
        elif isinstance(block, Figure):
            images[id(block)] = drawn(block.figure, names.free(front + file_name(block.name)))
        elif not isinstance(block, Text | Facts):
            raise TypeError(f"a block is a Text, Facts, a Table or a Figure, got {type(block).__name__}")
    return images, tables


def _write(parts: Sequence[Part], out: Path, store: str) -> list[Path]:
    from bench.report.page import page

    written = [out / "index.html", out / "report.md"]
    for folder in ("figures", "tables"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for part in parts:
        for block in (block for section in part.sections for block in section.blocks):
            if isinstance(block, Figure):
                written += _figure_files(block, part.images[id(block)], out / "figures")
            elif isinstance(block, Table):
                written += _table_files(block, part.tables[id(block)], out / "tables")
    written[0].write_text(page(parts, store), "utf-8")
    written[1].write_text(_markdown(parts), "utf-8")
    return written


def _figure_files(figure: Figure, image: Image, folder: Path) -> list[Path]:
    paths = [folder / f"{image.name}.png", folder / f"{image.name}.svg"]
    paths[0].write_bytes(image.png)
    paths[1].write_bytes(image.svg)
    if figure.data is not None:
        paths.append(folder / f"{image.name}.csv")
        paths[-1].write_text(csv_text(figure.data), "utf-8")
    return paths


def _table_files(table: Table, name: str, folder: Path) -> list[Path]:
    paths = [folder / f"{name}.csv", folder / f"{name}.tex"]
    paths[0].write_text(csv_text(table.data if table.numbers is None else table.numbers), "utf-8")
    paths[1].write_text(latex(table, name), "utf-8")
    return paths


def _markdown(parts: Sequence[Part]) -> str:
    lines = ["# uqbench report", ""]
    for part in parts:
        if part.sections:
            lines += [f"## {escaped(part.title)}", ""]
        for section in part.sections:
            lines += [f"### {escaped(section.title)}", ""]
            for block in section.blocks:
                if isinstance(block, Text):
                    lines += [escaped(block.text), ""]
                elif isinstance(block, Facts):
                    lines += [*(f"- {escaped(word)}: {escaped(value)}" for word, value in block.facts.items()), ""]
                elif isinstance(block, Figure):
                    source = f"figures/{part.images[id(block)].name}.png"
                    lines += [f"![{escaped(block.caption)}]({source})", "", escaped(block.caption), ""]
                else:
                    lines += [f"**{escaped(block.caption)}**", "", *markdown(block), ""]
    return "\n".join(lines).rstrip() + "\n"


def file_name(words: str) -> str:
    """Return a name that is safe for a file and in an address, and not too long."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", words).strip("-")[:80].strip("-") or "unnamed"
