"""Tables with gaps, categories and dates; splits by group and by time; nothing of a test row reaches training rows."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bench.api import Array, Dataset, Split
from bench.datasets import _own_table
from bench.datasets._encoding import Encoding, Rules, fit_encoding
from bench.datasets._table import Table, read_csv
from bench.errors import UserError
from bench.plan.cells import checked, fingerprint
from bench.plugins.registry import Registry
from bench.probes.row_shift import SIZES, shifted_rows
from bench.spec.protocol import Protocol
from bench.testing.check import Check
from bench.testing.dataset_checks import DatasetSubject, dataset_checks
from bench.training.rows import prepare

TAKES_ALL = {"categories": "one-hot", "missing": "impute", "dates": ["sold"], "categorical": ["zone"]}


def houses(rows: int = 240, share: float = 0.15) -> pd.DataFrame:
    """A table with 15 % missing values, three categorical columns, one of them of numbers, and a date."""
    random = np.random.default_rng(3)
    day = date(2020, 1, 1)
    table = pd.DataFrame(
        {
            "area": random.uniform(40, 200, rows).round(2),
            "rooms": random.integers(1, 7, rows).astype(float),
            "kind": random.choice(["flat", "house", "none"], rows),
            "heating": random.choice(["gas", "oil", "heat pump"], rows),
            "zone": random.choice([1, 2, 10], rows).astype(float),
            "agent": [f"agent {n % 12}" for n in range(rows)],
            "sold": [(day + timedelta(days=int(n))).isoformat() for n in random.permutation(rows)],
        }
    )
    table["price"] = (3 * table["area"] + 40 * table["rooms"] + 25 * (table["kind"] == "house")).round(2)
    table["price"] += np.arange(rows) / 2**20  # every price once: a row is known by it
    for name in ("area", "rooms", "kind", "heating", "zone"):
        table[name] = table[name].astype(object)
        table.loc[random.random(rows) < share, name] = None
    return table


def make(kind: str, path: Path, **options: object) -> Dataset:
    dataset: Dataset = Registry().make("dataset", kind, {"path": str(path), **options})
    return dataset


def written(table: pd.DataFrame, path: Path) -> Path:
    table.to_csv(path, index=False)
    return path


def all_rows(split: Split) -> Array:
    return np.concatenate([split.train_x, split.test_x])


def test_features_equal_those_of_an_independent_library(tmp_path: Path) -> None:
    table = houses()
    path = written(table, tmp_path / "t.csv")
    options = {**TAKES_ALL, "ignore": ["agent", "sold"], "dates": []}
    split = checked(make("csv", path, **options).load(2))
    protocol = Protocol(validation=0.0)
    data = prepare(split, protocol, 0, "cpu")

    # The rows of the split, found by their prices, which are unique.
    by_price = table.set_index("price")
    assert by_price.index.is_unique
    numbers, words = ["area", "rooms"], ["kind", "heating", "zone"]
    known = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    train, test = (by_price.loc[prices].reset_index() for prices in (split.train_y, split.test_y))
    for part in (train, test):
        part[numbers] = part[numbers].astype(float)
        part[words] = part[words].astype(str)
    both = make_column_transformer((known, numbers), (make_pipeline(encoder, StandardScaler()), words))
    both.fit(train)
    for part, ours in ((train, data.rows.x.numpy()), (test, data.test_x.numpy())):
        for column in both.transform(part).T:
            assert np.isclose(ours, column[:, None], atol=1e-5).all(axis=0).any()
    assert data.rows.x.shape[1] == 2 * 2 + 3 * 4  # a value and an indicator; three categories and an indicator
    assert len(split.features) == split.train_x.shape[1]
    assert split.features[:4] == ("area", "area:missing", "rooms", "rooms:missing")
    assert split.features[-4:] == ("zone=1.0", "zone=2.0", "zone=10.0", "zone:missing")


def test_gaps_are_filled_by_the_rows_that_train_alone(tmp_path: Path) -> None:
    split = make("csv", written(houses(), tmp_path / "t.csv"), **TAKES_ALL, ignore=["agent"]).load(0)
    assert split.gaps
    protocol = Protocol(validation=0.2, calibration=0.1)
    data = prepare(split, protocol, 5, "cpu")
    train = data.rows.train.numpy()
    known = split.train_x[train, 0]
    filled = data.original_inputs(data.rows.x)[:, 0]
    gap = np.isnan(split.train_x[:, 0])
    np.testing.assert_allclose(filled[gap], np.nanmean(known), rtol=1e-5)
    # Other values at the validation and calibration rows: the training rows are the same, to the last bit.
    others = np.setdiff1d(np.arange(len(split.train_x)), train)
    assert len(others) > 60
    changed = split.train_x.copy()
    changed[others] = 1e6
    again = prepare(Split(**{**vars(split), "train_x": changed}), protocol, 5, "cpu")
    assert again.rows.x[train].equal(data.rows.x[train])


@pytest.mark.parametrize(("splits", "more"), [("random", {}), ("grouped", {"by": "agent"}), ("time", {"by": "sold"})])
@pytest.mark.parametrize("categories", ["one-hot", "ordinal"])
def test_test_rows_do_not_reach_training_rows(
    splits: str, more: dict[str, object], categories: str, tmp_path: Path
) -> None:
    assert _leak(tmp_path, {**TAKES_ALL, **more, "splits": splits, "categories": categories}) is None


def test_a_planted_leak_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: features that are fitted on all rows do not pass."""

    def fitted_on_all(training: Table, names: Sequence[str], rules: Rules) -> list[Encoding]:
        text = frozenset({"zone", "sold"})
        return fit_encoding(read_csv(training.path, text), names, rules)

    monkeypatch.setattr(_own_table, "fit_encoding", fitted_on_all)
    assert _leak(tmp_path, TAKES_ALL) is not None


