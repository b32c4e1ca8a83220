"""Workflows, forms of issues and the citation follow their schemas, and agree with the package and the Makefile."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install 'uqbench[test]'")

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
FORMS = sorted(ROOT.glob(".github/ISSUE_TEMPLATE/*.yml"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def follows(schema: str, *paths: Path) -> None:
    checker = pytest.importorskip(
        "check_jsonschema", reason="check-jsonschema is not installed: pip install 'uqbench[test]'"
    )
    done = CliRunner().invoke(checker.main, ["--builtin-schema", f"vendor.{schema}", *map(str, paths)])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("github-workflows", WORKFLOWS),
        ("github-issue-forms", [path for path in FORMS if path.name != "config.yml"]),
        ("github-issue-config", [path for path in FORMS if path.name == "config.yml"]),
        ("dependabot", [ROOT / ".github" / "dependabot.yml"]),
        ("citation-file-format", [ROOT / "CITATION.cff"]),
    ],
)
def test_files_follow_their_schema(schema: str, paths: list[Path]) -> None:
    assert paths
    follows(schema, *paths)


def test_a_workflow_that_is_wrong_is_found(tmp_path: Path) -> None:
    text = WORKFLOWS[0].read_text("utf-8")
    assert "runs-on" in text
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(text.replace("runs-on", "run-on", 1), "utf-8")
    with pytest.raises(AssertionError, match="run-on"):
        follows("github-workflows", wrong)


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_limits_and_few_rights(path: Path) -> None:
    document = yaml.safe_load(path.read_text("utf-8"))
    assert document["permissions"] == {"contents": "read"}  # more only for the job that needs it
    assert "pull_request_target" not in document[True]  # YAML reads 'on' as true
    assert all("timeout-minutes" in job for job in document["jobs"].values())
    assert "secrets." not in path.read_text("utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_the_targets_of_a_workflow_are_in_the_makefile(path: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for job in jobs(path).values():
        matrix = job.get("strategy", {}).get("matrix", {})
        for step in job["steps"]:
            for target in re.findall(r"\bmake (\S+(?: matrix\.target \}\})?)", step.get("run", "")):
                assert set(matrix["target"] if target.startswith("${{") else [target]) <= targets


def test_every_python_that_the_package_says_it_supports_is_tested() -> None:
    tested = jobs(ROOT / ".github" / "workflows" / "tests.yml")["test"]["strategy"]["matrix"]["python"]
    declared = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert tested == declared
    assert PROJECT["requires-python"] == f">={tested[0]}"


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation.get("repository-code") == PROJECT.get("urls", {}).get("Repository")


def test_the_changelog_has_this_version_and_room_for_the_next() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    headings = re.findall(r"^## \[(.*?)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.MULTILINE)
    assert headings[0] == ("Unreleased", "")
    released = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["date-released"]
    assert headings[1] == (PROJECT["version"], str(released))
