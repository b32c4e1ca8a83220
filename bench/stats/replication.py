"""How the repeats on a dataset are related, and which t-test follows from it.

Fresh rows for every repeat and seeds on the same rows give independent differences: the paired t-test. Overlapping
splits of one table do not: the corrected resampled t-test, with the share of test rows that the splits have.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bench.spec.replication import Replication
from bench.stats.cell_counts import CellCounts

ASSUMED_SHARE = 0.1  # of test rows, in overlapping splits whose cells do not say it
WORDS = {"independent": "independent repeats", "seeds": "seeds on one split"}


@dataclass(frozen=True)
class Repetition:
    """How repeats are related."""

    kind: Replication
    test_share: float = 0.0  # of overlapping splits: the share of test rows; 0 for the others
    declared: bool = True  # False: the cells do not say it, so it was inferred from their rows

    def overridden(self, test_share: float | None) -> "Repetition":
        """Return what holds where the user states a share: 0 means independent; seeds on the same rows stay so."""
        if test_share is None or self.kind == "seeds":
            return self
        return Repetition("splits", test_share) if test_share else Repetition("independent")

    @property
    def test(self) -> str:
        """The test that follows, with the reason."""
        if self.kind == "splits":
            return f"corrected resampled t-test (overlapping splits, {100 * self.test_share:.0f} % test rows)"
        return f"paired t-test ({WORDS[self.kind]})"

    @property
    def note(self) -> str:
        """What a reader must know where a test share is assumed; else ''."""
        if self.declared or self.kind != "splits":
            return ""
        return (
            "the cells do not say how repeats are related: their rows differ, so overlapping splits with "
            f"{100 * self.test_share:.0f} % test rows are assumed; state another share with --test-share"
        )


def repetition(dataset: str, splits: ArrayLike, counts: CellCounts) -> Repetition:
    """Return what the cells of a dataset declare, else what their rows show.

    Repeats that are all on one split are seeds on it, whatever is declared. Without a declaration repeats with other
    rows (by the hash of the data in a cell's specification, else by the number of the split) are taken for overlapping
    splits. Where cells declare different kinds, that of overlapping splits holds, and of different shares the largest:
    the test that is right for all of them.
    """
    declared, numbers = counts.repeats(dataset), np.unique(np.asarray(splits))
    if declared and len(numbers) == 1 < np.size(splits):
        return Repetition("seeds")
    if shares := [share for kind, share in declared if kind == "splits"]:
        return Repetition("splits", max(shares))
    if declared:
        return Repetition("independent" if any(kind == "independent" for kind, _ in declared) else "seeds")
    known = counts.rows_differ(dataset)
    differ = len(numbers) > 1 if known is None else known
    return Repetition("splits", ASSUMED_SHARE, declared=False) if differ else Repetition("seeds", declared=False)


def datasets_by_test(found: Iterable[tuple[str, Repetition]]) -> str:
    """Return which test each dataset got, in words; datasets of the same test together."""
    by_test: dict[str, dict[str, None]] = {}
    for dataset, one in found:
        by_test.setdefault(one.test, {})[dataset] = None
    return "; ".join(f"{test}: {', '.join(datasets)}" for test, datasets in by_test.items())
