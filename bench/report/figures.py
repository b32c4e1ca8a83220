"""Figures as files, and as elements of a page in the colours of its palette."""

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from bench.api.style import COLOURS, EVEN, GRID, HOVER, INK, PAPER, SOFT
from bench.report.layout import DOTS, keep_labels, lay_out, ticks_measured_once

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colours of a figure that a page replaces by its palette (bench/web/templates/light.css).
VARIABLES = {"#000000": "--ink", INK: "--ink", SOFT: "--muted", GRID: "--line", PAPER: "--paper", EVEN: "--even"}
VARIABLES |= {colour: f"--c{number}" for number, colour in enumerate(COLOURS)}
NAMESPACE = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}href"
FONTS = re.compile(r"(font: [^;']*?px) [^;]*")
POINTS_TO_PIXELS = 96 / 72


@dataclass(frozen=True)
class Image:
    """A figure as an image."""

    name: str  # of its files, without the suffix
    png: bytes
    svg: bytes
    inline: str  # as an element of a page: its text is text, its colours are the page's
    pdf: bytes | None = None  # where it was asked for


def draw_figure(figure: "Figure", name: str, pdf: bool = False) -> Image:
    """Draw a figure as PNG and SVG, and as PDF where it is asked for: that takes longer than the two others together.

    Text stays text in the SVG, so that every script and emoji is the reader's own font. The PDF holds its fonts as
    TrueType (42), which publishers accept and a reader can search; matplotlib's usual type 3 they refuse.
    """
    import matplotlib

    png, svg, vectors = io.BytesIO(), io.BytesIO(), io.BytesIO()
    hovers = _take_hovers(figure)
    layout = {"figure.autolayout": False, "figure.constrained_layout.use": False}
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": name, "pdf.fonttype": 42, **layout}
    settings["path.simplify_threshold"] = 0.2
    with matplotlib.rc_context(settings), _unknown_letters_allowed(), ticks_measured_once(figure):
        lay_out(figure)
        figure.savefig(png, format="png", dpi=DOTS, metadata={"Software": None})
        keep_labels(figure)
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        if pdf:
            figure.savefig(vectors, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
    return Image(name, png.getvalue(), svg.getvalue(), inline(svg.getvalue(), name, hovers), vectors.getvalue() or None)


def _take_hovers(figure: "Figure") -> dict[str, list[str]]:
    """Return the texts for the pointer, by the plain identities that their artists get for the file."""
    found: dict[str, list[str]] = {}
    # Not `findobj`, which visits every part of every tick: points are lines and collections of the axes.
    points = [artist for axes in figure.axes for artist in (*axes.lines, *axes.collections)]
    for artist in (one for one in points if (one.get_gid() or "").startswith(HOVER)):
        identity = f"points-{len(found)}"
        found[identity] = str(artist.get_gid()).split(HOVER)[1:]
        artist.set_gid(identity)
    return found


@contextmanager
def _unknown_letters_allowed() -> Iterator[None]:
    """Allow letters that the font of the PNG lacks: it has a box instead, and the caption has the name."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support")
        yield


def inline(svg: bytes, name: str, hovers: Mapping[str, Sequence[str]] = MappingProxyType({})) -> str:
    """Return an SVG file of matplotlib's as an element for HTML: smaller, without namespaces, coloured by variables.

    `hovers` are the texts for the pointer of each point of the elements with these identities.
    """
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        points = list(element.iter(f"{NAMESPACE}use")) if element.get("id") in hovers else []
        texts = hovers[str(element.get("id"))] if points else []
        if len(points) == len(texts):  # a point off the canvas is not in the file
            for point, text in zip(points, texts, strict=True):
                words = "".join(letter for letter in text if letter.isprintable())
                ElementTree.SubElement(point, f"{NAMESPACE}title").text = words
    for parent in root.iter():
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("metadata", "style"):
                parent.remove(child)
    referred = set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", svg.decode("utf-8")))
    for element in root.iter():
        element.tag = element.tag.removeprefix(NAMESPACE)
        _clean(element, referred, name)
    box = root.get("viewBox", "0 0 600 400")
    width, height = (float(side) * POINTS_TO_PIXELS for side in box.split()[2:])
    root.attrib.clear()
    # The caption describes the figure, and the table below it has the numbers.
    root.attrib |= {
        "viewBox": box,
        "class": "plot tall" if height > 0.9 * width else "plot",
        "role": "img",
        "aria-labelledby": f"caption-{name}",
    }
    root.set("style", f"max-width:{width:.0f}px;min-width:min({0.72 * width:.0f}px,44rem)")
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, referred: set[str], name: str) -> None:
    target = element.attrib.pop(XLINK, None)
    if target is not None:
        element.set("href", f"#{name}-{target[1:]}" if target.startswith("#") else target)
    identity = element.attrib.pop("id", None)
    if identity in referred:
        element.set("id", f"{name}-{identity}")
    for key, value in list(element.attrib.items()):
        if key == "style":
            element.set(key, _style(value))
        elif key == "clip-path":
            element.set(key, value.replace("url(#", f"url(#{name}-"))
        elif key not in ("href", "id"):
            element.set(key, re.sub(r"(\.\d\d?)\d*", _shorter, value))


def _shorter(match: re.Match[str]) -> str:
    return match.group(1).rstrip("0").rstrip(".")


def _style(text: str) -> str:
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    text = FONTS.sub(r"\1 var(--font)", text)
    return text.replace("; ", ";").replace(": ", ":")
