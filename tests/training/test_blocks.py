"""Rows are held out by whole groups, or in the order of time."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import TimeSeriesSplit

from bench.api import Blocks, Split
from bench.errors import UserError
from bench.plan.cells import fingerprint
from bench.spec.protocol import Protocol
from bench.training.blocks import block_folds
from bench.training.rows import calibration_folds, held_out, prepare, search_folds

SHARES = Protocol(validation=0.2, calibration=0.2, folds=3)


def groups(sizes: list[int]) -> Blocks:
    random = np.random.default_rng(len(sizes))
    return Blocks(random.permutation(np.repeat([f"g{k}" for k in range(len(sizes))], sizes)))


def of(blocks: Blocks, rows: torch.Tensor) -> set[object]:
    return set(blocks.of_rows[rows.numpy()].tolist())


@given(st.lists(st.integers(3, 10), min_size=10, max_size=20), st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_a_group_is_on_one_side_of_every_division(sizes: list[int], seed: int) -> None:
    blocks = groups(sizes)
    rows = len(blocks.of_rows)
    parts = held_out(rows, SHARES, seed, blocks)
    together = torch.cat(parts).sort().values
    assert torch.equal(together, torch.arange(rows))  # every row once
    assert all(len(part) for part in parts)
    names = [of(blocks, part) for part in parts]
    assert sum(map(len, names)) == len(set().union(*names))
    for train, held in search_folds(rows, SHARES, seed, blocks):
        assert not of(blocks, train) & of(blocks, held)
        assert not {*train.tolist(), *held.tolist()} & set(parts[2].tolist())  # calibration rows
    for train, validation, held in calibration_folds(rows, SHARES, seed, 3, blocks):
        one, other, third = (of(blocks, part) for part in (train, validation, held))
        assert len(one) + len(other) + len(third) == len(one | other | third)


@given(st.lists(st.integers(1, 3), min_size=20, max_size=60), st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_rows_that_are_held_out_are_later_than_those_that_train(sizes: list[int], seed: int) -> None:
    moments = np.repeat(np.arange(len(sizes), dtype=np.float64), sizes)
    blocks = Blocks(np.random.default_rng(seed).permutation(moments), ordered=True)
    rows = len(moments)
    train, validation, calibration = (blocks.of_rows[part.numpy()] for part in held_out(rows, SHARES, seed, blocks))
    assert train.max() < validation.min() <= validation.max() < calibration.min()
    assert len(train) + len(validation) + len(calibration) == rows
    for one, other in search_folds(rows, SHARES, seed, blocks):
        assert blocks.of_rows[one.numpy()].max() < blocks.of_rows[other.numpy()].min()


def test_shares_are_those_of_the_protocol_where_blocks_allow_it() -> None:
    alone = Blocks(np.random.default_rng(0).permutation(100), ordered=True)
    train, validation, calibration = held_out(100, SHARES, 0, alone)
    assert (len(train), len(validation), len(calibration)) == (60, 20, 20)
    tens = groups([10] * 10)
    assert [len(part) for part in held_out(100, SHARES, 0, tens)] == [60, 20, 20]
    assert not torch.equal(held_out(100, SHARES, 0, tens)[1], held_out(100, SHARES, 1, tens)[1])  # seeds differ
    ((one, other),) = search_folds(100, Protocol(validation=0.1, search="grid", folds=1), 0, tens)
    assert (len(one), len(other)) == (90, 10)


def test_folds_in_time_are_those_of_scikit_learn() -> None:
    found = block_folds(Blocks(np.arange(60), ordered=True), 5, 0)
    for (train, held), (expected_train, expected_held) in zip(
        found, TimeSeriesSplit(5).split(np.arange(60)), strict=True
    ):
        np.testing.assert_array_equal(train, expected_train)
        np.testing.assert_array_equal(held, expected_held)


def test_too_few_groups_or_moments() -> None:
    with pytest.raises(UserError, match="the training rows have 2 groups, at least 3 are needed"):
        held_out(20, SHARES, 0, groups([10, 10]))
    with pytest.raises(UserError, match="the training rows have 3 moments, at least 4 are needed"):
        block_folds(Blocks(np.arange(3), ordered=True), 3, 0)


def test_blocks_are_used_and_are_part_of_the_fingerprint() -> None:
    x, y = np.arange(40.0)[:, None], np.arange(40.0)
    plain = Split("regression", x, y, x[:5], y[:5])
    blocks = Blocks(np.arange(40)[::-1], ordered=True)
    timed = Split("regression", x, y, x[:5], y[:5], blocks=blocks)
    rows = prepare(timed, Protocol(validation=0.25), 0, "cpu").rows
    assert rows.validation.tolist() == list(range(10))  # the latest, which are the first rows here
    assert rows.train.tolist() == list(range(10, 40))
    prints = {fingerprint(plain), fingerprint(timed)}
    prints.add(fingerprint(Split("regression", x, y, x[:5], y[:5], blocks=Blocks(np.arange(40)[::-1]))))
    assert len(prints) == 3
    assert (
        fingerprint(timed)
        == fingerprint(  # the values count by their order alone
            Split("regression", x, y, x[:5], y[:5], blocks=Blocks(2.5 * np.arange(40)[::-1], ordered=True))
        )
    )
