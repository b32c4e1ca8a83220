import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import UserError
from bench.gate.baseline import read_baseline, write_baseline
from bench.gate.same_suite import suite_content, suite_differences
from bench.gate.values import Measured
from bench.plan.suite import Suite
from tests.fixtures.gate import baseline, measured

PLACE = ("toy", "m")


@given(st.lists(st.floats(), min_size=1, max_size=8))
def test_a_baseline_is_read_as_it_was_written_to_the_last_bit(numbers: list[float]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new" / "b.json"
        write_baseline(baseline(measured({PLACE: {"rmse": numbers}}, lost={PLACE: {"diverged": (0,)}})), path)
        back = read_baseline(path)
    assert np.array_equal(back.measured.values[PLACE]["rmse"], np.array(numbers), equal_nan=True)
    assert back.measured.lost == {PLACE: {"diverged": (0,)}}
    assert (back.suite, back.code, back.reasons[0].why) == ("tiny", "abc", "first baseline")


def test_a_change_of_one_number_is_a_change_of_one_line(tmp_path: Path) -> None:
    lines = []
    for third in (0.3, 0.4):
        made = measured({PLACE: {"rmse": [0.1, 0.2, third], "mae": [1.0, 2.0, 3.0]}, ("a", "m"): {"rmse": [1, 2, 3]}})
        write_baseline(baseline(made), tmp_path / "b.json")
        lines.append((tmp_path / "b.json").read_text("utf-8").splitlines())
    assert len(lines[0]) == len(lines[1])
    assert [(a, b) for a, b in zip(*lines, strict=True) if a != b] == [
        ('        "rmse": [0.1, 0.2, 0.3]', '        "rmse": [0.1, 0.2, 0.4]')
    ]
    content = json.loads("\n".join(lines[0]))
    assert list(content) == sorted(content)
    assert list(content["values"]) == ["a", "toy"]


def test_no_file_is_left_behind(tmp_path: Path) -> None:
    write_baseline(baseline(measured({PLACE: {"rmse": [math.nan]}})), tmp_path / "b.json")
    assert [path.name for path in tmp_path.iterdir()] == ["b.json"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "not valid JSON"),
        ("[]", "not a baseline; make one"),
        ('{"format": 99}', "format 99 of baselines is not known"),
        ('{"format": 1, "seeds": [0]}', "a damaged baseline .KeyError: 'values'"),
    ],
)
def test_a_file_that_is_no_baseline_is_told(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "b.json").write_text(content, "utf-8")
    with pytest.raises(UserError, match=told):
        read_baseline(tmp_path / "b.json")


def test_a_row_of_the_wrong_length_is_damage(tmp_path: Path) -> None:
    write_baseline(baseline(measured({PLACE: {"rmse": [1.0, 2.0]}})), tmp_path / "b.json")
    text = (tmp_path / "b.json").read_text("utf-8").replace("[1.0, 2.0]", "[1.0]")
    (tmp_path / "b.json").write_text(text, "utf-8")
    with pytest.raises(UserError, match="toy m rmse has 1 values for 2 seeds"):
        read_baseline(tmp_path / "b.json")


def test_a_missing_file_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file; make it with 'uqbench baseline"):
        read_baseline(tmp_path / "none.json")


def suite_of(content: Mapping[str, object]) -> Suite:
    return Suite.model_validate({"name": "tiny", "title": "Tiny", **content})


def test_what_differs_is_named_and_what_is_new_is_not() -> None:
    then = {
        "baseline": "a",
        "datasets": {"toy": {"use": ""}},
        "methods": {"a": {"rate": 0.1}, "b": {}},
        "protocol": {"training": {"epochs": 3, "batch": 8}},
    }
    now = {
        "baseline": "a",
        "datasets": {"toy": {"use": ""}, "wine": {}},
        "methods": {"a": {"rate": 0.2}},
        "protocol": {"training": {"epochs": 4}},
    }
    assert suite_differences(then, suite_of(now)) == [
        "methods.a.rate was 0.1 and is 0.2",
        "training.batch was 8 and is 32",
        "training.epochs was 3 and is 4",
    ]
    assert suite_differences(then, suite_of(then)) == []


def test_other_splits_are_another_experiment() -> None:
    asked: dict[str, object] = {"baseline": None, "datasets": {"toy": {}}, "methods": {"a": {}}, "protocol": {}}
    shared = suite_of({**asked, "splits": 5})
    assert suite_differences(asked, shared) == ["splits was not given and is 5"]
    assert suite_differences(suite_content(shared), shared) == []
    assert "splits" not in suite_content(suite_of(asked))  # baselines of earlier versions do not have it


def test_a_default_that_is_written_out_is_nothing_else() -> None:
    then = {
        "baseline": None,
        "datasets": {"toy": {"use": ""}, "wine": {}},
        "methods": {"a": {"use": "a"}},
        "protocol": {},
    }
    protocol = {"draws": 100, "training": {"batch": 32}}
    now: dict[str, object] = {
        "baseline": None,
        "datasets": {"toy": {}, "wine": {"draws": 7}},
        "methods": {"a": {}},
        "protocol": protocol,
    }
    assert suite_differences(then, suite_of(now)) == ["datasets.wine.draws was 100 and is 7"]


def test_a_baseline_of_keys_that_are_gone_is_told() -> None:
    asked: dict[str, object] = {"baseline": None, "datasets": {"toy": {}}, "methods": {"a": {}}, "protocol": {}}
    (line,) = suite_differences({**asked, "protocol": {"gone": 3}}, suite_of(asked))
    assert "cannot be read any more" in line
    assert "gone" in line


def test_the_first_seeds_are_kept_with_what_was_lost_among_them() -> None:
    made = measured({PLACE: {"rmse": [1.0, 2.0, 3.0]}}, lost={PLACE: {"diverged": (0, 2)}}).first(2)
    assert isinstance(made, Measured)
    assert made.seeds == (0, 1)
    assert made.lost == {PLACE: {"diverged": (0,)}}
    assert made.values[PLACE]["rmse"].tolist() == [1.0, 2.0]
