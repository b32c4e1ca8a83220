"""One table per dataset: mean and standard deviation over the seeds, the best mean in bold, marks for what differs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from bench.api import Block, Metric, Report, Results, Section, Table, Text, declaration, stats
from bench.reports._left_out import explain
from bench.reports._lost_cells import WHY
from bench.reports._page_tests import Tested, page_tests
from bench.reports._recalibrated import column_cells, column_numbers, explained, recalibrations
from bench.reports._words import about_draws, arrow, column_parts, decimals, methods_of, metrics_of, with_spread

Marks = Mapping[tuple[str, str], str]  # of a metric and a method
BETTER, WORSE = "†", "‡"


@dataclass(frozen=True)
class Summary(Report):
    """The numbers of a suite, dataset by dataset."""

    order = 15

    def section(self, results: Results) -> Section | None:
        """Return the tables, or None where nothing is stored."""
        frame = results.frame
        places = {str(dataset): rows for dataset, rows in frame.groupby("dataset", sort=True)}
        chosen = {dataset: metrics_of(results, rows) for dataset, rows in places.items()}
        if not any(chosen.values()):
            return None
        tested = [one for one in page_tests(results).tested.values() if results.baseline in one.tests.methods]
        blocks: list[Block] = []
        beside: dict[str, str] = {}
        marks = _marks(str(results.baseline), tested)
        numbers = stats.repeat_means(frame, results.cells)
        known = {str(dataset): own.droplevel("dataset") for dataset, own in numbers.groupby(level="dataset")}
        for dataset, metrics in chosen.items():
            if metrics:
                own, rows = known[dataset], places[dataset]
                methods, seeds = methods_of(rows), rows["seed"].nunique()
                baseline = results.baseline if dataset in marks else None
                parts = column_parts(metrics)
                calibrated = next((part for part in parts if _calibrated(part)), None)
                scaled = recalibrations(results).column(metrics[0].task, [dataset]) if calibrated else None
                for number, part in enumerate(parts, start=1):
                    table = _table(
                        dataset, own, methods, seeds, part, marks.get(dataset, {}), baseline, results.baseline
                    )
                    if len(parts) > 1:
                        table = replace(table, caption=f"{table.caption}, table {number} of {len(parts)}")
                    own_column = scaled if part is calibrated else None
                    blocks.append(table if own_column is None else _with_scaled(table, own_column))
                beside |= {} if scaled is None else {scaled.name: explained(scaled)}
                gaps = [
                    (method, metric)
                    for metric in metrics
                    for method in methods
                    if (metric.name, method) not in own.index
                ]
                if reasons := explain(results.cells, dataset, gaps):
                    blocks.append(Text(reasons))
        every = dict.fromkeys(metric for metrics in chosen.values() for metric in metrics)
        texts = [_introduction(results, tested), about_draws(every), *beside.values()]
        introduction = " ".join(text for text in texts if text)
        return Section("Results by dataset", [Text(introduction), *blocks])


def _introduction(results: Results, tested: Sequence[Tested]) -> str:
    text = (
        "Mean ± standard deviation over the seeds; bold: the best mean, which by itself says nothing of significance. "
        "Coverage is best where it is nearest to its target. Widths of intervals are neither bold nor marked: narrow "
        "is good only with coverage, and the Winkler score and CRPS weigh both. "
        "(n of m): with values in n of m repeats. A method without a finite value in every repeat that it or another "
        f"method has is never bold, because {WHY}."
    )
    if results.baseline:
        text += (
            f" {BETTER} better and {WORSE} worse than {results.baseline}, paired by split and seed; "
            "corrected for the number of tests. No mark: not shown to differ, "
            "which is not the same as equal. Relative metrics are differences to that method on the same split."
        )
    if tested:
        text += f" Tests: {stats.datasets_by_test((one.tests.dataset, one.tests.repetition) for one in tested)}."
    return text


def _marks(baseline: str, tested: Sequence[Tested]) -> dict[str, dict[tuple[str, str], str]]:
    """Return the marks of each dataset."""
    marks: dict[str, dict[tuple[str, str], str]] = {}
    for one in tested:
        if declaration(one.tests.metric).only_with:
            marks.setdefault(one.tests.dataset, {})
            continue
        against = one.verdicts[:, one.tests.methods.index(baseline)]
        own = {1.0: BETTER, -1.0: WORSE}
        marks.setdefault(one.tests.dataset, {}).update(
            {
                (one.tests.metric, method): own[verdict]
                for method, verdict in zip(one.tests.methods, against.tolist(), strict=True)
                if verdict in own
            }
        )
    return marks


def _table(
    dataset: str,
    known: pd.DataFrame,
    methods: Sequence[str],
    seeds: int,
    metrics: list[Metric],
    marks: Marks,
    baseline: str | None,
    against: str | None,
) -> Table:
    """Return the table of a dataset from the means of each metric and method (`stats.repeat_means`).

    `baseline` is the method that the marks are about, None where nothing was tested; `against` that of the suite.
    """
    data, bold, numbers = {}, set(), []
    for column, metric in enumerate(metrics, start=1):
        own = known.loc[metric.name]
        means, spreads, counts, due = (own[name].to_dict() for name in ("mean", "deviation", "count", "due"))
        whole = own["whole"].to_dict()
        places = decimals(spreads.values(), means.values())
        data[f"{metric.name} {arrow(metric)}".rstrip()] = [
            _cell(means.get(m), spreads.get(m), counts.get(m, 0), due.get(m, 0), places)
            + marks.get((metric.name, m), "")
            for m in methods
        ]
        if metric.has_better and not metric.only_with and len(means) > 1:
            losses = {m: metric.loss(float(means[m])) for m in methods if whole.get(m)}
            best = min(losses.values(), default=math.nan)
            leading = [m for m, loss in losses.items() if loss == best]
            rivals = len(losses) > 1 or all(counts[m] >= due[m] for m in means)  # an infinite value is a result, too
            leading = leading if rivals and len(leading) < len(means) else []  # all are alike
            # The baseline's own difference to itself is 0 and no result.
            bold |= {(methods.index(m), column) for m in leading if not (metric.relative_to and m == against)}
        numbers += [
            (m, metric.name, means[m], spreads.get(m), counts[m], marks.get((metric.name, m), ""))
            for m in methods
            if m in means
        ]
    frame = pd.DataFrame({"method": methods, **data})
    tidy = pd.DataFrame(numbers, columns=["method", "metric", "mean", "standard_deviation", "seeds", "mark"])
    caption = f"{dataset} ({seeds} {'seed' if seeds == 1 else 'seeds'})"
    paper = _paper_caption(dataset, seeds, baseline)
    return Table(caption, frame, frozenset(bold), f"results-{dataset}", tidy, paper_caption=paper)


def _calibrated(metrics: Sequence[Metric]) -> bool:
    """Whether a table shows calibration."""
    return any(metric.family == "calibration" for metric in metrics)


def _with_scaled(table: Table, scaled: stats.ScaledColumn) -> Table:
    """Add what a scaling fitted on validation rows makes of the calibration, as a column beside the results."""
    methods = list(table.data["method"])
    extra = [(*each, math.nan, math.nan, "") for each in column_numbers(scaled, methods)]
    assert table.numbers is not None
    numbers = pd.concat([table.numbers, pd.DataFrame(extra, columns=table.numbers.columns)], ignore_index=True)
    return replace(
        table,
        data=table.data.assign(**{scaled.name: column_cells(scaled, methods)}),
        numbers=numbers,
        paper_caption=f"{table.paper_caption} {explained(scaled)}",
        asides={scaled.name: scaled.note},
    )


def _paper_caption(dataset: str, seeds: int, baseline: str | None) -> str:
    over = f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    text = f"`{dataset}`: {over}. ↓: lower is better, ↑: higher, →: nearer to the value. Bold: the best mean."
    if baseline is None:
        return text
    return (
        f"{text} {BETTER}: better, {WORSE}: worse than `{baseline}` in tests paired by split and seed, corrected for "
        "multiple testing; no mark: not shown to differ."
    )


def _cell(mean: float | None, spread: float | None, count: int, due: int, places: int) -> str:
    if mean is None:
        return "–"
    fewer = f" ({count} of {due})" if count < due else ""  # the others failed, diverged, or were not run
    return with_spread(mean, math.nan if spread is None else spread, places) + fewer