def _leak(folder: Path, given: Mapping[str, object]) -> str | None:
    """Return what of the training rows changes with the features of the test rows, or None."""
    table = houses()
    options = {"ignore": ["agent"], **given}
    before = make("csv", written(table, folder / "one.csv"), **options).load(1)
    test = table["price"].isin(before.test_y)
    assert 10 < test.sum() < 80
    table["area"] = table["area"].astype(object)
    table.loc[test, ["area", "rooms"]] = [1e9, None]
    table.loc[test, ["kind", "heating", "zone"]] = ["castle", None, 77]
    if options.get("by") != "sold":
        table.loc[test, "sold"] = "1901-01-01"
    after = make("csv", written(table, folder / "two.csv"), **options).load(1)
    np.testing.assert_array_equal(np.sort(after.test_y), np.sort(before.test_y))
    if after.train_x.shape != before.train_x.shape:
        return f"shape {after.train_x.shape}"
    one, other = (prepare(split, Protocol(validation=0.1), 0, "cpu") for split in (before, after))
    return None if one.rows.x.equal(other.rows.x) and one.rows.y.equal(other.rows.y) else "values"


def test_an_unseen_category_is_none_of_the_known_ones(tmp_path: Path) -> None:
    table = pd.DataFrame({"kind": ["a"] * 20 + ["b"] * 20, "day": range(40), "y": np.arange(40.0)})
    table.loc[37, "kind"] = "new"
    path = written(table, tmp_path / "t.csv")
    split = make("csv", path, splits="time", by="day", categories="one-hot").load(0)
    assert split.features == ("kind=a", "kind=b")
    np.testing.assert_array_equal(split.test_x, [[0, 1], [0, 0], [0, 1], [0, 1]])
    ordinal = checked(make("csv", path, splits="time", by="day", categories="ordinal").load(0))
    np.testing.assert_array_equal(ordinal.test_x[:, 0], [1, np.nan, 1, 1])
    assert ordinal.gaps


