"""The house style of figures: one theme, and one look for each method, the same in every figure.

Colours are seaborn's `colorblind` palette without its two lightest. A look is a colour, a line and a marker, so that
thirty methods can be distinguished, also in grey. Pages replace the colours below by their own variables and so draw
the same figure on dark and on light paper.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.errors import unknown_name
from bench.text_tables import cut

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

PALETTE = {
    **{"blue": "#0173b2", "orange": "#de8f05", "green": "#029e73", "red": "#d55e00"},
    **{"pink": "#cc78bc", "brown": "#ca9161", "grey": "#949494", "sky": "#56b4e9"},
}
COLOURS = tuple(PALETTE.values())
LINES: dict[str, Any] = {"-": "-", "--": (0, (4, 1.5)), ":": (0, (1, 1.2)), "-.": (0, (6, 1.5, 1, 1.5))}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")

INK, SOFT, GRID, PAPER = "#1f2329", "#57606b", "#d8dee5", "#ffffff"
# One hue for "better" and one for "worse" that no kind of colour blindness mixes up.
BETTER, WORSE, EVEN = COLOURS[0], COLOURS[3], "#8b949f"

HOVER = "\N{INFORMATION SEPARATOR ONE}"  # before each text for the pointer in the identity of an artist
MOST_NAMED = 26  # characters of a name in a figure; the data table has it whole
# Of legends and labels, at their size of 8 points.
INCHES_PER_LETTER, INCHES_OF_HANDLE, INCHES_OF_LINE = 0.066, 0.62, 0.165


@dataclass(frozen=True)
class Look:
    """How a method is drawn: names of a colour, a line and a marker, as in `Look("blue", "--", "o")`."""

    colour: str  # in PALETTE
    line: str = "-"  # in LINES
    marker: str = "o"  # in MARKERS
    filled: bool = True  # open: a look that no plug-in declares

    def __post_init__(self) -> None:
        for kind, value, known in (
            ("colour", self.colour, PALETTE),
            ("line", self.line, LINES),
            ("marker", self.marker, MARKERS),
        ):
            if value not in known:
                raise ValueError(str(unknown_name(kind, value, known, "Look")))

    @property
    def hex(self) -> str:
        """The colour as matplotlib takes it."""
        return PALETTE[self.colour]

    def of_line(self) -> dict[str, Any]:
        """Return the arguments of `Axes.plot` for a curve without markers."""
        return {"color": self.hex, "linestyle": LINES[self.line], "linewidth": 1.6}

    def of_points(self, size: float = 5.5) -> dict[str, Any]:
        """Return the arguments of `Axes.plot` for the markers."""
        face = self.hex if self.filled else PAPER
        return {"color": self.hex, "marker": self.marker, "markerfacecolor": face, "markersize": size}

    def of_band(self, alpha: float = 0.15) -> dict[str, Any]:
        """Return the arguments of `Axes.fill_between` for an interval around a curve."""
        return {"color": self.hex, "alpha": alpha, "linewidth": 0}


Declared = Callable[[str], Look | None]
_declared: ContextVar[Declared] = ContextVar("declared", default=lambda method: None)


@contextmanager
def declared_looks(declared: Declared) -> Iterator[None]:
    """Use the looks that plug-ins declare inside the block: `declared` returns that of a method, or None."""
    token = _declared.set(declared)
    try:
        yield
    finally:
        _declared.reset(token)


def look(method: str) -> Look:
    """Return how a method is drawn: as its plug-in declares, else a look that depends on its name and nothing else."""
    if (own := _declared.get()(method)) is not None:
        return own
    number = int.from_bytes(hashlib.blake2b(method.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    number, colour = divmod(number, len(PALETTE))
    number, marker = divmod(number, len(MARKERS))
    return Look(list(PALETTE)[colour], list(LINES)[number % len(LINES)], MARKERS[marker], filled=False)


_titles: ContextVar[Callable[[str], str]] = ContextVar("titles", default=str)


@contextmanager
def declared_titles(titles: Callable[[str], str]) -> Iterator[None]:
    """Print names with the titles that plug-ins declare inside the block: `titles` returns that of a name."""
    token = _titles.set(titles)
    try:
        yield
    finally:
        _titles.reset(token)


def title(name: str) -> str:
    """Return how figures and their captions print the name of a method, a dataset or a metric."""
    return _titles.get()(name)


def hover(artist: "Artist", texts: Sequence[str]) -> None:
    """Give each point of a line or a scatter the words that a page shows when the pointer is over it."""
    artist.set_gid(HOVER + HOVER.join(texts))


def short(name: str) -> str:
    """Return a title for a figure: one line that cannot push everything else aside, without mathematics in it."""
    return cut(title(name).replace("$", r"\$"), MOST_NAMED)


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style inside of it; matplotlib's own settings are as before after it."""
    import matplotlib
    from cycler import cycler

    settings: Any = {
        "font.family": ["sans-serif"],
        "font.sans-serif": ["Arial", "DejaVu Sans", "Liberation Sans", "Bitstream Vera Sans", "sans-serif"],
        "font.size": 9,
        "axes.titlesize": 9.5,
        "axes.labelsize": 9,
        **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 8),
        "legend.title_fontsize": 9.6,
        "legend.frameon": False,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), INK),
        **dict.fromkeys(("xtick.color", "ytick.color"), SOFT),
        **dict.fromkeys(("axes.edgecolor", "grid.color"), GRID),
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.linestyle": "-",
        "grid.linewidth": 0.6,
        "axes.linewidth": 0.8,
        **dict.fromkeys(("xtick.bottom", "xtick.top", "ytick.left", "ytick.right"), False),
        **dict.fromkeys(("xtick.direction", "ytick.direction"), "out"),
        **dict.fromkeys(("xtick.major.width", "ytick.major.width"), 1.0),
        **dict.fromkeys(("xtick.minor.width", "ytick.minor.width"), 0.8),
        **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 4.8),
        **dict.fromkeys(("xtick.minor.size", "ytick.minor.size"), 3.2),
        "lines.linewidth": 1.2,
        "lines.markersize": 4.8,
        "lines.solid_capstyle": "round",
        "axes.facecolor": "none",
        **dict.fromkeys(("figure.facecolor", "savefig.facecolor"), PAPER),
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        **dict.fromkeys(("axes.spines.left", "axes.spines.bottom"), True),
        **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
        "axes.prop_cycle": cycler(color=COLOURS),
        "patch.edgecolor": "none",
        "patch.force_edgecolor": True,
        "patch.linewidth": 0.8,
    }
    with matplotlib.rc_context(settings):
        yield


