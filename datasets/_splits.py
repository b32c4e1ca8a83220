"""How rows are divided into training and test rows."""

import numpy as np

from bench.api import Array, Split, UserError


def published_indices(rows: int, split: int) -> tuple[Array, Array]:
    """Return training and test rows of a standard UCI split (Hernandez-Lobato and Adams 2015; Gal and Ghahramani 2016).

    The published index files are successive permutations of one legacy generator; nine tenths of each train.
    """
    random = np.random.RandomState(1)  # the published splits were drawn with this very generator
    for _ in range(split + 1):
        order = random.choice(rows, rows, replace=False)
    train = round(0.9 * rows)
    return order[:train], order[train:]


def random_indices(rows: int, split: int, share: float) -> tuple[Array, Array]:
    """Return training and test rows of a random split, which its number determines."""
    order = np.random.default_rng(split).permutation(rows)
    test = round(share * rows)
    return order[test:], order[:test]


def gap_indices(values: Array) -> tuple[Array, Array]:
    """Return training and test rows of a gap split: the middle third of the rows, ordered by one feature, is held out.

    Foong, Li, Hernandez-Lobato and Turner 2019, "In-Between Uncertainty in Bayesian Neural Networks".
    Rows of equal value keep their order, so the cut may fall between equal ones.
    """
    order = np.argsort(values, kind="stable")
    first, last = len(order) // 3, len(order) - len(order) // 3
    return np.concatenate([order[:first], order[last:]]), order[first:last]


def grouped_indices(groups: Array, split: int, where: str) -> tuple[Array, Array]:
    """Return training and test rows of a split that holds out a random tenth of the groups, each as a whole."""
    names, group = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise UserError(f"{where}: one group, {names[0]!r}; at least two are needed, to hold one out")
    order = np.random.default_rng([1701, split]).permutation(len(names))
    held = np.isin(group, order[: max(1, round(0.1 * len(names)))])
    return np.flatnonzero(~held), np.flatnonzero(held)


def time_indices(moments: Array, split: int, where: str) -> tuple[Array, Array]:
    """Return training and test rows of a split by time: split 0 tests on the last tenth, split 1 on the one before.

    Every training row is earlier than every test row: rows of the same time are on the same side of a cut, and what is
    later than the test rows is not used.
    """
    order = np.argsort(moments, kind="stable")
    sorted_moments, count = moments[order], len(moments)
    cuts = [round(count * (10 - split - back) / 10) for back in (1, 0)]
    # A cut between rows of the same time moves before the first of them; the end stays the end.
    first, last = (int(np.searchsorted(sorted_moments, sorted_moments[c])) if c < count else count for c in cuts)
    if not 0 < first < last:
        raise UserError(f"{where}: too many rows of the same time; split {split} has no rows on one side of its cut")
    return order[:first], order[first:last]


def gap_split(x: Array, y: Array, split: int, name: str) -> Split:
    """Return the gap split whose number is the number of the feature."""
    check_number(split, x.shape[1], f"{name} has {x.shape[1]} features, so {x.shape[1]} gap splits")
    train, test = gap_indices(x[:, split])
    return Split("regression", x[train], y[train], x[test], y[test], count=x.shape[1])


def check_number(split: int, count: int, reason: str) -> None:
    """Raise an error for a split that does not exist."""
    if not 0 <= split < count:
        raise UserError(f"split {split} does not exist: {reason} (0 to {count - 1}); ask for at most {count} seeds")
