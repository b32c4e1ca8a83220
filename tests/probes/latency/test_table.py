"""The tables that end a run with the latency probe."""

from typing import Any

from bench.probes.latency.conditions import FACTS, FACTS_PER_SERIES
from bench.probes.latency.table import COLUMNS, latency_table
from bench.spec.cell import Outcome
from bench.store.store import Store
from tests.fixtures.results import save_outcomes


def test_the_tables_fit_a_terminal_and_hold_the_ratios(store: Store) -> None:
    forward = {"mean": 12345.678, "mean_low": 11111.1, "mean_high": 22222.2, "median": 12000.0, "p90": 2.0, "p99": 3.0}
    one: dict[str, Any] = {"forward": forward, "throughput": 1234567.8, "transfer": forward, "total": forward}
    one |= {**dict.fromkeys(FACTS_PER_SERIES, 1), "ratio": {"value": 1234.5, "low": 1111.1, "high": 2222.2}}
    half = {**one, "forward": {**forward, "median": 24000.0}}
    facts = dict.fromkeys(FACTS, "x") | {"data": "x", "rows": 2000, "repeats": 10}
    record = {"facts": facts, "series": {"T=100": one, "T=100,mode=compiled": half}}
    values = {f"latency_{name}@T=100": 1.0 for name in ("forward", "scaling", "memory")}
    long = "a-method-with-a-name-that-is-longer-than-a-column"
    outcomes = {
        ("rows", method, 0): Outcome("ok", metrics=values, training={"latency": record}) for method in (long, "short")
    }
    text = latency_table(save_outcomes(store, "s", outcomes))
    assert max(map(len, text.splitlines())) <= COLUMNS
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    times, ratios = (dict(zip(rows[first], rows[first + 5], strict=True)) for first in (0, 6))
    assert times == {
        "method": "short",
        "T": "100",
        "mode": "compiled",
        "forward": "12,346",
        "95 % interval": "11,111 to 22,222",
        "median": "24,000",
        "p99": "3",
        "total": "12,346",
    }
    assert ratios["over engine"] == "2.00"  # 24 s by 12 s
    assert ratios["samples/s"] == "1,234,568"
    assert rows[2][0].startswith("a-method")
    assert rows[2][0].endswith("…")
