"""The options of where and how a command computes."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from bench.errors import UserError

if TYPE_CHECKING:
    from bench.run.driver import RunSettings
    from bench.run.executors.choice import Name

Command = Callable[..., Any]


@dataclass(frozen=True)
class ComputeOptions:
    """Where and with how many workers a command computes."""

    engine_name: "Name"
    workers: int | None
    address: str | None
    time_limit: float | None
    device: str
    compiling: str

    def settings(self) -> "RunSettings":
        """Return the settings of a run; raises if the options do not go together."""
        from bench.run.executors.choice import choose

        # The workers of a cluster have devices of their own.
        given = self.engine_name == "dask" and self.device != "auto"
        device = self.device if given else _device(self.device)
        executor = choose(self.engine_name, self.workers, self.address, device, self.time_limit)
        from bench.run.driver import RunSettings
        from bench.training.limits import Limits

        compiling = {"auto": None, "always": True, "never": False}[self.compiling]
        return RunSettings(executor, device, Limits(compiling=compiling))


OPTION_NAMES = tuple(field.name for field in fields(ComputeOptions))


def compute_options(command: Command) -> Command:
    """Give a command the options that say where and how it computes, as one argument `compute`."""

    @wraps(command)
    def with_options(**given: Any) -> Any:
        compute = ComputeOptions(**{name: given.pop(name) for name in OPTION_NAMES})
        return command(compute=compute, **given)

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
    wrapped: Command = with_options
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


def _device(name: str) -> str:
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: torch sees no CUDA device here; use --device cpu, or see 'uqbench doctor'")
    return "cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"
