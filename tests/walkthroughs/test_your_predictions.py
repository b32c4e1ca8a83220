"""Everything in docs/your-predictions.md is carried out, in its order, in one empty folder, with fewer seeds."""

import re
import runpy
import shlex
import shutil
from pathlib import Path

import pytest

from bench.run.worker import _facts
from tests.fixtures.commands import Command

DOCUMENT = Path(__file__).parents[2] / "docs" / "your-predictions.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHORT = {"--seeds 5": "--seeds 3 --engine inline", "--splits 5": "--splits 3", "range(5)": "range(3)"}
ENTRY = re.compile(r"^\[\[predictions\]\]\n(?:.+\n)+", re.MULTILINE)


def fill_in(document: Path, shown: str) -> None:
    """Fill in an exported document as the page shows it; the entries of the splits are there already."""
    entries = ENTRY.findall(document.read_text("utf-8"))
    (first,) = ENTRY.findall(shown)
    suffix = Path(re.findall(r'file = "(.+)"', first)[0]).suffix
    entries = [entry.replace(".npz", suffix) for entry in entries]
    assert first == entries[0], "the page shows what 'uqbench data export' writes"
    head, _, rest = shown.partition("[[predictions]]")
    _, table, reported = rest.partition("[reported]")
    document.write_text("\n".join([head, *entries, table + reported]), "utf-8")


@pytest.mark.slow
def test_predictions_from_elsewhere_are_scored_submitted_and_shown(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A checkout without changes: a leaderboard lists no others.
    monkeypatch.setattr("bench.machine.environment.code_version", lambda: "0123456789ab")
    _facts.cache_clear()  # a worker looks once; other tests have looked before
    document, printed = DOCUMENT.read_text("utf-8"), {}
    for long, short in SHORT.items():
        assert long in document
        document = document.replace(long, short)
    for language, text in BLOCK.findall(document):
        if language == "python":
            (tmp_path / "predict.py").write_text(text, "utf-8")
            runpy.run_path(str(tmp_path / "predict.py"))
        elif language == "toml":
            fill_in(tmp_path / ("linear" if "linear" in text else "boosted") / "submission.toml", text)
        else:
            for line in text.splitlines():
                printed[line] = call(line, command, tmp_path)
    page = (tmp_path / "report" / "report.md").read_text("utf-8")
    site = (tmp_path / "site" / "leaderboard.json").read_text("utf-8")
    for name in ("boosted-quantiles (not re-run)", "linear-interval (not re-run)"):
        assert name in page
        assert name in site
    boosted = next(path for path in (tmp_path / "site" / "methods").glob("*.html") if "boosted" in path.name)
    shown = boosted.read_text("utf-8")
    assert re.search(r"Only reported</th>.*training_seconds: 2\.5</td>", shown, re.DOTALL)
    assert '"training_seconds": "2.5"' in site
    check = (tmp_path / "check.md").read_text("utf-8")
    assert check.count(": valid") == 2
    assert "Ada Lovelace" in check
    _facts.cache_clear()
    (merged,) = (out for line, out in printed.items() if line.startswith("uqbench merge"))
    assert "comparable: quick: 7 methods on 1 dataset" in merged


def call(line: str, command: Command, folder: Path) -> str:
    arguments = shlex.split(line)[1:]
    if arguments[0] == "merge":
        for path in [*folder.glob("runs.*")]:  # the database and its folder of arrays
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, folder / path.name.replace("runs", "published"))
    if "--check" in arguments:
        for name in ("boosted", "linear"):
            shutil.copytree(folder / name, folder / "submissions" / "quick" / name)
        place = arguments.index("submissions/*/*")  # a shell's work
        arguments[place : place + 1] = [str(path) for path in sorted((folder / "submissions" / "quick").iterdir())]
    done = command(*arguments)
    assert done.code == 0, f"{line}\n{done.out}\n{done.err}"
    return done.out
