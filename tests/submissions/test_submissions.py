"""Predictions made elsewhere: scored as an independent library scores them, stored with a mark, or refused."""

import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scoringrules
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import mean_pinball_loss

from bench.leaderboard.plugins import about_method
from bench.leaderboard.rerun import rerun
from bench.leaderboard.rows import Row
from bench.plan.cells import Refused, plan
from bench.plan.data_export import export_data
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.spec.cell import Outcome
from bench.spec.plugin import SUBMITTED, PluginSpec
from bench.spec.protocol import Protocol
from bench.spec.spec import CellSpec, read_spec
from bench.store import bank
from bench.store.provenance import Provenance
from bench.store.results import StoredResults
from bench.store.store import Store, SuiteRecord
from bench.submissions import prediction_files
from bench.submissions.entry import MARK
from tests.fixtures.commands import Command

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
SUITE = """
title = "Tiny"
seeds = 3
metrics = ["rmse", "crps"]
[datasets.table]
use = "diabetes"
[methods.deterministic]
[methods.mc-dropout]
"""


@dataclass(frozen=True)
class Split:
    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of three splits with predictions of normals, and a store with results of two methods on them."""
    root = tmp_path_factory.mktemp("prepared")
    path = root / "mine"
    export_data("diabetes", Registry().make("dataset", "diabetes", {}), path, 3)
    for number in range(3):
        test_y = exported(path, number).test_y
        np.savez(path / f"predictions-{number}.npz", mean=test_y + 1, std=np.full(len(test_y), 2.0))
    suite = root / "tiny.toml"
    suite.write_text(SUITE, "utf-8")
    results = []
    for task in plan(load_suite(str(suite)), Registry()):
        assert not isinstance(task, Refused)
        results += [(cell, Outcome("ok", metrics={"rmse": 50.0 + cell.seed, "crps": 30.0})) for cell in task.cells]
    with Store(str(root / "s.db")) as opened:
        opened.want(SuiteRecord("tiny", "Tiny", "deterministic", ["rmse", "crps"], "{}"), [cell for cell, _ in results])
        opened.save(results, "tiny")
    return root


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    """A copy of the export and its predictions."""
    return Path(shutil.copytree(prepared / "mine", tmp_path / "mine"))


@pytest.fixture
def store(prepared: Path, tmp_path: Path) -> Path:
    """A copy of the store."""
    return Path(shutil.copy(prepared / "s.db", tmp_path / "s.db"))


def exported(path: Path, number: int) -> Split:
    with np.load(path / f"split-{number}.npz") as arrays:
        return Split(**{name: arrays[name] for name in ("train_x", "train_y", "test_x", "test_y")})


def change(path: Path, old: str, new: str) -> None:
    document = path / "submission.toml"
    text = document.read_text("utf-8")
    assert re.search(old, text)
    document.write_text(re.sub(old, lambda _: new, text, count=1), "utf-8")


def scores(command: Command, path: Path) -> dict[str, float]:
    done = command("score", str(path), "--json")
    assert done.code == 0, done.err
    mean: dict[str, float] = json.loads(done.out)["mean"]
    return mean


def test_an_export_has_the_rows_and_fingerprints_of_a_plan(command: Command, folder: Path, prepared: Path) -> None:
    (task, *_) = plan(load_suite(str(prepared / "tiny.toml")), Registry())
    assert not isinstance(task, Refused)
    facts = json.loads((folder / "data.json").read_text("utf-8"))
    for number, (split, cell) in enumerate(zip(task.splits, task.cells, strict=True)):
        assert read_spec(cell.spec).data == facts["splits"][number]["data"]
        for name in ("train_x", "train_y", "test_x", "test_y"):
            np.testing.assert_array_equal(getattr(exported(folder, number), name), getattr(split, name))
    # A document that was filled in is kept.
    change(folder, '"my-method"', '"mine"')
    command("data", "export", "diabetes", "--out", "mine", "--splits", "2")
    assert '"mine"' in (folder / "submission.toml").read_text("utf-8")


def test_normals_are_scored_as_an_independent_library_does(command: Command, folder: Path) -> None:
    found = scores(command, folder)
    expected = [scoringrules.crps_normal(y, y + 1, 2.0).mean() for y in (exported(folder, n).test_y for n in range(3))]
    assert found["crps"] == pytest.approx(np.mean(expected))
    assert found["rmse"] == pytest.approx(1.0)
    assert found["nll_mixture"] == pytest.approx(0.5 * np.log(2 * np.pi * 4) + 1 / 8)


@pytest.mark.parametrize("suffix", ["npz", "csv", "parquet"])
def test_quantiles_of_gradient_boosting_in_every_file(command: Command, folder: Path, suffix: str) -> None:
    change(folder, 'kind = "normal".*', f'kind = "quantiles"\nlevels = {LEVELS}')
    losses = []
    for number in range(3):
        split = exported(folder, number)
        models = [GradientBoostingRegressor(loss="quantile", alpha=a, n_estimators=5, random_state=0) for a in LEVELS]
        values = np.sort([m.fit(split.train_x, split.train_y).predict(split.test_x) for m in models], axis=0).T
        losses.append(mean_pinball_loss(split.test_y, values[:, 2], alpha=0.5))
        table = pd.DataFrame(values, columns=[f"values_{n}" for n in range(len(LEVELS))]).assign(point=values[:, 2])
        path = folder / f"predictions-{number}.{suffix}"
        if suffix == "npz":
            np.savez(path, values=values, point=values[:, 2])
        elif suffix == "csv":
            table.to_csv(path, index=False)
        else:
            table.to_parquet(path)
        change(folder, f"predictions-{number}.npz", path.name)
    # The stated point is the median: twice its pinball loss is the absolute error around it.
    assert scores(command, folder)["mae"] == pytest.approx(2 * np.mean(losses))


def test_an_interval_is_two_quantiles(command: Command, folder: Path) -> None:
    """The same numbers, once as the bounds of an interval and once as two quantiles."""
    for number in range(3):
        y = exported(folder, number).test_y
        shift = np.where(np.arange(len(y)) % 4, 10.0, 300.0)
        np.savez(folder / f"predictions-{number}.npz", lower=y - shift, upper=y - shift + 100)
    change(folder, 'kind = "normal".*', 'kind = "interval"\nlevel = 0.95')
    one = scores(command, folder)
    assert one["coverage95"] == pytest.approx(0.75)
    assert one["width95"] == pytest.approx(100)
    y = np.zeros(4)
    lower = np.array([-300.0, -10, -10, -10])
    assert one["interval_score95"] == pytest.approx(scoringrules.interval_score(y, lower, lower + 100, 0.05).mean())
    for number in range(3):
        path = folder / f"predictions-{number}.npz"
        with np.load(path) as arrays:
            values = np.stack([arrays["lower"], arrays["upper"]], axis=1)
        np.savez(path, values=values)
    change(folder, 'kind = "interval"\nlevel = 0.95', 'kind = "quantiles"\nlevels = [0.025, 0.975]')
    assert scores(command, folder) == pytest.approx(one)


def test_probabilities_and_points(command: Command, tmp_path: Path) -> None:
    assert command("data", "export", "wine", "--out", "w", "--splits", "1").code == 0
    path = tmp_path / "w"
    y = exported(path, 0).test_y.astype(int)
    values = np.full((len(y), 3), 0.1)
    values[np.arange(len(y)), y] = 0.8
    np.savez(path / "predictions-0.npz", values=values)
    assert scores(command, path)["nll_categorical"] == pytest.approx(-np.log(0.8))
    np.savez(path / "predictions-0.npz", values=np.log(values))
    change(path, 'kind = "probabilities"', 'kind = "logits"')
    assert scores(command, path)["nll_categorical"] == pytest.approx(-np.log(0.8))
    change(path, 'kind = "logits"', 'kind = "points"')
    done = command("score", str(path))
    assert (done.code, "the dataset is for classification" in done.err) == (2, True)


def test_a_submission_is_stored_beside_runs_and_marked_everywhere(
    command: Command, store: Path, folder: Path, tmp_path: Path
) -> None:
    change(folder, '"my-method"', '"least squares"')
    change(folder, r"\[reported\]", "[reported]\ntraining_seconds = 2.5")
    label = f"least squares {MARK}"
    done = command("submit", str(folder), "--store", str(store))
    assert (done.code, done.out) == (0, f"{label}: 3 cells stored; suite tiny: table\n"), done.err
    again = command("submit", str(folder), "--store", str(store))
    assert "0 cells stored, 3 stored before" in again.out
    with Store(str(store), writable=False) as opened:
        results = StoredResults(opened, "tiny")
        own = results.frame[results.frame["method"] == label]
        assert own[own["metric"] == "rmse"]["value"].tolist() == pytest.approx([1, 1, 1])
        assert set(results.cells["method"]) == {"deterministic", "mc-dropout", label}
    for arguments in (
        ["status", "tiny"],
        ["show", f"table/{label}/1", "--suite", "tiny"],
        ["export", "tiny"],
        ["compare", label, "mc-dropout", "--suite", "tiny"],
    ):
        shown = command(*arguments, "--store", str(store))
        assert shown.code == 0, shown.err
        assert label in shown.out, arguments
    described = command("show", f"table/{label}/1", "--suite", "tiny", "--store", str(store)).out
    for fact in ('"re-run": false', '"training_seconds": 2.5', "fingerprint of the data", '"who": "Name, place"'):
        assert fact in described
    # Other predictions under the same name are no silent change.
    y = exported(folder, 1).test_y
    np.savez(folder / "predictions-1.npz", mean=y + 2, std=np.ones(len(y)))
    refused = command("submit", str(folder), "--store", str(store))
    assert (refused.code, "--replace" in refused.err) == (2, True)
    assert command("submit", str(folder), "--store", str(store), "--replace").code == 0
    with Store(str(store), writable=False) as opened:
        frame = StoredResults(opened, "tiny").frame
        own = frame[(frame["method"] == label) & (frame["metric"] == "rmse")].sort_values("seed")
        assert own["value"].tolist() == pytest.approx([1, 2, 1])


def test_predictions_without_a_run_on_their_rows_are_refused(command: Command, store: Path, tmp_path: Path) -> None:
    command("data", "export", "wine", "--out", "w", "--splits", "1")
    y = exported(tmp_path / "w", 0).test_y.astype(int)
    np.savez(tmp_path / "w" / "predictions-0.npz", values=np.eye(3)[y])
    done = command("submit", "w", "--store", str(store))
    assert (done.code, "has no run on rows of the fingerprint" in done.err) == (2, True)


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


def test_a_check_is_markdown_and_an_exit_code(command: Command, folder: Path, tmp_path: Path) -> None:
    good = command("submit", "--check", str(folder))
    assert good.code == 0, good.err
    for text in (": valid", "Verified here:", "fingerprint of the data", "| crps |"):
        assert text in good.out
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "submission.toml").write_text('method = "<b>"', "utf-8")
    both = command("submit", "--check", str(folder), str(bad), "--markdown", "check.md")
    assert (both.code, both.out) == (1, "")
    assert both.err.count("\n") == 1
    text = (tmp_path / "check.md").read_text("utf-8")
    assert ": valid" in text
    assert ": refused" in text


def test_a_parquet_file_that_claims_other_rows_is_refused(command: Command, folder: Path) -> None:
    pd.DataFrame({"mean": np.ones(60), "std": np.ones(60)}).to_parquet(folder / "p.parquet")
    change(folder, FIRST, "p.parquet")
    done = command("score", str(folder))
    assert (done.code, "60 rows, the test set has 44" in done.err) == (2, True)


def test_cells_of_earlier_submissions_stay(command: Command, store: Path, folder: Path) -> None:
    """A method that submits its splits one after another has all of them in the end."""
    document = folder / "submission.toml"
    text = document.read_text("utf-8")
    head, *parts = text.split("[[predictions]]")
    for part in parts:
        document.write_text(f"{head}[[predictions]]{part}", "utf-8")
        assert command("submit", str(folder), "--store", str(store)).code == 0
    with Store(str(store), writable=False) as opened:
        own = [row for row in opened.cells("tiny") if row["method"].endswith(MARK)]
    assert [row["split"] for row in own] == [0, 1, 2]


def test_stored_predictions_can_be_scored_again(command: Command, store: Path, folder: Path) -> None:
    assert command("submit", str(folder), "--store", str(store)).code == 0
    again = command("rescore", "--store", str(store), "--metric", "crps")
    assert again.code == 0, again.err
    with Store(str(store), writable=False) as opened:
        assert len(bank.keys_with_predictions(opened, "tiny")) == 3


def test_a_leaderboard_says_who_predicted_and_gives_no_command(folder: Path) -> None:
    about = {"who": "Ada Lovelace", "how": "by hand"}
    method = PluginSpec("mine", SUBMITTED, options=about)
    page = about_method(method, Registry())
    assert ("Ada Lovelace" in page.summary, page.absent) == (True, "")
    assert any("not re-run" in name for name, _ in page.facts)
    spec = CellSpec(
        dataset=PluginSpec("diabetes"), data="0", method=method, protocol=Protocol(), split=0, seed=0, harness=1
    )
    row = Row("tiny", "table", f"mine {MARK}", 1, {"k": Provenance(spec, {}, ())}, (0,), {"ok": 1}, 0.0, 0.0, 1.0)
    found = rerun([row], Registry())
    assert (found.lines, "Ada Lovelace (by hand): scored here, not re-run" in found.remark) == ((), True)
