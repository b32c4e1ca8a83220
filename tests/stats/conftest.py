"""Frames of results as a store gives them, from plain lists."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import pytest

Values = Mapping[tuple[str, str], Sequence[float | str | None]]
Made = tuple[pd.DataFrame, pd.DataFrame]


@pytest.fixture
def results() -> Callable[..., Made]:
    """Make a frame and its cells from one list a dataset and method: a number, a status, or None where nothing ran."""

    def make(values: Values, metric: str = "rmse", *, same_rows: bool = True) -> Made:
        rows, cells = [], []
        for (dataset, method), numbers in values.items():
            for seed, value in enumerate(numbers):
                place = {"suite": "s", "dataset": dataset, "split": 0 if same_rows else seed, "method": method}
                status = value if isinstance(value, str) else None if value is None else "ok"
                spec = f'{{"data": "{dataset}{0 if same_rows else seed}"}}'
                cells.append({**place, "seed": seed, "status": status, "spec": spec if status else None})
                if status == "ok":
                    rows.append({**place, "seed": seed, "key": "k", "metric": metric, "value": value})
        columns = ["suite", "dataset", "split", "method", "seed", "key", "metric", "value"]
        return pd.DataFrame(rows, columns=columns), pd.DataFrame(cells)

    return make
