"""Scores behind the detection of foreign rows: how uncertain a method is at its test rows, and at rows from elsewhere.

The probe that measures the detection stores the entropies at every foreign set; those at the test rows follow from the
stored predictions. Both are counted in the same bins, over all repeats of a row of the leaderboard together.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from bench.errors import UserError
from bench.leaderboard.rows import Row
from bench.metrics import condition, entropy
from bench.metrics.detection import SCORES, detection_scores

BINS = 30
WIDTH, HEIGHT = 200, 54  # units of the picture
MEASURES = frozenset(detection_scores([0.0], [1.0]))  # those that are by the entropy
Read = Callable[[str, Sequence[str]], Mapping[str, NDArray[Any]] | None]
Counts = tuple[int, ...]


@dataclass(frozen=True)
class ScoreHistogram:
    """The scores of one method at its test rows and at one foreign set, in equal bins from 0 to `highest`."""

    own: Counts
    foreign: Counts
    highest: float  # entropy of equal probabilities, in nat
    repeats: int  # that have scores
    planned: int

    @property
    def overlap(self) -> float:
        """The share that both distributions have in common, bin by bin."""
        return float(np.minimum(_shares(self.own), _shares(self.foreign)).sum())

    @property
    def picture(self) -> Markup:
        """The test rows as a filled area, the foreign rows as a line.

        Heights are square roots of shares: most test rows are in one bin, and what matters are the few others.
        """
        own, foreign = (_steps(np.sqrt(_shares(counts))) for counts in (self.own, self.foreign))
        return Markup(
            f'<svg class="scores" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
            f'<path class="own" d="M0 {HEIGHT}{own}V{HEIGHT}Z"/><path class="foreign" d="M0 {HEIGHT}{foreign}"/></svg>'
        )


def _shares(counts: Counts) -> NDArray[np.float64]:
    return np.array(counts) / max(sum(counts), 1)


def _steps(heights: NDArray[np.float64]) -> str:
    width = WIDTH / len(heights)
    return "".join(
        f"V{HEIGHT - 2 - (HEIGHT - 4) * h:.1f}H{(n + 1) * width:.1f}" for n, h in enumerate(heights.tolist())
    )


def is_of_scores(metric: str) -> bool:
    """Return whether a stored metric is the detection of a foreign set by the entropy, for which scores are stored.

    Conditions such as fog:3 are of rows that were changed, whose scores are not.
    """
    under = condition(metric)
    return metric.partition("@")[0] in MEASURES and under != "" and not set(under) & {":", "="}


def score_histograms(
    rows: Iterable[Row], metrics: Iterable[str], read: Read
) -> dict[tuple[str, str, str], dict[str, ScoreHistogram]]:
    """Return histograms by suite, dataset and condition, then by method, for the rows whose scores are stored."""
    conditions = dict.fromkeys(condition(metric) for metric in metrics if is_of_scores(metric))
    found: dict[tuple[str, str, str], dict[str, ScoreHistogram]] = {}
    for row in rows:
        for name, histogram in _of_row(row, list(conditions), read).items():
            found.setdefault((row.suite, row.dataset, name), {})[row.method] = histogram
    return found


def _of_row(row: Row, conditions: Sequence[str], read: Read) -> dict[str, ScoreHistogram]:
    if not conditions:
        return {}
    names = {name: f"{SCORES}@{name}" for name in conditions}
    counts: dict[str, list[tuple[NDArray[np.int64], NDArray[np.int64], float]]] = {}
    for key in row.sources:
        try:
            arrays = read(key, ["mean", *names.values()]) or {}
            if arrays.keys() & set(names.values()):
                own, highest = entropy(arrays["mean"]), math.log(arrays["mean"].shape[-1])
                for name, stored in names.items():
                    if stored in arrays:
                        pair = (_counted(own, highest), _counted(arrays[stored], highest), highest)
                        counts.setdefault(name, []).append(pair)
        except (UserError, ValueError, TypeError, IndexError, KeyError):  # a file that is damaged, or holds others
            continue
    return {
        name: ScoreHistogram(
            tuple(sum(own for own, _, _ in pairs).tolist()),  # type: ignore[union-attr]  # there is at least one
            tuple(sum(foreign for _, foreign, _ in pairs).tolist()),  # type: ignore[union-attr]
            pairs[0][2],
            len(pairs),
            row.planned,
        )
        for name, pairs in counts.items()
        if len({highest for _, _, highest in pairs}) == 1
    }


def _counted(scores: NDArray[Any], highest: float) -> NDArray[np.int64]:
    """Return how many scores each bin has; rounding may put one beyond the highest."""
    return np.histogram(np.clip(scores, 0.0, highest), BINS, (0.0, highest))[0]
