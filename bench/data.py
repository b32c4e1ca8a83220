"""Where datasets look for their files: `--data`, then `UQBENCH_DATA`, then the user's cache folder."""

import os
from pathlib import Path

VARIABLE = "UQBENCH_DATA"


def folders() -> list[Path]:
    """Return the folders that are searched, in order. The command line's `--data` sets the variable."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uqbench"
    named = os.environ.get(VARIABLE)
    return [Path(named), cache] if named else [cache]


def find(name: str) -> Path | None:
    """Return the first file or folder of that relative name, or None."""
    return next((folder / name for folder in folders() if (folder / name).exists()), None)


def missing(name: str) -> str:
    """Return what to tell a user whose data is not there."""
    places = " or ".join(str(folder) for folder in folders())
    return f"{name} was not found in {places}; put it there, or name its folder with --data DIR or {VARIABLE}=DIR"
