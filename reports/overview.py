"""The first screen: every method by the metrics that matter, what was shown, at what cost, and what was not seen."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.api import Block, Facts, Report, Results, Section, Table, Text, plural, stats
from bench.reports._answers import answer, more_repeats, no_column, title
from bench.reports._cell_warnings import warning_blocks
from bench.reports._choice import QUESTION, choice
from bench.reports._cost_figure import pareto
from bench.reports._costs import MethodCost, method_costs, numbers_text, times_text
from bench.reports._forest import forests
from bench.reports._headline import headlines
from bench.reports._lost_cells import LACKING
from bench.reports._page_tests import page_tests
from bench.reports._recalibrated import column_cells, column_numbers, explained, recalibrations
from bench.reports._standings import Board, Standing, boards
from bench.reports._words import about_draws, arrow, decimals, lead_metrics, methods_of, rounded

BETTER, WORSE = "†", "‡"
ALL = "all"  # behind a mark: a verdict over the datasets together
MANY_PER_CENT = 1000  # from which on decimals say nothing
MOST_ROWS = 8  # of a table that leaves room for the sentences on the first screen


@dataclass(frozen=True)
class Overview(Report):
    """For each task a table of methods by metrics and cost, a sentence per metric, and a forest plot of differences."""

    order = 5

    def section(self, results: Results) -> Section | None:
        """Return what a reader needs first, or None where nothing is stored."""
        if results.cells.empty:
            return None
        found = boards(results)
        first: list[Block] = []
        then: list[Block] = []
        for task, own in found.items():
            ending = f"-{task}" if len(found) > 1 else ""
            first += _task(results, own, ending)
            then += _figures(results, own, ending)
        if not found:
            first.append(Text(_why_nothing(results)))
            then += _cost_blocks(results, [], sorted(set(results.cells["dataset"])), "")
        blocks = [*warning_blocks(results), *first, Facts(_facts(results)), *then]
        return Section("Results at a glance", blocks)


def _task(results: Results, own: Sequence[Board], ending: str) -> list[Block]:
    """Return the table of one task, and a sentence on each of its metrics."""
    costs, base, tests = method_costs(results, _datasets(own)), _baseline(results, own), page_tests(results)
    leads = sum(not math.isnan(row.p) for found in tests.verdicts.values() for one in found for row in one.rows)
    answers = {
        title(board.headline): answer(board, base, costs, leads if board.metric in tests.verdicts else tests.further)
        for board in own
    }
    listed = {board.metric for board in own}
    left = [one for one in headlines(results)[own[0].metric.task] if one.metric not in listed]
    answers |= {title(one): no_column(results.baseline) for one in left}
    which, more = choice(own, base, costs, tests, unequal=_unequal(results.cells)), more_repeats(own)
    question = f"{QUESTION}: {own[0].metric.task}" if ending else QUESTION  # which of the page's tables it is about
    answers = ({question: which} if which else {}) | answers | ({"More seeds": more} if more else {})
    table = _table(results, own, costs, base, f"at-a-glance{ending}")
    return [Facts(answers), table] if len(table.data) > MOST_ROWS else [table, Facts(answers)]


def _unequal(cells: pd.DataFrame) -> bool:
    """Whether methods were run with different repeats."""
    planned = cells.groupby(["dataset", "method"]).size()
    return any(planned.get(place, 0) < due for place, due in stats.repeats_due(cells).items())


def _figures(results: Results, own: Sequence[Board], ending: str) -> list[Block]:
    base = _baseline(results, own)
    figures = forests(f"forest{ending}", base, own) if base else []
    return [*figures, *_cost_blocks(results, own, _datasets(own), ending)]


def _datasets(own: Sequence[Board]) -> list[str]:
    return sorted({dataset for board in own for dataset in board.datasets})


def _baseline(results: Results, own: Sequence[Board]) -> str | None:
    """Return the baseline, where it has results."""
    return results.baseline if any(results.baseline in board.standings for board in own) else None


def _facts(results: Results) -> dict[str, str]:
    cells = results.cells
    status = cells["status"]
    lost = int(status.isin(["failed", "diverged"]).sum())
    facts = {
        "methods": str(cells["method"].nunique()),
        "datasets": str(cells["dataset"].nunique()),
        "seeds": str(cells["seed"].nunique()),
        "cells with a result": f"{int((status == 'ok').sum()):,} of {len(cells):,}",
    }
    if lost:
        facts["failed or diverged"] = f"{lost:,}"
    seconds = pd.to_numeric(cells["cpu_seconds"], errors="coerce").sum() if "cpu_seconds" in cells else 0.0
    if seconds > 0:
        facts["processor time"] = _duration(float(seconds))
    if results.baseline:
        facts["baseline"] = results.baseline
    return facts


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _why_nothing(results: Results) -> str:
    if not lead_metrics(results):
        return "No verdicts: the suite has no metrics of quality to compare by, only costs."
    if results.baseline is None:
        return "No verdicts: the suite names no baseline to compare with (baseline = ... in its file)."
    return f"No verdicts: {results.baseline}, the baseline, has no results to compare with."


def _table(
    results: Results, own: Sequence[Board], costs: Mapping[str, MethodCost], base: str | None, name: str
) -> Table:
    """Return all methods by the metrics of one task and by cost: values, intervals and marks."""
    methods = own[0].order([m for m in methods_of(results.frame) if any(m in board.standings for board in own)])
    data: dict[str, list[str]] = {"method": [_name(own, m, base) for m in methods]}
    data |= _prices(costs, methods)
    bold, numbers = set(), []
    scaled = recalibrations(results).column(own[0].metric.task, _datasets(own))
    for board in own:
        places = decimals(*zip(*[_widths(board.standings[m]) for m in methods if m in board.standings], strict=True))
        places = min(places, 1) if board.percent else places
        unit = " (%)" if board.percent else ""
        column = len(data)
        data[f"{board.metric.name} {arrow(board.metric)}{unit}"] = [
            _cell(board, m, places, base) + _lacking(own, board, m) if m in board.standings else "–" for m in methods
        ]
        best = board.best()
        bold |= {(methods.index(best), column)} if best and not (board.percent and best == base) else set()
        numbers += [(m, board.metric.name, *_tidy(one)) for m, one in board.standings.items()]
        if scaled is not None and board.headline.group == "calibration":
            data[scaled.name] = column_cells(scaled, methods)
            numbers += [(*each, *[math.nan] * 8) for each in column_numbers(scaled, methods)]
    asides = {scaled.name: scaled.note} if scaled is not None and scaled.name in data else {}
    columns = ["method", "metric", "value", "95 % low", "95 % high", "difference", "difference low"]
    columns += ["difference high", "datasets better", "datasets worse", "datasets tested"]
    more = [about_draws([board.metric for board in own]), explained(scaled) if scaled is not None and asides else ""]
    caption, paper = (
        " ".join([_caption(results, own, base, quote), *(text for text in more if text)]) for quote in ("", "`")
    )
    tidy = pd.DataFrame(numbers, columns=columns)
    return Table(caption, pd.DataFrame(data), frozenset(bold), name, tidy, paper_caption=paper, asides=asides)


def _caption(results: Results, own: Sequence[Board], base: str | None, quote: str = "") -> str:
    """Return the caption; with a backquote around names, a paper prints their titles."""
    datasets = [f"{quote}{dataset}{quote}" for dataset in _datasets(own)]
    seeds = results.cells[results.cells["dataset"].isin(_datasets(own))]["seed"].nunique()
    base = f"{quote}{base}{quote}" if base is not None else None
    where = datasets[0] if len(datasets) == 1 else f"Mean over {len(datasets)} datasets ({', '.join(datasets)})"
    text = f"{where}, {plural(seeds, 'seed')}, with 95 % intervals, sorted by the first metric. Bold: the best mean."
    if not all(one.whole for board in own for one in board.standings.values()):
        text += f" {LACKING}"
    if base is None:
        return text
    text += f" %: change from {base}." if any(board.percent for board in own) else ""
    if not any(one.tested for board in own for one in board.standings.values()):
        return f"{text} Nothing is tested; the intervals are of one number each."
    several = ", with the number of datasets" if len(datasets) > 1 else ""
    if any(one.over in ("better", "worse") for board in own for one in board.standings.values()):
        several += f" ({ALL}: over all of them together)"
    marks = f"{BETTER} better, {WORSE} worse than {base} after correction{several}"
    return f"{text} {marks}; the intervals are of one number each, uncorrected."


def _widths(one: Standing) -> tuple[float, float]:
    return (one.value.high - one.value.low) / 2, one.value.value


def _cell(board: Board, method: str, places: int, base: str | None) -> str:
    one, several = board.standings[method], len(board.datasets) > 1
    if board.percent and method == base:
        return "0 %"
    places = 0 if board.percent and abs(one.value.value) >= MANY_PER_CENT else places
    value = rounded(one.value.value, places, sign=board.percent) + (" %" if board.percent else "")
    words = ((BETTER, "better"), (WORSE, "worse"))
    marks = [(mark, str(one.count(word))) for mark, word in words if one.count(word)]
    marks += [(mark, ALL) for mark, word in words if one.over == word]
    text = value + (" " if several and marks else "") + " ".join(f"{m}{n}" if several else m for m, n in marks)
    if one.value.has_interval:
        text += f"\n({rounded(one.value.low, places)} to {rounded(one.value.high, places)})"
    return text


def _name(own: Sequence[Board], method: str, base: str | None) -> str:
    """Return a method with its repeats, where it lacks some and has equally many by all metrics."""
    notes = ["(baseline)"] if method == base else []
    counts = {(one.repeats, one.due) for board in own if (one := board.standings.get(method))}
    notes += [f"({repeats} of {due})" for repeats, due in counts if repeats < due and len(counts) == 1]
    return "\n".join([method, *notes])


def _lacking(own: Sequence[Board], board: Board, method: str) -> str:
    """Return the repeats behind a value, where they are fewer than those of others and not said beside the method."""
    counts = {(one.repeats, one.due) for each in own if (one := each.standings.get(method))}
    one = board.standings[method]
    return "" if one.whole or len(counts) == 1 else f"\n({one.repeats} of {one.due})"


def _tidy(one: Standing) -> tuple[float, ...]:
    difference = one.difference
    ends = (difference.value, difference.low, difference.high) if difference else (math.nan,) * 3
    return one.value.value, one.value.low, one.value.high, *ends, one.count("better"), one.count("worse"), one.tested


def _prices(costs: Mapping[str, MethodCost], methods: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of cost, which stand beside the method: they are half of the answer."""
    prices = {
        "training (x epochs)": [_training(costs.get(m)) for m in methods],
        "passes T": [numbers_text(costs[m].passes) if m in costs else "–" for m in methods],
    }
    if any(cost.latency > 0 for cost in costs.values()):
        prices["latency (ms per 1,000 rows)"] = [rounded(costs[m].latency, 2) if m in costs else "–" for m in methods]
    return {name: column for name, column in prices.items() if set(column) != {"–"}}


