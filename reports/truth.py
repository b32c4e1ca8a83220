"""How right is the uncertainty? On datasets that state their law: what is wrong, where in x, at which data size."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.api import Block, Report, Results, Section, Table, Text, catalogue
from bench.reports._truth_figures import LINES, costs_figure, coverage_figure, ratios_figure, sizes_figure
from bench.reports._truth_verdicts import verdict
from bench.reports._words import named, probability

SHOWN = ["law_regret", "mean_cost", "noise_cost", "model_cost", "noise_ratio", "model_ratio"]
EXACT = 1e-9  # nat: a smaller regret is an oracle's
SIZES = 6  # methods in the figure of data sizes, those that lose least; and the baseline
CLASSES = ["class_regret", "confidence_gap", "confidence_error", "noise_entropy_ratio"]
POSTERIOR = ["posterior_ratio", "posterior_distance", "function_coverage"]


@dataclass(frozen=True)
class Truth(Report):
    """Tables of what is wrong by method, by dataset and against exact posteriors, and four figures."""

    order = 15
    subject = True

    def section(self, results: Results) -> Section | None:
        """Return the section, or None where no dataset states its law."""
        known = catalogue()
        rows = named(results.frame, lambda name, condition: name in known and "law" in known[name].needs)
        whole = rows[~rows["metric"].str.contains("@")]
        if whole.empty:
            return None
        means = whole.groupby(["dataset", "method", "metric"])["value"].mean().unstack("metric")
        blocks: list[Block] = [Text(_introduction(means))]
        if "law_regret" in means:
            grouped = rows[rows["metric"].str.contains("@group=", regex=False)]
            blocks += _regression(results, means, set(grouped["dataset"]))
        if "class_regret" in means:
            blocks.append(_classes(means))
        blocks += _verdicts(means)
        blocks += _beyond_the_data(rows)
        blocks += _posteriors(means, whole)
        return Section("How right is the uncertainty?", blocks)


def _known(row: pd.Series) -> dict[str, float]:
    return {str(name): float(value) for name, value in row.dropna().items()}


def _introduction(means: pd.DataFrame) -> str:
    datasets = means.index.get_level_values("dataset").nunique()
    return (
        f"{datasets} datasets state the exact law of their targets, so that forecasts are compared with the truth and "
        "not with samples of it. Regret is the expected log score that a method loses to the law, in nat; the oracle's "
        "is 0. It is split into the error of the mean, which costs even with the right variances, and a wrong "
        "variance; noise and model variance are also judged each by itself, the other one being right. A ratio of 1 is "
        "right: stated noise over true noise, and stated model deviation over the error of the mean."
    )


def _regression(results: Results, means: pd.DataFrame, places: set[str]) -> list[Block]:
    """Return the table and the figures; datasets with named places come first."""
    own = means.dropna(subset=["noise_ratio"]) if "noise_ratio" in means else means.iloc[:0]
    if own.empty:
        return []
    columns = [name for name in SHOWN if name in own]
    table = own[columns].groupby("method").median().sort_values("law_regret", kind="stable")
    everything = own.groupby("method").median()
    # The oracle's regret is 0 up to rounding.
    wrong = [verdict(_known(everything.loc[name])) for name in table.index]
    shown = table.mask(table.abs() < EXACT, 0.0).assign(**{"what is wrong": wrong})
    caption = "Against the truth, medians over the regression datasets of means over seeds; least regret first"
    blocks: list[Block] = [Table(caption, shown.rename_axis("method").reset_index(), name="truth-methods")]
    if {"mean_cost", "noise_cost", "model_cost", "model_ratio"} <= set(columns):
        blocks += [costs_figure(table), ratios_figure(table)]
        regret = own["law_regret"][own["law_regret"].between(EXACT, np.inf)].sort_values(kind="stable")
        chosen: dict[str, list[str]] = {}
        for dataset in sorted(
            set(regret.index.get_level_values("dataset")), key=lambda name: (name not in places, name)
        ):
            values = regret.xs(dataset, level="dataset")
            order = [str(method) for method in values.index]
            chosen[str(dataset)] = order if len(order) <= LINES else [*order[: LINES // 2], *order[-(LINES // 2) :]]
        if (figure := coverage_figure(results, chosen)) is not None:
            blocks.append(figure)
        learned = [str(name) for name in table.index[table["law_regret"].between(EXACT, 1e9)]]
        learned = list(dict.fromkeys([*learned[:SIZES], *(name for name in learned if name == results.baseline)]))
        if learned and (figure := sizes_figure(results, own, learned)) is not None:
            blocks.append(figure)
    return blocks


def _classes(means: pd.DataFrame) -> Table:
    own = means.dropna(subset=["class_regret"])
    columns = [name for name in CLASSES if name in own]
    table = own[columns].groupby("method").median().sort_values("class_regret", kind="stable")
    if "confidence_gap" in table:
        table["what is wrong"] = [verdict({"confidence_gap": gap}) for gap in table["confidence_gap"]]
    caption = "Classes against their true probabilities, medians over datasets of means over seeds; least regret first"
    return Table(caption, table.rename_axis("method").reset_index(), name="truth-classes")


def _verdicts(means: pd.DataFrame) -> list[Block]:
    """Return what is wrong with every method on every dataset."""
    words = {place: verdict(_known(row)) for place, row in means.iterrows()}
    table = pd.Series(words).unstack(0)
    table.index.name = "method"
    return [Table("What is wrong, by dataset", table.fillna("–").reset_index(), name="truth-verdicts", folded=True)]


def _beyond_the_data(rows: pd.DataFrame) -> list[Block]:
    """Return the regret where there are data, in a gap between them, and beyond them."""
    own = named(rows, lambda name, condition: name == "law_regret" and condition.startswith("group="))
    if own.empty:
        return []
    own = own.assign(place=own["metric"].str.partition("group=")[2])
    blocks: list[Block] = []
    for dataset, part in own.groupby("dataset", sort=True):
        table = part.groupby(["method", "place"])["value"].mean().unstack("place")
        order = [name for name in ("data", "gap", "beyond") if name in table] or list(table.columns)
        table = table[order].sort_values(order[0], kind="stable").rename_axis("method").reset_index()
        table.columns.name = None
        blocks.append(
            Table(f"{dataset}: regret in nat by place, means over seeds", table, name=f"truth-places-{dataset}")
        )
    return blocks


def _posteriors(means: pd.DataFrame, whole: pd.DataFrame) -> list[Block]:
    """Return the comparison with exact posteriors, with a test of the ranks of the true function."""
    from scipy.stats import kstest

    if "posterior_ratio" not in means:
        return []
    ranks = whole[whole["metric"] == "function_rank"].groupby(["dataset", "method"])["value"]
    tests = {place: float(kstest(values, "uniform").pvalue) for place, values in ranks if len(values) > 2}
    blocks: list[Block] = []
    own = means.dropna(subset=["posterior_ratio"])
    for dataset, part in own[[name for name in POSTERIOR if name in own]].groupby("dataset", sort=True):
        table = part.droplevel("dataset").sort_values("posterior_distance", kind="stable")
        splits = max(len(values) for (name, _), values in ranks if name == dataset)
        table["ranks uniform, p"] = [probability(tests.get((dataset, name), np.nan)) for name in table.index]
        caption = (
            f"{dataset}: against the exact posterior of the function; function_coverage aims at 0.9, and the rank of "
            f"the true function at one row is uniform over splits, here {splits}, where the model uncertainty is right "
            "(simulation-based calibration)"
        )
        blocks.append(Table(caption, table.rename_axis("method").reset_index(), name=f"truth-posterior-{dataset}"))
    return blocks
