"""A report turns the results of a suite into sections of text, tables and figures. Nothing here loads torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from bench.api.dataset import Array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as MatplotlibFigure

    from bench.metrics.kept import Kept


@dataclass(frozen=True)
class Curves:
    """Predictions of one cell at its test rows, in original units: what figures are drawn from."""

    observed: Array
    mean: Array
    variance: Array  # NaN where one draw states none
    x: Array | None = None  # kept where a row is one number and can be an axis
    truth: Array | None = None  # the noise-free target, where it is known
    noise: Array | None = None  # one number: the variance of the observation noise, where it was fitted

    @property
    def observation_variance(self) -> Array | None:
        """The variance of an observation: that of the draws, where there are several, plus the fitted noise."""
        if self.noise is None or self.mean.ndim == 2:
            return None
        return np.where(np.isnan(self.variance).all(), 0.0, self.variance) + self.noise


class Results(Protocol):
    """What a report may look at: the results of one suite."""

    suite: str
    title: str
    baseline: str | None
    metrics: list[str]  # in the order of the suite: reports begin with the first

    @property
    def frame(self) -> "pd.DataFrame":
        """One row per metric value: suite, dataset, split, method, seed, metric, value, key."""
        ...

    @property
    def cells(self) -> "pd.DataFrame":
        """One row per cell: its place, key, spec, status (missing: not run yet), message, training, environment."""
        ...

    @property
    def remarks(self) -> "pd.DataFrame":
        """One row per remark on the data, or on what could not run: dataset, method, text."""
        ...

    @property
    def failures(self) -> "pd.DataFrame":
        """One row per cell that failed or diverged: suite, dataset, split, method, seed, status, message."""
        ...

    @property
    def rescored(self) -> "pd.DataFrame":
        """Values computed from stored predictions after the runs: metric, version, precision, values (their number)."""
        ...

    @property
    def corrected(self) -> "pd.DataFrame":
        """Values after corrections of the calibration that were kept without predictions; as `bench.recalibrate`."""
        ...

    def curves(self, key: str) -> Curves | None:
        """Return mean and variance of the predictions of one cell."""
        ...

    def kept(self, key: str) -> "Kept | None":
        """Return all predictions of one cell, at test and validation rows, or None where they are not stored."""
        ...

    def arrays(self, key: str) -> Mapping[str, Array]:
        """Return all arrays that were stored of one cell, by name (`history/train_loss`, `inspect/...`)."""
        ...


@dataclass(frozen=True)
class Text:
    """A paragraph of plain text; a warning stands out, beside the numbers that it is about."""

    text: str
    warning: bool = False


@dataclass(frozen=True)
class Facts:
    """A few words and their values: numbers that a reader looks for first, side by side, or sentences in rows."""

    facts: Mapping[str, str]


@dataclass(frozen=True)
class Table:
    """A data frame with a caption; cells are printed as text, numbers to four significant digits.

    A line break in a cell begins a second, smaller line on the page: the interval below a value.

    It is also written as CSV and LaTeX. `numbers` is what the CSV holds instead, where cells of the table hold more
    than one number ("1.2 ± 0.3"). In a paper no text stands around a table: `paper_caption` says there what its marks
    mean; names of methods, datasets and metrics in backquotes (`mc-dropout`) are printed as their titles.

    `asides` are columns that stand beside the results and are none of them, each with a note that says what it is:
    they are printed muted, and the page shows the note at the head of the column.
    """

    caption: str
    data: "pd.DataFrame"
    bold: frozenset[tuple[int, int]] = frozenset()  # (row, column) positions to stand out
    name: str = ""  # of its files; by default from the caption
    numbers: "pd.DataFrame | None" = None
    folded: bool = False  # for those who want to know: closed until it is opened
    paper_caption: str = ""  # in LaTeX; by default the caption
    asides: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A matplotlib figure with a caption that also describes it in words.

    `data` is what it shows as a table, for those who cannot see it and for those who want the numbers.
    """

    name: str
    caption: str
    figure: "MatplotlibFigure"
    data: "pd.DataFrame | None" = None


Block = Text | Facts | Table | Figure


@dataclass(frozen=True)
class Section:
    """One section of a report."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Measured:
    """What a run took somewhere: the seconds of its workers added up, and those of the calibration there."""

    seconds: float
    calibration: float  # as `bench.machine.speed` measures it


@dataclass(frozen=True)
class SuitePart:
    """A suite, or a part of it, that repeats a published experiment."""

    suite: str
    seeds: int | None = None  # None: as many as the suite has
    datasets: Sequence[str] = ()  # none: all that the suite has
    changes: Mapping[str, object] = field(default_factory=dict)  # of keys of the suite
    measured: Measured | None = None  # how long it took


@dataclass(frozen=True)
class Reproduction:
    """A published experiment that `uqbench reproduce` repeats: under each protocol a short form and the full one."""

    title: str
    parts: Mapping[str, tuple[SuitePart, SuitePart]]  # by protocol, the default first; the same twice where it is short


class Report:
    """A section of a report. Subclass it as a frozen dataclass whose fields are its options."""

    order: ClassVar[int] = 50  # sections stand in this order, then by name; those below 10 open the page
    # True: a suite that has this section is about it (shift, an ablation, latency): it follows those that open the page
    subject: ClassVar[bool] = False
    expected_failures: ClassVar[Mapping[str, str]] = {}  # checks of 'uqbench verify' it fails, and why that is right

    def section(self, results: Results) -> Section | None:
        """Return the section of one suite, or None where the results hold nothing for it."""
        raise NotImplementedError

    def overall(self, suites: Sequence[Results]) -> Section | None:
        """Return a section about all suites of the page together, or None; it stands behind those of several suites."""
        return None

    def reproductions(self) -> Mapping[str, Reproduction]:
        """Return the published experiments, by name, that 'uqbench reproduce' repeats for this report."""
        return {}

    def verdicts(self, suites: Sequence[Results]) -> Sequence[str]:
        """Return what the results say about published experiments, as lines for a terminal."""
        return ()
