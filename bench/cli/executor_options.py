"""The options of where and how a command computes."""

from collections.abc import Callable
from functools import wraps
from typing import Any, get_args

import click

from bench.cli.options import defaulted
from bench.run.options import Compiling, Device, ExecutorName, RunOptions
from bench.spec.keep import Exactness, What

Command = Callable[..., Any]


NAMES = ("executor", "workers", "address", "time_limit", "device", "compiling")
KEPT = ("keep", "keep_precision", "keep_networks")


def compute_options(command: Command) -> Command:
    """Give a command the options of where and how it computes, as one argument `compute`."""

    @wraps(command)
    def with_options(**given: Any) -> Any:
        return command(compute=RunOptions(**{name: given.pop(name) for name in (*NAMES, *KEPT)}), **given)

    where = "This process, worker processes or a Dask cluster; auto: workers where they pay."
    compiled = "Compile training steps; auto: where it pays. Changes no more than rounding."
    kept = "What is stored beside the values: all draws, mean and variance alone, or nothing."
    precision = "Of the draws: 16 bits where no metric changes by more than 1e-4 of its value, or float32."
    networks = "Keep trained networks beside the store, and train none that was kept before."
    seconds = click.FloatRange(min=0, min_open=True)
    options = (
        _choice("--engine", "executor", ExecutorName, where),
        click.option("--workers", type=click.IntRange(min=1), help="How many; by default one per core or GPU."),
        click.option("--address", metavar="tcp://HOST:PORT", help="The scheduler of a running Dask cluster."),
        click.option("--time-limit", type=seconds, metavar="SECONDS", help="A cell that takes longer fails."),
        _choice("--device", "device", Device, ""),
        _choice("--compile", "compiling", Compiling, compiled),
        _choice("--keep", "keep", What, kept),
        _choice("--keep-precision", "keep_precision", Exactness, precision),
        click.option("--keep-networks", is_flag=True, help=networks),
    )
    wrapped: Command = with_options
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


def _choice(flag: str, name: str, values: Any, text: str) -> Any:
    """Return the option of some words, of which the first is the default."""
    return defaulted(flag, name, type=click.Choice(get_args(values)), default=get_args(values)[0], help=text)
