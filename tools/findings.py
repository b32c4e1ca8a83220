"""What comparisons and rankings of exported results say, in sentences and tables whose numbers are all computed."""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pandas as pd

from bench.api import Section
from bench.counts import plural
from bench.errors import UserError
from bench.plugins.registry import Registry
from bench.stats import Comparison, DatasetComparison, Ranking
from bench.store.results import StoredResults
from bench.text_tables import markdown_table
from bench.workflow import compare_methods, rank_methods
from tools.published_results import merged


@dataclass(frozen=True)
class Finding:
    """A finding: its title, what it says, its table, and the commands that show it."""

    title: str
    text: str
    table: str
    commands: tuple[str, ...]

    def markdown(self, number: int) -> str:
        """Return the section of a page."""
        commands = "\n".join(self.commands)
        parts = [f"## {number}. {self.title}", self.text, self.table, f"```console\n{commands}\n```"]
        return "\n\n".join(part for part in parts if part)


class Exports:
    """The results of all exports of a folder, by suite; each comparison and ranking is computed once."""

    def __init__(self, folder: Path) -> None:
        self._stack = ExitStack()
        self.store = self._stack.enter_context(merged(folder))
        self._results: dict[str, StoredResults] = {}
        self._sections: dict[tuple[str, str], Section] = {}
        self._known: dict[tuple[str, ...], Comparison | Ranking] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def results(self, suite: str) -> StoredResults | None:
        """Return the results of a suite, or None where no export has it."""
        if suite not in self._results:
            if suite not in self.store.suites():
                return None
            self._results[suite] = StoredResults(self.store, suite)
        return self._results[suite]

    def required(self, suite: str) -> StoredResults:
        """Return the results of a suite that a page cannot do without."""
        if (found := self.results(suite)) is None:
            raise UserError(f"no export has the suite '{suite}'; 'python -m tools.published_results pack' writes one")
        return found

    def section(self, suite: str, report: str) -> Section:
        """Return what a report plug-in writes on a suite."""
        if (suite, report) not in self._sections:
            section = Registry().make("report", report, {}).section(self.required(suite))
            assert isinstance(section, Section), f"{report} has nothing to say on {suite}"
            self._sections[suite, report] = section
        return self._sections[suite, report]

    def comparison(self, results: StoredResults, a: str, b: str, metric: str) -> Comparison:
        """Return method a against b by one metric: all datasets are one family of tests."""
        place = (results.suite, a, b, metric)
        if place not in self._known:
            self._known[place] = compare_methods(results, a, b, metrics=[metric])
        found = self._known[place]
        assert isinstance(found, Comparison)
        return found

    def ranking(self, results: StoredResults, metric: str, methods: Sequence[str]) -> Ranking:
        """Return the ranking of some methods."""
        place = (results.suite, metric, *methods)
        if place not in self._known:
            self._known[place] = rank_methods(results, metrics=[metric], methods=methods).rankings[0]
        found = self._known[place]
        assert isinstance(found, Ranking)
        return found


