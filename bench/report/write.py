"""Writing a report: the sections of the report plug-ins as one self-contained page, as Markdown and as files."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from bench.api import Report, Section, Text, style
from bench.errors import UserError, unknown_name
from bench.plugins.describe import declared_look
from bench.plugins.faults import explain
from bench.plugins.registry import Registry
from bench.report.content import FigureContent, FileNames, Part, SectionContent, TableContent, section_content
from bench.report.markdown import markdown
from bench.report.page import page
from bench.report.tables import csv_text, latex
from bench.store.results import StoredResults
from bench.store.store import Store


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
    names = FileNames()
    with style.declared_looks(partial(declared_look, registry)):
        parts = [_part("", "All suites", plugins, lambda plugin: plugin.overall(results), names)]
        for one in results:
            parts.append(_part(one.suite, f"{one.suite}: {one.title}", plugins, _section_of(one), names, broken))
    try:
        return _write(parts, out, store.address)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror or error}") from error


def _section_of(results: StoredResults) -> Callable[[Report], Section | None]:
    return lambda plugin: plugin.section(results)


def _plugins(registry: Registry) -> tuple[list[tuple[str, Report]], list[SectionContent]]:
    plugins: list[tuple[str, Report]] = []
    broken: list[SectionContent] = []
    for name in registry.plugins("report"):
        try:
            plugins.append((name, registry.make("report", name, {})))
        except UserError as error:
            broken.append(SectionContent(name, [Text(str(error))]))
    return sorted(plugins, key=lambda pair: pair[1].order), broken  # stable: then by name


def _part(
    suite: str,
    title: str,
    plugins: Iterable[tuple[str, Report]],
    section_of: Callable[[Report], Section | None],
    names: FileNames,
    broken: Iterable[SectionContent] = (),
) -> Part:
    sections: list[SectionContent] = []
    failed = list(broken)
    for name, plugin in plugins:
        try:
            section = section_of(plugin)
            if section is not None:
                sections.append(section_content(section, suite, names))
        except Exception as error:  # one broken section must not cost the others
            failed.append(SectionContent(name, [Text(f"This section failed: {explain(error)}")]))
    return Part(suite, title, [*sections, *failed])


def _write(parts: Sequence[Part], out: Path, store: str) -> list[Path]:
    paths = [out / "index.html", out / "report.md"]
    for folder in ("figures", "tables"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for block in (block for part in parts for section in part.sections for block in section.blocks):
        if isinstance(block, FigureContent):
            paths += _figure_files(block, out / "figures")
        elif isinstance(block, TableContent):
            paths += _table_files(block, out / "tables")
    paths[0].write_text(page(parts, store), "utf-8")
    paths[1].write_text(markdown(parts), "utf-8")
    return paths


def _figure_files(content: FigureContent, folder: Path) -> list[Path]:
    figure, image = content.figure, content.image
    paths = [folder / f"{image.name}.png", folder / f"{image.name}.svg"]
    paths[0].write_bytes(image.png)
    paths[1].write_bytes(image.svg)
    if figure.data is not None:
        paths.append(folder / f"{image.name}.csv")
        paths[-1].write_text(csv_text(figure.data), "utf-8")
    return paths


def _table_files(content: TableContent, folder: Path) -> list[Path]:
    table = content.table
    paths = [folder / f"{content.name}.csv", folder / f"{content.name}.tex"]
    paths[0].write_text(csv_text(table.data if table.numbers is None else table.numbers), "utf-8")
    paths[1].write_text(latex(content.text, table.caption, content.name), "utf-8")
    return paths
