"""Predictions made elsewhere are scored as an independent library scores them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scoringrules
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import mean_pinball_loss

from bench.plan.cells import Refused, plan
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.spec.spec import read_spec
from tests.fixtures.commands import Command
from tests.submissions.conftest import change, exported, scores

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


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