def number(value: float) -> str:
    """Return a number with three significant digits, or a dash for NaN."""
    if math.isnan(value):
        return "–"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def probability(p: float) -> str:
    """Return a p-value as it is printed in a sentence."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def names(methods: Sequence[str]) -> str:
    """Return methods in a sentence: `a`, `b` and `c`."""
    quoted = [f"`{method}`" for method in methods]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def counted_verdicts(rows: Sequence[DatasetComparison]) -> str:
    """Return on how many datasets A was shown to be better, worse, equivalent, or nothing was shown."""
    counts = Counter(row.verdict for row in rows)
    texts = [f"{verdict} on {counts[verdict]}" for verdict in ("better", "worse", "equivalent") if counts[verdict]]
    if undecided := sum(counts.values()) - sum(counts[name] for name in ("better", "worse", "equivalent")):
        texts.append(f"not shown to differ on {undecided}")
    return f"{', '.join(texts)} of {plural(len(rows), 'dataset')}"


def over_datasets(found: Comparison) -> str:
    """Return what the test over all datasets says."""
    if not found.across:
        return "too few datasets for a test over them"
    one = found.across[0]
    words = {"better": "better", "worse": "worse", "equivalent": "equivalent"}.get(one.verdict, "no difference shown")
    return f"over datasets {words} (signed-rank {probability(one.p_adjusted)})"


def compared(found: Comparison) -> str:
    """Return what a comparison says, without the names of the methods."""
    return f"{counted_verdicts(found.rows)}; {over_datasets(found)}"


def comparison_table(found: Mapping[str, Comparison]) -> str:
    """Return differences with intervals and verdicts, a line per dataset, a group of columns per comparison."""
    datasets = list(dict.fromkeys(row.dataset for one in found.values() for row in one.rows))
    rows = []
    for dataset in datasets:
        line = [dataset]
        for one in found.values():
            line.append(next((_difference(row) for row in one.rows if row.dataset == dataset), "–"))
        rows.append(line)
    return "\n".join(markdown_table(["dataset", *found], rows))


def _difference(row: DatasetComparison) -> str:
    if row.interval is None:
        return f"{number(row.mean_a)} – {number(row.mean_b)}"
    ends = f"{number(row.interval.low)} to {number(row.interval.high)}"
    mark = {"better": " **better**", "worse": " **worse**", "equivalent": " equivalent"}.get(row.verdict, "")
    return f"{number(row.mean_a)} against {number(row.mean_b)}: {number(row.difference)} ({ends}){mark}"


def not_shown_to_differ(ranking: Ranking) -> list[str]:
    """Return the methods that were not shown to differ from the first, which is among them."""
    first = set(ranking.methods[0].groups)
    return [one.method for one in ranking.methods if first & set(one.groups)]


def relative_cost(results: StoredResults, base: str) -> "pd.Series[float]":
    """Return the processor time of a cell of each method, relative to that of one: the median over datasets."""
    done = results.cells[results.cells["status"] == "ok"]
    seconds = done.groupby(["dataset", "method"])["cpu_seconds"].median().unstack("method")
    return seconds.div(seconds[base], axis=0).median()


def run_size(results: StoredResults) -> str:
    """Return how large a study is, and what it took."""
    cells = results.cells[results.cells["status"].notna()]
    counts = (cells[name].nunique() for name in ("method", "dataset", "seed"))
    words = ", ".join(plural(count, noun) for count, noun in zip(counts, ("method", "dataset", "repeat"), strict=True))
    facts = [json.loads(text) for text in dict.fromkeys(cells["environment"])]
    where = dict.fromkeys(f"torch {one['packages']['torch']}, {one['cpu']}" for one in facts)
    took = f"{cells['cpu_seconds'].sum() / 60:.1f} minutes of processor time"
    return f"{words}, {plural(len(cells), 'cell')}; {took}, {' and '.join(where)}."


class Means:
    """Means over repeats of some metrics, by dataset, method and metric."""

    def __init__(self, results: StoredResults, metrics: Sequence[str]) -> None:
        own = results.frame[results.frame["metric"].isin(list(metrics))]
        rows = own.groupby(["dataset", "method", "metric"], sort=False)["value"].agg(["mean", "std"]).reset_index()
        columns = (rows[name] for name in ("dataset", "method", "metric", "mean", "std"))
        self._values = {
            (str(dataset), str(method), str(metric)): (float(mean), float(deviation))
            for dataset, method, metric, mean, deviation in zip(*columns, strict=True)
        }

    @property
    def places(self) -> list[tuple[str, str]]:
        """Datasets with their methods."""
        return list(dict.fromkeys((dataset, method) for dataset, method, _ in self._values))

    def value(self, dataset: str, method: str, metric: str) -> float:
        """Return a mean; NaN where there is none."""
        return self._values.get((dataset, method, metric), (math.nan, math.nan))[0]

    def text(self, dataset: str, method: str, metric: str, places: int | None = 3) -> str:
        """Return a mean with its standard deviation over repeats; without `places` the mean has three digits."""
        mean, deviation = self._values.get((dataset, method, metric), (math.nan, math.nan))
        if math.isnan(mean):
            return "–"
        if places is None:
            places = max(0, 2 - math.floor(math.log10(abs(mean) or 1.0)))
        return f"{mean:.{places}f} ± {deviation:.{places}f}"


FindingMaker = Callable[[Exports], Finding | None]
