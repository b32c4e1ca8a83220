"""What draws cost: time by number of draws, how it grows, and quality against time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.api import Array, Block, Figure, Metric, Report, Results, Section, Table, Text, condition, style
from bench.reports._cell_warnings import warning_blocks
from bench.reports._highlights import MOST_COLOURED, about_grey, highlighted, line_of
from bench.reports._words import GAP, arrow, decimals, labelled, methods_of, metrics_of, named, parts_of

FAMILY = ("latency_forward", "latency_transfer", "latency_total")
WHAT = {
    "latency_forward": "forward passes alone",
    "latency_transfer": "forward passes and transfer to the host",
    "latency_total": "from end to end, with batching",
}
DEFAULT = "default"
MODES = {
    DEFAULT: "the engine's own way of drawing",
    "naive": "a loop over T passes",
    "compiled": "that loop with a compiled pass",
    "tuned": "whichever was the fastest in trials on this device",
}
UNIT = "ms per 1,000 rows"
MOST_PANELS = 4  # of quality against time
MOST_ROWS = 12  # of a table that is open


@dataclass(frozen=True)
class Latency(Report):
    """Tables and curves over T, and the front of quality against latency where a page has both."""

    order = 30
    subject = True

    def section(self, results: Results) -> Section | None:
        """Return what draws cost, or None where nothing was timed."""
        rows = timed(results.frame)
        if rows.empty:
            return None
        blocks: list[Block] = [
            Text(
                f"Time for T draws, in milliseconds per 1,000 rows. Mode {_modes(rows)}. Scaling: "
                "time(T) / (T x time(1)); 1 means that a draw costs a whole pass. "
                "Compare methods within one table only: another machine, batch or thread count is another number."
            )
        ]
        tables: list[Block] = []
        for dataset, own in rows.groupby("dataset", sort=True):
            blocks += [*warning_blocks(results, str(dataset)), _figure(str(dataset), own, results.baseline)]
            repeats = _repeats(results, str(dataset))
            tables += [_table(str(dataset), own), *([repeats] if repeats is not None else [])]
        return Section("Latency", [*blocks, *_front(results, rows, [results]), *tables])

    def overall(self, suites: Sequence[Results]) -> Section | None:
        """Return the front of the quality in one suite against the latency in another."""
        blocks: list[Block] = []
        for results in suites:
            rows = timed(results.frame)
            if not rows.empty:
                blocks += _front(results, rows, [other for other in suites if other is not results])
        return Section("Quality against latency", blocks) if blocks else None


def _modes(rows: pd.DataFrame) -> str:
    """Return what the modes are that were timed."""
    present = set(rows["mode"])
    words = [f"{mode} is {what}" for mode, what in MODES.items() if mode in present]
    return ", ".join(words) or "is the one that the tables name"


def timed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the values of latency metrics, with the number of draws and the mode they were measured in."""
    frame = named(frame, lambda metric, _: metric in FAMILY)
    bare = parts_of(frame["metric"])[0]
    rows = frame[np.isfinite(frame["value"].astype(float))]
    at = [dict(part.partition("=")[::2] for part in condition(str(m)).split(",")) for m in rows["metric"]]
    draws = pd.to_numeric(pd.Series([one.get("T") for one in at], index=rows.index, dtype=object), errors="coerce")
    modes = [one.get("mode", DEFAULT) for one in at]
    others = [", ".join(f"{k}={v}" for k, v in sorted(one.items()) if k and k not in ("T", "mode")) for one in at]
    rows = rows.assign(what=bare[rows.index], draws=draws, mode=modes, other=others)
    return rows[rows["draws"] > 0]


def _table(dataset: str, rows: pd.DataFrame) -> Table:
    data, numbers = [], []
    largest = float(rows["draws"].max())
    for place, own in rows.groupby(["method", "what", "mode", "other"], sort=False):
        method, what, mode, other = (str(part) for part in place)
        line: dict[str, object] = {"method": method, "timed": what.removeprefix("latency_"), "mode": mode}
        if other:
            line["condition"] = other
        values = {float(str(draws)): group.to_numpy(dtype=float) for draws, group in own.groupby("draws")["value"]}
        for draws in sorted(set(rows["draws"])):
            if draws not in values:
                line[f"T = {draws:g}"] = "–"
                continue
            mean, spread = float(values[draws].mean()), _spread(values[draws])
            line[f"T = {draws:g}"] = _mean_and_spread(mean, spread)
            numbers.append((method, what, mode, other, draws, mean, spread))
        growth = np.nan
        if largest > 1 and {1.0, largest} <= values.keys():
            growth = float(values[largest].mean() / (largest * values[1.0].mean()))
        line[f"scaling at T = {largest:g}"] = growth
        data.append(line)
    methods = methods_of(rows)  # of each, what is timed from the least to the most complete
    data.sort(key=lambda line: (methods.index(str(line["method"])), FAMILY.index(f"latency_{line['timed']}")))
    columns = ["method", "timed", "mode", "condition", "T", "mean_ms_per_1000_rows", "standard_deviation"]
    caption = f"{dataset}: {UNIT}, mean ± standard deviation over runs"
    frame, tidy = pd.DataFrame(data), pd.DataFrame(numbers, columns=columns)
    paper = (
        f"Time of T draws on `{dataset}` in milliseconds per 1,000 rows, mean ± standard deviation over runs. Forward: "
        f"{WHAT[FAMILY[0]]}; transfer: {WHAT[FAMILY[1]]}; total: {WHAT[FAMILY[2]]}. Mode default is the engine's own "
        "way of drawing, naive a loop over T passes. Scaling is time(T) / (T x time(1)): 1 means that a draw costs a "
        "whole pass. A dash: not measured."
    )
    name, folded = f"latency-{dataset}", len(data) > MOST_ROWS
    return Table(caption, frame, name=name, numbers=tidy, folded=folded, paper_caption=paper)


