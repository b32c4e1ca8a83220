"""The choice of a mode: all ways draw the same functions, the fastest wins, and what was not tried has a reason."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.api import Method
from bench.errors import UserError
from bench.methods.deep_ensemble import DeepEnsemble
from bench.methods.mc_batch_norm import MCBatchNorm
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.probes.latency import modes, tuning
from bench.probes.latency.modes import Compiled, Recorded, name_of, ways_to_draw
from bench.probes.latency.tuning import tuned
from bench.training.drawing import Drawing, Functions, draw
from bench.training.limits import Limits
from tests.probes.latency.test_passes import FakeClock, job


def replayed(call: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
    """A recording as CUDA graphs make one: replaying writes new values to where the first ones are."""
    output = call()
    return (lambda: output.copy_(call())), output


METHODS = [(MCDropout(), 1), (MCDropout(per_row=True), 1), (MCNIFixed(), 1), (MCNIFixed(), 2), (DeepEnsemble(), 6)]
IDS = ["mask", "masks", "noise", "noisy-ensemble", "ensemble"]


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize(("method", "networks"), METHODS, ids=IDS)
def test_all_ways_draw_the_same_functions(
    method: Method, networks: int, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda graph, **options: graph)
    monkeypatch.setattr(modes, "BYTES_IN_CACHE", 10_000)
    monkeypatch.setattr(modes, "compiler_found", lambda: True)
    drawing = job(method, networks, task)
    whole = Functions(drawing, Limits())
    ways, left_out = ways_to_draw(whole, 2**20, Compiled(), replayed)
    assert not left_out
    assert len(ways) >= 6
    with torch.no_grad():
        for way in ways.values():
            functions = way(whole)
            for rows in (drawing.x, drawing.x[:20].flip(0)):  # other rows through the same recording or graph
                values = torch.cat(list(functions.at(rows)), dim=1).numpy()
                again = Drawing(drawing.method, drawing.networks, drawing.task, rows, 7, 6)
                np.testing.assert_allclose(values, draw(again), atol=1e-5)


def test_ways_say_how_draws_are_computed() -> None:
    names = {
        type(method).__name__ + str(networks): name_of(Functions(job(method, networks), Limits()))
        for method, networks in (*METHODS[2:], (MCDropout(), 1))
    }
    assert names == {
        "MCDropout1": "folded into the batch, 6 draws per call",
        "MCNIFixed1": "vectorised, 6 draws per call",
        "MCNIFixed2": "vectorised, 6 draws per call",
        "DeepEnsemble6": "vectorised, 6 draws per call",
    }
    assert name_of(Functions(job(MCDropout(), 1), Limits(path="plain"))) == "one by one"


def test_repeated_calls_have_a_name_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.training.drawing.BYTES_IN_CACHE", 1)
    monkeypatch.setattr("bench.training.drawing.FEWEST_PARTS", 2)
    ways, _ = ways_to_draw(Functions(job(MCNIFixed(), 1), Limits()), 2**20, None, None)
    assert list(ways) == ["vectorised, 2 draws per repeated call", "one by one", "vectorised, 6 draws per call"]


def test_buffers_that_change_are_not_folded() -> None:
    drawing = job(MCBatchNorm(), 1)
    (net,) = drawing.networks
    statistics = {name: b.expand(50, *b.shape).clone() for name, b in net.buffers.items() if b.ndim}
    net.memory.update(statistics)  # type: ignore[attr-defined]  # what `finish` would return
    assert not Functions(drawing, Limits()).folds


def test_a_recording_reads_new_rows_and_numbers_and_keeps_no_values() -> None:
    recorded, calls = Recorded(replayed), []

    def call(tensors: Any, x: Tensor, normals: Tensor, uniforms: Tensor) -> Tensor:
        calls.append(1)
        return x * normals + uniforms

    ones = torch.ones(3)
    first = recorded((0,), call, (), ones, 2 * ones, ones)
    second = recorded((0,), call, (), 5 * ones, ones, 2 * ones)
    assert (first.tolist(), second.tolist()) == ([3.0] * 3, [7.0] * 3)
    other = recorded((1,), lambda *given: -call(*given), (), ones, ones, ones)  # other networks: another recording
    assert other.tolist() == [-2.0] * 3


class Ways:
    """Ways that take some milliseconds each, by a clock that stands still otherwise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **milliseconds: float) -> None:
        self.clock, self.milliseconds, self.change = FakeClock(), milliseconds, dict[str, Any]()
        monkeypatch.setattr(
            tuning, "ways_to_draw", lambda *given: ({name: self._way(name) for name in milliseconds}, {})
        )

    def _way(self, name: str) -> Callable[[Functions], Functions]:
        def evaluate(numbers: Any, call: Any, *given: Any) -> Tensor:
            self.clock.spend(self.milliseconds[name], name)
            values: Tensor = call(*given)
            change = self.change.get(name)
            return values if change is None else change(values)

        return lambda functions: functions.evaluated_by(evaluate)

    def chosen(self, budget: float = 10.0) -> tuple[Any, tuning.Choice]:
        drawing = job(MCDropout(), 1)
        now = lambda: self.clock.now / 1000  # noqa: E731
        with torch.no_grad():
            return tuned(drawing, Limits(), budget, self.clock, None, now)


