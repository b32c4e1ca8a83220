"""Running a suite: plan, fit, draw, score, store, one task (dataset x method) at a time.

A cell is stored the moment its last network is trained. What a plug-in does wrong is the failure of its cells, told
with its traceback, never the end of the run.
"""

import math
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.api import Array, Split
from bench.draw import Drawing, draw
from bench.environment import facts
from bench.member import Fitted, Member, finished
from bench.metrics import Forecast, fit_noise_variance, score
from bench.networks import network_factory
from bench.plan import Cell, Refused, Task, plan
from bench.prepare import Prepared, prepare
from bench.registry import Registry, in_one_line
from bench.stack import Limits, fit
from bench.store import Outcome, Store
from bench.suite import Suite
from bench.tape import stream


@dataclass
class Summary:
    """What a run did."""

    stored: int = 0
    skipped: int = 0  # stored already
    diverged: int = 0
    failures: list[tuple[Cell, str]] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def well(self) -> bool:
        """Did everything that was asked run?"""
        return not self.failures and not any(r.fault for r in self.refused)


Watch = Callable[[Cell, Outcome | None], None]  # no outcome: it was stored before


def run(
    suite: Suite, registry: Registry, store: Store, *, device: str = "cpu", limits: Limits = Limits(),
    watch: Watch = lambda cell, outcome: None,
) -> Summary:  # fmt: skip
    """Run what the store does not have yet."""
    summary = Summary()
    began = time.perf_counter()
    environment = facts(device)
    if suite.whole:
        store.forget(suite.name)
    for task in plan(suite, registry):
        if isinstance(task, Refused):
            summary.refused.append(task)
            store.remark(suite.name, task.dataset, task.method, [f"could not run: {task.reason}"])
            continue
        store.remark(suite.name, task.dataset, "", task.notes)
        store.remark(suite.name, task.dataset, task.method, [])
        store.want(suite.name, suite.title, suite.baseline, suite.metrics, task.cells)
        done = store.done(cell.key for cell in task.cells)
        for cell in task.cells:
            if cell.key in done:
                summary.skipped += 1
                watch(cell, None)
        missing = [(cell, split) for cell, split in zip(task.cells, task.splits, strict=True) if cell.key not in done]
        for cell, outcome in outcomes(task, missing, device, limits):
            store.save(cell, outcome, environment)
            summary.stored += outcome.status != "failed"
            summary.diverged += outcome.status == "diverged"
            if outcome.status == "failed":
                summary.failures.append((cell, outcome.message))
            watch(cell, outcome)
    summary.seconds = time.perf_counter() - began
    return summary


def outcomes(
    task: Task, missing: Sequence[tuple[Cell, Split]], device: str, limits: Limits
) -> Iterator[tuple[Cell, Outcome]]:
    """Yield the outcome of each missing cell of a task as it ends."""
    open_cells = dict(enumerate(cell for cell, _ in missing))
    try:
        for number, outcome in _trained(task, missing, device, limits):
            yield open_cells.pop(number), outcome
    except Exception as error:  # whatever a plug-in raises in training fails the cells that were in the stack
        message = _told(error)
        for cell in open_cells.values():
            yield cell, Outcome("failed", message)


def _trained(
    task: Task, missing: Sequence[tuple[Cell, Split]], device: str, limits: Limits
) -> Iterator[tuple[int, Outcome]]:
    networks = task.plugin.networks
    prepared = [prepare(split, task.protocol, cell.seed, device) for cell, split in missing]
    members = [
        _member(task, data, split, cell.seed if k == 0 else stream(cell.seed, "network", k))
        for (cell, split), data in zip(missing, prepared, strict=True)
        for k in range(networks)
    ]
    fitted: dict[int, dict[int, Fitted]] = {number: {} for number in range(len(missing))}
    for place, result in fit(members, limits):
        number, k = divmod(place, networks)
        fitted[number][k] = result
        if len(fitted[number]) == networks:
            cell, split = missing[number]
            try:
                trained = [finished(members[number * networks + k], fitted[number][k]) for k in range(networks)]
                outcome = _judged(task, cell, split, prepared[number], trained, limits)
            except Exception as error:  # a fault in drawing or scoring is this cell's alone
                outcome = Outcome("failed", _told(error))
            del fitted[number]
            yield number, outcome


def _member(task: Task, data: Prepared, split: Split, seed: int) -> Member:
    problem = split.problem
    new_network = network_factory(task.protocol.network, problem)
    return Member(
        task.plugin, problem, new_network, repr(task.protocol.network), task.protocol.training, data.rows, seed
    )  # fmt: skip


def _judged(
    task: Task, cell: Cell, split: Split, data: Prepared, networks: Sequence[Fitted], limits: Limits
) -> Outcome:  # fmt: skip
    """Draw from a cell's trained networks and score what they say."""
    training = _training_record(networks)
    lost = [k for k, network in enumerate(networks) if network.status == "diverged"]
    if lost:
        first = networks[lost[0]]
        which = f"network {lost[0]}" if len(networks) > 1 else "the network"
        message = f"the loss of {which} was not finite in epoch {first.epochs}"
        return Outcome("diverged", message, training=training)

    def drawn(x: Any, stream_name: str) -> Array:
        seed = stream(cell.seed, stream_name)
        return draw(Drawing(task.plugin, networks, split.task, x, seed, task.protocol.draws), limits)

    draws = drawn(data.test_x, "test")
    held = data.rows.validation
    held_draws = drawn(data.rows.x[held], "validation") if split.task == "regression" and len(held) else None
    if not np.isfinite(draws).all() or (held_draws is not None and not np.isfinite(held_draws).all()):
        return Outcome("diverged", "a drawn prediction was not finite", training=training)
    if split.task == "classification":
        forecast = Forecast("classification", split.test_y, draws)
    else:
        means, stated = data.original(draws)
        noise = None
        if held_draws is not None:
            held_means, held_stated = data.original(held_draws)
            noise = fit_noise_variance(split.train_y[held.numpy()], held_means, held_stated)
        forecast = Forecast("regression", split.test_y, means, stated, noise, data.scale)
    metrics = {name: value for name, value in score(forecast).items() if not math.isnan(value)}
    return Outcome("ok", metrics=metrics, training=training, arrays=_curves(split, forecast))


def _told(error: Exception) -> str:
    """Return the reason in one line, then the traceback."""
    return "\n".join([in_one_line(error), "", traceback.format_exc()])


def _curves(split: Split, forecast: Forecast) -> dict[str, Array]:
    """Return what figures are drawn from; inputs only where they are one number a row and can be an axis."""
    arrays = {"observed": np.asarray(split.test_y), "mean": forecast.mean, "variance": forecast.variance}
    if split.test_x.ndim == 2 and split.test_x.shape[1] == 1:
        arrays["x"] = np.asarray(split.test_x)
    if split.test_truth is not None:
        arrays["truth"] = np.asarray(split.test_truth)
    return arrays


def _training_record(networks: Sequence[Fitted]) -> Mapping[str, Any]:
    finite = [n.train_loss if math.isfinite(n.train_loss) else None for n in networks]
    return {
        "epochs": [n.epochs for n in networks],
        "train_loss": finite,
        "validation_loss": [n.validation_loss for n in networks],
    }
