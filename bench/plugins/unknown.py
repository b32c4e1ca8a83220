"""The error for a plug-in that no folder, package or file has; it says which names the user's files give."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from bench.errors import UserError, unknown_name

GivenNames = Mapping[
    Path, Sequence[tuple[str, bool]]
]  # of each file: the names of a kind, and whether they are its own


def unknown_plugin(kind: str, name: str, known: Collection[str], given: GivenNames, where: str = "") -> UserError:
    """Return the error for an unknown plug-in, with what the user may have meant: a file, or what a file has."""
    if kind == "dataset" and (hint := _table_hint(name, known)):
        place = f"{where}: " if where else ""
        return UserError(f"{place}unknown dataset {name!r}; {hint}")
    hint = described(kind, given) if given else f"a {kind} of your own needs --plugin FILE"
    return UserError(f"{unknown_name(kind, name, known, where)} ({hint})")


def described(kind: str, given: GivenNames) -> str:
    """Return which plug-ins of a kind the user's files have, and where the names come from."""
    return "; ".join(_content(kind, path, names) for path, names in given.items())


def _content(kind: str, path: Path, names: Sequence[tuple[str, bool]]) -> str:
    if not names:
        return f"{path} has no {kind}"
    listed = ", ".join(repr(name) for name, _ in names)
    after_file = " (named after its file)" if any(not declared for _, declared in names) else ""
    return f"{path} has the {kind}{'s' * (len(names) > 1)} {listed}{after_file}"


def _table_hint(name: str, known: Collection[str]) -> str:
    """Return how a file with data is named, if the name is one: the plug-in that reads it stands before it."""
    path = Path(name.partition("?")[0])
    reader = path.suffix[1:].lower()
    if reader in known:
        return f"a file is named {reader}:{path}?target=TARGET, with the dataset that reads it before its path"
    if path.suffix and path.is_file():
        return f"a file is named READER:{path}?target=TARGET, with one of 'uqbench list datasets' that reads files"
    return ""
