"""The one exception for mistakes of the person at the keyboard."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake of the user's, told in one line: what was wrong, where, what would be right."""


def unknown_name(kind: str, name: str, known: Iterable[str], where: str = "") -> UserError:
    """Return the error for a name that does not exist, with the nearest ones that do."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names) or 'none'}"
    place = f"{where}: " if where else ""
    return UserError(f"{place}unknown {kind} {name!r}; {hint}")
