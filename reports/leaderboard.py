"""Who ranks where: average ranks over the datasets, with groups not shown to differ and a score with its interval."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.api import Block, Figure, Metric, Report, Results, Section, Table, Text, plural, stats, style
from bench.reports._lost_cells import WHY
from bench.reports._rankings import rankings
from bench.reports._searches import configurations_tried, with_searches
from bench.reports._words import arrow, column_parts, lead_metrics, methods_of, probability, rounded

EXPLAINED = (
    "Place: 1 + the number of methods shown to be better by Nemenyi's test, whose average ranks are ahead by the "
    "critical difference or more; without a test there is none. Methods that share a letter were not shown to differ. "
    "Score: interquartile mean of losses standardised on each dataset, with its 95 % interval, which covers 90 % with "
    "5 seeds and 94 % with 20; 0 is the average method, lower is better. Right of it: the mean on each "
    "dataset, over the repeats that all ranked methods have."
)


@dataclass(frozen=True)
class Leaderboard(Report):
    """Ranked tables of the leading metrics, and the average rank by every metric of the suite."""

    order = 12

    def section(self, results: Results) -> Section | None:
        """Return the rankings, or None where there are not two methods to rank."""
        if len(methods_of(results.frame)) < 2:
            return None
        ranked = rankings(results)
        leads = {metric: ranked[metric] for metric in lead_metrics(results) if metric in ranked}
        blocks: list[Block] = [Text(EXPLAINED)] if leads else []
        tried = configurations_tried(results)
        for metric in lead_metrics(results):
            blocks += [_ranked(metric, leads[metric], tried)] if metric in leads else _on_one_dataset(results, metric)
        if leads:
            blocks.append(_figure(leads))
        blocks += _all_metrics(ranked)
        notes = dict.fromkeys(message for ranking in leads.values() for message in ranking.messages)
        blocks += [Text(f"Note: {note}.") for note in list(notes)[:6]]
        return Section("Leaderboard", blocks) if blocks else None


def _ranked(metric: Metric, ranking: stats.Ranking, tried: Mapping[str, str]) -> Table:
    rows = [
        {
            "method": one.method,
            "place": one.place or "–",
            "average rank": f"{one.average_rank:.2f}",
            "group": one.groups or "–",
            "score": "{} ({} to {})".format(
                *(rounded(end, 2, sign=True) for end in (one.score.value, one.score.low, one.score.high))
            ),
            **dict(zip(ranking.datasets, one.means, strict=True)),
        }
        for one in ranking.methods
    ]
    data = with_searches(pd.DataFrame(rows), tried)
    bold = set()
    for column, dataset in enumerate(data.columns):
        if dataset in ranking.datasets:
            losses = [metric.loss(float(value)) for value in data[dataset]]
            best = min((loss for loss in losses if not math.isnan(loss)), default=math.nan)
            leading = {(r, column) for r, loss in enumerate(losses) if loss == best}
            bold |= leading if len(leading) < len(losses) else set()  # all are alike
    caption = (
        f"{metric.name} {arrow(metric)} over {plural(len(ranking.datasets), 'dataset')}, critical difference "
        f"{ranking.critical_difference:.2f}, Friedman p {probability(ranking.friedman[1])}"
    )
    paper = f"`{metric.name}`{caption.removeprefix(metric.name)}. {EXPLAINED} Bold: the best mean."
    return Table(caption, data, frozenset(bold), f"leaderboard-{metric.name}", paper_caption=paper)


def _on_one_dataset(results: Results, metric: Metric) -> list[Block]:
    rows = results.frame[results.frame["metric"] == metric.name]
    datasets = sorted(set(rows["dataset"]))
    if len(datasets) != 1 or rows["method"].nunique() < 2:
        return []
    finite = rows.assign(value=rows["value"].where(np.isfinite(rows["value"])))
    table = stats.repeat_means(finite, results.cells).droplevel(["dataset", "metric"]).reindex(rows["method"].unique())
    losses = table["mean"].map(metric.loss).to_numpy()
    table = table.iloc[np.lexsort((losses, table["due"] - table["finite"]))].rename_axis("method").reset_index()
    fewer = [
        f"\n({own:g} of {all_of:g})" * (own < all_of) for own, all_of in zip(table["finite"], table["due"], strict=True)
    ]
    value = f"{metric.name} {arrow(metric)}"
    numbers = table.rename(columns={"deviation": "standard deviation", "finite": "repeats", "due": "of all"})
    numbers = numbers[["method", "mean", "standard deviation", "repeats", "of all"]]
    shown = numbers[["method", "mean", "standard deviation"]].rename(columns={"mean": value})
    shown["method"] = [method + note for method, note in zip(shown["method"], fewer, strict=True)]
    caption = (
        f"{metric.name} {arrow(metric)} on {datasets[0]}, the only dataset that has it: by the mean, without places"
    )
    if any(fewer):
        caption += f"; (n of m): a method with a value in n of the m repeats that any method has is last, because {WHY}"
    paper = f"`{metric.name}` {arrow(metric)} on `{datasets[0]}`: mean and standard deviation over the repeats."
    return [Table(caption, shown, name=f"leaderboard-{metric.name}", numbers=numbers, paper_caption=paper)]


def _all_metrics(ranked: dict[Metric, stats.Ranking]) -> list[Table]:
    """Return the ranks by every metric, in as many tables as a page is wide; methods have one order in all of them."""
    ranks = {
        f"{metric.name} {arrow(metric)}": {one.method: round(one.average_rank, 2) for one in ranking.methods}
        for metric, ranking in ranked.items()
        if not metric.only_with  # the narrowest intervals are not the best ones
    }
    if len(ranks) < 2:
        return []
    data = pd.DataFrame(ranks)
    data = data.sort_values(list(data.columns[:1]), kind="stable").rename_axis("method")
    parts = column_parts(list(data.columns))
    return [
        _ranks(data[part].reset_index(), f", table {number} of {len(parts)}" * (len(parts) > 1))
        for number, part in enumerate(parts, start=1)
    ]


def _ranks(data: pd.DataFrame, number: str) -> Table:
    bold = {(int(r), c) for c, name in enumerate(data.columns) if c for r in data.index[data[name] == data[name].min()]}
    texts = data.map(lambda rank: f"{rank:.2f}" if isinstance(rank, float) and not math.isnan(rank) else rank)
    caption = "Average rank by every metric that at least two datasets have, sorted by the first"
    return Table(caption + number, texts, frozenset(bold), "average-ranks", numbers=data)


def _figure(rankings: dict[Metric, stats.Ranking]) -> Figure:
    numbers = []
    with style.house_style():
        tallest = max(len(ranking.methods) for ranking in rankings.values())
        figure, axes = style.panels(len(rankings), width=4.8, height=0.8 + 0.27 * tallest, most=2)
        for axis, (metric, ranking) in zip(axes, rankings.items(), strict=True):
            axis.axvline(0, color=style.EVEN, linewidth=0.8)
            for place, one in enumerate(ranking.methods):
                look = style.look(one.method)
                axis.plot([one.score.low, one.score.high], [place, place], color=look.hex, linewidth=2, alpha=0.55)
                axis.plot(one.score.value, place, linestyle="none", **look.of_points())
                numbers.append((metric.name, one.method, one.score.value, one.score.low, one.score.high))
            axis.set_yticks(range(len(ranking.methods)), [style.short(one.method) for one in ranking.methods])
            axis.set_ylim(len(ranking.methods) - 0.5, -0.5)
            axis.set_title(f"{style.title(metric.name)} {arrow(metric)}", parse_math=False)
            axis.set_xlabel("score: standardised loss (lower is better)")
    data = pd.DataFrame(numbers, columns=["metric", "method", "score", "95 % low", "95 % high"])
    firsts = "; ".join(_first(metric, ranking) for metric, ranking in rankings.items())
    caption = (
        "Score of each method over the datasets: interquartile mean of standardised losses with its 95 % stratified "
        f"bootstrap interval, which is about these datasets and other seeds. Best average rank: {firsts}."
    )
    return Figure("leaderboard-scores", caption, figure, data)


def _first(metric: Metric, ranking: stats.Ranking) -> str:
    """Return who has the best average rank, and whether a test tells it apart from the others."""
    first, *others = ranking.methods
    alike = [one for one in others if set(first.groups) & set(one.groups)]
    apart = "not tested" if not first.place else f"not told apart from {plural(len(alike), 'other')}" if alike else ""
    return f"{style.title(first.method)} by {style.title(metric.name)}" + f" ({apart})" * bool(apart)
