"""At equal cost: every other method against MCNI with as many forward passes as the method uses itself."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.axes import Axes

from bench.api import Block, Figure, Metric, Report, Results, Section, Table, Text, plural, stats, style
from bench.reports._costs import Costs, costs_of
from bench.reports._variants import variants_of
from bench.reports._words import arrow, methods_of, metrics_of, parts_of, probability, verdict_word

METRICS = 2  # of each task: the first that the suite names
PLACE = ["dataset", "split", "method", "seed"]
INTRODUCTION = (
    "The cost of a prediction is the number of forward passes: T draws of one network, or one pass of each network of "
    "an ensemble. Each method is compared with {references} at as many draws as the method has passes: the first ones, "
    "since draw t is the same function whatever T is. The cost of training stands beside it: the networks trained, and "
    "the epochs of all of them together as a multiple of the reference's. How long a pass takes is not part of this; "
    "latency suites measure it. Options are those of the suite, so a difference is one between these settings."
)


Compared = Sequence[tuple[str, stats.DatasetComparison]]  # methods with their comparisons


@dataclass(frozen=True)
class EqualCost(Report):
    """Tables and a figure where a suite scores MCNI at several numbers of draws, beside other methods."""

    references: tuple[str, ...] = ("mcni-fixed", "mcni-learned")  # plug-ins

    order = 31
    subject = True

    def section(self, results: Results) -> Section | None:
        """Return the comparisons with each reference, or None where none is scored at several numbers of draws."""
        plugins = variants_of(results.cells)
        labels = [label for name in self.references for label in plugins.get(name, {})]
        if not labels:
            return None  # before all stored values are read
        costs = costs_of(results.cells)
        rows = by_passes(results.frame, costs)
        counts = rows.groupby("method")["passes"].nunique()
        known = [label for label in labels if counts.get(label, 0) > 1]
        others = [method for method in methods_of(results.frame) if method not in labels]
        if not known or not others:
            return None
        blocks: list[Block] = []
        for metric in _metrics(results):
            own, found = rows[rows["metric"] == metric.name], {}
            for reference in known:
                compared, absent = _against(results.cells, own, reference, others, metric, costs)
                if compared:
                    found[reference] = compared
                    blocks.append(Text(_sentence(metric, reference, compared, absent)))
            blocks += [_figure(metric, found, costs)] if found else []
            blocks += [_table(metric, reference, compared, costs) for reference, compared in found.items()]
        introduction = Text(INTRODUCTION.format(references=" and ".join(known)))
        return Section("At equal cost", [introduction, *blocks]) if blocks else None


def _metrics(results: Results) -> list[Metric]:
    """Return the first metrics of each task."""
    chosen = [m for m in metrics_of(results) if m.has_better and m.family != "cost" and m.relative_to is None]
    plain = [metric for metric in chosen if "@" not in metric.name]
    tasks = {metric.task: [m for m in plain if m.task == metric.task][:METRICS] for metric in plain}
    return [metric for own in tasks.values() for metric in own]


def by_passes(frame: pd.DataFrame, costs: Costs) -> pd.DataFrame:
    """Return the values whose number of passes is known: those under a condition T=..., and those of all draws."""
    parts = parts_of(frame["metric"])
    some = parts[2].str.fullmatch(r"T=\d+")
    first = frame[some].assign(metric=parts.loc[some, 0], passes=parts.loc[some, 2].str[2:].astype(int))
    plain = frame[parts[2] == ""]
    places = zip(plain["dataset"], plain["method"], strict=True)
    all_draws = plain.assign(passes=[costs[place].passes if place in costs else 0 for place in places])
    both = pd.concat([all_draws[all_draws["passes"] > 0], first])
    return both.drop_duplicates([*PLACE, "metric", "passes"])  # the suite may name the number of all draws, too


def _against(
    cells: pd.DataFrame, rows: pd.DataFrame, reference: str, others: Sequence[str], metric: Metric, costs: Costs
) -> tuple[Compared, list[str]]:
    """Return all other methods against a reference by one metric, and what cannot be compared with it."""
    frame, absent = _at_equal_passes(rows, reference, others, metric, costs)
    measures = [replace(metric, name=str(name)) for name in sorted(frame["metric"].unique())]
    compared = stats.compare_each(frame, others, reference, measures, cells=cells) if measures else []
    found = [(one.a, row) for one in compared for row in one.rows if row.pairs]
    return sorted(found, key=lambda pair: (pair[1].dataset, costs[pair[1].dataset, pair[0]].passes)), absent


def _table(metric: Metric, reference: str, compared: Compared, costs: Costs) -> Table:
    tests = sum(not math.isnan(row.p) for _, row in compared)
    caption = (
        f"{metric.name} {arrow(metric)} of each method minus that of {reference} with as many passes, on the same "
        f"repeat; p corrected over the {plural(tests, 'test')} of this table (Holm)"
    )
    data = pd.DataFrame([_row(method, row, reference, costs) for method, row in compared])
    return Table(caption, data, name=f"equal-cost-{metric.name}-{reference}", folded=True)


def _at_equal_passes(
    rows: pd.DataFrame, reference: str, others: Sequence[str], metric: Metric, costs: Costs
) -> tuple[pd.DataFrame, list[str]]:
    """Return the values of each method with all its passes and the reference's with as many, as `METRIC@T=passes`.

    Also the methods for which the reference has no value at their number of passes.
    """
    places = dict(iter(rows.groupby(["dataset", "method", "passes"], sort=False)))
    parts, absent = [rows.iloc[:0]], []
    for (dataset, method), cost in costs.items():
        if method not in others or (dataset, method, cost.passes) not in places:
            continue
        if (dataset, reference, cost.passes) not in places:
            absent.append(f"{method} on {dataset} (T = {cost.passes})")
            continue
        both = (places[dataset, name, cost.passes] for name in (method, reference))
        parts += [own.assign(metric=f"{metric.name}@T={cost.passes}") for own in both]
    # Methods with the same number of passes share the reference's values.
    return pd.concat(parts)[[*PLACE, "metric", "value"]].drop_duplicates([*PLACE, "metric"]), absent


def _row(method: str, row: stats.DatasetComparison, reference: str, costs: Costs) -> dict[str, object]:
    cost, base = costs[row.dataset, method], costs.get((row.dataset, reference))
    ratio = cost.epochs / base.epochs if base is not None and base.epochs > 0 else math.nan
    return {
        "dataset": row.dataset,
        "method": method,
        "passes": cost.passes,
        "networks": "–" if cost.networks is None else cost.networks,
        "epochs trained": "–" if math.isnan(ratio) else f"{ratio:.2g} x",
        "mean": row.mean_a,
        f"{reference}, as many passes": row.mean_b,
        "difference": row.difference,
        "95 % low": row.interval.low if row.interval else math.nan,
        "95 % high": row.interval.high if row.interval else math.nan,
        "n": row.pairs,
        "p": probability(row.p_adjusted),
        "verdict": verdict_word(row),
    }


def _sentence(metric: Metric, reference: str, rows: Compared, absent: Sequence[str]) -> str:
    """Return which methods were shown to be better or worse, and what could not be seen."""
    texts = []
    for word in ("better", "worse"):
        own: dict[str, list[str]] = {}
        for method, row in rows:
            if row.verdict == word:
                own.setdefault(method, []).append(row.dataset)
        if own:
            names = ", ".join(f"{method} ({', '.join(datasets)})" for method, datasets in own.items())
            texts.append(f"{word} than {reference} with as many passes: {names}")
    open_rows = sum(row.verdict not in ("better", "worse") for _, row in rows)
    texts = texts or [f"no method was shown to be better or worse than {reference} with as many passes"]
    rest = f" {plural(open_rows, 'comparison')} of {len(rows)} showed no difference." if open_rows else ""
    left = f" Not compared, because {reference} is not scored at that T: {', '.join(absent)}." if absent else ""
    return f"By {metric.name}: {'; '.join(texts)}.{rest}{left}"


def _figure(metric: Metric, found: Mapping[str, Compared], costs: Costs) -> Figure:
    """Draw the differences to every reference, a panel per dataset and a line per method, by passes."""
    every = [(reference, method, row) for reference, compared in found.items() for method, row in compared]
    lines: dict[str, list[str]] = {dataset: [] for dataset in sorted({row.dataset for _, _, row in every})}
    for _, method, row in every:
        if method not in lines[row.dataset]:
            lines[row.dataset].append(method)
    with style.house_style():
        height = 0.9 + 0.24 * max(len(methods) for methods in lines.values())
        figure, axes = style.panels(len(lines), width=4.6, height=max(2.0, height), most=2)
        for axis, (dataset, methods) in zip(axes, lines.items(), strict=True):
            axis.axvline(0, color=style.INK, linewidth=0.8)
            for reference, method, row in every:
                if row.dataset == dataset:
                    shift = 0.28 * (list(found).index(reference) - (len(found) - 1) / 2)
                    _draw(axis, methods.index(method) + shift, reference, row)
            names = [f"{style.short(method)}, T = {costs[dataset, method].passes}" for method in methods]
            axis.set_yticks(range(len(methods)), names)
            axis.set_ylim(len(methods) - 0.5, -0.5)
            axis.locator_params(axis="x", nbins=5)
            axis.set_title(f"{style.short(dataset)}: {style.title(metric.name)} {arrow(metric)}", parse_math=False)
            axis.set_xlabel("difference to MCNI" if metric.unit in ("", "1") else f"difference to MCNI ({metric.unit})")
        style.legend(figure, list(found), points=True)
    numbers = [{"reference": reference, **_row(method, row, reference, costs)} for reference, method, row in every]
    words = {"lower": "to the left of 0 the method is better", "higher": "to the right of 0 the method is better"}
    caption = (
        f"{style.title(metric.name)}: difference of each method to {' and '.join(map(style.title, found))} with as "
        "many passes, on the same repeat, mean and 95 % interval, each by itself; "
        f"{words.get(metric.direction, 'of the distances to the target')}. Filled: shown after correction; open: not "
        f"shown. {_counted(found)}"
    )
    columns = ["dataset", "method", "passes", "reference", "difference", "95 % low", "95 % high", "verdict"]
    return Figure(f"equal-cost-{metric.name}", caption, figure, pd.DataFrame(numbers)[columns])


def _counted(found: Mapping[str, Compared]) -> str:
    """Return against each reference in how many comparisons a method was shown to be better or worse."""
    parts = []
    for reference, rows in found.items():
        counts = [sum(row.verdict == word for _, row in rows) for word in ("better", "worse")]
        many = plural(len(rows), "comparison")
        parts.append(f"{counts[0]} better and {counts[1]} worse than {style.title(reference)} of {many}")
    return f"Shown: {'; '.join(parts)}."


def _draw(axis: Axes, place: float, reference: str, row: stats.DatasetComparison) -> None:
    """Draw one difference with its interval, filled where it was shown."""
    if not math.isfinite(row.difference):
        return
    look = style.look(reference)
    if row.interval is not None:
        axis.plot([row.interval.low, row.interval.high], [place, place], color=look.hex, linewidth=1.1)
    point = replace(look, filled=row.verdict in ("better", "worse")).of_points(4.5)
    axis.plot(row.difference, place, linestyle="none", **point)
