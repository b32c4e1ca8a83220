"""The web address of a repository, to which commits in pages lead: given by the user, or the remote of this folder."""

import re
import subprocess
from dataclasses import dataclass
from urllib.parse import urlsplit

from bench.errors import UserError
from bench.history.commits import COMMIT
from bench.history.series import Version

# A remote is published in pages: only one that has a public name, never a path or the name of a machine.
HOST = re.compile(r"(?!\d+(?:\.\d+)+\Z)[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}", re.IGNORECASE)
PATH = re.compile(r"(?:/[\w.~-]+)+")
SHORT = re.compile(r"(?:[\w.-]+@)?(?P<host>[^/:@\s]+):(?P<path>[^/\s][^\s]*)")  # git@host:owner/name.git
COMMITS = {"gitlab": "/-/commit/", "bitbucket": "/commits/"}  # where hosts have them; all others as GitHub does
LOCAL = ("local", "localhost", "internal", "lan", "home", "localdomain")


@dataclass(frozen=True)
class Repository:
    """A repository on the web."""

    address: str = ""  # '': none is known, and commits are no links
    given: bool = False  # by the user, who knows that it has the commits

    def commit(self, version: Version) -> str:
        """Return the address of a version's commit; '' where there is none.

        Without a word of the user only commits that this folder's repository knows are linked.
        """
        commit = version.code.removesuffix("-dirty")
        if not self.address or not COMMIT.fullmatch(commit) or not (self.given or version.subject):
            return ""
        kind = next((path for name, path in COMMITS.items() if name in urlsplit(self.address).netloc), "/commit/")
        return f"{self.address}{kind}{commit}"


NO_REPOSITORY = Repository()


def find_repository(given: str | None = None) -> Repository:
    """Return the repository of this address, or that of the folder's remote 'origin'."""
    if given is None:
        return Repository(web_address(_remote()))
    if not (address := web_address(given)):
        raise UserError(f"--repository {given}: expected a web address such as https://github.com/OWNER/NAME")
    return Repository(address, given=True)


def web_address(remote: str) -> str:
    """Return the web address of a remote, without user, password and port; '' for paths and names without a domain."""
    if "://" in remote:
        try:
            parts = urlsplit(remote)
            host, path = parts.hostname or "", parts.path
        except ValueError:
            return ""
        if parts.scheme not in ("https", "http", "ssh", "git"):
            return ""
    elif match := SHORT.fullmatch(remote):
        host, path = match["host"], f"/{match['path']}"
    else:
        return ""
    path = path.rstrip("/").removesuffix(".git")
    if not HOST.fullmatch(host) or host.lower().rpartition(".")[2] in LOCAL or not PATH.fullmatch(path):
        return ""
    return f"https://{host}{path}"


def _remote() -> str:
    command = ["git", "remote", "get-url", "origin"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
