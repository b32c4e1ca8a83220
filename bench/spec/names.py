"""Names of suites, datasets, methods, metrics and groups: what they may be, at every place where one comes in.

Names are printed in terminals, are parts of file names and pages, and are indexed by the database. So a name is one
line of printable characters of a limited length. Another one is refused where it comes in: from a suite, a plug-in, a
group of rows, or a store that is merged.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

from bench.errors import UserError

LONGEST_NAME = 200  # characters; PostgreSQL cannot index names of any length
LONGEST_GROUP = 100  # part of the name of a metric


def name_fault(name: str, longest: int = LONGEST_NAME) -> str | None:
    """Return what is wrong with a name, and what would be right; None if nothing is."""
    if not name or name != name.strip():
        return "a name is not empty and neither begins nor ends with a blank"
    if len(name) > longest:
        return f"it has {len(name)} characters; at most {longest} characters are allowed"
    strange = next((sign for sign in name if not sign.isprintable()), None)
    if strange is not None:
        return f"U+{ord(strange):04X} cannot be printed; use letters, digits and signs in one line"
    return None


def check_name(name: str, what: str, longest: int = LONGEST_NAME) -> str:
    """Return a name; raise UserError if it cannot be one. `what` says whose it is, such as 'quick.toml: method'."""
    if fault := name_fault(name, longest):
        raise UserError(f"{what} {name[:40]!r}{'...' if len(name) > 40 else ''}: {fault}")
    return name


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return the names of datasets as pages show them: of a file its stem, where no other dataset would have it.

    `csv:data/bikes.csv?target=rentals` is shown as `bikes`.
    """
    stems = {name: _stem(name) for name in names}
    counts = Counter(stems.values())
    return {name: stem if counts[stem] == 1 else name for name, stem in stems.items()}


def _stem(name: str) -> str:
    kind, _, place = name.partition(":")
    path = PurePosixPath(place.partition("?")[0].replace("\\", "/"))
    return path.stem if kind and path.suffix and path.stem else name
