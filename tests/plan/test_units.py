"""From cells to units of work."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.plan.cells import Task, plan
from bench.plan.suite import load_suite
from bench.plan.units import BYTES, LONGEST, Estimate, Unit, Units, cut, makespan
from bench.plugins.registry import Registry
from bench.spec.cell import Cell

SMALL = Estimate(steps=1000, seconds_a_member_step=1e-5, networks=1, seconds_beside=0.01, bytes=1000, large=False)


def unit(name: str, repeats: int, cost: Estimate = SMALL) -> Unit:
    return Unit(tuple((Cell(f"{name}{seed}", "data", seed, name, seed, "{}"),) for seed in range(repeats)), cost)


def keys(units: list[Unit]) -> list[str]:
    return sorted(cell.key for each in units for cell in each.cells)


units = st.lists(
    st.tuples(st.integers(1, 30), st.floats(1, 1e6), st.integers(1, 300), st.integers(0, 2**31)),
    min_size=1,
    max_size=12,
)


@given(units, st.integers(1, 9))
def test_cutting_loses_no_cell_and_ends_no_later(sizes: list[tuple[int, float, int, int]], workers: int) -> None:
    whole = [
        unit(f"u{number}-", repeats, replace(SMALL, steps=steps, networks=networks, bytes=size))
        for number, (repeats, steps, networks, size) in enumerate(sizes)
    ]
    pieces = cut(whole, workers)
    assert keys(pieces) == keys(whole)
    for piece in pieces:
        single = len(piece.repeats) == 1
        assert single or piece.seconds <= LONGEST
        assert single or piece.estimate.bytes * len(piece.repeats) <= BYTES
    if all(len(piece.repeats) == len(before.repeats) for piece, before in zip(pieces, whole, strict=False)):
        return
    if all(each.seconds <= LONGEST and each.estimate.bytes * len(each.repeats) <= BYTES for each in whole):
        assert makespan(pieces, workers) <= makespan(whole, workers)  # cut only where that pays


def test_one_stack_is_shared_by_two_workers_where_that_pays() -> None:
    long = unit("m", 40, replace(SMALL, steps=100_000, networks=5))
    assert len(cut([long], 2)) >= 2
    assert len(cut([unit("m", 2, replace(SMALL, steps=10))], 2)) == 1  # a second of work


def test_one_worker_keeps_the_order_of_the_plan() -> None:
    short, long = unit("a", 1), unit("b", 9)
    assert [each.cells[0].method for each in cut([short, long], 1)] == ["a", "b"]
    assert cut([short, long], 2)[0].cells[0].method == "b"


def test_methods_that_train_alike_are_one_unit() -> None:
    suite = load_suite("quick", ["seeds=3"]).only(["diabetes"], [])
    collected = Units()
    for task in plan(suite, Registry()):
        assert isinstance(task, Task)
        collected.add_task(task, task.cells)
    together = {frozenset(cell.method for cell in each.cells) for each in collected.cut(1)}
    assert frozenset({"deterministic", "deep-ensemble"}) in together
    assert frozenset({"mc-dropout"}) in together
    (ensemble,) = (each for each in collected.cut(1) if "deep-ensemble" in {cell.method for cell in each.cells})
    assert ensemble.estimate.networks == 5  # the single network is one of them
    assert [len(repeat) for repeat in ensemble.repeats] == [2, 2, 2]


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_parts_are_the_whole(repeats: int) -> None:
    cells = tuple(tuple(Cell(f"{seed}{m}", "d", seed, m, seed, "{}") for m in "ab") for seed in range(repeats))
    whole = Unit(cells, SMALL)
    parts = whole.parts()
    assert len(parts) == 2
    assert keys(parts) == keys([whole])
    assert whole.only({"0a"}).cells == [cells[0][0]]
    assert len(whole.without({"0a"}).cells) == 2 * repeats - 1
