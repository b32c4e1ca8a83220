"""The house style of figures: one theme, and one look for each method, the same in every figure.

Colours are seaborn's `colorblind` palette without its two lightest. A look is a colour, a line and a marker, so that
thirty methods can be distinguished, also in grey. Pages replace the colours below by their own variables and so draw
the same figure on dark and on light paper.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.errors import unknown_name
from bench.text_tables import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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

MOST_NAMED = 24  # characters of a name in a figure; the data table has it whole


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


def short(name: str) -> str:
    """Return a name for a figure: one line that cannot push everything else aside, without mathematics in it."""
    return cut(name.replace("$", r"\$"), MOST_NAMED)


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style inside of it; matplotlib's own settings are as before after it."""
    import matplotlib
    import seaborn
    from cycler import cycler

    settings = {
        **seaborn.axes_style("whitegrid"),
        **seaborn.plotting_context("paper"),
        "font.family": ["sans-serif"],
        "font.size": 9,
        "axes.titlesize": 9.5,
        "axes.labelsize": 9,
        **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 8),
        "legend.frameon": False,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), INK),
        **dict.fromkeys(("xtick.color", "ytick.color"), SOFT),
        **dict.fromkeys(("axes.edgecolor", "grid.color"), GRID),
        "grid.linewidth": 0.6,
        "axes.linewidth": 0.8,
        "axes.facecolor": "none",
        **dict.fromkeys(("figure.facecolor", "savefig.facecolor"), PAPER),
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
        "axes.prop_cycle": cycler(color=COLOURS),
        "patch.edgecolor": "none",
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


def plain_logarithmic(axes: "Axes", x: bool = False, y: bool = False) -> None:
    """Make axes logarithmic, with plain numbers; at 1, 2 and 5 times the powers of ten where there are few of those."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for wanted, scale, axis in ((x, axes.set_xscale, axes.xaxis), (y, axes.set_yscale, axes.yaxis)):
        if wanted:
            scale("log")
            low, high = axis.get_view_interval()
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
            axis.set_minor_formatter(NullFormatter())


def legend(figure: "Figure", methods: Sequence[str], *, points: bool = False) -> None:
    """Put one legend of all methods below a figure."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], **{**(own.of_points(4) if points else {}), **own.of_line()}) for own in map(look, methods)]
    columns = min(len(methods), max(2, int(figure.get_figwidth() // 1.5)))
    figure.legend(lines, [short(m) for m in methods], loc="outside lower center", ncols=columns, handlelength=2.6)
