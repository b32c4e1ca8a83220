"""Predictions made elsewhere: stored beside runs with a mark, or refused."""

from pathlib import Path

import numpy as np
import pytest

from bench.leaderboard.plugins import about_method
from bench.leaderboard.rerun import rerun
from bench.leaderboard.rows import Row
from bench.plugins.registry import Registry
from bench.spec.plugin import SUBMITTED, PluginSpec
from bench.spec.protocol import Protocol
from bench.spec.spec import CellSpec
from bench.store import bank
from bench.store.provenance import Provenance
from bench.store.results import StoredResults
from bench.store.store import Store
from bench.submissions.entry import MARK
from tests.fixtures.commands import Command
from tests.submissions.conftest import change, exported


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
