"""Points of figures that say their values to the pointer."""

from xml.etree import ElementTree

from matplotlib.figure import Figure

from bench.api import style
from bench.report.figures import draw_figure


def points(texts: list[str]) -> Figure:
    figure = Figure()
    axis = figure.subplots()
    axis.set_xlim(0, 4)
    (line,) = axis.plot([1, 2, 3], [1, 2, 3], "o")
    style.hover(line, texts)
    return figure


def titles(inline: str) -> list[str]:
    return [str(title.text) for use in ElementTree.fromstring(inline).iter("use") for title in use.iter("title")]


def test_each_point_has_its_own_words_as_text() -> None:
    texts = ["a: 1", "<b> & 'c'", "d\x01e"]
    image = draw_figure(points(texts), "name")
    assert titles(image.inline) == ["a: 1", "<b> & 'c'", "de"]
    assert b"&lt;b&gt;" not in image.svg  # the file beside the page has a plain identity instead
    assert b'id="points-0"' in image.svg


def test_words_that_do_not_fit_the_points_are_left_out() -> None:
    assert titles(draw_figure(points(["one", "two"]), "name").inline) == []
