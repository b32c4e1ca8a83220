import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.api import Dataset
from bench.errors import UserError
from bench.plan.cells import checked, fingerprint
from bench.plugins.registry import Registry
from tests.fixtures.commands import Command

VALUES = np.random.default_rng(5).normal(size=(40, 3)).round(6)


def make(name: str, **options: object) -> Dataset:
    dataset: Dataset = Registry().make("dataset", name, options)
    return dataset


def written(path: Path, rows: object = VALUES, head: str = "a,b,price", delimiter: str = ",") -> Path:
    lines = [delimiter.join(str(cell) for cell in row) for row in np.asarray(rows)]
    path.write_text("\n".join([head.replace(",", delimiter), *lines]) + "\n", "utf-8")
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_is_read_as_it_stands(tmp_path: Path, delimiter: str) -> None:
    split = checked(make("csv", path=str(written(tmp_path / "t.csv", delimiter=delimiter))).load(0))
    assert (len(split.train_y), len(split.test_y)) == (36, 4)
    both = np.column_stack(
        [np.concatenate([split.train_x, split.test_x]), np.concatenate([split.train_y, split.test_y])]
    )
    assert sorted(map(tuple, both)) == sorted(map(tuple, VALUES))


def test_the_target_is_a_column_by_name_and_the_short_form_says_the_same(tmp_path: Path) -> None:
    path = str(written(tmp_path / "t.csv"))
    named = make("csv", path=path, target="a").load(3)
    np.testing.assert_array_equal(np.sort(np.concatenate([named.train_y, named.test_y])), np.sort(VALUES[:, 0]))
    np.testing.assert_array_equal(named.train_x[:, 0], VALUES[[list(VALUES[:, 0]).index(y) for y in named.train_y], 1])
    short = make(f"csv:{path}?target=a").load(3)
    np.testing.assert_array_equal(short.train_y, named.train_y)
    assert make(f"csv:{path}?target=a&splits=gap") == make("csv", path=path, target="a", splits="gap")


