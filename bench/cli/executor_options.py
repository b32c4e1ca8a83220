"""The options of where and how a command computes."""

from collections.abc import Callable
from functools import wraps
from typing import Any, get_args

import click

from bench.run.options import Compiling, Device, ExecutorName, RunOptions

Command = Callable[..., Any]


NAMES = ("executor", "workers", "address", "time_limit", "device", "compiling")


def compute_options(command: Command) -> Command:
    """Give a command the options of where and how it computes, as one argument `compute`."""

    @wraps(command)
    def with_options(**given: Any) -> Any:
        return command(compute=RunOptions(**{name: given.pop(name) for name in NAMES}), **given)

    options = (
        click.option(
            "--engine",
            "executor",
            type=click.Choice(get_args(ExecutorName)),
            default="auto",
            show_default=True,
            help="This process, worker processes or a Dask cluster; auto: workers where they pay.",
        ),
        click.option("--workers", type=click.IntRange(min=1), help="How many; by default one per core or GPU."),
        click.option("--address", metavar="tcp://HOST:PORT", help="The scheduler of a running Dask cluster."),
        click.option(
            "--time-limit",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help="A cell that takes longer fails.",
        ),
        click.option("--device", type=click.Choice(get_args(Device)), default="auto", show_default=True),
        click.option(
            "--compile",
            "compiling",
            type=click.Choice(get_args(Compiling)),
            default="auto",
            show_default=True,
            help="Compile training steps; auto: where it pays. Changes no more than rounding.",
        ),
    )
    wrapped: Command = with_options
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped
