"""The options of where and how a command computes."""

from collections.abc import Callable
from functools import wraps
from typing import Any, get_args

import click

from bench.cli.options import defaulted
from bench.run.options import Compiling, Device, ExecutorName, RunOptions

Command = Callable[..., Any]


NAMES = ("executor", "workers", "address", "time_limit", "device", "compiling")


def compute_options(command: Command) -> Command:
    """Give a command the options of where and how it computes, as one argument `compute`."""

    @wraps(command)
    def with_options(**given: Any) -> Any:
        return command(compute=RunOptions(**{name: given.pop(name) for name in NAMES}), **given)

    where = "This process, worker processes or a Dask cluster; auto: workers where they pay."
    compiled = "Compile training steps; auto: where it pays. Changes no more than rounding."
    seconds = click.FloatRange(min=0, min_open=True)
    options = (
        _choice("--engine", "executor", ExecutorName, where),
        click.option("--workers", type=click.IntRange(min=1), help="How many; by default one per core or GPU."),
        click.option("--address", metavar="tcp://HOST:PORT", help="The scheduler of a running Dask cluster."),
        click.option("--time-limit", type=seconds, metavar="SECONDS", help="A cell that takes longer fails."),
        _choice("--device", "device", Device, ""),
        _choice("--compile", "compiling", Compiling, compiled),
    )
    wrapped: Command = with_options
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


def _choice(flag: str, name: str, values: Any, text: str) -> Any:
    return defaulted(flag, name, type=click.Choice(get_args(values)), default="auto", help=text)
