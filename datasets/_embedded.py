"""Splits of the datasets that come inside scikit-learn."""

import numpy as np

from bench.api import Array, Split, Task


def random_split(task: Task, x: Array, y: Array, split: int, classes: int = 0, groups: Array | None = None) -> Split:
    """Hold out a tenth of the rows, chosen anew for every split number."""
    order = np.random.default_rng([1701, split]).permutation(len(y))
    held = round(0.1 * len(y))
    test, train = order[:held], order[held:]
    held_groups = None if groups is None else groups[test]
    return Split(task, x[train], y[train], x[test], y[test], classes, test_groups=held_groups)
