"""The table of latencies that ends a run: Markdown, to read at once or to paste into a document."""

import json
from typing import TYPE_CHECKING, Any

from bench.text_tables import markdown_table

if TYPE_CHECKING:
    from bench.api import Results

UNIT = "ms per 1,000 samples; forward, transfer and total are means, with the interval, median, p90 and p99 of forward"


def latency_table(results: "Results") -> str:
    """Return one Markdown table per dataset."""
    parts = []
    frame = results.frame
    values = {(str(key), str(metric)): float(v) for key, metric, v in frame[["key", "metric", "value"]].to_numpy()}
    cells = results.cells.dropna(subset="training")
    for dataset, own in cells[cells["status"] == "ok"].groupby("dataset", sort=False):
        rows: list[dict[str, str]] = []
        facts: dict[str, Any] = {}
        for _, cell in own.iterrows():
            about = json.loads(cell["training"]).get("latency", {})
            facts, series = about.get("facts", facts), about.get("series", {})
            rows += [_row(cell, condition, series, values) for condition in sorted(series, key=_order)]
        if rows:
            table = markdown_table(list(rows[0]), [list(row.values()) for row in rows], padded=True)
            parts.append("\n".join([_caption(str(dataset), facts), "", *table]))
    return "\n\n".join(parts)


def _order(condition: str) -> tuple[str, int]:
    """Modes one after another, each by T."""
    draws, _, mode = condition.removeprefix("T=").partition(",")
    return mode, int(draws)


def _row(cell: Any, condition: str, series: dict[str, Any], values: dict[tuple[str, str], float]) -> dict[str, str]:
    """Return the text of every column."""
    about = dict(part.split("=") for part in condition.split(","))
    one = series[condition]
    forward, ratio, engine = one["forward"], one["ratio"], series.get(f"T={about['T']}")

    def value(metric: str, form: str) -> str:
        found = values.get((cell["key"], f"{metric}@{condition}"))
        return "" if found is None else format(found, form)

    interval = "" if forward["mean_low"] is None else f"{_short(forward['mean_low'])} to {_short(forward['mean_high'])}"
    against = f"{forward['median'] / engine['forward']['median']:.2f}" if engine and engine is not one else ""
    return {
        "method": str(cell["method"]),
        "T": about["T"],
        "mode": about.get("mode", "engine"),
        "forward": _short(forward["mean"]),
        "95 % interval": interval,
        **{name: _short(forward[name]) for name in ("median", "p90", "p99")},
        **{span: _short(one[span]["mean"]) for span in ("transfer", "total")},
        "samples/s": f"{one['throughput']:,.0f}",
        "ratio to one plain pass": f"{ratio['value']:.3g} ({ratio['low']:.3g} to {ratio['high']:.3g})",
        "scaling": value("latency_scaling", ".2f"),
        "time over engine's": against,
        "MiB": value("latency_memory", ".0f"),
    }


def _short(value: float) -> str:
    """Return three or four digits, never a power of ten."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _caption(dataset: str, facts: dict[str, Any]) -> str:
    rows = f"{facts['rows']:,} rows{' of ' + facts['data'] if facts['data'] else ''} in batches of {facts['batch']}"
    where = f"{facts['device_name']}, {facts['threads']} threads, {facts['dtype']}, torch {facts['torch']}"
    return f"{dataset}: {rows}, {facts['repeats']} repeats; {where}\n{UNIT}"
