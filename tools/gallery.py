"""Takes the pictures of docs/gallery, one of every section of a report, and the README's picture.

    python -m tools.gallery docs/gallery docs/report.png

The results are those in docs/gallery/results.tar.xz. Pages are opened in Chromium (`CHROMIUM` names another program).
"""

import argparse
import io
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from bench.api import Report, Section, UserError
from bench.plugins.describe import paragraphs
from bench.plugins.registry import Registry
from bench.report.write import write_report
from bench.store.results import StoredResults
from bench.store.store import Store
from tools.gallery_results import SUITES, unpacked
from tools.pages import built_in

if TYPE_CHECKING:
    from playwright.sync_api import Page

README_SUITE, README_FIGURE = "gallery", "gallery-intervals-toy"  # where methods differ at first glance
WIDTH, MOST_HEIGHT, MARGIN = 1240, 1000, 16  # of a page and of a picture, in pixels
LEAST_HEIGHT = 500  # of a picture: a section whose second block is long shows that one, too
# The list of sections takes no room, and the page is as wide as its window.
ALONE = """() => {
  document.querySelector(".layout > nav").style.display = "none";
  document.querySelector(".layout").style.cssText = "max-width: none; grid-template-columns: minmax(0, 1fr)";
}"""
# By how much a section's tables are too wide. Where all its blocks are closed, the first one is opened.
TOO_WIDE = """(section) => {
  if (!section.querySelector("figure, table:not(details table)")) {
    section.querySelectorAll("details").forEach((one, number) => { one.open = one.open || number === 0; });
  }
  return Math.max(0, ...Array.from(section.querySelectorAll(".scroll"), (one) => one.scrollWidth - one.clientWidth));
}"""
BLOCKS = """(section) => {
  const box = section.getBoundingClientRect();
  const bottoms = Array.from(section.children, (one) => one.getBoundingClientRect().bottom - box.top);
  return { x: box.x, y: box.y + scrollY, width: box.width, bottoms: bottoms };
}"""
COLOURS, EXACT = 40, 12  # of a palette, and how many of them are the most frequent ones of the picture as they are
HEAD = """# Gallery

One picture of every section of a report. `make pictures` takes them from the results in
[results.tar.xz](results.tar.xz), which these commands made (`make gallery-results`, about a quarter of an hour on two
cores):

```console
{commands}
```

"""


@dataclass(frozen=True)
class Shown:
    """A section of the gallery: the plug-in that writes it, what it is, and the suite that it is shown of."""

    plugin: str
    title: str
    line: str
    suite: str  # '' for a section about all suites together


def shown_sections(store: Store, registry: Registry) -> list[Shown]:
    """Return the sections that the results have, in the order of a report."""
    plugins = {name: report for name, (_, report) in built_in(registry, "report").items()}
    results = [StoredResults(store, suite) for suite in SUITES]
    found = []
    for name, report in sorted(plugins.items(), key=lambda item: item[1].order):
        place = _first_section(report, results)
        if place is not None:
            section, suite = place
            found.append(Shown(name, section.title, section_line(report), suite))
    return found


def _first_section(report: Report, results: Sequence[StoredResults]) -> tuple[Section, str] | None:
    for one in results:
        if (section := report.section(one)) is not None:
            return section, one.suite
    section = report.overall(results)
    return None if section is None else (section, "")


def section_line(report: Report) -> str:
    """Return the first sentence of what the plug-in says of itself."""
    first = paragraphs(type(report).__doc__ or "")[0].text
    return " ".join(first.split()).partition(". ")[0].rstrip(".") + "."


def readme(sections: Sequence[Shown], commands: str) -> str:
    """Return the page of the gallery."""
    parts = [HEAD.format(commands=commands)]
    for one in sections:
        suite = f"Suite `{one.suite}`" if one.suite else "All suites"
        parts.append(f"## {one.title}\n\n{one.line} {suite}.\n\n![{one.title}]({one.plugin}.png)\n")
    return "\n".join(parts)


def trimmed(picture: Image.Image) -> Image.Image:
    """Return a picture without its empty right side: what is left is larger where pages scale it to their width."""
    pixels = np.asarray(picture)
    marked = (pixels != pixels[-1, -1]).any(axis=2)
    columns = np.flatnonzero(marked.sum(axis=0) > 3)  # a few lines across the page are no content
    width = picture.width if not len(columns) else min(picture.width, int(columns[-1]) + 1 + MARGIN)
    return picture.crop((0, 0, width, picture.height))


