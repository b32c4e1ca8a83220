"""Arrays of one's own: tables or images by their shape, given test arrays, and faults in one line."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bench.api import Array
from bench.errors import UserError
from bench.plan.cells import checked
from tests.datasets.test_own_tables import all_rows, make


@dataclass(frozen=True)
class Files:
    x: Path
    y: Path


def saved(folder: Path, x: Array, y: Array) -> Files:
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    return Files(folder / "x.npy", folder / "y.npy")


@pytest.mark.parametrize("shape", [(40, 8, 6), (40, 3, 8, 6), (40, 8, 6, 3), (40, 5), (40,)])
def test_arrays_are_tables_or_images(shape: tuple[int, ...], tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    files = saved(tmp_path, x, np.arange(40))
    last = "last" if shape[-1] == 3 else "first"
    split = checked(make("npy", files.x, target=str(files.y), channels=last).load(0))
    order = np.concatenate([split.train_y, split.test_y]).astype(int)
    expected = x[order].reshape(40, -1, *shape[1:]) if len(shape) in (1, 3) else x[order]
    if last == "last":
        expected = np.moveaxis(expected, 3, 1)
    np.testing.assert_allclose(all_rows(split), expected / 255 if split.train_x.ndim == 4 else expected, rtol=1e-6)


def test_given_test_arrays_are_one_split_of_seeds(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    files = saved(tmp_path, random.normal(size=(30, 2)), random.integers(3, 6, 30))
    (tmp_path / "test").mkdir()
    held = saved(tmp_path / "test", random.normal(size=(12, 2)), np.array([3, 4, 5] * 4))
    options = {"target": str(files.y), "task": "classification", "test": str(held.x), "test_target": str(held.y)}
    dataset = make("npy", files.x, **options)
    assert dataset.repeats == "seeds"
    split = checked(dataset.load(4))
    assert (split.train_x.shape, split.test_x.shape, split.classes) == ((30, 2), (12, 2), 3)
    np.testing.assert_array_equal(split.test_y, [0, 1, 2] * 4)


@pytest.mark.parametrize("fault", ["pickle", "claims", "text", "nan", "words", "rows", "folder", "none"])
def test_arrays_that_are_none_are_refused_in_one_line(fault: str, tmp_path: Path) -> None:
    files = saved(tmp_path, np.ones((40, 2)), np.arange(40.0))
    expected = {
        "pickle": "Python objects", "claims": "damaged: its header states 16,000,000,000 bytes",
        "nan": "1 of 40 values",
        "text": "not a .npy file", "words": "not numbers", "rows": "one target for each row", "folder": "director",
        "none": "no such file",
    }[fault]  # fmt: skip
    if fault == "pickle":
        np.save(files.y, np.array([{}] * 40, dtype=object), allow_pickle=True)
    elif fault == "claims":
        content = files.y.read_bytes()
        files.y.write_bytes(content.replace(b"(40,), }        ", b"(2000000000,), }"))
    elif fault == "text":
        files.y.write_text("a,b\n1,2\n", "utf-8")
    elif fault in ("nan", "words", "rows"):
        np.save(files.y, {"nan": [np.nan, *range(39)], "words": ["a"] * 40, "rows": [1.0, 2.0]}[fault])
    elif fault == "folder":
        files.y.unlink()
        files.y.mkdir()
    else:
        files.y.unlink()
    with pytest.raises(UserError) as caught:
        make("npy", files.x, target=str(files.y)).load(0)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
