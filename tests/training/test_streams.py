"""Shared draws: every member gets the numbers that its own generator would have given."""

import pytest
import torch
from torch import Tensor

from bench.api.tape import generator, write_numbers
from bench.training import streams
from bench.training.streams import Draws, Stream


def drawn(draws: Draws, stream: Stream, calls: int) -> tuple[Tensor, Tensor]:
    normals, uniforms = torch.zeros(1, calls, 7), torch.zeros(1, calls, 3)
    draws.into([stream], normals, uniforms, draw=write_numbers)
    return normals[0], uniforms[0]


def by_itself(seed: int, blocks: list[int]) -> list[tuple[Tensor, Tensor]]:
    source, found = generator(seed, "noise"), []
    for calls in blocks:
        normals, uniforms = torch.zeros(calls, 7), torch.zeros(calls, 3)
        write_numbers(source, normals, uniforms)
        found.append((normals, uniforms))
    return found


def same(one: list[tuple[Tensor, Tensor]], other: list[tuple[Tensor, Tensor]]) -> bool:
    return all(torch.equal(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True))


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize(("kept", "recent"), [(2**20, 2**20), (0, 8_000), (12_000, 6_000), (0, 0)])
def test_shared_draws_are_those_of_a_generator_of_its_own(
    share: bool, kept: int, recent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when draws are not kept for long, when members are at different places, and cut their draws differently."""
    monkeypatch.setattr(streams, "BYTES_KEPT", kept)
    monkeypatch.setattr(streams, "BYTES_RECENT", recent)
    draws = Draws(share)
    plans = [(1, [4, 4, 1]), (1, [4, 4, 1]), (2, [4, 4, 1]), (1, [4, 2, 3]), (1, [4, 4, 1])]
    members = [Stream(seed, "noise") for seed, _ in plans[:4]]
    found: list[list[tuple[Tensor, Tensor]]] = [[] for _ in plans]
    for turn in range(3):
        for number, stream in enumerate(members):
            found[number].append(drawn(draws, stream, plans[number][1][turn]))
    late = Stream(1, "noise")
    found[4] = [drawn(draws, late, calls) for calls in plans[4][1]]
    for (seed, blocks), numbers in zip(plans, found, strict=True):
        assert same(numbers, by_itself(seed, blocks))


def test_a_stored_state_continues_the_stream() -> None:
    draws, stream = Draws(share=True), Stream(5, "noise")
    drawn(draws, stream, 4)
    resumed = Stream(0, "noise")
    resumed.restore(stream.state.clone())
    assert same([drawn(draws, resumed, 4)], by_itself(5, [4, 4])[1:])


def test_members_of_one_seed_draw_once() -> None:
    draws, count = Draws(share=True), 0

    def write(source: torch.Generator, *targets: Tensor) -> None:
        nonlocal count
        count += 1
        write_numbers(source, *targets)

    members = [Stream(1, "noise") for _ in range(5)]
    for _ in range(3):
        draws.into(members, torch.zeros(5, 2, 3), torch.zeros(5, 2, 1), draw=write)
    assert count == 3


@pytest.mark.parametrize("share", [True, False])
def test_rows_without_a_stream_take_nothing_from_the_others(share: bool) -> None:
    """Free slots, and those that are not validated, lie between members; memory for more calls than are drawn too."""
    draws, members = Draws(share), [Stream(1, "noise"), None, Stream(1, "noise"), Stream(2, "noise"), None]
    found: list[list[tuple[Tensor, Tensor]]] = [[] for _ in members]
    for calls in (4, 2):
        room = (torch.zeros(5, 6, 7), torch.zeros(5, 6, 3))
        normals, uniforms = (law[:, :calls] for law in room)
        draws.into(members, normals, uniforms, draw=write_numbers)
        for place in range(5):
            found[place].append((normals[place], uniforms[place]))
        assert all(not law[:, calls:].any() for law in room)
    for place, seed in ((0, 1), (2, 1), (3, 2)):
        assert same(found[place], by_itself(seed, [4, 2]))


def test_memory_of_kept_draws_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "BYTES_KEPT", 50_000)
    monkeypatch.setattr(streams, "BYTES_RECENT", 20_000)
    draws, stream = Draws(share=True), Stream(1, "noise")
    for _ in range(100):
        drawn(draws, stream, 4)
    held = sum(streams._bytes(draw) for draw in (*draws._kept.values(), *draws._recent.values()))
    assert 50_000 < held <= 70_000