def test_groups_are_never_on_both_sides(tmp_path: Path) -> None:
    table = houses()
    dataset = make("csv", written(table, tmp_path / "t.csv"), **TAKES_ALL, splits="grouped", by="agent")
    agent = dict(zip(table["price"], table["agent"], strict=True))
    held = []
    for number in range(6):
        split = checked(dataset.load(number))
        train, test = ({agent[y] for y in part} for part in (split.train_y, split.test_y))
        assert len(test) == 1
        assert not train & test
        assert len(split.train_y) + len(split.test_y) == len(table)
        held.append(min(test))
    assert len(set(held)) > 2
    assert not any("agent" in name for name in split.features)


def test_time_goes_forward_and_equal_times_stay_together(tmp_path: Path) -> None:
    table = houses()
    table["sold"] = [date(2020, 1 + n % 12, 1 + n % 3).isoformat() for n in range(len(table))]
    dataset = make("csv", written(table, tmp_path / "t.csv"), **{**TAKES_ALL, "dates": []}, splits="time", by="sold")
    sold = dict(zip(table["price"], table["sold"], strict=True))
    seen: set[float] = set()
    for number in range(5):
        split = checked(dataset.load(number))
        train, test = ([sold[y] for y in part] for part in (split.train_y, split.test_y))
        assert max(train) < min(test)
        assert not seen & set(split.test_y)
        seen |= set(split.test_y)
        assert split.count == 5
    assert len(split.train_y) in range(100, 125)
    with pytest.raises(UserError, match="split 5 does not exist: a time-ordered table has 5 splits"):
        dataset.load(5)