def test_a_byte_order_mark_quotes_spaces_and_blank_lines_are_no_data(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = ['\ufeffa, "b, with a comma" ,y'.replace(' "', '"').replace('" ', '"')]
    lines += [f"{n}, 1e{n % 3} ,{n}.5" if n % 2 else f"{n}, 1e{n % 3} ,{n}.5\n" for n in range(12)]
    path.write_text("\n".join(lines), "utf-8")
    split = make("csv", path=str(path), target="b, with a comma").load(0)
    assert split.train_x.shape == (11, 2)
    assert set(np.concatenate([split.train_y, split.test_y])) == {1, 10, 100}


def test_classes_are_the_sorted_values_numbers_by_size(tmp_path: Path) -> None:
    labels = ["10", "9", "no", "9", "10", "no"] * 4
    path = written(tmp_path / "t.csv", [[n, label] for n, label in enumerate(labels)], "x,kind")
    split = checked(make("csv", path=str(path), task="classification").load(0))
    assert (split.task, split.classes) == ("classification", 3)
    x, y = np.concatenate([split.train_x, split.test_x])[:, 0], np.concatenate([split.train_y, split.test_y])
    expected = {"9": 0, "10": 1, "no": 2}
    assert [expected[labels[int(n)]] for n in x] == y.tolist()


def test_the_gap_of_a_users_table(tmp_path: Path) -> None:
    split = make("csv", path=str(written(tmp_path / "t.csv")), splits="gap").load(1)
    np.testing.assert_array_equal(np.sort(split.test_x[:, 1]), np.sort(VALUES[:, 1])[13:27])


def test_groups_are_a_column_that_is_no_feature(tmp_path: Path) -> None:
    rows = [[n, "even" if n % 2 == 0 else "odd", n / 2] for n in range(40)]
    path = str(written(tmp_path / "t.csv", rows, "a,kind,y"))
    for more in ("", "&splits=gap"):
        split = checked(make(f"csv:{path}?group=kind{more}").load(0))
        assert split.train_x.shape[1] == 1
        assert split.test_groups is not None
        assert split.test_groups.tolist() == ["even" if x % 2 == 0 else "odd" for x in split.test_x[:, 0]]
    assert fingerprint(split) != fingerprint(replace(split, test_groups=np.full(len(split.test_y), "odd")))
    assert fingerprint(split) != fingerprint(replace(split, test_groups=None))


def good(**changes: str) -> list[list[str]]:
    """A table of twelve good rows with some cells ("row,column") changed."""
    rows = [[str(n), str(n * n), f"{n}.25"] for n in range(12)]
    for place, cell in changes.items():
        row, column = map(int, place[1:].split("_"))
        rows[row][column] = cell
    return rows


@pytest.mark.parametrize(
    ("rows", "head", "options", "said"),
    [
        (good(), "a,b,price", {"target": "prise"}, "unknown column 'prise'; did you mean price?"),
        (good(c3_1="red"), "a,b,price", {}, "line 5, column 'b': 'red' is not a finite number"),
        (good(c3_1="red", c7_0="x"), "a,b,price", {}, "and 1 more such cells"),
        (good(c2_0=""), "a,b,price", {}, "line 4, column 'a': the cell is empty"),
        (good(c2_2="nan"), "a,b,price", {}, "line 4, column 'price': 'nan' is not a finite number"),
        (good(c2_2="inf"), "a,b,price", {}, "'inf' is not a finite number"),
        (good()[:9], "a,b,price", {}, "9 rows below the column names; at least 10 are needed"),
        ([], "a,b,price", {}, "0 rows below"),
        (good(), "1,2,3", {}, "the first row holds numbers; expected the names"),
        (good(), "a,a,price", {}, "the first row holds 'a' twice"),
        (good(), "a,,price", {}, "the first row holds an empty name"),
        (good(), ",b,price", {}, "if it is the index of pandas, write the table with index=False"),
        (good(c2_2=""), "a,b,price", {}, "the cell is empty; every row needs a target: leave such rows out"),
        ([[n, "red"] for n in range(12)], "a,y", {}, "if 'y' names classes, task = 'classification'"),
        (good(), "a,b", {}, "line 2: 3 cells where the first row names 2 columns"),
        ([[n, 4] for n in range(12)], "a,y", {}, "the target 'y' is 4 in every row"),
        ([[n, "red"] for n in range(12)], "a,y", {"task": "classification"}, "'red' in every row"),
        ([[n, n] for n in range(12)], "a,y", {"task": "classification"}, "12 classes in 12 rows"),
        ([[n, "" if n == 4 else n % 2] for n in range(12)], "a,y", {"task": "classification"}, "line 6, column 'y'"),
        ([[n] for n in range(12)], "y", {}, "no features: 'y' is the only column"),
        (good(), "a,b,price", {"group": "prise"}, "group: unknown column 'prise'; did you mean price?"),
        (good(), "a,b,price", {"group": "price"}, "'price' is the target; name another column"),
        (good(), "a,b,price", {"group": "a"}, "12 groups in 12 rows; 'a' does not group them"),
        ([[n, n] for n in range(12)], "a,y", {"group": "a"}, "'y' and 'a' are the only columns"),
        ([[n, n, "" if n == 3 else "x"] for n in range(12)], "a,y,g", {"group": "g", "target": "y"}, "needs a group"),
    ],
)
def test_what_does_not_fit_is_explained(
    rows: list[list[object]], head: str, options: dict[str, object], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "table.csv"
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]), "utf-8")
    with pytest.raises(UserError) as caught:
        make("csv", path=str(path), **options).load(0)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def decimal_commas(path: Path, words: str = "") -> Path:
    """Write a table as a European Excel does; the first cell of a row may be a word."""
    lines = [f"{words or n};{n},5;{n * n},25" for n in range(1, 31)]
    path.write_text("\n".join(["a;b;price", *lines]), "utf-8")
    return path


def test_decimal_commas_are_refused_until_the_user_says_so(tmp_path: Path) -> None:
    path = str(decimal_commas(tmp_path / "t.csv"))
    advice = r"a decimal comma needs decimal = ',', and separators of thousands must be removed$"
    for options, place in (
        ({}, "column 'price': '1,25'"),
        ({"target": "a"}, "column 'b': '1,5'"),
        ({"target": "a", "categories": "one-hot"}, "column 'b': '1,5'"),
    ):
        with pytest.raises(UserError, match=rf"line 2, {place} is a number with a comma \(and 29 more .*{advice}"):
            make("csv", path=path, **options).load(0)
    split = make(f"csv:{path}?decimal=,").load(0)
    assert split.features == ("a", "b")
    np.testing.assert_array_equal(split.train_x[:, 1], split.train_x[:, 0] + 0.5)
    np.testing.assert_array_equal(split.train_y, split.train_x[:, 0] ** 2 + 0.25)
    named = make("csv", path=path, target="a", categories="one-hot", categorical="b,price").load(0)
    assert "b=1,5" in named.features  # what the user calls categories are categories


