import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.errors import UserError
from bench.spec.cell import Cell, Outcome
from bench.store.export import COLUMNS, Format, rows, write, write_file
from bench.store.results import StoredResults
from bench.store.store import Store, SuiteRecord

STRANGE = ['a,"b"', "1+1", "two; three", "ünï <x>"]


@pytest.fixture
def full(store: Store) -> Store:
    source = np.random.default_rng(0)
    cells = [
        Cell(f"{i:032x}{m}", dataset, s, method, s, "{}")
        for i, dataset in enumerate(["toy", *STRANGE])
        for m, method in enumerate(["base", "other"])
        for s in (0, 1)
    ]
    cells = [Cell(f"{n:032x}", c.dataset, c.split, c.method, c.seed, c.spec) for n, c in enumerate(cells)]
    for name in ("tiny", "second"):
        store.want(SuiteRecord(name, "Tiny", "base", [], "{}"), cells)
    metrics = [{"nll_mc": float(source.normal() * 1e-5), "rmse": float(source.random() * 1e9)} for _ in cells]
    metrics[0]["nll"], metrics[1]["nll"], metrics[2]["nll"] = math.inf, -math.inf, math.nan
    made = enumerate(zip(cells, metrics, strict=True))
    store.save((c, Outcome("diverged" if n == 3 else "ok", metrics=m)) for n, (c, m) in made)
    return store


def table(store: Store, suite: str | None = None) -> pd.DataFrame:
    return pd.DataFrame(rows(store, suite), columns=COLUMNS)


def bits(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    return [(*row[:-1], float(row[-1]).hex()) for row in frame[[*COLUMNS[:6], "key", "status", "value"]].to_numpy()]


def test_the_table_is_what_reports_see(full: Store) -> None:
    frame = table(full, "tiny")
    assert tuple(frame.columns) == COLUMNS
    seen = StoredResults(full, "tiny").frame
    pd.testing.assert_frame_equal(frame[list(seen.columns)], seen)
    assert "msll" in set(frame["metric"])
    assert frame.groupby("status")["key"].nunique().to_dict() == {"diverged": 1, "ok": 19}
    everything = table(full)
    assert len(everything) == 2 * len(frame)
    assert set(everything["suite"]) == {"tiny", "second"}


def test_csv_comes_back_bit_for_bit(full: Store) -> None:
    frame = table(full)
    content = io.BytesIO()
    write(rows(full), Format.CSV, content)
    content.seek(0)
    back = pd.read_csv(content, keep_default_na=False, dtype={"key": str, "value": str})
    assert bits(back.assign(value=back["value"].map(float))) == bits(frame)


def test_parquet_comes_back_bit_for_bit(full: Store, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = table(full)
    write_file(rows(full), Format.PARQUET, tmp_path / "new" / "values.parquet")
    assert bits(pd.read_parquet(tmp_path / "new" / "values.parquet")) == bits(frame)


def test_json_comes_back_bit_for_bit(full: Store) -> None:
    frame = table(full)
    content = io.BytesIO()
    write(rows(full), Format.JSON, content)
    read = json.loads(content.getvalue(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert {row["value"] for row in read if isinstance(row["value"], str)} == {"inf", "-inf", "nan"}
    assert bits(pd.DataFrame([row | {"value": float(row["value"])} for row in read])) == bits(frame)


@pytest.mark.parametrize("form", Format)
def test_nothing_stored_is_a_table_without_rows(form: Format, store: Store) -> None:
    content = io.BytesIO()
    write(rows(store), form, content)
    store.want(SuiteRecord("tiny", "Tiny", "base", [], "{}"), [])
    write(rows(store, "tiny"), form, content)
    assert content.getvalue()


def test_a_file_is_written_whole_or_not_at_all(full: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "values.csv"
    path.write_text("before", "utf-8")

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("bench.store.arrays.os.fsync", fail)
        with pytest.raises(UserError, match=r"values.csv: cannot be written: No space left on device"):
            write_file(rows(full), Format.CSV, path)
    assert path.read_text("utf-8") == "before"
    assert not list(tmp_path.glob(".*"))
    with pytest.raises(UserError, match="one of its folders"):
        write_file(rows(full), Format.CSV, path / "below-a-file.csv")
    write_file(rows(full), Format.CSV, path)
    assert path.read_text("utf-8").startswith(",".join(COLUMNS))


def test_parquet_without_its_library(full: Store, python: Callable[[str], str]) -> None:
    code = (
        "import io, sys; sys.modules['pyarrow'] = None\n"
        "from bench.errors import UserError; from bench.store.store import Store\n"
        "from bench.store.export import Format, rows, write\n"
        f"values = rows(Store({full.url!r}))\n"
        "try: write(values, Format.PARQUET, io.BytesIO())\n"
        "except UserError as error: print(error)\n"
    )
    assert python(code).endswith("pip install 'uqbench[parquet]'")


def test_no_formulas_in_csv(store: Store) -> None:
    names = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "＝1")  # noqa: RUF001
    cells = [Cell(f"{n:032x}", name, 0, name, n, "{}") for n, name in enumerate(names)]
    store.want(SuiteRecord("=suite", "Evil", None, [], "{}"), cells)
    store.save([(cell, Outcome("ok", metrics={"nll": -1.5})) for cell in cells])
    content = io.BytesIO()
    write(rows(store), Format.CSV, content)
    read = list(csv.DictReader(io.StringIO(content.getvalue().decode())))
    assert {row["suite"] for row in read} == {"'=suite"}
    assert {row["method"] for row in read} == {row["dataset"] for row in read} == {f"'{name}" for name in names}
    assert {row["value"] for row in read} == {"-1.5"}  # a number stays one


def test_an_error_while_values_are_read_leaves_the_file_open() -> None:
    """Standard output would be closed, and the message about the error lost."""

    def values() -> Iterator[Any]:
        yield ("s", "d", 0, "m", 0, "rmse", 1.0, "k", "ok")
        raise OSError("damaged")

    for form in (Format.CSV, Format.JSON):
        file = io.BytesIO()
        with pytest.raises(OSError, match="damaged"):
            write(values(), form, file)
        assert not file.closed
