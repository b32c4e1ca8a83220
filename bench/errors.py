"""The exception for mistakes of the user."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake of the user; the message says in one line what is wrong, where, and what would be right."""


def unknown_name(kind: str, name: str, known: Iterable[str], where: str = "") -> UserError:
    """Return the error for an unknown name, with the most similar known names."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names) or 'none'}"
    place = f"{where}: " if where else ""
    return UserError(f"{place}unknown {kind} {name!r}; {hint}")
