"""The options that say where and how a command computes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from bench.errors import UserError

if TYPE_CHECKING:
    from bench.run.executors import Engine
    from bench.run.executors.choice import Name
    from bench.training.limits import Limits

Command = Callable[..., Any]


@dataclass(frozen=True)
class How:
    """Where and with how many workers a command computes."""

    engine_name: "Name"
    workers: int | None
    address: str | None
    time_limit: float | None
    device: str
    compiling: str

    def limits(self) -> "Limits":
        """Return how the engine may use the machine."""
        from bench.training.limits import Limits

        return Limits(compiling={"auto": None, "always": True, "never": False}[self.compiling])

    def place(self) -> str:
        """Return the device; a cluster's workers have their own."""
        return self.device if self.engine_name == "dask" and self.device != "auto" else _device(self.device)

    def engine(self) -> "Callable[[float], Engine]":
        """Return what makes the engine."""
        from bench.run.executors.choice import choose

        return choose(self.engine_name, self.workers, self.address, self.place(), self.time_limit)


def engine_options(command: Command) -> Command:
    """Give a command the options that say how it computes, as one argument."""

    @wraps(command)
    def with_how(
        engine_name: "Name",
        workers: int | None,
        address: str | None,
        time_limit: float | None,
        device: str,
        compiling: str,
        **rest: Any,
    ) -> Any:
        return command(how=How(engine_name, workers, address, time_limit, device, compiling), **rest)

    options = (
        click.option(
            "--engine",
            "engine_name",
            type=click.Choice(["auto", "inline", "local", "dask"]),
            default="auto",
            show_default=True,
            help="This process, worker processes or a Dask cluster; auto: workers where they pay.",
        ),
        click.option("--workers", type=click.IntRange(min=1), help="How many; by default one a core, or one a GPU."),
        click.option("--address", metavar="tcp://HOST:PORT", help="The scheduler of a running Dask cluster."),
        click.option(
            "--time-limit",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help="A cell that takes longer fails.",
        ),
        click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True),
        click.option(
            "--compile",
            "compiling",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            show_default=True,
            help="Compile training steps; auto: where it pays. Changes no more than rounding.",
        ),
    )
    wrapped: Command = with_how
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


def _device(name: str) -> str:
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: torch sees no CUDA device here; use --device cpu, or see 'uqbench doctor'")
    return "cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"