def test_words_with_commas_are_words_and_points_are_no_decimals_beside_commas(tmp_path: Path) -> None:
    words = decimal_commas(tmp_path / "words.csv", "red, blue")
    assert make(f"csv:{words}?decimal=,&categories=one-hot").load(0).features == ("a=red, blue", "b")
    mixed = decimal_commas(tmp_path / "mixed.csv", "1.234")
    with pytest.raises(UserError, match=r"line 2: '1\.234' has a point where decimal = ','"):
        make(f"csv:{mixed}?decimal=,").load(0)
    longer = decimal_commas(tmp_path / "longer.csv", "1;2")
    with pytest.raises(UserError, match="line 2: 4 cells where the first row names 3 columns"):
        make(f"csv:{longer}?decimal=,").load(0)
    with pytest.raises(UserError, match=r"'1\.234,5' is a number with a comma"):
        make(f"csv:{decimal_commas(tmp_path / 'both.csv', '1.234,5')}?decimal=,&categories=one-hot").load(0)


def test_a_table_says_what_was_read_of_it(tmp_path: Path) -> None:
    rows = [[n, "ab"[n % 2], "" if n % 3 else n, n % 2] for n in range(30)]
    path = written(tmp_path / "t.csv", rows, "a,kind,gap,y")
    options = {"path": str(path), "categories": "one-hot", "missing": "impute"}
    kinds = r"5 features \(one-hot: kind 2; gaps: gap\)"
    unnamed = r"target 'y' \(the last column, because none was named\)$"
    assert re.search(rf"t\.csv has 30 rows and 4 columns: {kinds}, {unnamed}", make("csv", **options).load(0).about)
    assert re.search(r"5 features .*, target 'a'$", make("csv", **options, target="a").load(0).about)


@pytest.mark.parametrize("dry", [True, False])
def test_a_run_says_what_it_read_once_per_table(dry: bool, tiny_file: Path, tmp_path: Path, command: Command) -> None:
    path = written(tmp_path / "t.csv")
    done = command(
        "run", str(tiny_file), "--dataset", f"csv:{path}", "--set", "training.epochs=1", *["--dry-run"] * dry
    )
    line = f"uqbench: {path} has 40 rows and 3 columns: 2 features, target 'price' (the last column, because none"
    assert done.err.count(line) == 1, done.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"a,b\n\xff\xfe\x00\x01", "not UTF-8 text"),
        (None, "no such file"),
        (b'a,b\n1,"2\n', "not a table: unexpected end of data"),
    ],
)
def test_files_that_are_no_tables(content: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=said):
        make("csv", path=str(path)).load(0)
    with pytest.raises(UserError, match="not a regular file"):
        make("csv", path=str(tmp_path)).load(0)


def test_without_a_table_it_says_how_to_name_one() -> None:
    assert "csv:path/to/file.csv" in str(make("csv").skip())
    with pytest.raises(UserError, match="csv:path/to/file"):
        make("csv").load(0)
    with pytest.raises(UserError, match="regression"):
        make("csv:x.csv?task=classification&splits=gap")
    with pytest.raises(UserError, match="unknown option 'taget'; did you mean target"):
        make("csv:x.csv?taget=y")
    with pytest.raises(UserError, match="unknown option 'path'"):
        make("digits:x.csv")


def test_a_table_of_the_data_folder_is_found(data_folder: Path) -> None:
    written(data_folder / "t.csv")
    assert len(make("csv:t.csv").load(0).train_y) == 36


@pytest.mark.slow
def test_a_users_table_runs_and_is_reported(tiny_file: Path, tmp_path: Path, command: Command) -> None:
    (tmp_path / "mine").mkdir()
    written(tmp_path / "mine" / "houses.csv")
    name = "csv:mine/houses.csv?target=a"
    told = json.loads(command("run", str(tiny_file), "--dataset", name, "--json").out)
    assert (told["stored"], told["failed"], told["refused"]) == (4, [], [])
    assert command("report").code == 0
    assert "houses.csv" in (tmp_path / "report" / "report.md").read_text("utf-8")
    wrong = command("run", str(tiny_file), "--dataset", "csv:mine/houses.csv?target=prise")
    assert "unknown column 'prise'" in wrong.err
    assert "Traceback" not in wrong.err
