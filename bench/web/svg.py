"""Small inline pictures without words: intervals on the common axis of a table, and means over versions."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape

WIDTH, HEIGHT, EDGE = 200, 18, 8  # units of the picture; EDGE is kept free for marks at the ends


@dataclass(frozen=True)
class Axis:
    """The axis of a column of intervals."""

    low: float
    high: float
    ticks: tuple[float, ...]
    clipped: bool = False  # something lies beyond the ends

    def x(self, value: float) -> float:
        """Return the position of a value in the picture; values beyond the axis are at its ends."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(EDGE + share * (WIDTH - 2 * EDGE), 1)

    def beyond(self, value: float) -> int:
        """Return -1 or 1 for a value off the left or the right end, 0 for one that is on the axis."""
        return -1 if value < self.low else 1 if value > self.high else 0


def fit_axis(intervals: Iterable[Sequence[float]], include: Sequence[float] = (), *, clip: bool = True) -> Axis | None:
    """Return an axis for (middle, low, high) triples; None where no number is finite.

    One method that failed badly would compress all others to a dot. Therefore values far out (beyond the quartiles of
    the middles by three times their distance, and wider than the typical interval) are arrows at the end, unless
    `clip` is False.
    """
    rows = np.array([[v if math.isfinite(v) else np.nan for v in row] for row in intervals], dtype=np.float64)
    rows = rows.reshape(-1, 3)
    rows = rows[np.isfinite(rows[:, 0])]
    if not len(rows):
        return None
    middle = rows[:, 0]
    width = np.where(np.isfinite(rows[:, 2] - rows[:, 1]), rows[:, 2] - rows[:, 1], 0.0)
    first, third = np.quantile(middle, [0.25, 0.75])
    reach = max(3.0 * (third - first), 1.5 * float(np.median(width)))
    fence = (first - reach, third + reach) if clip and reach > 0 else (-math.inf, math.inf)
    ends = np.concatenate([rows.ravel(), np.asarray(include, dtype=np.float64)])
    ends = ends[np.isfinite(ends)]
    inside = ends[(ends >= fence[0]) & (ends <= fence[1])]
    low, high = float(inside.min()), float(inside.max())
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        pad = abs(low) * 0.05 or 1.0
        low, high = low - pad, high + pad
    return Axis(low, high, _ticks(low, high), bool(len(inside) < len(ends)))


def _ticks(low: float, high: float) -> tuple[float, ...]:
    """Return two to five round numbers of an axis."""
    rough = (high - low) / 3.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return tuple((first + n) * step + 0.0 for n in range(6) if (first + n) * step <= high + 1e-9 * step)


