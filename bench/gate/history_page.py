"""The page of a metric's history: one small chart a method and dataset, drawn as SVG, nothing loaded from elsewhere."""

import html
import math
from collections.abc import Iterator, Sequence

import numpy as np

from bench.gate.history import Series, Version

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 460, 150, 62, 12, 24

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1040px; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; } figcaption { font-weight: 600; }
table { border-collapse: collapse; } td, th { padding: .2rem .7rem; text-align: left; border-bottom: 1px solid #ddd; }
.worse { color: #b3261e; } .better { color: #1a7f37; } code { font-size: .9em; } .quiet { color: #666; }
"""


def page(metric: str, series: Sequence[Series]) -> str:
    """Return the page."""
    title = f"History of {html.escape(metric)}"
    parts = [f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>']
    parts += ['<meta name="viewport" content="width=device-width, initial-scale=1">', f"<style>{STYLE}</style></head>"]
    parts += [f"<body><h1>{title}</h1>", *_changes(series)]
    for dataset in sorted({each.dataset for each in series}):
        parts.append(f'<h2>{html.escape(dataset)}</h2><div class="charts">')
        parts += [_figure(each) for each in series if each.dataset == dataset]
        parts.append("</div>")
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _changes(series: Sequence[Series]) -> Iterator[str]:
    rows = [(each, change) for each in series for change in each.changes]
    yield (
        '<p class="quiet">Means over seeds for every version of the code, in the order in which they ran; thin lines '
        "are single seeds. A dashed line marks a version from which on the values are others.</p>"
    )
    if not rows:
        yield "<p>No change points.</p>"
        return
    yield "<table><tr><th>commit</th><th></th><th>dataset</th><th>method</th><th>before</th><th>after</th></tr>"
    for each, change in rows:
        kind = "better" if change.better else "worse"
        yield (
            f"<tr><td><code>{html.escape(change.code)}</code></td><td>{html.escape(change.subject)}</td>"
            f"<td>{html.escape(each.dataset)}</td><td>{html.escape(each.method)}</td><td>{change.before:.4g}</td>"
            f'<td class="{kind}">{change.after:.4g} ({kind})</td></tr>'
        )
    yield "</table>"


def _figure(series: Series) -> str:
    finite = series.values[np.isfinite(series.values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    room = 0.08 * (high - low) or 0.5 * abs(high) or 0.5
    low, high = low - room, high + room
    count = len(series.versions)

    def x(number: int) -> float:
        return LEFT + (WIDTH - LEFT - 12) * ((number + 0.5) / count)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    marks = [f'<line x1="{LEFT}" y1="{TOP}" x2="{LEFT}" y2="{HEIGHT - BOTTOM}" stroke="#999"/>']
    for value in (low + room, high - room):
        marks.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end" font-size="11">{value:.4g}</text>')
    for row in series.values.T:
        marks.append(_line([(x(n), y(v)) for n, v in enumerate(row.tolist()) if math.isfinite(v)], "#c9d3e0", 1))
    means = [(n, float(row[np.isfinite(row)].mean())) for n, row in enumerate(series.values) if np.isfinite(row).any()]
    marks.append(_line([(x(n), y(v)) for n, v in means], "#1f4e8c", 2))
    for number, value in means:
        tip = f"{_tip(series.versions[number])}: {value:.6g}"
        marks.append(
            f'<circle cx="{x(number):.1f}" cy="{y(value):.1f}" r="3.5" fill="#1f4e8c"><title>{tip}</title></circle>'
        )
    place = {version.name: number for number, version in enumerate(series.versions)}
    for change in series.changes:
        edge, colour = (
            x(place[change.code]) - (WIDTH - LEFT - 12) / count / 2,
            "#1a7f37" if change.better else "#b3261e",
        )
        marks.append(
            f'<line x1="{edge:.1f}" y1="{TOP}" x2="{edge:.1f}" y2="{HEIGHT - BOTTOM}" stroke="{colour}" '
            f'stroke-dasharray="4 3"/><text x="{edge + 3:.1f}" y="{HEIGHT - 8}" font-size="11" fill="{colour}">'
            f"{html.escape(change.code[:12])}</text>"
        )
    drawn = "".join(marks)
    name = html.escape(series.method)
    return (
        f'<figure><figcaption>{name}</figcaption><svg role="img" aria-label="{name} on {html.escape(series.dataset)}" '
        f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">{drawn}</svg></figure>'
    )


def _tip(version: Version) -> str:
    return html.escape(f"{version.name} {version.subject}".strip())


def _line(points: Sequence[tuple[float, float]], colour: str, width: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