def _spread(values: Array) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else np.nan


def _mean_and_spread(mean: float, spread: float) -> str:
    if np.isnan(spread):
        return _digits(mean, 4)
    places = decimals([spread], [mean])  # two digits of the deviation, and as many decimals of the mean
    return f"{mean:,.{places}f} ± {spread:,.{places}f}"


def _digits(value: float, digits: int) -> str:
    """Return a number to so many digits, but no power of ten where all of them stand before the point."""
    return f"{value:,.0f}" if 10**digits <= value < 1e9 else f"{value:.{digits}g}"


def _figure(dataset: str, rows: pd.DataFrame, baseline: str | None) -> Figure:
    whats = [what for what in FAMILY if what in set(rows["what"])]
    modes = list(dict.fromkeys(rows["mode"]))
    timings = rows[(rows["mode"] == (DEFAULT if DEFAULT in modes else modes[0])) & (rows["other"] == "")]
    timings = rows if timings.empty else timings
    numbers, findings, coloured = [], [], dict[str, None]()
    with style.house_style():
        figure, axes = style.panels(len(whats), width=3.5, height=2.7)
        for axis, what in zip(axes, whats, strict=True):
            own = timings[timings["what"] == what]
            times = {method: own[own["method"] == method].groupby("draws")["value"] for method in methods_of(own)}
            means = {method: groups.mean() for method, groups in times.items()}
            largest = own["draws"].max()
            # A method with one function only has no time for more draws.
            ends = {method: float(mean[largest]) for method, mean in means.items() if largest in mean.index}
            chosen = highlighted({method: ends.get(method, np.inf) for method in means}, baseline)
            for method, groups in times.items():
                mean, low, high = means[method], groups.quantile(0.05), groups.quantile(0.95)
                axis.plot(mean.index, mean, **line_of(method, chosen, 4.5))
                if method in chosen:
                    axis.fill_between(mean.index, low, high, **style.look(method).of_band())
                numbers += [(what, method, t, mean[t], low[t], high[t]) for t in mean.index]
            coloured.update(dict.fromkeys(chosen))
            if ends:
                first, last = (choose(ends, key=lambda method: ends[method]) for choose in (min, max))
                places = decimals([], [ends[first]]) - 1  # three digits of the smaller one
                least, most = (f"{ends[method]:,.{max(places, 0)}f}" for method in (first, last))
                span = f" ({least} ms; slowest: {style.title(last)}, {most} ms)"
                findings.append(f"{WHAT[what]}: {style.title(first)} at T = {largest:g}{span if first != last else ''}")
            style.plain_logarithmic(axis, x=True, y=True)
            axis.set_title(WHAT[what], parse_math=False)
            axis.set_xlabel("draws T")
            axis.set_ylabel(f"{UNIT} (lower is better)")
        style.legend(figure, [method for method in methods_of(timings) if method in coloured], points=True)
    data = pd.DataFrame(numbers, columns=["timed", "method", "T", UNIT, "5 %", "95 %"])
    caption = (
        f"{style.title(dataset)}: time against the number of draws, both axes logarithmic; lines are means over runs, "
        f"bands their 5 to 95 % range. Fastest at the most draws: {'; '.join(findings)}."
        f"{about_grey(len(methods_of(timings)), 'at the most draws')}"
    )
    return Figure(f"latency-{dataset}", caption, figure, data)


def _repeats(results: Results, dataset: str) -> Table | None:
    """Return the spread of the repeated passes of the first run, as they were timed."""
    cells = results.cells[(results.cells["status"] == "ok") & (results.cells["dataset"] == dataset)]
    rows = []
    for row in cells[cells["seed"] == cells["seed"].min()].itertuples():
        for name, array in results.arrays(str(row.key)).items():
            if name.startswith("latency/") and np.size(array):
                ms = np.ravel(np.asarray(array, dtype=float))
                spread = ms.std(ddof=min(1, ms.size - 1))
                ends = np.quantile(ms, [0.5, 0.9, 0.99])
                rows.append((row.method, name.removeprefix("latency/"), ms.size, ms.mean(), spread, *ends, ms.max()))
    if not rows:
        return None
    columns = ["method", "timed", "passes", "mean (ms)", "standard deviation", "median", "90 %", "99 %", "slowest"]
    caption = f"{dataset}: single passes of the first run, in milliseconds, outliers kept"
    paper = (
        f"Single passes of the first run on `{dataset}` in milliseconds: their number, mean, standard deviation, "
        "quantiles and maximum; outliers are kept. T is the number of draws of a pass."
    )
    frame = pd.DataFrame(rows, columns=columns)
    return Table(caption, frame, name=f"latency-passes-{dataset}", folded=True, paper_caption=paper)


