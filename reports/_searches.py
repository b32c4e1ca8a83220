"""How much each method was searched: a fair comparison gives every method about as many trials."""

from collections.abc import Mapping

import pandas as pd

from bench.api import Results


def configurations_tried(results: Results) -> dict[str, str]:
    """Return for each method how many configurations its search tried per result; {} without any search."""
    cells = results.cells
    if "configurations" not in cells:
        return {}
    tried = cells[cells["status"].isin(["ok", "diverged"])].groupby("method")["configurations"].agg(["min", "max"])
    if tried.empty or tried["max"].max() <= 1:
        return {}
    spans = zip(tried["min"], tried["max"], strict=True)
    return {str(method): _span(int(low), int(high)) for method, (low, high) in zip(tried.index, spans, strict=True)}


def with_searches(table: pd.DataFrame, tried: Mapping[str, str]) -> pd.DataFrame:
    """Return a table of methods with their numbers of configurations as the last column, if anything was searched."""
    if not tried:
        return table
    return table.assign(**{"configurations tried": [tried.get(str(method), "–") for method in table["method"]]})


def _span(lowest: int, highest: int) -> str:
    """Return one number, or two where datasets differ; without a search one configuration was taken untried."""
    words = ["no search" if number == 1 else str(number) for number in (lowest, highest)]
    return words[0] if lowest == highest else " to ".join(words)