def panels(
    count: int, *, width: float = 3.4, height: float = 2.6, most: int = 3, **shared: Any
) -> tuple["Figure", "list[Axes]"]:
    """Return a figure of so many panels, at most `most` beside each other; it is not known to pyplot."""
    from matplotlib.figure import Figure

    columns = 2 if count == 4 and most == 3 else min(most, max(count, 1))
    rows = math.ceil(max(count, 1) / columns)
    figure = Figure(figsize=(width * columns + 0.3, height * rows + 0.4), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, **shared).flatten())
    for place, axis in enumerate(axes[count:], start=count):
        axis.set_axis_off()
        if place >= columns:  # with a shared axis, the panel above it is the last of its column and has the numbers
            axes[place - columns].tick_params(labelbottom=True)
    return figure, axes[:count]


def dots(axes: "Axes", x: "ArrayLike", y: "ArrayLike", size: float, *, label: str, **drawn: Any) -> None:
    """Draw many equal points as one path of short strokes with round ends, a fifth of the bytes of as many markers."""
    import numpy as np

    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    # Not of length 0, which PNG files leave out.
    ends, gap = x + 1e-4 * (np.ptp(x) if len(x) else 0.0) + 1e-9, np.full(len(x), np.nan)
    strokes = np.stack([x, ends, gap], axis=1).ravel(), np.stack([y, y, gap], axis=1).ravel()
    (line,) = axes.plot(*strokes, linewidth=size, solid_capstyle="round", **drawn)
    line.get_path().should_simplify = False  # simpler paths have no short strokes
    line.set_snap(False)  # nor have those that begin and end in the middle of a pixel
    axes.plot([], [], "o", markersize=size, label=label, **drawn)  # for the legend