def draw_interval(on: Axis, middle: float, low: float, high: float, target: float | None = None) -> Markup:
    """Return one interval as a picture without text; '' where there is no number."""
    if not math.isfinite(middle):
        return Markup("")
    parts = []
    if target is not None and not on.beyond(target):
        parts.append(f'<path class="t" d="M{on.x(target)} 0V{HEIGHT}"/>')
    y = HEIGHT // 2
    if math.isfinite(low) and math.isfinite(high) and on.beyond(low) * on.beyond(high) != 1:
        caps = "".join(f"M{on.x(end)} {y - 3}v6" for end in (low, high) if not on.beyond(end))
        parts.append(f'<path class="i" d="M{on.x(low)} {y}H{on.x(high)}{caps}"/>')
        parts += [_arrow(on, end, "i") for end in (low, high) if on.beyond(end)]
    if on.beyond(middle):
        parts.append(_arrow(on, middle, "m"))
    else:
        parts.append(f'<path class="m" d="M{on.x(middle)} {y}h.01"/>')  # a dot that keeps its shape when stretched
    return Markup(
        f'<svg class="iv" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )


def _arrow(on: Axis, value: float, kind: str) -> str:
    side, y = on.beyond(value), HEIGHT // 2
    tip = WIDTH - 1 if side > 0 else 1
    return f'<path class="a {kind}" d="M{tip - side * 6} {y - 4}L{tip} {y}L{tip - side * 6} {y + 4}Z"/>'


def draw_scale(on: Axis) -> Markup:
    """Return the axis itself, for the header of the column."""
    texts = []
    for tick in on.ticks:
        x = on.x(tick)
        anchor = "start" if x < 24 else "end" if x > WIDTH - 24 else "middle"
        texts.append(f'<text x="{x}" y="9" text-anchor="{anchor}">{tick_text(tick, on)}</text>')
    marks = "".join(f"M{on.x(tick)} 12V16" for tick in on.ticks)
    return Markup(  # numbers only
        f'<svg class="iv scale" viewBox="0 0 {WIDTH} 16" aria-hidden="true"><path class="g" d="{marks}"/>'
        f"{''.join(texts)}</svg>"
    )


def grid_background(on: Axis) -> str:
    """Return the grid lines at the ticks as a CSS background for all rows of a table."""
    places = [on.x(tick) / WIDTH * 100 for tick in on.ticks]
    return ",".join(
        f"linear-gradient(90deg,transparent {x:.2f}%,var(--grid) {x:.2f}% {x + 0.5:.2f}%,transparent {x + 0.5:.2f}%)"
        for x in places
    )


def draw_lanes(letters: Sequence[str], groups: str, most: int) -> Markup:
    """Return the bars of a method's groups, each in the lane of its group, so that bars of adjacent rows join."""
    if len(letters) > most:
        return Markup("")
    on = [n for n, letter in enumerate(letters) if letter in groups]
    bars = "".join(f"M{5 + 10 * n} 0v9" for n in on if n)
    first = '<path class="f" d="M5 0v9"/>' if 0 in on else ""
    rest = f'<path d="{bars}"/>' if bars else ""
    return Markup(
        f'<svg class="lanes" viewBox="0 0 {10 * len(letters)} 9" '
        f'preserveAspectRatio="none" aria-hidden="true">{first}{rest}</svg>'
    )


def tick_text(tick: float, on: Axis) -> str:
    """Return a tick with the digits that distinguish it from the next one."""
    if len(on.ticks) > 1:
        step = on.ticks[1] - on.ticks[0]
        places = max(0, -math.floor(math.log10(step) + 1e-9))
        if abs(tick) < 1e5:
            # Beyond five places as significant digits: 1e-07, and 0.99999996 beside 1.
            digits = max(3, math.ceil(math.log10(max(map(abs, on.ticks)) / step)) + 1)
            return f"{tick:.{places}f}" if places <= 5 else f"{tick:.{digits}g}"
    return f"{tick:.3g}"


@dataclass(frozen=True)
class LinePoint:
    """One version in a line over versions."""

    mean: float
    low: float
    high: float
    title: str = ""  # the text of its tooltip
    label: str = ""  # below the axis, of the first and the last version


@dataclass(frozen=True)
class ChangeMark:
    """A change point: the first version whose values differ, and whether they are better; None: no value is."""

    at: int
    better: bool | None


LINE_HEIGHT, LEFT, TOP = 92, 38, 14  # of a line over versions: height, space for the scale and for numbers of marks
LABEL_HEIGHT, LABEL_LENGTH = 12, 14


def draw_line(
    points: Sequence[LinePoint], marks: Sequence[ChangeMark] = (), seeds: Sequence[Sequence[float]] = ()
) -> Markup:
    """Return means and intervals over versions, the oldest at the left.

    `marks` are dashed lines with numbers, `seeds` the values of single seeds, thin lines.
    """
    beyond = [value for row in seeds for value in row if math.isfinite(value)]
    on = fit_axis([(point.mean, point.low, point.high) for point in points], beyond, clip=False)
    if on is None:
        return Markup("")
    step = (WIDTH - LEFT - EDGE) / len(points)

    def x(number: float) -> float:
        return round(LEFT + (number + 0.5) * step, 1)

    def y(value: float) -> float:
        return round(LINE_HEIGHT - 6 - (on.x(value) - EDGE) / (WIDTH - 2 * EDGE) * (LINE_HEIGHT - 6 - TOP), 1)

    ticks = on.ticks if len(on.ticks) < 3 else (on.ticks[0], on.ticks[-1])
    parts = [f'<path class="g" d="{"".join(f"M{LEFT} {y(tick)}H{WIDTH}" for tick in ticks)}"/>']
    parts += [f'<text x="{LEFT - 4}" y="{y(tick) + 3:g}">{tick_text(tick, on)}</text>' for tick in ticks]
    for row in seeds:
        path = "L".join(f"{x(n)} {y(value)}" for n, value in enumerate(row) if math.isfinite(value))
        parts.append(f'<path class="s" d="M{path}"/>' if "L" in path else "")
    for number, mark in enumerate(marks, start=1):
        kind, edge = "n" if mark.better is None else "b" if mark.better else "w", x(mark.at - 0.5)
        parts.append(f'<path class="{kind}" d="M{edge} {TOP}V{LINE_HEIGHT - 2}"/>')
        parts.append(f'<text class="{kind}" x="{edge}" y="{TOP - 4}">{number}</text>')
    places = [(x(n), y(point.mean)) for n, point in enumerate(points)]
    parts.append(f'<path class="l" d="M{"L".join(f"{a} {b}" for a, b in places)}"/>')
    for (a, b), point in zip(places, points, strict=True):
        if math.isfinite(point.low) and math.isfinite(point.high):
            parts.append(f'<path class="i" d="M{a} {y(point.low)}V{y(point.high)}"/>')
        parts.append(f'<circle cx="{a}" cy="{b}" r="3.2"><title>{escape(point.title)}</title></circle>')
    ends = [("first", points[0]), ("last", points[-1])][: len(points)]
    for kind, point in ends:
        place, text = (x(0) - 4 if kind == "first" else x(len(points) - 1) + 4), point.label[:LABEL_LENGTH]
        parts.append(f'<text class="{kind}" x="{place:g}" y="{LINE_HEIGHT + LABEL_HEIGHT - 3}">{escape(text)}</text>')
    height = LINE_HEIGHT + LABEL_HEIGHT * any(point.label for _, point in ends)
    return Markup(f'<svg class="hist" viewBox="0 0 {WIDTH} {height}" aria-hidden="true">{"".join(parts)}</svg>')
