"""Messages and tags of commits, from the git repository of this folder."""

import re
import subprocess
from collections.abc import Iterable

COMMIT = re.compile(r"[0-9a-f]{7,64}")  # a store may hold anything; only this is passed to git


def subjects(codes: Iterable[str]) -> dict[str, str]:
    """Return the first lines of the messages of those commits that are known here, by code; git is called once."""
    commits = {code: code.removesuffix("-dirty") for code in codes}
    hashes = sorted({commit for commit in commits.values() if COMMIT.fullmatch(commit)})
    if not hashes:
        return {}
    request = "".join(f"{commit}^{{commit}}\n" for commit in hashes).encode()
    command = ["git", "cat-file", "--batch"]
    try:
        answer = subprocess.run(command, input=request, capture_output=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    known = dict(zip(hashes, _first_lines(answer.stdout), strict=False))
    return {code: known[commit] for code, commit in commits.items() if known.get(commit)}


def labels(codes: Iterable[str]) -> dict[str, str]:
    """Return the tags of those commits that have any, by code; git is called once."""
    commits = {code: code.removesuffix("-dirty") for code in codes}
    commits = {code: commit for code, commit in commits.items() if COMMIT.fullmatch(commit)}
    if not commits:
        return {}
    # An annotated tag is an object of its own, whose commit is the peeled one.
    shown = "--format=%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end) %(refname:short)"
    command = ["git", "for-each-ref", shown, "--sort=version:refname", "refs/tags"]
    try:
        answer = subprocess.run(command, capture_output=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    tags = [line.partition(" ") for line in answer.stdout.decode("utf-8", "replace").splitlines()]
    found = {
        code: ", ".join(name for full, _, name in tags if full.startswith(commit)) for code, commit in commits.items()
    }
    return {code: names for code, names in found.items() if names and not code.endswith("-dirty")}


def _first_lines(answer: bytes) -> list[str]:
    """Return the first line of each message in the answer to one question after the other; '' for what is missing."""
    lines = []
    while answer:
        head, _, answer = answer.partition(b"\n")
        words = head.split(b" ")
        if len(words) != 3 or not words[2].isdigit():  # NAME missing, NAME ambiguous
            lines.append("")
            continue
        content, answer = answer[: int(words[2])], answer[int(words[2]) + 1 :]
        message = content.partition(b"\n\n")[2].lstrip(b"\n")
        lines.append(message.partition(b"\n")[0].decode("utf-8", "replace").strip())
    return lines
