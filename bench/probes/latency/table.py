"""The tables of latencies that end a run: Markdown, to read at once or to paste into a document."""

import json
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from bench.text_tables import cut, markdown_table

if TYPE_CHECKING:
    from bench.api import Results

UNIT = "ms per 1,000 samples; means of forward (with its interval) and total, median and p99 of forward"
COLUMNS = 100  # of a terminal
FEWEST_LETTERS = 8  # of the name of a method that has to be cut
PLACE = ("method", "T", "mode")
# Beside each other they do not fit a terminal.
TABLES = (
    ("forward", "95 % interval", "median", "p99", "total"),
    ("samples/s", "over a plain pass", "scaling", "over engine", "MiB"),
)
ABOUT = (
    "over a plain pass: forward by one plain pass of the same network, with its interval; scaling: time(T) / (T x "
    "time(1)); over engine: time by that of mode engine. 'uqbench report' has transfer and p90, too."
)
CHOSEN = ("T", "batch", "chosen by mode tuned", "in trials over engine")


def latency_table(results: "Results") -> str:
    """Return two Markdown tables per dataset, times and ratios, neither wider than a terminal."""
    parts = []
    frame = results.frame
    values = {(str(key), str(metric)): float(v) for key, metric, v in frame[["key", "metric", "value"]].to_numpy()}
    cells = results.cells.dropna(subset="training")
    for dataset, own in cells[cells["status"] == "ok"].groupby("dataset", sort=False):
        rows: list[dict[str, str]] = []
        chosen: list[list[str]] = []
        facts: dict[str, Any] = {}
        for _, cell in own.iterrows():
            about = json.loads(cell["training"]).get("latency", {})
            facts, series = about.get("facts", facts), about.get("series", {})
            rows += [_row(cell, condition, series, values) for condition in sorted(series, key=_order)]
            tuned = [condition for condition in sorted(series, key=_order) if "choice" in series[condition]]
            chosen += [_chosen(str(cell["method"]), condition, series[condition]) for condition in tuned]
        if rows:
            parts += [_caption(str(dataset), facts), *(_table(rows, columns) for columns in TABLES)]
        if chosen:
            parts.append("\n".join(markdown_table(["method", *CHOSEN], chosen, [1, 2, 4], padded=True)))
    return "\n\n".join([*parts, "\n".join(wrap(ABOUT, COLUMNS))]) if parts else ""


def _table(rows: list[dict[str, str]], columns: Sequence[str]) -> str:
    """Return some columns of all rows; names of methods are cut where the table would be wider than a terminal."""
    # A column where no row has anything says nothing, such as a ratio to other modes where there is one.
    header = [*PLACE, *(name for name in columns if any(row[name] for row in rows))]
    wide = [max(len(name), *(len(row[name]) for row in rows)) for name in header]
    room = max(FEWEST_LETTERS, wide[0] - max(0, sum(wide) + 3 * len(wide) + 1 - COLUMNS))
    texts = [[cut(row["method"], room), *(row[name] for name in header[1:])] for row in rows]
    numbers = [place for place, name in enumerate(header) if name not in ("method", "mode")]
    return "\n".join(markdown_table(header, texts, numbers, padded=True))


def _order(condition: str) -> tuple[str, int]:
    """Modes one after another, each by T."""
    draws, _, mode = condition.removeprefix("T=").partition(",")
    return mode, int(draws)


def _chosen(method: str, condition: str, one: dict[str, Any]) -> list[str]:
    """Return the columns of a row about a mode that was chosen by trials."""
    draws, choice = condition.removeprefix("T=").partition(",")[0], one["choice"]
    gain = choice["tried"][choice["chosen"]] / choice["tried"][choice["fixed"]]
    return [cut(method, 16), draws, str(one["batch"]), cut(choice["chosen"], 44), f"{gain:.2f}"]


def _row(cell: Any, condition: str, series: dict[str, Any], values: dict[tuple[str, str], float]) -> dict[str, str]:
    """Return the text of every column."""
    about = dict(part.split("=") for part in condition.split(","))
    one = series[condition]
    forward, ratio = one["forward"], one["ratio"]
    single = f",batch={about['batch']}" if "batch" in about else ""
    engine = series.get(f"T={about['T']}{single}")

    def value(metric: str, form: str) -> str:
        found = values.get((cell["key"], f"{metric}@{condition}"))
        return "" if found is None else format(found, form)

    interval = "" if forward["mean_low"] is None else f"{_short(forward['mean_low'])} to {_short(forward['mean_high'])}"
    against = f"{forward['median'] / engine['forward']['median']:.2f}" if engine and engine is not one else ""
    return {
        "method": str(cell["method"]),
        "T": about["T"],
        "mode": about.get("mode", "engine") + (f", {single[1:].replace('=', ' ')}" if single else ""),
        "forward": _short(forward["mean"]),
        "95 % interval": interval,
        **{name: _short(forward[name]) for name in ("median", "p99")},
        "total": _short(one["total"]["mean"]),
        "samples/s": f"{one['throughput']:,.0f}",
        "over a plain pass": f"{_short(ratio['value'])} ({_short(ratio['low'])} to {_short(ratio['high'])})",
        "scaling": value("latency_scaling", ".2f"),
        "over engine": against,
        "MiB": value("latency_memory", ".0f"),
    }


def _short(value: float) -> str:
    """Return three or four digits, never a power of ten."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _caption(dataset: str, facts: dict[str, Any]) -> str:
    rows = f"{facts['rows']:,} rows{' of ' + facts['data'] if facts['data'] else ''} in batches of {facts['batch']}"
    where = f"{facts['device_name']}, {facts['threads']} threads, {facts['dtype']}, torch {facts['torch']}"
    about = f"{dataset}: {rows}, {facts['repeats']} repeats; {where}"
    if isinstance(floor := facts.get("floor"), dict):  # earlier rows have none
        about += (
            f"; floor: {floor['empty'] * 1000:.3g} us between two marks, {floor['launch'] * 1000:.3g} us per launch, "
            f"{floor['gigaflops']:,.0f} gigaflops in a product of size {floor['size']:,}"
        )
    return "\n".join([*wrap(about, COLUMNS), UNIT])
