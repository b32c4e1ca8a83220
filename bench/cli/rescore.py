"""`uqbench rescore`: metrics from stored predictions, without training."""

from collections.abc import Sequence
from dataclasses import asdict

import click

from bench.cli.options import json_option, plugin_option, repeated, store_option, suite_argument
from bench.cli.output import Command, echo, fail
from bench.cli.store import plain, print_json
from bench.counts import plural


@click.command(cls=Command)
@suite_argument()
@repeated("--metric", "metrics", help="Only this metric; may be repeated.  [default: all]")
@store_option
@plugin_option
@json_option
def rescore(suite: str | None, metrics: Sequence[str], store: str, plugins: Sequence[str], as_json: bool) -> None:
    """Compute metrics of SUITE, or of all suites, from stored predictions: new ones, and those that changed.

    Nothing is trained, and what is up to date is not computed again. A stopped command goes on from where it was.
    """
    from bench.workflow import rescore as compute

    done = compute(store, suite, metrics=metrics, plugins=plugins)
    if as_json:
        print_json({**asdict(done), "names": sorted(done.names)})
    else:
        for key, reason in done.faults:
            echo(f"SKIPPED: predictions of cell {plain(key)}: {plain(reason)[:300]}", err=True)
        names = f" of {', '.join(sorted(done.names))}" if 0 < len(done.names) <= 5 else ""
        values = f"{plural(done.values, 'value')}{names} computed from the predictions of {plural(done.cells, 'cell')}"
        echo(f"{values} ({done.replaced} replaced); {plural(done.current, 'cell')} up to date")
        if done.without:
            lacking = f"{plural(done.without, 'cell')} without stored predictions"
            echo(f"{lacking}: run into another store with '--keep predictions' and merge it to have them")
    if done.left:
        fail(f"stopped with {plural(done.left, 'cell')} left; the same command goes on from there", 130)
    if done.faults:
        fail(f"exit code 1: the predictions of {plural(len(done.faults), 'cell')} cannot be read", 1)
