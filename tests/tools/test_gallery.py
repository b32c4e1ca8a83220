"""The gallery has one picture of every section, its list matches, and it is small."""

import io
import re
from pathlib import Path

import numpy as np
from PIL import Image

from bench.plugins.registry import Registry
from bench.store.bank import kept_files, read_predictions
from tools.gallery import LEAST_HEIGHT, MARGIN, MOST_HEIGHT, Shown, compressed, readme, section_line, whole_blocks
from tools.gallery_results import ARRAYS, SUITES, WITH_PREDICTIONS, unpacked
from tools.pages import built_in

DOCS = Path(__file__).parents[2] / "docs"
GALLERY = DOCS / "gallery"
PAGE = (GALLERY / "README.md").read_text("utf-8")


def test_every_section_has_one_picture_and_one_line() -> None:
    shown = re.findall(r"^!\[[^]]+\]\(([\w-]+)\.png\)$", PAGE, re.MULTILINE)
    plugins = built_in(Registry(), "report")
    assert sorted(shown) == sorted(plugins), "run 'make pictures'"
    assert sorted(path.stem for path in GALLERY.glob("*.png")) == sorted(shown)
    for name in shown:
        _, report = plugins[name]
        assert f"\n{section_line(report)} " in PAGE, "run 'make pictures'"


def test_the_page_is_what_its_sections_and_commands_make() -> None:
    found = re.findall(r"^## (.*)\n\n(.*?) (?:Suite `(.*)`|All suites)\.\n\n!\[.*\]\((.*)\.png\)$", PAGE, re.MULTILINE)
    sections = [Shown(plugin, title, line, suite) for title, line, suite, plugin in found]
    assert {one.suite for one in sections} <= {"", *SUITES}
    assert readme(sections, (GALLERY / "commands.txt").read_text("utf-8").strip()) == PAGE


def test_the_gallery_is_small() -> None:
    files = [path for path in GALLERY.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in [*files, DOCS / "report.png"]) < 1.6e6


def test_the_results_are_those_of_the_commands() -> None:
    commands = (GALLERY / "commands.txt").read_text("utf-8")
    ran = {Path(name).stem for name in re.findall(r"^uqbench run (\S+)", commands, re.MULTILINE)}
    assert ran == set(SUITES)
    with unpacked(GALLERY / "results.tar.xz") as store:
        assert set(store.suites()) == ran
        assert store.drivers() == []
        assert set(kept_files(store)) == {cell["key"] for cell in store.cells(WITH_PREDICTIONS)}
        assert all(read_predictions(store, str(row["file"])) for row in kept_files(store).values())
        with_arrays = [cell for cell in store.cells("gallery") if store.load_arrays(cell["key"])]
    assert {cell["seed"] for cell in with_arrays} == set(range(ARRAYS["gallery"]))


def test_a_compressed_picture_keeps_its_content_and_its_colours() -> None:
    pixels = np.full((60, 80, 3), 255, dtype=np.uint8)
    pixels[20:25, :60] = (1, 115, 178)
    pixels[0] = 0  # a line across the page
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    small = Image.open(io.BytesIO(compressed(content.getvalue())))
    assert small.mode == "P"
    assert np.array_equal(np.asarray(small.convert("RGB")), pixels[:, : 60 + MARGIN])  # without the empty side


def test_a_picture_ends_where_a_block_does() -> None:
    for bottoms in ([40, 300, 900, 1200], [40, 300, 1400, 1500], [40, 200], [40, 1000], [40, 600, 990, 1010]):
        height = whole_blocks(bottoms)
        assert height in bottoms
        assert height == bottoms[-1] or height >= LEAST_HEIGHT
        assert height <= MOST_HEIGHT or max(b for b in bottoms if b < height) < LEAST_HEIGHT
