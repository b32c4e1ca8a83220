"""The choices of a user on where and how cells are computed, and the settings they lead to."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from bench.errors import UserError, unknown_name
from bench.spec.keep import Exactness, Keep, What
from bench.spec.sizes import LONGEST_TIME_LIMIT, MOST_WORKERS

if TYPE_CHECKING:
    from bench.run.driver import RunSettings

ExecutorName = Literal["auto", "inline", "local", "dask"]
Device = Literal["auto", "cpu", "cuda"]
Compiling = Literal["auto", "always", "never"]


@dataclass(frozen=True)
class RunOptions:
    """Where and how cells are computed. None of it changes a result by more than rounding."""

    executor: ExecutorName = "auto"  # this process, worker processes or a Dask cluster; auto: workers where they pay
    workers: int | None = None  # None: one per core, or one per GPU
    address: str | None = None  # of the scheduler of a running Dask cluster
    time_limit: float | None = None  # seconds; a cell that takes longer fails
    device: Device = "auto"
    compiling: Compiling = "auto"  # of training steps; auto: where it pays
    progress: bool | None = None  # whether a progress bar is shown; None: in a terminal
    keep: What = "predictions"  # what is stored beside the values: all draws, mean and variance alone, or nothing
    keep_networks: bool = False  # keep trained networks beside the store, and train none that was kept before
    keep_precision: Exactness = "compact"  # 16 bits where that changes no metric by more than 1e-4 of it, or float32

    def __post_init__(self) -> None:
        for name, known in (("executor", ExecutorName), ("device", Device), ("compiling", Compiling)):
            if getattr(self, name) not in get_args(known):
                raise unknown_name(name, str(getattr(self, name)), get_args(known))
        self._keep()
        for name, value in (("workers", self.workers), ("time_limit", self.time_limit)):
            if value is not None and not value > 0:
                raise UserError(f"{name}: expected a number above 0, or None for the default; got {value!r}")
        if self.workers is not None and self.workers > MOST_WORKERS:
            raise UserError(f"workers: at most {MOST_WORKERS:,}; got {self.workers:,}")
        if self.time_limit is not None and self.time_limit > LONGEST_TIME_LIMIT:
            raise UserError(f"time_limit: at most {LONGEST_TIME_LIMIT:,} seconds (a year); got {self.time_limit:g}")

    def _keep(self) -> Keep:
        return Keep(self.keep, self.keep_precision, self.keep_networks)

    def settings(self) -> "RunSettings":
        """Return the settings of a run; raises if the options do not go together."""
        from bench.run.executors.choice import choose

        # The workers of a cluster have devices of their own.
        given = self.executor == "dask" and self.device != "auto"
        device = self.device if given else _device(self.device)
        executor = choose(self.executor, self.workers, self.address, device, self.time_limit)
        from bench.run.driver import RunSettings
        from bench.training.limits import Limits

        compiling = {"auto": None, "always": True, "never": False}[self.compiling]
        return RunSettings(executor, device, Limits(compiling=compiling), self.time_limit, keep=self._keep())


def _device(name: str) -> str:
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: torch sees no CUDA device here; use --device cpu, or see 'uqbench doctor'")
    return "cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"
