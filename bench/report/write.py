"""Writing a report: the sections of the report plug-ins as one self-contained page, as Markdown and as files."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.api import Report, Section, Text, style
from bench.errors import UserError, raise_if_stop, unknown_name
from bench.machine.files import write_output
from bench.plugins.describe import declared_look
from bench.plugins.faults import explain
from bench.plugins.registry import Registry
from bench.report.content import FigureContent, FileNames, Part, SectionContent, TableContent, section_content
from bench.report.drawings import Drawings
from bench.report.markdown import markdown, section_lines
from bench.report.page import page
from bench.report.titles import Titles
from bench.spec.names import short_names
from bench.store.results import FrameCache, StoredResults
from bench.store.store import Store

ALL_SUITES = "All suites"
OPENING = 10  # sections with a lower order open the page


def write_report(
    store: Store, registry: Registry, out: Path, suites: Sequence[str] = (), *, pdf: bool = False
) -> list[Path]:
    """Write `index.html`, `report.md`, `figures/` and `tables/` for some suites of a store (all by default).

    `pdf`: the figures also as PDF.
    """
    known = store.suites()
    for suite in suites:
        if suite not in known:
            raise unknown_name("suite", suite, known, f"store {store.address}")
    if not known:
        raise UserError(f"store {store.address}: nothing is stored yet; run a suite first: uqbench run quick")
    frames = FrameCache()
    shown = short_names(store.datasets())
    results = [StoredResults(store, suite, frames, shown) for suite in dict.fromkeys(suites or known)]
    plugins, broken = _plugins(registry)
    titles = Titles(registry)
    looks = style.declared_looks(partial(declared_look, registry))
    with looks, style.declared_titles(titles), Drawings() as drawings:
        content_of = partial(section_content, names=FileNames(), titles=titles, drawings=drawings, pdf=pdf)
        overall = _part("", ALL_SUITES, plugins, lambda plugin: plugin.overall(results), content_of)
        parts = []
        for one in results:
            title = f"{one.suite}: {one.title}"
            parts.append(_part(one.suite, title, plugins, _section_of(one), content_of, broken))
            one.forget()  # the next suite may be as large
    return _write(_arranged(overall, parts, plugins), out, store.address)


def _arranged(overall: Part, parts: Sequence[Part], plugins: Iterable[tuple[str, Report]]) -> list[Part]:
    """Return the parts in their order: what is about all suites follows them, or the first screen of a single one."""
    opening = {name for name, plugin in plugins if plugin.order < OPENING}
    (first, behind), (own_first, own_behind) = (
        ([s for s in part.sections if s.plugin in opening], [s for s in part.sections if s.plugin not in opening])
        for part in (overall, parts[0])
    )
    if len(parts) == 1:
        return [replace(parts[0], sections=[*first, *own_first, *behind, *own_behind])]
    around = [replace(overall, sections=sections) for sections in (first, behind)]
    return [part for part in (around[0], *parts, around[1]) if part.sections or part.suite]


def _section_of(results: StoredResults) -> Callable[[Report], Section | None]:
    return lambda plugin: plugin.section(results)


def _plugins(registry: Registry) -> tuple[list[tuple[str, Report]], list[SectionContent]]:
    plugins: list[tuple[float, str, Report]] = []
    broken: list[SectionContent] = []
    for name in registry.plugins("report"):
        try:
            made = registry.make("report", name, {})
            plugins.append((float(made.order), name, made))
        except BaseException as error:  # of any type: a plug-in may compute its order
            raise_if_stop(error)
            broken.append(SectionContent(name, [Text(explain(error))], name))
    # Stable: then by name.
    return [(name, made) for _, name, made in sorted(plugins, key=lambda one: _place(one[0], one[2]))], broken


def _place(order: float, plugin: Report) -> tuple[int, float]:
    """Return where a section stands: those that open the page, then what the suite is about, then all others."""
    return (0 if order < OPENING else 1 if plugin.subject else 2), order


def _part(
    suite: str,
    title: str,
    plugins: Sequence[tuple[str, Report]],
    section_of: Callable[[Report], Section | None],
    content_of: Callable[[Section, str], SectionContent],
    broken: Iterable[SectionContent] = (),
) -> Part:
    begun: list[SectionContent] = []
    sections: list[SectionContent] = []
    failed = list(broken)
    # The last first: what opens the page takes the longest to compute, and a second core draws the others' figures.
    for name, plugin in reversed(plugins):
        try:
            section = section_of(plugin)
            if section is not None:
                begun.append(replace(content_of(section, suite), plugin=name))
        except BaseException as error:  # one broken section must not cost the others
            failed.append(_failure(name, error))
    for content in begun:
        try:
            content.finish_figures()
            section_lines(content)  # raises what would end the whole report later
            sections.append(content)
        except BaseException as error:
            failed.append(_failure(content.plugin, error))
    places = [name for name, _ in plugins]
    sections.sort(key=lambda content: places.index(content.plugin))
    return Part(suite, title, [*sections, *failed])


def _failure(plugin: str, error: BaseException) -> SectionContent:
    raise_if_stop(error)
    return SectionContent(plugin, [Text(f"This section failed: {explain(error)}")], plugin)


def _write(parts: Sequence[Part], out: Path, store: str) -> list[Path]:
    files: list[Path] = []
    for block in (block for part in parts for section in part.sections for block in section.blocks):
        if isinstance(block, FigureContent):
            files += _figure_files(block, out / "figures")
        elif isinstance(block, TableContent):
            files += _table_files(block, out / "tables")
    # Last, so that all that they refer to is there.
    pages = {"index.html": page(parts, store), "report.md": markdown(parts)}
    return [*(write_output(out / name, text) for name, text in pages.items()), *files]


def _figure_files(content: FigureContent, folder: Path) -> list[Path]:
    image = content.image
    files: dict[str, str | bytes] = {".png": image.png, ".svg": image.svg}
    if image.pdf is not None:
        files[".pdf"] = image.pdf
    if content.csv is not None:
        files[".csv"] = content.csv
    return [write_output(folder / f"{image.name}{ending}", content) for ending, content in files.items()]


def _table_files(content: TableContent, folder: Path) -> list[Path]:
    texts = {".csv": content.csv, ".tex": content.latex}
    return [write_output(folder / f"{content.name}{ending}", text) for ending, text in texts.items()]
