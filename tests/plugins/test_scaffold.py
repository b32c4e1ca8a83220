"""What 'uqbench new' writes, and what it refuses; tests/walkthroughs carries out what it wrote."""

import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.cli.plugins import new, verify
from bench.errors import UserError
from bench.plugins.registry import Registry
from bench.plugins.scaffold import PLUGINS, registered_as, scaffold
from tests.fixtures.commands import Command, done

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("kind", PLUGINS)
def test_what_is_written_is_in_the_house_style(kind: str, tmp_path: Path) -> None:
    scaffold(kind, "my-own-thing", tmp_path, Registry())
    ruff = [Path(sys.executable).with_name("ruff")]
    settings = ["--config", str(ROOT / "pyproject.toml"), "--config", 'lint.isort.known-first-party=["bench"]']
    done([*ruff, "check", *settings, "--ignore", "D103", tmp_path], tmp_path)
    done([*ruff, "format", "--check", "--config", str(ROOT / "pyproject.toml"), tmp_path], tmp_path)


def test_nothing_is_ever_overwritten(tmp_path: Path) -> None:
    scaffold("method", "my-noise", tmp_path, Registry())
    (tmp_path / "my_noise.py").write_text("mine", "utf-8")
    with pytest.raises(UserError, match=r"my_noise.py is there already and is never overwritten"):
        scaffold("method", "my-noise", tmp_path, Registry())
    (tmp_path / "my_noise.py").unlink()
    with pytest.raises(UserError, match=r"test_my_noise.py is there already"):
        scaffold("dataset", "my-noise", tmp_path, Registry())
    assert not (tmp_path / "my_noise.py").exists()
    scaffold("package", "other-noise", tmp_path, Registry())
    with pytest.raises(UserError, match="other-noise is there already"):
        scaffold("package", "other-noise", tmp_path, Registry())


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("method", "9lives", "beginning with a letter"),
        ("method", "_private", "beginning with a letter"),
        ("method", "../up", "use letters, digits, - or _"),
        ("method", "a b", "use letters, digits, - or _"),
        ("method", "größe", "use letters, digits, - or _"),
        ("dataset", "", "use letters, digits, - or _"),
        ("dataset", "lambda", "Python has its own lambda"),
        ("package", "random", "Python has its own random"),
        ("method", "mc-dropout", r"a method has it \(built in\)"),
        ("method", "mc_dropout", r"a method has it \(built in\)"),
        ("package", "mc-dropout", r"a method has it \(built in\)"),
        ("dataset", "toy", r"a dataset has it \(built in\)"),
        ("metric", "rmse", "there is a metric of this name"),
        ("metric", "RMSE-own", "use lower-case letters, such as rmse_own"),
        ("network", "mlp", r"a network has it \(built in\)"),
        ("metod", "mine", "did you mean method"),
    ],
)
def test_names_that_cannot_be(kind: str, name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=reason) as told:
        scaffold(kind, name, tmp_path, Registry())
    assert "\n" not in str(told.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        ("network", "mlp", r"cannot be the name of a package: a network has it \(built in\)"),
        ("metric", "rmse", "cannot be the name of a package: there is a metric of this name"),
        ("metric", "Own", "cannot be the name of a package: use lower-case letters, such as own"),
        ("metrics", "own", "--kind: unknown kind 'metrics'; did you mean metric"),
        ("package", "own", "--kind: unknown kind 'package'"),
    ],
)
def test_packages_that_cannot_be(content: str, name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=reason):
        scaffold("package", name, tmp_path, Registry(), content)
    assert list(tmp_path.iterdir()) == []


def test_a_package_names_its_plug_in_in_the_group_of_its_kind(tmp_path: Path) -> None:
    for content in PLUGINS:
        scaffold("package", f"my-own-{content}", tmp_path, Registry(), content)
        project = tomllib.loads((tmp_path / f"my-own-{content}" / "pyproject.toml").read_text("utf-8"))["project"]
        name = "my_own_metric" if content == "metric" else f"my-own-{content}"
        known_as = registered_as(content)
        place = f"my_own_{content}.{known_as}" + (":METRICS" if content == "metric" else "")
        assert project["entry-points"] == {f"bench.{known_as}s": {name: place}}
        assert f"uqbench verify {known_as} {name}\n" in (tmp_path / f"my-own-{content}" / "README.md").read_text(
            "utf-8"
        )


def test_only_a_package_has_a_kind_of_content() -> None:
    result = CliRunner().invoke(new, ["network", "mine", "--kind", "metric"])
    assert isinstance(result.exception, UserError)
    assert "write 'uqbench new package mine --kind metric'" in str(result.exception)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"--out .*file: cannot write there"):
        scaffold("method", "my-noise", tmp_path / "file", Registry())


def test_verify_is_told_apart_from_misuse(tmp_path: Path, command: Command) -> None:
    (tmp_path / "bad.py").write_text(
        "from dataclasses import dataclass\nfrom bench.api import Report\n\n"
        "@dataclass(frozen=True)\nclass Bad(Report):\n    pass\n",
        "utf-8",
    )
    failed = command("verify", "report", "bad", "--plugin", "bad.py", "--only", "empty", "--only", "order")
    assert failed.code == 1
    assert "ok       order: " in failed.out
    assert "FAILED   empty: section: NotImplementedError" in failed.out
    assert failed.out.endswith("report bad: 1 ok, 1 failed\n")
    told = command("verify", "report", "bad")
    assert (told.code, told.out, len(told.err.splitlines())) == (2, "", 1)
    for misuse in (["riport", "summary"], ["report", "summary", "--only", "emty"]):
        result = CliRunner().invoke(verify, misuse)
        assert isinstance(result.exception, UserError)
        assert "did you mean" in str(result.exception)