def plain_logarithmic(axes: "Axes", x: bool = False, y: bool = False) -> None:
    """Make axes logarithmic, with plain numbers; between the powers of ten there are more where those are few.

    Call it when everything is drawn: the numbers suit the range of the data.
    """
    from matplotlib.ticker import FuncFormatter, Locator, LogLocator, MaxNLocator, NullFormatter

    for wanted, scale, axis in ((x, axes.set_xscale, axes.xaxis), (y, axes.set_yscale, axes.yaxis)):
        if wanted:
            scale("log")
            low, high = axis.get_view_interval()
            between = (1.0, 2.0, 5.0) if high < 100 * low else (1.0, 3.0) if high < 10_000 * low else (1.0,)
            narrow = high < 5 * low  # one of 1, 2, 5 or none would be in it
            locator: Locator = MaxNLocator(4, steps=[1, 2, 5, 10]) if narrow else LogLocator(subs=between)
            axis.set_major_locator(locator)
            axis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))
            axis.set_minor_formatter(NullFormatter())


def plain_number(value: float) -> str:
    """Return a number without a power of ten, as far as a person reads it at a glance: 20,000 or 0.0005."""
    return f"{value:.9f}".rstrip("0") if 1e-9 < abs(value) < 1e-4 else f"{value:,.10g}"


def legend(figure: "Figure", methods: Sequence[str], *, points: bool = False) -> None:
    """Put one legend of all methods below a figure, which grows by its height."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], **{**(own.of_points(4) if points else {}), **own.of_line()}) for own in map(look, methods)]
    names = [short(method) for method in methods]
    entry = INCHES_OF_HANDLE + INCHES_PER_LETTER * max(map(len, names), default=0)
    columns = max(1, min(len(names), int(figure.get_figwidth() // entry)))
    figure.set_figheight(figure.get_figheight() + INCHES_OF_LINE * (math.ceil(len(names) / columns) - 1))
    figure.legend(lines, names, loc="outside lower center", ncols=columns, handlelength=2.6)


def label_ends(axes: "Axes", ends: Mapping[str, tuple[float, float]], height: float) -> None:
    """Write the names of methods to the right of their curves' ends (x, y), moved apart where they would overlap.

    Call it when the limits and scales of the axes are final; `height` is that of the axes, in inches.
    """
    to_share = axes.transScale + axes.transLimits
    at = {method: float(to_share.transform(end)[1]) for method, end in ends.items()}
    order = sorted((method for method, share in at.items() if math.isfinite(share)), key=lambda method: at[method])
    places = spread_out([at[method] for method in order], INCHES_OF_LINE / height)
    # From the end of the curve to the middle of the label's left side.
    pointer = {"arrowstyle": "-", "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)}
    for method, place in zip(order, places, strict=True):
        axes.annotate(
            short(method),
            ends[method],
            (1.07, place),
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            annotation_clip=False,
            arrowprops={**pointer, "color": look(method).hex},
        )


def spread_out(places: Sequence[float], gap: float) -> list[float]:
    """Return ascending places from 0 to 1 moved so far that they are `gap` apart; beyond 1 where they do not fit."""
    # Blocks of places that touch each other stand around the mean of what is wanted, as in isotonic regression.
    blocks: list[list[float]] = []  # each: the sum of the wanted places of its first member, and the number of members
    for number, place in enumerate(places):
        blocks.append([place - number * gap, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    firsts = [total / count for total, count in blocks for _ in range(int(count))]
    most = max(0.0, 1.0 - (len(places) - 1) * gap)
    return [min(max(first, 0.0), most) + number * gap for number, first in enumerate(firsts)]
