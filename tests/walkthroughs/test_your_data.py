"""Everything in docs/your-data.md is carried out, with shorter trainings."""

import re
import runpy
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from tests.fixtures.commands import Command

DOCUMENT = Path(__file__).parents[2] / "docs" / "your-data.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHORT = {"epochs = 200": "epochs = 2", "seeds = 3": "seeds = 1", "seeds = 2": "seeds = 1", "draws = 10": "draws = 2"}


@pytest.mark.slow
def test_from_files_to_a_report(command: Command, tmp_path: Path) -> None:
    blocks = BLOCK.findall(DOCUMENT.read_text("utf-8"))
    assert [language for language, _ in blocks] == ["text", "python", "toml", "console", "toml", "console", "console"]
    (_, about), (_, code), (_, houses), (_, of_houses), (_, images), (_, of_images), (_, of_openml) = blocks
    assert "openml" in of_openml  # what is downloaded is shown over a local server: tests/datasets/test_openml.py
    (tmp_path / "make_files.py").write_text(code, "utf-8")
    runpy.run_path(str(tmp_path / "make_files.py"))
    for name, text in (("houses", houses), ("images", images)):
        for long, short in SHORT.items():
            text = text.replace(long, short)  # noqa: PLW2901  # step by step
        (tmp_path / f"{name}.toml").write_text(text, "utf-8")
    for line in (of_houses + of_images).splitlines():
        done = command(*line.split()[1:])
        assert done.code == 0, done.err
        assert "failed" not in done.out or " 0 failed" in done.out
        assert "run houses.toml" not in line or about in done.err
    report = (tmp_path / "report" / "report.md").read_text("utf-8")
    for dataset in ("houses-random", "houses-new-agents", "houses-forecast"):
        assert dataset in report
    assert "images" in (tmp_path / "images-report" / "report.md").read_text("utf-8")


def test_a_suite_of_ones_own_trains_as_quick_does() -> None:
    own = tomllib.loads(
        next(text for language, text in BLOCK.findall(DOCUMENT.read_text("utf-8")) if language == "toml")
    )
    quick = tomllib.loads((files("bench.plan") / "suites" / "quick.toml").read_text("utf-8"))
    for table in ("training", "network"):
        assert own[table] == quick[table]
