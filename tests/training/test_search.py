"""The configurations of a search, and the choice among them."""

import math
from typing import Any

from bench.training.search import Configuration, Selection, configurations

GRID: Any = {"learning_rate": [1e-3, 1e-2], "weight_decay": [0.0, 0.1]}


def test_the_grid_is_the_product_in_the_order_of_the_file() -> None:
    tried = configurations("grid", GRID, {"rate": [0.1, 0.2, 0.3]}, seed=0)
    assert len(tried) == 12
    assert tried[0] == Configuration({"learning_rate": 1e-3, "weight_decay": 0.0}, {"rate": 0.1})
    assert tried[-1] == Configuration({"learning_rate": 1e-2, "weight_decay": 0.1}, {"rate": 0.3})
    assert configurations("none", GRID, {}, seed=0) == []


def test_a_random_search_takes_different_points_of_the_grid_by_the_seed() -> None:
    whole = configurations("grid", GRID, {"rate": [0.1, 0.2, 0.3]}, seed=0)
    some = [configurations("random:5", GRID, {"rate": [0.1, 0.2, 0.3]}, seed) for seed in (0, 0, 1)]
    assert some[0] == some[1] != some[2]
    for picked in some:
        assert len({repr(each) for each in picked}) == 5
        assert all(each in whole for each in picked)
    assert configurations("random:99", GRID, {}, seed=0) == configurations("grid", GRID, {}, seed=0)


def test_the_lowest_mean_wins_and_divergence_never_does() -> None:
    tried = [Configuration({"learning_rate": float(i)}, {}) for i in range(4)]
    losses = [[1.0, 3.0], [0.0, math.inf], [1.5, 2.0], [2.0, 1.5]]
    selection = Selection(tried, losses, [[1, 1]] * 4)
    assert selection.best == 2  # the first of equals
    assert selection.record()["chosen"] == {"learning_rate": 2.0}
    assert selection.record()["validation_loss"] == 1.75
    again = Selection.from_json(selection.to_json())
    assert (again.tried, again.losses, again.best) == (tried, losses, 2)
    lost = Selection(tried[:1], [[math.inf]], [[3]])
    assert lost.chosen is None
    assert lost.record() == {"configurations": 1, "folds": 1}
