from pathlib import Path

import pytest

from bench.errors import UserError
from bench.history.commits import labels
from bench.history.files import metric_history, write_history
from bench.history.repository import Repository, find_repository, web_address
from bench.history.series import Version
from tests.fixtures.results import noisy, store_of_versions
from tests.history.test_commits import git, repository

__all__ = ["repository"]  # the fixture


@pytest.mark.parametrize(
    "remote",
    [
        "https://github.com/owner/name",
        "https://github.com/owner/name.git",
        "https://someone:secret@github.com/owner/name.git/",
        "http://github.com:8080/owner/name",
        "git@github.com:owner/name.git",
        "ssh://git@github.com:22/owner/name.git",
        "github.com:owner/name",
    ],
)
def test_remotes_lead_to_a_web_address_without_names_and_passwords(remote: str) -> None:
    assert web_address(remote) == "https://github.com/owner/name"


@pytest.mark.parametrize(
    "remote",
    [
        "",
        "/srv/git/name.git",
        "../name",
        "file:///srv/git/name.git",
        "C:\\git\\name",
        "server:git/name",  # a machine, not a public name
        "ssh://git@server/name",
        "https://10.0.0.1/owner/name",
        "https://box.local/owner/name",
        "https://github.com",
        "javascript:alert(1)",
        "https://github.com/a b",
        'https://github.com/"><script>',
        "https://[broken/owner",
    ],
)
def test_paths_and_machines_are_never_published(remote: str) -> None:
    assert web_address(remote) == ""
    with pytest.raises(
        UserError, match=r"--repository .*: expected a web address such as https://github.com/OWNER/NAME"
    ):
        find_repository(remote)


def version(code: str, subject: str = "") -> Version:
    return Version(code, "", 0.0, 0.0, subject)


def test_commits_are_linked_where_they_are_known() -> None:
    given, found = Repository("https://github.com/o/n", given=True), Repository("https://github.com/o/n")
    assert given.commit(version("0123456789ab")) == "https://github.com/o/n/commit/0123456789ab"
    assert given.commit(version("0123456789ab-dirty")) == "https://github.com/o/n/commit/0123456789ab"
    assert found.commit(version("0123456789ab")) == ""
    assert found.commit(version("0123456789ab", "A subject")) == "https://github.com/o/n/commit/0123456789ab"
    assert [given.commit(version(code)) for code in ("uqbench 0.1.0", "", '"><script>')] == ["", "", ""]
    assert Repository("https://gitlab.com/o/n", given=True).commit(version("0123456")).endswith("/n/-/commit/0123456")
    assert Repository().commit(version("0123456789ab", "A subject")) == ""


def test_the_remote_of_the_folder_and_its_tags(repository: list[str], tmp_path: Path) -> None:
    first, second, _ = repository
    assert find_repository() == Repository()
    git(tmp_path, "remote", "add", "origin", str(tmp_path))
    assert find_repository() == Repository()
    git(tmp_path, "remote", "set-url", "origin", "git@example.org:o/n.git")
    assert find_repository() == Repository("https://example.org/o/n")
    git(tmp_path, "tag", "v1.0", first)
    git(tmp_path, "tag", "-a", "-m", "annotated", "v1.10", second)
    git(tmp_path, "tag", "v1.9", second)
    codes = [first[:12], second, f"{second[:12]}-dirty", repository[2], "uqbench 0.1.0"]
    assert labels(codes) == {first[:12]: "v1.0", second: "v1.9, v1.10"}


def test_without_git_there_are_no_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert labels(["0123456789ab"]) == {}
    assert find_repository() == Repository()


def test_a_history_links_its_commits_and_shows_their_tags(repository: list[str], tmp_path: Path) -> None:
    git(tmp_path, "tag", "v2.0", repository[1])
    store = store_of_versions(tmp_path / "s.db", noisy([1.0, 2.0, 2.0]), [code[:12] for code in repository])
    found = metric_history([store], "rmse")
    (page, data, _) = write_history("rmse", found, tmp_path / "out", Repository("https://example.org/o/n"))
    text = page.read_text("utf-8")
    link = f'<span class="tag" dir="auto">v2.0</span> <a href="https://example.org/o/n/commit/{repository[1][:12]}"'
    assert link in text
    assert f">{repository[0][:7]}</text>" in text  # the first version, below the axis
    assert '"label": "v2.0"' in data.read_text("utf-8")
    (plain, *_) = write_history("rmse", found, tmp_path / "plain")
    assert "https://" not in plain.read_text("utf-8")
