"""`uqbench leaderboard`: stored results as a static site."""

from collections.abc import Sequence

import click

from bench.cli.options import (
    collect_garbage_rarely,
    output_option,
    plugin_option,
    repeated,
    repository_option,
    store_option,
    suites_argument,
)
from bench.cli.output import Command, echo
from bench.counts import plural


@click.command(cls=Command)
@suites_argument
@store_option
@output_option("--out", show_default=True, default="leaderboard", metavar="DIR", help="Where the pages are written.")
@repeated("--metric", "metrics", help="Only this metric; repeatable; 'all' for all.  [default: the suite's, and costs]")
@click.option("--version", default="", metavar="NAME", help="Publish the boards under this name.")
@click.option("--frozen", metavar="FILE", help="Keep the places of a published leaderboard.json.")
@repository_option
@plugin_option
def leaderboard(
    store: str,
    out: str,
    suites: Sequence[str],
    metrics: Sequence[str],
    version: str,
    frozen: str | None,
    repository: str | None,
    plugins: Sequence[str],
) -> None:
    """Write the stored results as a static site: index.html, one page per method and dataset, leaderboard.json.

    A new method changes the places of others, unless the site continues a published version (--frozen): then methods
    that entered since are tested against the baseline and have no place.

    Without SUITE it has all suites.

    A row without full provenance (code version, packages, machine, seeds, hash of the data) is not listed.
    """
    collect_garbage_rarely()
    from bench.workflow import write_leaderboard

    options = {"suites": suites, "metrics": metrics, "plugins": plugins}
    page, found = write_leaderboard(store, out, version=version, frozen=frozen, repository=repository, **options)
    hidden = [one for one in found.unlisted if one.provenance]
    empty = len(found.unlisted) - len(hidden)
    echo(f"leaderboard: {page}, {plural(len(found.rows), 'row')} listed")
    if empty:
        echo(f"not listed: {plural(empty, 'row')} without a result")
    if hidden:
        echo(f"not listed: {plural(len(hidden), 'row')} without full provenance, such as {hidden[0].reason}")