def test_the_fastest_way_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = Ways(monkeypatch, fixed=10.0, slow=20.0, fast=5.0)
    mode, choice = ways.chosen()
    assert (choice.chosen, choice.fixed, mode.name) == ("fast", "fixed", "fast")
    assert choice.tried == {"fixed": 10.0, "slow": 20.0, "fast": 5.0}
    assert choice.draws == 6
    assert choice.bit_equal
    ways.clock.log.clear()
    with torch.no_grad():
        mode.evaluate(torch.zeros(30, 8))
    assert ways.clock.log == ["fast"]


def test_the_fixed_way_is_kept_where_no_other_is_clearly_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Ways(monkeypatch, fixed=10.0, other=9.8).chosen()[1].chosen == "fixed"


def test_values_that_are_rounded_otherwise_are_told_and_wrong_ones_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways = Ways(monkeypatch, fixed=10.0, wrong=1.0, rounded=2.0)
    ways.change = {"wrong": lambda values: values + 1, "rounded": lambda values: values * (1 + 1e-6)}
    choice = ways.chosen()[1]
    assert choice.chosen == "rounded"
    assert not choice.bit_equal
    assert choice.left_out == {"wrong": "it gave other values than the fixed way"}


def test_a_way_that_fails_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(values: Tensor) -> Tensor:
        raise torch.OutOfMemoryError("no memory\nfor this")

    ways = Ways(monkeypatch, fixed=10.0, large=1.0)
    ways.change = {"large": fails}
    choice = ways.chosen()[1]
    assert choice.chosen == "fixed"
    assert list(choice.left_out) == ["large"]
    assert "out of memory while drawing" in choice.left_out["large"]
    ways.change = {"fixed": fails}
    # Without the way of every run there is nothing to compare with.
    with pytest.warns(UserWarning, match="half the size"), pytest.raises(UserError, match="none for one draw"):
        ways.chosen()


def test_what_the_budget_leaves_no_time_for_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = Ways(monkeypatch, fixed=10.0, compiled=5000.0, late=1.0).chosen(budget=2.0)[1]
    assert choice.chosen == "fixed"
    assert choice.left_out == {"late": "the time for trials was used up before"}


def test_trials_have_fewer_draws_where_all_would_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing, clock = job(MCNIFixed(), 1), FakeClock()
    monkeypatch.setattr(tuning, "_milliseconds", lambda job, mode, clock: 100.0)
    with torch.no_grad():
        assert tuning._draws_to_try(drawing, Limits(), 0.35, clock) == 3
        assert tuning._draws_to_try(drawing, Limits(), 60.0, clock) == 6
        assert tuning._draws_to_try(drawing, Limits(), 0.001, clock) == 2


def test_on_a_cpu_graphs_are_left_out_and_compiling_where_nobody_asks() -> None:
    ways, left_out = ways_to_draw(Functions(job(MCDropout(), 1), Limits()), 2**20, None, None)
    assert list(ways) == ["folded into the batch, 6 draws per call", "one by one"]
    assert set(left_out) == {"graphs", "compiled"}
