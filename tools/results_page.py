"""Writes docs/results/index.md, what the published runs say, from the exports in results/ alone.

    python -m tools.results_page docs/results/index.md

A finding whose suite has no export is left out. Every number of the page is computed, verdicts and their words too.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from bench.api import declaration, stats
from bench.counts import plural
from bench.store.results import StoredResults
from bench.text_tables import markdown_table
from bench.workflow import recalibrate
from tools.draw_findings import latency, what_draws_buy
from tools.findings import (
    Exports,
    Finding,
    FindingMaker,
    Means,
    compared,
    comparison_table,
    names,
    not_shown_to_differ,
    probability,
    relative_cost,
)
from tools.pages import write_page

EXPORTS = Path(__file__).parents[1] / "results"
UCI = "leaderboard-uci"
INTRODUCTION = """# What the runs say

*Written by `python -m tools.results_page docs/results/index.md` from the exports in `results/`; edit the tool.*

Each finding has its numbers with 95 % intervals, its test, and the command that shows it. "Better" and "worse" are
verdicts of paired tests: splits that overlap are corrected for (Nadeau and Bengio), p-values by Holm over the datasets
of a comparison, or over everything that a finding compares; over datasets decides Wilcoxon's signed-rank test
([statistics.md](../statistics.md)). That no difference was shown does not say that two methods are equal. Times, and
what is said of means alone, have no test. Other studies: [the MCNI paper](../paper.md), [data whose law is
known](truth.md), and the other pages of this section."""


def complete_methods(results: StoredResults) -> list[str]:
    """Return the methods that have a cell on every dataset, in the order of the suite."""
    datasets = results.cells["dataset"].nunique()
    counts = results.cells[results.cells["status"].notna()].groupby("method", sort=False)["dataset"].nunique()
    return [str(method) for method in counts.index[counts == datasets]]


def which_method(exports: Exports) -> Finding | None:
    """Which method to use on a table."""
    results = exports.results(UCI)
    if results is None:
        return None
    methods = complete_methods(results)
    by = {metric: exports.ranking(results, metric, methods) for metric in ("crps_mixture", "nll", "rmse")}
    first = by["crps_mixture"]
    cost = relative_cost(results, "deterministic")
    best, tied = first.methods[0], not_shown_to_differ(first)
    others = [one.method for one in first.methods if one.method not in tied]
    separated = f"Shown to be worse: {names(others)}" if others else "None of the others was shown to be worse"
    text = (
        f"By CRPS over {plural(len(first.datasets), 'dataset')} `{best.method}` has the best average rank of "
        f"{len(methods)} methods ({best.average_rank:.1f}; that the methods differ at all: Friedman's test in Iman and "
        f"Davenport's form, {probability(first.iman_davenport[1])}). {separated}; {len(tied) - 1} others were not "
        "shown to differ from it, so its place is no reason to prefer it to them. Methods with a letter in common were "
        "not shown to differ (Nemenyi's critical difference). Processor time is that of a cell by that of "
        "`deterministic`, the median over datasets."
    )
    partial = [str(name) for name in dict.fromkeys(results.cells["method"]) if name not in methods]
    if partial:
        every = exports.ranking(results, "crps_mixture", [*methods, *partial])
        order = [one.method for one in every.methods]
        places = (
            f"`{one.method}` {one.average_rank:.1f}, place {order.index(one.method) + 1} of {len(order)}"
            for one in every.methods
            if one.method in partial
        )
        text += (
            f" Without a result on some dataset, and so not in the table: {names(partial)}. Average rank by CRPS on "
            f"the {plural(len(every.datasets), 'dataset')} that all methods have: {', '.join(places)}."
        )
    ranks = {metric: {one.method: one for one in ranking.methods} for metric, ranking in by.items()}
    rows = [
        [
            f"`{one.method}`",
            *(f"{ranks[metric][one.method].average_rank:.1f} {ranks[metric][one.method].groups}" for metric in by),
            f"{cost[one.method]:.1f}x",
        ]
        for one in first.methods
    ]
    head = ["method", "CRPS: average rank, letters", "NLL", "RMSE", "processor time of a cell"]
    return Finding(
        "Which method would we use on a table?",
        text,
        "\n".join(markdown_table(head, rows)),
        ("uqbench run leaderboard-uci", f"uqbench rank leaderboard-uci --metric crps_mixture {' '.join(methods)}"),
    )


def pair(
    exports: Exports, title: str, a: str, b: str, metrics: Sequence[str], why: str, suite: str = UCI
) -> Finding | None:
    """Return the finding of one method against another by some metrics."""
    results = exports.results(suite)
    if results is None:
        return None
    found = {metric: exports.comparison(results, a, b, metric) for metric in metrics}
    sentences = [f"By `{metric}`, `{a}` against `{b}` is {compared(one)}." for metric, one in found.items()]
    if not math.isnan(cost := relative_cost(results, b)[a]):
        sentences.append(f"A cell of `{a}` takes {cost:.1f} times the processor time.")
    text = f"{' '.join(sentences)} {why}"
    commands = [f"uqbench run {suite} --method {a} --method {b}"]
    commands += [f"uqbench compare {a} {b} {suite} --metric {metric}" for metric in metrics]
    return Finding(title, text.strip(), comparison_table(found), tuple(commands))


def coverage(exports: Exports) -> Finding | None:
    """Whose 95 % intervals cover 95 %, and what a scaling of the variance changes."""
    results = exports.results(UCI)
    if results is None:
        return None
    own = results.frame[results.frame["metric"] == "coverage95"]
    means = own.groupby(["method", "dataset"])["value"].mean().unstack("dataset")
    means = means.loc[[method for method in complete_methods(results) if method in means.index]]
    off = (means - 0.95).abs().mean(axis=1).sort_values()
    table = recalibrate(results)
    mace = table[(table["metric"] == "mace") & table["method"].isin(means.index)]
    scaled = mace.groupby(["method", "dataset", "correction"])["value"].mean().unstack("correction")
    both = scaled.groupby("method").mean()
    helped = int((both["variance scaling"] < both["raw"]).sum())
    near = [str(name) for name in off.index[off <= 0.01]]
    text = (
        f"Mean coverage of central 95 % intervals; where a method states no noise of its own, with one that was fitted "
        f"on held-out rows. Mean distance to 0.95 over datasets: at most 0.01 for {len(near)} of {len(off)} methods"
        f"{f' ({names(near)})' if near else ''}; farthest are {names([str(name) for name in off.index[::-1][:3]])} "
        f"({', '.join(f'{value:.3f} off' for value in off.to_numpy()[::-1][:3])}). "
        f"Scaling all variances by one number per cell, fitted on held-out rows, lowers the mean over datasets of the "
        f"calibration error (`mace`) of {helped} of {len(both)} methods: a check of how much is left once the size is "
        "right, not a result of the method."
    )
    rows = [
        [
            f"`{name}`",
            f"{means.loc[name].mean():.3f}",
            f"{means.loc[name].min():.3f} to {means.loc[name].max():.3f}",
            *(f"{both.loc[name, kind]:.3f}" if name in both.index else "–" for kind in ("raw", "variance scaling")),
        ]
        for name in off.index
    ]
    head = ["method", "coverage95, mean", "over datasets", "mace", "mace after variance scaling"]
    commands = ("uqbench run leaderboard-uci", "uqbench report leaderboard-uci --out report")
    return Finding("Whose intervals cover what they say?", text, "\n".join(markdown_table(head, rows)), commands)


def under_shift(exports: Exports, suite: str, title: str, options: str = "", why: str = "") -> Finding | None:
    """How accuracy and calibration go under shift."""
    results = exports.results(suite)
    if results is None:
        return None
    shown = ["accuracy", "accuracy@all:5", "ece", "ece@all:5", "ood_auroc@all:5"]
    values = Means(results, shown)
    methods = [method for _, method in values.places]
    rows = [
        [f"`{method}`", *(values.text(dataset, method, name) for name in shown)] for dataset, method in values.places
    ]
    base = results.baseline or methods[0]
    others = [method for method in methods if method != base]
    verdicts = {}
    for name in ("ece@all:5", "accuracy@all:5"):
        found = stats.compare_each(results.frame, others, base, [declaration(name)], cells=results.cells)
        verdicts[name] = {word: [one.a for one in found if one.rows[0].verdict == word] for word in ("better", "worse")}
    ece, accuracy = (
        f"better for {names(each['better']) or 'no method'} and worse for {names(each['worse']) or 'none'}"
        for each in verdicts.values()
    )
    text = (
        f"At the strongest corruption, mean over all kinds, the calibration error (ECE) against `{base}` is shown to "
        f"be {ece}, and the accuracy {accuracy} (p by Holm over {plural(len(others), 'method')}, each metric by "
        f"itself; below mean ± standard deviation over {results.cells['seed'].nunique()} seeds). {why}"
    )
    head = ["method", "accuracy", "at severity 5", "ECE", "at severity 5", "detection of shift (AUROC)"]
    commands = (f"uqbench run {suite}{options}", f"uqbench report {suite} --out report")
    return Finding(title, text.strip(), "\n".join(markdown_table(head, rows)), commands)


FINDINGS: tuple[FindingMaker, ...] = (
    which_method,
    lambda exports: pair(
        exports,
        "What does an ensemble buy, and cost?",
        "deep-ensemble",
        "deterministic",
        ("rmse", "crps_mixture"),
        "It trains five networks, side by side with those of other cells.",
    ),
    lambda exports: pair(
        exports,
        "Should the networks state a variance?",
        "mean-variance-ensemble",
        "deep-ensemble",
        ("crps_mixture", "nll"),
        "Both train five networks; the second has one noise level for all rows.",
    ),
    lambda exports: pair(
        exports,
        "What does the noise of MCNI buy beside one network?",
        "mcni-learned",
        "deterministic",
        ("crps_mixture", "rmse"),
        "Both have an observation noise fitted on the same rows; what is compared is what the draws add to it.",
    ),
    lambda exports: pair(
        exports,
        "MCNI or MC dropout?",
        "mcni-learned",
        "mc-dropout",
        ("crps_mixture", "rmse"),
        "With the levels of the suite: a dropout rate of 0.05, noise levels that start at 0.05.",
    ),
    lambda exports: pair(
        exports,
        "Is the learned noise better than the fixed one?",
        "mcni-learned",
        "mcni-fixed",
        ("crps_mixture", "interval_score95"),
        "",
    ),
    lambda exports: pair(
        exports,
        "What does conformal calibration buy?",
        "conformalised-quantile-regression",
        "quantile-regression",
        ("coverage95", "interval_score95"),
        "Coverage is compared by its distance to 0.95.",
    ),
    lambda exports: pair(
        exports,
        "And on images: MCNI or MC dropout?",
        "mcni-fixed",
        "mc-dropout",
        ("accuracy", "ece", "nll_categorical"),
        "CIFAR-10 with the 5,000 parameters and the settings of public code, but 16 epochs instead of 160; five "
        "initial weights on one set of test images, so that nothing is said about other images.",
        "cifar10-code-short",
    ),
    lambda exports: pair(
        exports,
        "What does an ensemble buy on images?",
        "deep-ensemble",
        "deterministic",
        ("accuracy", "nll_categorical", "ece"),
        "The same five runs; an ensemble has the weights of `deterministic` and four others. Its probabilities are the "
        "mean of five, which are less sure than those of one network. Processor time is not compared: the networks "
        "of the ensembles had been kept by another run.",
        "cifar10-code-short",
    ),
    coverage,
    what_draws_buy,
    latency,
    lambda exports: under_shift(exports, "shift-digits", "What is left under shift?", " --method all --seeds 10"),
    lambda exports: under_shift(
        exports,
        "shift-cifar10-code-short",
        "And of photographs under shift?",
        why="CIFAR-10 with networks of 5,000 parameters and 16 epochs; the first 2,000 test images, ten draws.",
    ),
)


def runs(exports: Exports) -> str:
    """Return which runs the page is made of."""
    rows = []
    for suite, record in exports.store.suites().items():
        results = exports.results(suite)
        assert results is not None
        cells = results.cells
        done = cells[cells["status"].notna()]
        lost = int(done["status"].isin(["failed", "diverged"]).sum())
        codes = ", ".join(f"`{code[:7]}`" for code in dict.fromkeys(done["code"]) if code)
        rows.append(
            [
                f"`{suite}`",
                record["title"],
                f"{len(done):,}",
                f"{done['cpu_seconds'].sum() / 3600:.2g} h",
                str(lost),
                codes,
            ]
        )
    head = ["suite", "", "cells", "processor time", "diverged or failed", "code"]
    return "\n".join(["## The runs", "", *markdown_table(head, rows)])


def page(exports: Exports) -> str:
    """Return the page of all exports of a folder."""
    found = [finding for make in FINDINGS if (finding := make(exports)) is not None]
    sections = [finding.markdown(number) for number, finding in enumerate(found, 1)]
    return "\n\n".join([INTRODUCTION, *sections, runs(exports)])


if __name__ == "__main__":
    with Exports(EXPORTS) as published:
        write_page(__doc__, lambda: page(published))
