"""Seeds on one test set: whether the verdicts of a board were also shown for other rows of the same kind."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from bench.counts import plural
from bench.leaderboard.against import Against, OtherRows
from bench.metrics import Metric
from bench.stats import RowTest, Settings, StoredRows, adjust_p_values
from bench.stats.stored_rows import Untested


@dataclass(frozen=True)
class OneTestSet:
    """The cells of a dataset whose repeats are seeds on one test set, and their predictions."""

    values: pd.DataFrame  # columns method, split, seed, key
    stored: StoredRows
    metric: Metric
    baseline: str

    @cached_property
    def _cells(self) -> dict[str, dict[tuple[int, int], str]]:
        """Keys by method and repeat."""
        found: dict[str, dict[tuple[int, int], str]] = {}
        columns = (self.values[name].tolist() for name in ("method", "split", "seed", "key"))
        for method, split, seed, key in zip(*columns, strict=True):
            found.setdefault(method, {})[split, seed] = key
        return found

    def test(self, method: str) -> RowTest | Untested:
        """Return the test of a method against the baseline in the repeats that both have, or why there is none."""
        own, base = self._cells[method], self._cells[self.baseline]
        common = sorted(own.keys() & base.keys())
        keys = (tuple(cells[repeat] for repeat in common) for cells in (own, base))
        return self.stored.test(self.metric.name, *keys)


def with_other_rows(
    against: Mapping[str, Against], families: Sequence[Sequence[str]], tested: OneTestSet, settings: Settings
) -> tuple[dict[str, Against], list[str]]:
    """Return the verdicts with what other rows say of them, and notes; each family of methods is corrected by itself.

    A verdict was shown for other rows only if the test over seeds and the test over seeds and rows both say the same,
    so that it adds no false positives to those of the verdicts.
    """
    found = dict(against)
    untested: dict[Untested, list[str]] = {}
    size = 0
    for family in families:
        tests: dict[str, RowTest] = {}
        for method in (name for name in family if name in against):
            one = tested.test(method)
            if isinstance(one, str):
                untested.setdefault(one, []).append(method)
                found[method] = replace(against[method], other_rows=OtherRows(False, math.nan, one))
            else:
                tests[method] = one
        p = adjust_p_values([one.p for one in tests.values()], settings.correction)
        for (method, one), own in zip(tests.items(), p, strict=True):
            side = "better" if one.difference < 0.0 else "worse"
            shown = bool(own < settings.alpha) and against[method].verdict == side
            found[method] = replace(against[method], other_rows=OtherRows(shown, float(own)))
        size = size or len(tests)
    return found, _notes(found, untested, size)


def _notes(found: Mapping[str, Against], untested: Mapping[Untested, Sequence[str]], size: int) -> list[str]:
    notes = []
    if size:
        notes.append(
            "other rows of the same kind: differences at each row with each seed, rows and seeds both taken as "
            f"samples, from stored predictions, Holm over {plural(size, 'method')}"
        )
    weak = [f"{method} ({one.verdict})" for method, one in found.items() if _is_weak(one)]
    if weak:
        notes.append(f"not shown for other rows: {', '.join(weak)}")
    for reason, methods in untested.items():
        names = "all methods" if len(methods) == len(found) else ", ".join(methods)
        notes.append(f"not tested for other rows, {reason}: {names}")
    return notes


def _is_weak(one: Against) -> bool:
    """Return whether a difference was tested for other rows and not shown."""
    rows = one.other_rows
    return one.verdict != "not shown to differ" and rows is not None and not rows.untested and not rows.shown