def test_a_date_is_days_and_places_in_the_year_and_the_week(tmp_path: Path) -> None:
    moments = ["1970-01-01", "1970-01-02T12:00", "2000-02-29T23:00:00+01:00", "1969-12-31"] * 5
    table = pd.DataFrame({"when": moments, "y": range(20)})
    split = make("csv", written(table, tmp_path / "t.csv"), dates="when").load(0)
    days = [pd.Timestamp(m).tz_localize("UTC") if "+" not in m else pd.Timestamp(m).tz_convert("UTC") for m in moments]
    expected = [(day - pd.Timestamp("1970-01-01", tz="UTC")) / pd.Timedelta(days=1) for day in days]
    order = np.concatenate([split.train_y, split.test_y]).astype(int)
    x = all_rows(split)
    np.testing.assert_allclose(x[:, 0], np.array(expected)[order])
    np.testing.assert_allclose(x[:, 1] ** 2 + x[:, 2] ** 2, 1)
    np.testing.assert_allclose(np.arctan2(x[:, 3], x[:, 4]) % (2 * np.pi), 2 * np.pi * (x[:, 0] % 7) / 7, atol=1e-9)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_the_same_table_in_either_file_has_the_same_rows(kind: str, task: str, tmp_path: Path) -> None:
    table = houses()
    table["sold"] = pd.to_datetime(table["sold"])
    table["kind"] = table["kind"].astype("category")
    table["zone"] = table["zone"].astype("Int64")
    for name in ("area", "rooms"):
        table[name] = table[name].astype(float)
    csv, parquet = written(table, tmp_path / "t.csv"), tmp_path / "t.parquet"
    table.to_parquet(parquet)
    more = {"target": "agent"} if task == "classification" else {"target": "price", "ignore": ["agent"]}
    one, other = (
        checked(make(name, path, **TAKES_ALL, **more, task=task).load(0))
        for name, path in (("csv", csv), ("parquet", parquet))
    )
    assert fingerprint(one) == fingerprint(other)
    assert one.features == other.features


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "line 2, column 'kind': 'none' is not a finite number"),
        ({}, "categories = 'one-hot', or dates, missing = 'impute', ignore"),
        ({"missing": "impute"}, "categories = 'one-hot', or dates"),
        ({"categories": "one-hot"}, "missing = 'impute'"),
        (
            {"missing": "impute", "categories": "one-hot", "dates": "kind", "ignore": "sold"},
            "is not a date; write dates as 2026-01-31",
        ),
        ({"categories": "one-hot", "missing": "impute", "dates": "solid"}, "dates: unknown column 'solid'"),
        ({"splits": "grouped"}, "by: splits = 'grouped' or 'time' need the column"),
        ({"by": "agent"}, "others have none"),
        ({"categorical": "zone"}, "say how they are encoded"),
        ({"ignore": "price"}, "ignore: 'price' is the target"),
        ({**TAKES_ALL, "splits": "time", "by": "kind"}, "every row needs a time"),
        ({"splits": "time", "by": "agent", **TAKES_ALL}, "'agent 0' is not a date"),
        ({"splits": "grouped", "by": "sold", **TAKES_ALL}, "'sold' does not group them"),
    ],
)
def test_what_an_option_does_not_take_is_explained(options: dict[str, object], expected: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        make("csv", written(houses(), tmp_path / "t.csv"), **options).load(0)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_column_of_numbers_with_words_is_named_by_the_user(tmp_path: Path) -> None:
    table = pd.DataFrame({"size": ["1", "2", "large", "4"] * 10, "y": range(40)})
    path = written(table, tmp_path / "t.csv")
    with pytest.raises(UserError, match=r"line \d+, column 'size': 'large' is not a finite number.*categorical"):
        make("csv", path, categories="one-hot").load(0)
    named = make("csv", path, categories="one-hot", categorical="size").load(0)
    assert named.features == ("size=1", "size=2", "size=4", "size=large")


def test_too_many_categories_are_refused(tmp_path: Path) -> None:
    table = pd.DataFrame({"name": [f"n{i}" for i in range(400)], "y": range(400)})
    with pytest.raises(UserError, match="column 'name' has 360 categories, at most 200"):
        make("csv", written(table, tmp_path / "t.csv"), categories="one-hot").load(0)


def test_missing_values_shift_with_the_others(tmp_path: Path) -> None:
    split = make("csv", written(houses(), tmp_path / "t.csv"), **TAKES_ALL, ignore=["agent"]).load(0)
    for shift in SIZES:
        shifted = shifted_rows(split, shift, 3, 0)
        assert np.isfinite(prepare(shifted, Protocol(), 0, "cpu").test_x.numpy()).all()


def test_options_at_their_defaults_are_no_part_of_a_key(tmp_path: Path) -> None:
    path = written(houses(), tmp_path / "t.csv")
    registry = Registry()
    spec = registry.spec("dataset", "csv", registry.make("dataset", "csv", {"path": str(path)}))
    assert set(spec.options) == {"path", "target", "task", "splits", "group"}


def test_a_table_with_everything_passes_the_checks_of_a_dataset(tmp_path: Path) -> None:
    dataset = make("csv", written(houses(), tmp_path / "t.csv"), **TAKES_ALL, splits="time", by="sold")
    subject = DatasetSubject(dataset)
    checks: list[Check[DatasetSubject]] = list(dataset_checks())
    for check in checks:
        if check.name in ("arrays", "same-rows", "splits-differ", "repeats", "split-count", "disjoint", "isolated"):
            check.function(subject)


@pytest.mark.parametrize("splits", ["grouped", "time"])
def test_validation_rows_are_of_other_groups_or_later(splits: str, tmp_path: Path) -> None:
    table = houses()
    path = written(table, tmp_path / "houses.csv")
    by = "agent" if splits == "grouped" else "sold"
    options = {"categories": "one-hot", "missing": "impute", "categorical": ["zone"], "ignore": ["sold", "agent"]}
    split = make("csv", path, target="price", splits=splits, by=by, **options).load(1)
    rows = prepare(split, Protocol(validation=0.2), 0, "cpu").rows
    of_price = dict(zip(table["price"].round(9), table[by], strict=True))
    train, validation = (
        [of_price[round(float(split.train_y[row]), 9)] for row in part.tolist()]
        for part in (rows.train, rows.validation)
    )
    assert validation
    if splits == "grouped":
        assert not set(train) & set(validation)
    else:
        assert max(train) < min(validation)