def compressed(png: bytes) -> bytes:
    """Return a picture with a palette, a third as large; its text stays sharp and its grid lines grey."""
    picture = trimmed(Image.open(io.BytesIO(png)).convert("RGB"))
    red, green, blue = np.moveaxis(np.asarray(picture, dtype=np.int64), -1, 0)
    packed, places, counts = np.unique((red << 16) + (green << 8) + blue, return_inverse=True, return_counts=True)
    colours = np.stack([packed >> 16, packed >> 8 & 255, packed & 255], axis=-1)
    frequent = colours[np.argsort(-counts, kind="stable")[:EXACT]]
    spread = picture.quantize(COLOURS - len(frequent), Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = np.concatenate([frequent, np.reshape(spread, (-1, 3))])
    nearest = np.square(colours[:, None] - palette).sum(axis=-1).argmin(axis=-1)  # Pillow's own choice is approximate
    small = Image.fromarray(nearest[places].reshape(red.shape).astype(np.uint8), "P")
    small.putpalette(palette.astype(np.uint8).tobytes())
    content = io.BytesIO()
    small.save(content, "PNG", optimize=True)
    return content.getvalue()


@contextmanager
def opened(width: int, height: int) -> "Iterator[Page]":
    """Yield an empty page of a browser."""
    from playwright.sync_api import sync_playwright

    program = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    if program is None:
        raise UserError("no Chromium on the path: install it (Debian: apt-get install chromium) or name it in CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        browser.close()


def picture_of(page: "Page", title: str) -> bytes:
    """Return a section of the page, from its heading to the end of a block."""
    section = page.locator("section", has=page.get_by_role("heading", name=title, exact=True)).first
    if section.count() == 0:
        raise UserError(f"the page has no section {title!r}")
    page.set_viewport_size({"width": WIDTH, "height": MOST_HEIGHT})
    page.set_viewport_size({"width": WIDTH + section.evaluate(TOO_WIDE), "height": MOST_HEIGHT})
    box = section.evaluate(BLOCKS)
    clip = {
        "x": box["x"] - MARGIN,
        "y": box["y"],
        "width": box["width"] + 2 * MARGIN,
        "height": whole_blocks(box["bottoms"]) + MARGIN,
    }
    return page.screenshot(full_page=True, clip=clip)  # type: ignore[arg-type]  # as its fields are


def whole_blocks(bottoms: Sequence[float]) -> float:
    """Return the height of a picture that cuts no block: as many as fit, and one more where they are few."""
    fitting = max((bottom for bottom in bottoms if bottom <= MOST_HEIGHT), default=0.0)
    return fitting if fitting >= LEAST_HEIGHT else min((b for b in bottoms if b > fitting), default=fitting)


def take_pictures(folder: Path, front: Path) -> list[Path]:
    """Write all pictures and the page of the gallery; return the files."""
    registry, files = Registry(), []
    commands = (folder / "commands.txt").read_text("utf-8").strip()
    with unpacked(folder / "results.tar.xz") as store, tempfile.TemporaryDirectory() as pages:
        sections = shown_sections(store, registry)
        with opened(WIDTH, MOST_HEIGHT) as page:
            for suite in dict.fromkeys(one.suite for one in sections):
                write_report(store, registry, Path(pages) / (suite or "all"), [suite] if suite else SUITES)
                page.goto((Path(pages) / (suite or "all") / "index.html").as_uri())
                page.evaluate(ALONE)
                for one in sections:
                    if one.suite == suite:
                        files.append(folder / f"{one.plugin}.png")
                        files[-1].write_bytes(compressed(picture_of(page, one.title)))
        front.write_bytes(compressed((Path(pages) / README_SUITE / "figures" / f"{README_FIGURE}.png").read_bytes()))
    (folder / "README.md").write_text(readme(sections, commands), "utf-8")
    return [*files, front, folder / "README.md"]


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path, help="of the gallery")
    arguments.add_argument("front", type=Path, help="the README's picture")
    given = arguments.parse_args()
    for written in take_pictures(given.folder, given.front):
        print(written)
