"""Figures for papers: PDF files whose text is text in embedded fonts, where they are asked for."""

import re
import zlib

from bench.api import style
from bench.report.figures import Image, draw_figure


def drawn(pdf: bool) -> Image:
    with style.house_style():
        figure, (axis,) = style.panels(1)
        axis.plot([0, 1], [0, 1])
        axis.set_title("多 a $ & _ %", parse_math=False)
    return draw_figure(figure, "one", pdf)


def test_a_pdf_has_vectors_and_embedded_fonts_as_truetype_and_no_image() -> None:
    content = drawn(pdf=True).pdf
    assert content is not None
    assert content.startswith(b"%PDF")
    assert b"/CIDFontType2" in content
    assert b"/FontFile2" in content  # the font itself
    assert b"/Type3" not in content
    assert b"/Subtype /Image" not in content
    streams = [zlib.decompress(s) for s in re.findall(rb"FlateDecode.*?stream\r?\n(.*?)\r?\nendstream", content, re.S)]
    assert any(
        re.search(rb"\bT[jJ]\b", stream) and re.search(rb"\bl\b", stream) for stream in streams
    )  # text and lines


def test_a_pdf_is_the_same_every_time_and_made_only_where_it_is_asked_for() -> None:
    assert drawn(pdf=True).pdf == drawn(pdf=True).pdf
    assert drawn(pdf=False).pdf is None