def _front(results: Results, rows: pd.DataFrame, others: Sequence[Results]) -> list[Block]:
    """Return quality against the time of a forward pass, for each suite that has both for a dataset."""
    what = next(what for what in ("latency_total", *FAMILY) if what in set(rows["what"]))
    cost = rows[(rows["what"] == what) & (rows["mode"] == DEFAULT) & (rows["other"] == "")]
    figures: list[Block] = []
    for other in others:
        bare = parts_of(other.frame["metric"])[0]
        for dataset in sorted(set(other.frame["dataset"]) & set(cost["dataset"])):
            fronts = []
            for metric in (metric for metric in metrics_of(other) if metric.has_better):
                quality = other.frame[(bare == metric.name) & (other.frame["dataset"] == dataset)]
                points = _points(quality, cost[cost["dataset"] == dataset])
                if metric.family != "cost" and points["method"].nunique() > 1:
                    fronts.append((metric, points.assign(front=_unbeaten(points, metric))))
            if fronts:
                suites = ", ".join(dict.fromkeys((results.suite, other.suite)))
                figures.append(_front_figure(suites, str(dataset), what, fronts[:MOST_PANELS]))
    return figures


def _points(quality: pd.DataFrame, cost: pd.DataFrame) -> pd.DataFrame:
    """Return one point per method and T that has both; a method that was timed at one T only has one quality."""
    at = quality["metric"].astype(str).map(condition)
    plain = quality[at == ""].groupby("method")["value"].mean()
    by_draws = quality[at != ""].assign(at=at[at != ""]).groupby(["method", "at"])["value"].mean()
    rows = []
    series = cost.groupby("method")["draws"].nunique().to_dict()
    for (method, draws), own in cost.groupby(["method", "draws"]):
        time = own["value"].mean()
        value = by_draws.get((method, f"T={draws:g}"), plain.get(method) if series[method] == 1 else None)
        if value is not None and np.isfinite(value):
            rows.append((str(method), draws, float(time), float(value)))
    return pd.DataFrame(rows, columns=["method", "T", "time", "quality"])


def _unbeaten(points: pd.DataFrame, metric: Metric) -> list[str]:
    """Tell which points no other beats in time or quality without being worse in the other."""
    losses = points["quality"].map(metric.loss)
    return [
        "no" if ((points["time"] <= t) & (losses <= loss) & ((points["time"] < t) | (losses < loss))).any() else "yes"
        for t, loss in zip(points["time"], losses, strict=True)
    ]


def _front_figure(suites: str, dataset: str, what: str, fronts: Sequence[tuple[Metric, pd.DataFrame]]) -> Figure:
    findings, tables, coloured = [], [], dict[str, None]()
    with style.house_style():
        figure, axes = style.panels(len(fronts), width=4.2, height=3.0, most=2)
        for axis, (metric, points) in zip(axes, fronts, strict=True):
            line = points[points["front"] == "yes"].sort_values("time")
            axis.step(line["time"], line["quality"], where="post", color=style.SOFT, linewidth=1, linestyle=(0, (3, 2)))
            names = list(dict.fromkeys(points["method"]))
            chosen = names if len(names) <= MOST_COLOURED else list(dict.fromkeys(line["method"]))
            coloured.update(dict.fromkeys(chosen))
            for method in names:
                own = points[points["method"] == method].sort_values("T")
                axis.plot(own["time"], own["quality"], **{**line_of(method, chosen, 5.5), "linewidth": 0.8})
                for row in own.itertuples() if method in chosen else ():
                    axis.annotate(f"{row.T:g}", (row.time, row.quality), (4, 4), textcoords="offset points", fontsize=7)
            style.plain_logarithmic(axis, x=True)
            axis.set_xlabel(f"← faster{GAP}{UNIT}\n({WHAT[what]})")
            axis.set_ylabel(f"{labelled(metric)} {arrow(metric)}")
            axis.set_title(style.title(metric.name))
            on_front = ", ".join(f"{style.title(str(row.method))} (T = {row.T:g})" for row in line.itertuples())
            findings.append(f"{style.title(metric.name)}: {on_front}")
            tables.append(points.rename(columns={"time": UNIT, "quality": "value"}).assign(metric=metric.name))
        style.legend(figure, list(coloured), points=True)
    hidden = set(methods_of(pd.concat(tables))) - set(coloured)
    grey = " Methods that are nowhere on a front are grey." if hidden else ""
    caption = (
        f"{style.title(dataset)} ({suites}): quality against time, {WHAT[what]}, one point per method and number of "
        "draws T (the number beside it). On the dashed front nothing is both faster and better: "
        f"{'; '.join(findings)}.{grey}"
    )
    return Figure(f"front-{dataset}", caption, figure, pd.concat(tables, ignore_index=True))
