"""`uqbench reproduce`: a published experiment, from nothing to its page."""

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import click

from bench.cli.executor_options import compute_options
from bench.cli.options import data_option, output_option, set_data_folder, store_option
from bench.cli.output import Command, echo
from bench.cli.run import end_of_run, print_summary

if TYPE_CHECKING:
    from bench.run.options import RunOptions


@click.command(cls=Command)
@click.argument("experiment")
@click.option("--protocol", metavar="NAME", help="Which protocol, where there are several.  [default: the first]")
@click.option("--full", is_flag=True, help="The whole experiment, also where it takes hours.")
@click.option("--seeds", type=click.IntRange(min=1), help="How many seeds (repeats), instead of the usual number.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key of the suite; repeatable.")
@store_option
@output_option("--out", show_default=True, default="report", metavar="DIR", help="The folder to write to.")
@compute_options
@data_option
def reproduce(
    experiment: str,
    protocol: str | None,
    full: bool,
    seeds: int | None,
    changes: Sequence[str],
    store: str,
    out: str,
    compute: "RunOptions",
    data: str | None,
) -> None:
    """Repeat a published EXPERIMENT (see 'uqbench list experiments'): run it, write its report, print the verdicts.

    What is stored is not run again: the same command continues a run that was stopped.
    """
    set_data_folder(data)
    from bench.reproduction import find_experiment

    found = find_experiment(experiment, protocol, full, seeds, changes)
    found.check_data()
    form = "the whole experiment" if found.whole else "a short form, --full is the whole"
    echo(f"{found.name} by protocol {found.protocol}, {form}: {found.title}")
    echo(f"suite {found.suite().name}, {found.duration(store, compute)}")
    done = found.reproduce(store, out, compute)
    with closing(done.run.store):
        print_summary(done.run.summary, done.run.suite.name, done.run.store.address, as_json=False)
    if done.page is not None:
        echo("\n".join(["", *done.verdicts, "", f"report: {done.page}"]))
    end_of_run(done.run.summary, done.run.stopped_by)
