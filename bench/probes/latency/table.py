"""The table of latencies that ends a run: Markdown, to read at once or to paste into a document."""

import json
from typing import TYPE_CHECKING, Any

from bench.text_tables import markdown_table

if TYPE_CHECKING:
    from bench.api import Results

COLUMNS = (
    "method",
    "T",
    "mode",
    "forward",
    "95 % interval",
    "median",
    "p90",
    "p99",
    "transfer",
    "total",
    "samples/s",
    "ratio to one plain pass",
    "scaling",
    "time over engine's",
    "MiB",
)
UNIT = "ms per 1,000 samples; forward, transfer and total are means, with the interval, median, p90 and p99 of forward"


def latency_table(results: "Results") -> str:
    """Return one Markdown table per dataset."""
    parts = []
    frame = results.frame
    values = {(str(key), str(metric)): float(v) for key, metric, v in frame[["key", "metric", "value"]].to_numpy()}
    cells = results.cells.dropna(subset="training")
    for dataset, own in cells[cells["status"] == "ok"].groupby("dataset", sort=False):
        lines: list[list[str]] = []
        facts: dict[str, Any] = {}
        for _, cell in own.iterrows():
            about = json.loads(cell["training"]).get("latency", {})
            facts = about.get("facts", facts)
            series = about.get("series", {})
            lines += [
                _line(cell, condition, series[condition], values, series) for condition in sorted(series, key=_order)
            ]
        if lines:
            caption = _caption(str(dataset), facts)
            parts.append("\n".join([caption, "", *markdown_table(COLUMNS, lines, padded=True)]))
    return "\n\n".join(parts)


def _order(condition: str) -> tuple[str, int]:
    """Modes one after another, each by T."""
    draws, _, mode = condition.removeprefix("T=").partition(",")
    return mode, int(draws)


def _line(
    cell: Any, condition: str, one: dict[str, Any], values: dict[tuple[str, str], float], series: dict[str, Any]
) -> list[str]:
    about = dict(part.split("=") for part in condition.split(","))
    forward, ratio = one["forward"], one["ratio"]

    def value(metric: str, form: str) -> str:
        found = values.get((cell["key"], f"{metric}@{condition}"))
        return "" if found is None else format(found, form)

    engine = series.get(f"T={about['T']}")
    against = f"{forward['median'] / engine['forward']['median']:.2f}" if engine and engine is not one else ""
    interval = "" if forward["mean_low"] is None else f"{_short(forward['mean_low'])} to {_short(forward['mean_high'])}"
    return [
        str(cell["method"]),
        about["T"],
        about.get("mode", "engine"),
        _short(forward["mean"]),
        interval,
        _short(forward["median"]),
        _short(forward["p90"]),
        _short(forward["p99"]),
        _short(one["transfer"]["mean"]),
        _short(one["total"]["mean"]),
        f"{one['throughput']:,.0f}",
        f"{ratio['value']:.3g} ({ratio['low']:.3g} to {ratio['high']:.3g})",
        value("latency_scaling", ".2f"),
        against,
        value("latency_memory", ".0f"),
    ]


def _short(value: float) -> str:
    """Return three or four digits, never a power of ten."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _caption(dataset: str, facts: dict[str, Any]) -> str:
    rows = f"{facts['rows']:,} rows{' of ' + facts['data'] if facts['data'] else ''} in batches of {facts['batch']}"
    where = f"{facts['device_name']}, {facts['threads']} threads, {facts['dtype']}, torch {facts['torch']}"
    return f"{dataset}: {rows}, {facts['repeats']} repeats; {where}\n{UNIT}"
