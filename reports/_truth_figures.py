"""The figures of the section about the truth: costs, a map of both ratios, coverage over x, and data sizes."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from bench.api import Array, Figure, Results, spec_or_none, style

PARTS = {"mean_cost": "mean", "noise_cost": "noise", "model_cost": "model uncertainty"}
COLOURS = dict(zip(PARTS, ("grey", "orange", "blue"), strict=True))
SMALLEST = 1e-4  # nat: a smaller cost is drawn there
RATIOS = (0.05, 20.0)  # a smaller or larger ratio is drawn at the edge
BINS = 12  # of x
PANELS = 6
LINES = 4  # methods in a panel over x, half of them those that lose least
SEEDS = 8


def costs_figure(table: pd.DataFrame) -> Figure:
    """Return what the mean and both variances cost, one line per method, medians over datasets."""
    shown = table.dropna(subset=list(PARTS), how="all").iloc[::-1]
    with style.house_style():
        figure, (axis,) = style.panels(1, width=7.0, height=0.9 + 0.2 * max(len(shown), 1))
        places = np.arange(len(shown))
        for part, words in PARTS.items():
            cost = np.clip(shown[part].to_numpy(float), SMALLEST, None)
            axis.plot(cost, places, "o", color=style.PALETTE[COLOURS[part]], markersize=5.5, label=words)
        axis.set_yticks(places, [style.short(str(name)) for name in shown.index])
        style.plain_logarithmic(axis, x=True)
        axis.set_xlabel("cost in nat of a log score, to the right is worse")
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    caption = (
        "What is wrong with each method: the error of its mean with both variances right (grey), its noise variance by "
        "itself (orange), its model variance by itself (blue). Medians over the regression datasets; the method that "
        f"loses least to the law is at the top. Costs below {SMALLEST:g} are drawn there."
    )
    return Figure("truth-costs", caption, figure, table[list(PARTS)].rename_axis("method").reset_index())


def ratios_figure(table: pd.DataFrame) -> Figure:
    """Return a map: stated noise over true noise against stated model deviation over the error of the mean."""
    shown = table.dropna(subset=["noise_ratio", "model_ratio"])
    with style.house_style():
        figure, (axis,) = style.panels(1, width=6.9, height=5.0)
        for method, noise, model in zip(shown.index, shown["noise_ratio"], shown["model_ratio"], strict=True):
            place = np.clip([noise, model], *RATIOS)
            axis.plot(*place, **{**style.look(str(method)).of_points(6), "linestyle": "none"})
        axis.axhline(1, color=style.INK, linewidth=0.8)
        axis.axvline(1, color=style.INK, linewidth=0.8)
        low, high = (np.clip(end, *RATIOS) for end in (shown["noise_ratio"].min(), shown["noise_ratio"].max()))
        axis.set_xlim(min(0.45, low / 1.2), max(2.2, high * 1.2))
        style.plain_logarithmic(axis, x=True, y=True)
        axis.set_xlabel("stated noise / true noise (standard deviations)")
        axis.set_ylabel("stated model deviation / error of the mean")
        for x, y, words in (
            (0.01, 0.99, "too little noise,\ntoo much model"),
            (0.99, 0.99, "too much of both"),
            (0.01, 0.01, "too little of both"),
            (0.99, 0.01, "too much noise,\ntoo little model"),
        ):
            across, up = "left" if x < 0.5 else "right", "bottom" if y < 0.5 else "top"
            axis.text(x, y, words, transform=axis.transAxes, color=style.SOFT, fontsize=8, ha=across, va=up)
        style.legend(figure, [str(method) for method in shown.index], points=True)
    low, high = RATIOS
    caption = (
        "Is the uncertainty of the right size? Right is where the lines cross. Medians over the regression datasets; "
        f"values beyond {low:g} and {high:g} are drawn there, and methods without model uncertainty at the bottom."
    )
    return Figure(
        "truth-ratios", caption, figure, shown[["noise_ratio", "model_ratio"]].rename_axis("method").reset_index()
    )


def coverage_figure(results: Results, chosen: Mapping[str, Sequence[str]]) -> Figure | None:
    """Return the exact coverage of 90 % intervals over x, one panel per dataset with one input."""
    cells = results.cells[results.cells["status"] == "ok"]
    found: dict[str, dict[str, tuple[Array, Array]]] = {}
    for dataset, methods in chosen.items():
        own = cells[cells["dataset"] == dataset]
        lines = {method: line for method in methods if (line := _coverage_over_x(results, own, method)) is not None}
        if lines and len(found) < PANELS:
            found[dataset] = lines
    if not found:
        return None
    rows = []
    with style.house_style():
        figure, axes = style.panels(len(found), width=3.4, height=2.5, sharey=True)
        for axis, (dataset, lines) in zip(axes, found.items(), strict=True):
            for method, (x, coverage) in lines.items():
                axis.plot(x, coverage, **style.look(method).of_line())
                rows += [(dataset, method, a, b) for a, b in zip(x.round(3), coverage, strict=True)]
            axis.axhline(0.9, color=style.INK, linewidth=0.8)
            axis.set_title(style.short(dataset))
            axis.set_xlabel("x")
            axis.set_ylim(0, 1.02)
        axes[0].set_ylabel("coverage of 90 % intervals")
        style.legend(figure, list(dict.fromkeys(method for lines in found.values() for method in lines)))
    caption = (
        "Where in x: the exact probability, under the true law, of the central 90 % interval, mean over the test rows "
        f"of {BINS} bins of x and up to {SEEDS} seeds. For each dataset the two methods that lose least to the law "
        "and the two that lose most. In a gap and beyond the data, intervals need model uncertainty to cover."
    )
    return Figure("truth-coverage", caption, figure, pd.DataFrame(rows, columns=["dataset", "method", "x", "coverage"]))


def _coverage_over_x(results: Results, cells: pd.DataFrame, method: str) -> tuple[Array, Array] | None:
    keys = cells[cells["method"] == method].sort_values("seed")["key"].iloc[:SEEDS]
    parts = [a for key in keys if {"x", "law/coverage"} <= (a := results.arrays(str(key))).keys()]
    if not parts:
        return None
    x = np.concatenate([part["x"][:, 0] for part in parts])
    coverage = np.concatenate([part["law/coverage"] for part in parts])
    edges = np.linspace(x.min(), x.max(), BINS + 1)
    place = np.clip(np.digitize(x, edges) - 1, 0, BINS - 1)
    used = [k for k in range(BINS) if (place == k).any()]
    middle = (edges[1:] + edges[:-1])[used] / 2
    return middle, np.array([coverage[place == k].mean() for k in used])


def sizes_figure(results: Results, means: pd.DataFrame, methods: Sequence[str]) -> Figure | None:
    """Return the costs against the number of training rows, where datasets differ in that option alone."""
    families = _families(results)
    if not families:
        return None
    datasets = max(families, key=len)
    rows = sorted(datasets, key=lambda name: datasets[name])
    sizes, numbers = [datasets[name] for name in rows], []
    methods = [method for method in methods if sum((name, method) in means.index for name in rows) > 1]
    with style.house_style():
        figure, axes = style.panels(3, width=3.3, height=2.5)
        for axis, (part, words) in zip(axes, PARTS.items(), strict=True):
            for method in methods:
                line = [means[part].get((name, method), np.nan) for name in rows]
                axis.plot(
                    sizes,
                    np.clip(line, SMALLEST, None),
                    **{**style.look(method).of_points(4), **style.look(method).of_line()},
                )
                numbers += [(words, method, size, value) for size, value in zip(sizes, line, strict=True)]
            style.plain_logarithmic(axis, x=True, y=True)
            axis.set_title(words)
            axis.set_xlabel("training rows")
        axes[0].set_ylabel("cost (nat)")
        style.legend(figure, list(methods), points=True)
    caption = (
        f"At which data size: what the mean, the noise variance and the model variance cost on {', '.join(rows)}, "
        f"which differ in their rows alone. Means over the seeds; costs below {SMALLEST:g} are drawn there."
    )
    return Figure("truth-sizes", caption, figure, pd.DataFrame(numbers, columns=["part", "method", "rows", "cost"]))


def _families(results: Results) -> list[dict[str, int]]:
    """Return groups of at least two datasets that differ in their option `rows` alone, with these."""
    families: dict[str, dict[str, int]] = {}
    for dataset, cells in results.cells.groupby("dataset", sort=True):
        spec = spec_or_none(cells["spec"].iloc[0])
        if spec is None or not isinstance(rows := spec.dataset.options.get("rows"), int):
            continue
        others = sorted((k, v) for k, v in spec.dataset.options.items() if k != "rows")
        families.setdefault(f"{spec.dataset.name} {others}", {})[str(dataset)] = rows
    return [found for found in families.values() if len(found) > 1]
