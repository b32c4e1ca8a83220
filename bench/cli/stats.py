"""`uqbench compare` and `uqbench rank`: verdicts on stored results."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from bench.cli.options import (
    collect_garbage_rarely,
    defaulted,
    json_option,
    plugin_option,
    repeated,
    store_option,
    suite_argument,
)
from bench.cli.output import Command, echo
from bench.errors import unknown_name
from bench.json_values import without_nan

metric_option = repeated("--metric", "metrics", help="Only this metric; may be repeated.  [default: the suite's]")
alpha_option = defaulted("--alpha", default=0.05, help="The level of the tests.")
correction_option = defaulted("--correction", default="holm", metavar="holm|bh", help="Holm, or Benjamini-Hochberg.")


@click.command(cls=Command)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@suite_argument()
@metric_option
@store_option
@repeated("--dataset", "datasets", help="Only this dataset; may be repeated.")
@defaulted(
    "--margin",
    default="0.5sd",
    metavar="SIZE",
    help="Differences below it do not matter: a number in the metric's unit, or a share of the seeds' deviation.",
)
@click.option(
    "--test-share",
    type=float,
    metavar="SHARE",
    help="Take repeats with other rows for overlapping splits with this share of test rows; 0: for independent ones.  "
    "[default: as the dataset declares]",
)
@defaulted("--power", default=0.8, help="For the smallest difference seen and the seeds needed.")
@alpha_option
@correction_option
@plugin_option
@json_option
def compare(
    a: str,
    b: str,
    metrics: Sequence[str],
    suite: str | None,
    store: str,
    datasets: Sequence[str],
    margin: str,
    test_share: float | None,
    power: float,
    alpha: float,
    correction: str,
    plugins: Sequence[str],
    as_json: bool,
) -> None:
    """Compare method A with method B: on every dataset, and over the datasets.

    SUITE may be left out where the store holds only one. Values are paired by split and seed. The verdict is about A:
    better, worse, equivalent or inconclusive.
    """
    collect_garbage_rarely()
    from bench.stats import Margin, Settings
    from bench.stats.text import comparison_answer, comparison_lines
    from bench.workflow import compare_methods, load_results

    settings = Settings(
        alpha=alpha, power=power, correction=_correction(correction), margin=Margin.read(margin), test_share=test_share
    )
    results = load_results(store, suite, plugins=plugins)
    comparison = compare_methods(results, a, b, metrics=metrics, datasets=datasets, settings=settings)
    if as_json:
        _print_json({"suite": results.suite, "store": results.store.address, **asdict(comparison)})
        return
    echo("\n".join([*comparison_answer(comparison, results.suite), "", *comparison_lines(comparison)]))


@click.command(cls=Command)
@click.argument("names", nargs=-1, metavar="[SUITE] [METHOD]...")
@metric_option
@click.option("--suite", metavar="NAME", help="The same as SUITE.")
@store_option
@alpha_option
@correction_option
@plugin_option
@json_option
def rank(
    names: Sequence[str],
    metrics: Sequence[str],
    suite: str | None,
    store: str,
    alpha: float,
    correction: str,
    plugins: Sequence[str],
    as_json: bool,
) -> None:
    """Rank methods (all, or those named) over the datasets of a suite, and test which ranks differ.

    SUITE may be left out where the store holds only one; a first name that is none of a suite in the store is a METHOD.
    """
    collect_garbage_rarely()
    from bench.stats import Settings
    from bench.stats.text import ranking_answer, ranking_lines
    from bench.workflow import load_results, open_store, rank_methods

    settings = Settings(alpha=alpha, correction=_correction(correction))
    methods = list(names)
    if suite is None and methods and methods[0] in open_store(store, writable=False).suites():
        suite = methods.pop(0)
    results = load_results(store, suite, plugins=plugins)
    found = rank_methods(results, methods=methods, metrics=metrics, settings=settings)
    if as_json:
        _print_json({"suite": results.suite, "store": results.store.address, **asdict(found)})
        return
    echo("\n".join(ranking_answer(found.rankings, results.suite)))
    for ranking in found.rankings:
        echo("\n" + "\n".join(ranking_lines(ranking)))
    for reason in found.left_out:
        echo(f"not ranked: {reason}", err=True)


def _correction(text: str) -> Any:
    from bench.stats.corrections import NAMES

    if text not in NAMES:
        raise unknown_name("correction", text, NAMES)
    return text


def _print_json(content: dict[str, Any]) -> None:
    echo(json.dumps(without_nan(content), indent=2, allow_nan=False))