def _training(cost: MethodCost | None) -> str:
    if cost is None:
        return "–"
    networks = f"\n({numbers_text(cost.networks)} networks)" if cost.networks and cost.networks != (1,) else ""
    return times_text(cost.training) + networks


def _cost_blocks(results: Results, own: Sequence[Board], datasets: Sequence[str], ending: str) -> list[Block]:
    """Return the figure of quality against cost, and what every method costs."""
    costs = method_costs(results, datasets)
    columns = {
        "networks": [numbers_text(cost.networks) for cost in costs.values()],
        "epochs of all networks, x baseline": [times_text(cost.training) for cost in costs.values()],
        "passes per prediction (T)": [numbers_text(cost.passes) for cost in costs.values()],
        "processor time of a cell (s)": [rounded(cost.seconds, 2) for cost in costs.values()],
        "latency (ms per 1,000 rows)": [rounded(cost.latency, 2) for cost in costs.values()],
    }
    columns = {name: column for name, column in columns.items() if set(column) != {"–"}}
    if not costs or not columns:
        return []
    figure = pareto(f"quality-and-cost{ending}", own, costs)
    note = "; latency at the most draws that were timed" if "latency (ms per 1,000 rows)" in columns else ""
    caption = (
        f"What each method costs (networks that methods have in common are trained once and share their time{note})"
    )
    data = pd.DataFrame({"method": list(costs), **columns})
    table = Table(caption, data, name=f"costs{ending}", folded=bool(own))
    return [*([figure] if figure is not None else []), table]
