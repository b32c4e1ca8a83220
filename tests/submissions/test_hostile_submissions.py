"""Hostile and mistaken submissions: one line each, and nothing is stored."""

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.store.store import Store
from bench.submissions import prediction_files
from tests.fixtures.commands import Command
from tests.submissions.conftest import change


def _zip(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def _npy(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    content = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(content, header)
    return content.getvalue()


def _pickle(folder: Path) -> None:
    np.savez(folder / "predictions-0.npz", mean=np.array([{}] * 44, dtype=object), std=np.ones(44))


def _bomb(folder: Path) -> None:
    """Four megabytes in four kilobytes; the limit of the test is one."""
    np.savez_compressed(folder / FIRST, mean=np.zeros(2**19), std=np.zeros(44))


def _replaced(name: str, **arrays: object) -> Callable[[Path], None]:
    return lambda folder: np.savez(folder / name, **arrays)  # type: ignore[arg-type]


def _written(name: str, text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).write_text(text, "utf-8")
        change(folder, "predictions-0.npz", name)

    return write


def _link(folder: Path) -> None:
    (folder / "predictions-0.npz").rename(folder.parent / "elsewhere.npz")
    (folder / "predictions-0.npz").symlink_to(folder.parent / "elsewhere.npz")


def _pipe(folder: Path) -> None:
    (folder / "predictions-0.npz").unlink()
    os.mkfifo(folder / "predictions-0.npz")


FIRST = "predictions-0.npz"
HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "pickle": (_pickle, "Python objects"),
    "zip bomb": (_bomb, "bytes in memory; at most"),
    "10^9 rows claimed": (lambda f: _zip(f / FIRST, {"mean.npy": _npy((10**9,))}), "8,000,000,000 bytes stated"),
    "more than stated": (
        lambda f: _zip(f / FIRST, {"mean.npy": _npy((44,)) + bytes(2**20)}),
        "352 bytes stated, 1,048,",
    ),
    "negative rows": (lambda f: _zip(f / FIRST, {"mean.npy": _npy((-1,))}), "not a file of arrays"),
    "no zip": (lambda f: (f / FIRST).write_bytes(b"PK\x03\x04nonsense"), "not a file of arrays"),
    "wrong fingerprint": (lambda f: change(f, 'data = "[0-9a-f]{32}"', f'data = "{"0" * 32}"'), "these are other rows"),
    "no fingerprint": (lambda f: change(f, 'data = "[0-9a-f]{32}"', 'data = "no"'), "predictions.0.data"),
    "NaN": (_replaced(FIRST, mean=np.full(44, np.nan), std=np.ones(44)), "44 of 44 values are NaN or infinite"),
    "infinite": (_replaced(FIRST, mean=np.full(44, np.inf), std=np.ones(44)), "NaN or infinite"),
    "negative deviation": (_replaced(FIRST, mean=np.ones(44), std=-np.ones(44)), "must be at least 0"),
    "wrong shape": (_replaced(FIRST, mean=np.ones(43), std=np.ones(43)), "expected shape [44] or [draws, 44]"),
    "no draws": (_replaced(FIRST, mean=np.ones((0, 44)), std=np.ones((0, 44))), "expected shape [44]"),
    "wrong array": (_replaced(FIRST, mean=np.ones(44), std=np.ones(44), extra=np.ones(3)), "unknown array 'extra'"),
    "words": (_replaced(FIRST, mean=np.array(["a"] * 44), std=np.ones(44)), "not numbers"),
    "no file": (lambda f: (f / FIRST).unlink(), "no such file"),
    "link": (_link, "links are not followed"),
    "pipe": (_pipe, "not a regular file"),
    "path": (lambda f: change(f, FIRST, "../elsewhere.npz"), "without a folder"),
    "absolute path": (lambda f: change(f, FIRST, "/etc/passwd.csv"), "without a folder"),
    "dataset path": (lambda f: change(f, '"diabetes"', '"csv:/etc/passwd"'), "inside the current or the data folder"),
    "dataset parent": (lambda f: change(f, '"diabetes"', '"csv:../x.csv"'), "inside the current or the data folder"),
    "large dataset": (
        lambda f: change(f, 'dataset = "diabetes"', 'dataset = "random-rows"\noptions = {rows = 1000000000}'),
        "is more than 1,000,000",
    ),
    "HTML in the method": (lambda f: change(f, "my-method", "<script>alert(1)</script>"), "use letters, digits"),
    "HTML in who": (lambda f: change(f, "Name, place", "<img src=x>"), "one of the signs"),
    "lines in how": (lambda f: change(f, "what predicted", r"a\nb"), "cannot be printed"),
    "unknown key": (lambda f: change(f, "method =", "methd ="), "did you mean method?"),
    "unknown dataset": (lambda f: change(f, '"diabetes"', '"diabtes"'), "did you mean diabetes or digits?"),
    "no TOML": (lambda f: (f / "submission.toml").write_text("x = [", "utf-8"), "not TOML"),
    "large document": (lambda f: (f / "submission.toml").write_bytes(b"#" * (2**20 + 1)), "at most 1,048,576"),
    "split twice": (lambda f: change(f, "split = 1", "split = 0"), "every split and seed once"),
    "no such split": (lambda f: change(f, "split = 0", "split = -1"), "greater than or equal to 0"),
    "long CSV": (_written("p.csv", "mean,std\n" + "1,1\n" * 45), "more than the 44 rows"),
    "short CSV": (_written("p.csv", "mean,std\n1,1\n"), "1 rows, the test set has 44"),
    "CSV with a word": (_written("p.csv", "mean,std\n1,=cmd()\n"), "line 2: not all cells are numbers"),
    "Parquet that is none": (_written("p.parquet", "PAR1"), "not a Parquet table"),
}


@pytest.mark.parametrize("fault", HOSTILE)
def test_a_hostile_submission_is_one_line_and_stores_nothing(
    fault: str, command: Command, store: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, expected = HOSTILE[fault]
    monkeypatch.setattr(prediction_files, "MOST_ARRAY_BYTES", 2**20)
    make(folder)
    with Store(str(store), writable=False) as opened:
        before = opened.cells("tiny")
    done = command("submit", str(folder), "--store", str(store))
    assert (done.code, done.out) == (2, "")
    assert expected in done.err
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    with Store(str(store), writable=False) as opened:
        assert opened.cells("tiny") == before
        assert opened.arrays.usage() == (0, 0)


def test_a_parquet_file_that_claims_other_rows_is_refused(command: Command, folder: Path) -> None:
    pd.DataFrame({"mean": np.ones(60), "std": np.ones(60)}).to_parquet(folder / "p.parquet")
    change(folder, FIRST, "p.parquet")
    done = command("score", str(folder))
    assert (done.code, "60 rows, the test set has 44" in done.err) == (2, True)
