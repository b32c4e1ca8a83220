"""Splits of the datasets that come inside scikit-learn."""

import numpy as np

from bench.api import Array, Split, Task


def tenth(rows: int, split: int) -> tuple[Array, Array]:
    """Return training and test rows: a random tenth is held out, chosen anew for every split number."""
    order = np.random.default_rng([1701, split]).permutation(rows)
    held = round(0.1 * rows)
    return order[held:], order[:held]


def random_split(task: Task, x: Array, y: Array, split: int, classes: int = 0) -> Split:
    """Hold out a tenth of the rows, chosen anew for every split number."""
    train, test = tenth(len(y), split)
    return Split(task, x[train], y[train], x[test], y[test], classes)
