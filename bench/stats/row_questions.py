"""Questions about single test rows: is a difference due to a few rows, which rows are hard, where do methods disagree?

All of it is about one test set and the networks that were trained: `row_test` also asks about other seeds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.errors import UserError, unknown_name
from bench.metrics.row_losses import losses_of_rows
from bench.stats.bootstrap import bca_interval
from bench.stats.corrections import adjust_p_values
from bench.stats.tests import Array, sign_test

Read = Callable[[str], Mapping[str, NDArray[Any]] | None]  # the arrays of a cell, by its key
LOSS_NAMES = {"rmse": "squared_error", "mae": "absolute_error"}
LOSS_NAMES |= {"accuracy": "class_error", "brier": "brier", "nll_categorical": "surprise"}
MOST_RESAMPLES = 2_000
MOST_WEIGHTS = 2**23  # of the bootstrap, in memory


@dataclass(frozen=True, eq=False)
class RowTable:
    """What methods predicted at the rows of one test set, as means over the seeds that share it."""

    dataset: str
    split: int
    methods: Sequence[str]
    observed: NDArray[Any]  # [N]
    losses: Mapping[str, Array]  # [methods, N] each, by the name of the loss
    predicted: NDArray[Any]  # [methods, N]: means, or the most probable classes

    @property
    def classes(self) -> bool:
        """Whether labels are predicted."""
        return "class_error" in self.losses

    @property
    def loss(self) -> Array:
        """The loss that rows are sorted by: the squared error, or -log of the label's probability."""
        return self.losses["surprise" if self.classes else "squared_error"]

    @property
    def disagreement(self) -> Array:
        """How differently the methods predict each row: the standard deviation, or the share outside the majority."""
        if not self.classes:
            return np.asarray(self.predicted.std(axis=0))
        votes = [np.unique(column, return_counts=True)[1].max() for column in self.predicted.T]
        return 1 - np.array(votes) / len(self.methods)


def row_tables(cells: pd.DataFrame, read: Read) -> Iterator[RowTable]:
    """Yield a table for each test set of a suite, of the methods whose predictions are stored for the same rows."""
    done = cells[cells["status"] == "ok"]
    for (dataset, split), own in done.groupby(["dataset", "split"], sort=True):
        found: dict[str, list[Mapping[str, NDArray[Any]]]] = {}
        for method, key in own.sort_values("seed")[["method", "key"]].itertuples(index=False):
            arrays = read(key)
            if arrays is not None and {"observed", "mean"} <= arrays.keys() and np.isfinite(arrays["mean"]).all():
                found.setdefault(str(method), []).append(arrays)
        if found:
            yield _table(str(dataset), int(str(split)), found)


def _table(dataset: str, split: int, found: Mapping[str, Sequence[Mapping[str, NDArray[Any]]]]) -> RowTable:
    observed = next(iter(found.values()))[0]["observed"]
    means: dict[str, list[Array]] = {}
    for method, parts in found.items():
        own = [each["mean"] for each in parts if np.array_equal(each["observed"], observed)]
        if own:
            means[method] = own
    losses: dict[str, list[Array]] = {}
    for stored in means.values():
        each = [losses_of_rows(mean, observed) for mean in stored]
        for name in each[0]:
            losses.setdefault(LOSS_NAMES[name], []).append(np.mean([one[name] for one in each], axis=0))
    averages = np.array([np.mean(stored, axis=0) for stored in means.values()])
    predicted = averages.argmax(-1) if averages.ndim == 3 else averages
    return RowTable(dataset, split, list(means), observed, {n: np.array(v) for n, v in losses.items()}, predicted)


def compare_rows(table: RowTable, baseline: str, generator: np.random.Generator) -> pd.DataFrame:
    """Compare all methods with one by the rows of a test set: one row per method and loss.

    `difference` is the mean loss minus the baseline's, `low` and `high` its 95 % interval from a bootstrap over rows
    (pairs of losses are drawn together). For classes, `only_method` and `only_baseline` count the rows that only one
    of them gets wrong (in most seeds), `p` is that of McNemar's exact test, and `p_adjusted` is Holm's correction.
    """
    if baseline not in table.methods:
        raise unknown_name("method", baseline, table.methods, f"{table.dataset}, split {table.split}")
    others = [method for method in table.methods if method != baseline]
    rows = []
    for name, losses in table.losses.items():
        base = losses[table.methods.index(baseline)]
        with np.errstate(invalid="ignore"):
            differences = np.array([losses[table.methods.index(method)] - base for method in others])
        if not others or not np.isfinite(differences).all():
            continue
        size = differences.shape[1]
        resamples = max(200, min(MOST_RESAMPLES, MOST_WEIGHTS // size))
        ends = np.full((len(others), 2), np.nan)
        if size > 1:
            ends = bca_interval(differences, generator, resamples=resamples)
            ends[np.abs(ends) < 1e-12 * np.abs(differences).max()] = 0.0  # sums of equal numbers round
        wrong = table.losses["class_error"] > 0.5 if name == "class_error" else None
        for number, method in enumerate(others):
            row = {"dataset": table.dataset, "split": table.split, "method": method, "baseline": baseline, "loss": name}
            row |= {"difference": differences[number].mean(), "low": ends[number, 0], "high": ends[number, 1]}
            if wrong is not None:
                own, other = wrong[table.methods.index(method)], wrong[table.methods.index(baseline)]
                row |= {"only_method": int((own & ~other).sum()), "only_baseline": int((other & ~own).sum())}
                row["p"] = float(sign_test(own.astype(float) - other.astype(float)))
            rows.append(row)
    frame = pd.DataFrame(rows)
    if "p" in frame:
        tested = frame["p"].notna()
        frame.loc[tested, "p_adjusted"] = adjust_p_values(frame.loc[tested, "p"].tolist(), "holm")
    return frame


def hardest_rows(table: RowTable, count: int = 10) -> pd.DataFrame:
    """Return the rows with the highest loss on average over the methods, the hardest first."""
    return _rows(table, table.loss.mean(axis=0), count)


def disputed_rows(table: RowTable, count: int = 10) -> pd.DataFrame:
    """Return the rows at which the methods disagree most."""
    return _rows(table, table.disagreement, count)


def _rows(table: RowTable, score: Array, count: int) -> pd.DataFrame:
    order = np.argsort(-np.where(np.isnan(score), -np.inf, score), kind="stable")[:count]
    best = table.loss[:, order].argmin(axis=0)
    return pd.DataFrame(
        {
            "row": order,
            "observed": table.observed[order],
            "loss": table.loss.mean(axis=0)[order],
            "disagreement": table.disagreement[order],
            "best method": [table.methods[number] for number in best],
            **{method: table.predicted[number, order] for number, method in enumerate(table.methods)},
        }
    )


def row_frame(tables: Sequence[RowTable]) -> pd.DataFrame:
    """Return the losses of all rows, one line per dataset, split, method and test row."""
    if not tables:
        raise UserError("no predictions are stored; run with --keep predictions or --keep moments")
    parts = []
    for table in tables:
        for number, method in enumerate(table.methods):
            own = {name: losses[number] for name, losses in table.losses.items()}
            place = {"dataset": table.dataset, "split": table.split, "method": method}
            rows = {"row": np.arange(len(table.observed)), "observed": table.observed}
            parts.append(pd.DataFrame({**place, **rows, "predicted": table.predicted[number], **own}))
    return pd.concat(parts, ignore_index=True)
