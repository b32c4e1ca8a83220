import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import UserError
from bench.training.folds import folds


@given(st.integers(2, 60).flatmap(lambda rows: st.tuples(st.just(rows), st.integers(2, rows))), st.integers(0, 9))
def test_no_row_is_held_out_twice_and_all_train_otherwise(size: tuple[int, int], seed: int) -> None:
    rows, count = size
    made = folds(rows, count, seed)
    assert len(made) == count
    held_out = torch.cat([held for _, held in made]).tolist()
    assert len(set(held_out)) == len(held_out) == rows - rows % count
    for train, held in made:
        assert sorted(train.tolist() + held.tolist()) == list(range(rows))
        assert len(held) == rows // count


def test_folds_follow_from_the_seed_alone() -> None:
    state = torch.get_rng_state()
    first, again, other = folds(100, 5, 3), folds(100, 5, 3), folds(100, 5, 4)
    assert all(torch.equal(a, b) for one, two in zip(first, again, strict=True) for a, b in zip(one, two, strict=True))
    assert not torch.equal(first[0][1], other[0][1])
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("count", [0, 1, 11])
def test_too_few_or_too_many(count: int) -> None:
    with pytest.raises(UserError, match="from 2 to 10"):
        folds(10, count, 0)
