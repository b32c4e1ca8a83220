"""Exports stored predictions for other programs: one array file per cell, and a table that says what each is."""

import csv
import io
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.csv_cells import harmless_cell
from bench.machine.files import write_output
from bench.metrics.forecast import Forecast
from bench.metrics.kept import Kept
from bench.store.bank import kept_files, read_predictions
from bench.store.store import Store

COLUMNS = ("suite", "dataset", "split", "method", "seed", "key", "precision", "file")


def write_predictions(store: Store, suite: str | None, folder: Path) -> int:
    """Write the stored predictions of one suite or of all as `KEY.npz`, and `index.csv`; return the number of cells."""
    table, done = io.StringIO(newline=""), set()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name in store.suites() if suite is None else [suite]:
        cells = store.cells(name)
        files = kept_files(store, [cell["key"] for cell in cells])
        for cell in cells:
            row = files.get(cell["key"])
            if row is None or (kept := read_predictions(store, str(row["file"]))) is None:
                continue
            if cell["key"] not in done:
                content = io.BytesIO()
                np.savez_compressed(content, allow_pickle=False, **plain_arrays(kept))
                write_output(folder / f"{cell['key']}.npz", content.getvalue())
                done.add(cell["key"])
            place = [cell[column] for column in COLUMNS[:6]]
            writer.writerow([harmless_cell(v) for v in (*place, row["precision"], f"{cell['key']}.npz")])
    write_output(folder / "index.csv", table.getvalue().encode())
    return len(done)


def plain_arrays(kept: Kept) -> dict[str, NDArray[Any]]:
    """Return predictions as arrays in original units, by names such as `test.values` and `validation.observed`."""
    arrays: dict[str, NDArray[Any]] = {}
    for part, forecast in (("test", kept.test), ("validation", kept.validation)):
        if forecast is not None:
            arrays |= {f"{part}.{name}": values for name, values in _of(forecast).items()}
    if kept.test.noise_variance is not None:
        arrays["noise_variance"] = np.array(kept.test.noise_variance)
    if kept.groups is not None:
        arrays["test.groups"] = kept.groups
    return arrays


def _of(forecast: Forecast) -> Mapping[str, NDArray[Any]]:
    stated: Any = forecast.stated
    sets = {"sets": forecast.sets} if forecast.sets is not None else {}
    stated = getattr(stated, "beside", stated)
    parts = {each.name: getattr(stated, each.name) for each in fields(stated)}
    return {"observed": forecast.observed, **sets, **{k: v for k, v in parts.items() if isinstance(v, np.ndarray)}}
