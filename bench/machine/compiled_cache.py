"""The folder of compiled training steps: in the user's cache folder, of bounded size.

Whatever is removed from it is compiled again when it is needed.
"""

import os
import tempfile
from pathlib import Path

from bench.machine.files import cache_folder

VARIABLE = "TORCHINDUCTOR_CACHE_DIR"  # torch's own: where its compiler keeps kernels
BYTES_KEPT = 2**30


def compiled_folder() -> Path:
    """Return the folder, and tell torch's compiler; a folder that the user has named in torch's variable is taken."""
    named = os.environ.get(VARIABLE)
    folder = Path(named) if named and not _default_of_torch(Path(named)) else cache_folder() / "compiled"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to
        folder = Path(tempfile.mkdtemp(prefix="uqbench-compiled-"))  # of a name that nobody could prepare: it has code
    os.environ[VARIABLE] = str(folder)
    return folder


def _default_of_torch(folder: Path) -> bool:
    """Return whether this is the folder that torch itself writes into its variable as soon as it is imported."""
    return folder.parent == Path(tempfile.gettempdir()) and folder.name.startswith("torchinductor_")


def prune(folder: Path, kept: int = BYTES_KEPT, dry_run: bool = False) -> tuple[int, int]:
    """Remove the files that were used longest ago until this many bytes are left; return how many, and their bytes."""
    files = [(path, path.stat()) for path in folder.rglob("*") if path.is_file()]
    files.sort(key=lambda item: max(item[1].st_mtime, item[1].st_atime))
    total = sum(stat.st_size for _, stat in files)
    removed = freed = 0
    for path, stat in files:
        if total - freed <= kept:
            break
        if not dry_run:
            path.unlink(missing_ok=True)
        removed, freed = removed + 1, freed + stat.st_size
    return removed, freed
