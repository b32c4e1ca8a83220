"""Packs the results behind the gallery: the suites of a store with what its pictures need, as one small file.

    python -m tools.gallery_results gallery.db docs/gallery/results.tar.xz

Arrays are kept of the first seeds alone, and values of the metrics that a suite names and that figures read. Values are
in single precision; means and variances of predictions have three digits. All predictions are kept of one small suite.
"""

import argparse
import io
import json
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from bench.store.arrays import ArrayFiles
from bench.store.merge import merge
from bench.store.store import Store

# In the order in which the gallery looks for a section.
SUITES = (
    *("gallery", "shift-digits", "digits", "latency-digits", "softmax-digits"),
    *("mcni-ablation", "toy-sweep", "groups", "truth", "toy", "recalibration"),
)
WITH_PREDICTIONS = "recalibration"  # the suite whose cells keep all of them
MARKS = ", ".join("?" for _ in SUITES)
ARRAYS = {
    "gallery": 1,
    "digits": 1,
    "softmax-digits": 1,
    "latency-digits": 1,
}  # seeds with arrays; none of other suites
READ = {"ece", "quantile_error", "quantile_error_noise", "flip_level", "mutual_information", "predictive_entropy"}
ROUNDED, BITS = {"mean", "variance"}, 9  # arrays, and the bits of their significands that are kept
CONDITIONED = {"latency_forward", "latency_transfer", "latency_total", "latency_scaling", "ood_auroc"}
STORE = "results.db"  # in the archive, beside the folder of its arrays


def pack(source: Store, target: Path) -> None:
    """Write the archive; the source is left as it is."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / STORE
        with Store(str(path)) as store:
            merge(store, source)  # takes neither leases nor their owners
        with closing(sqlite3.connect(path)) as database:
            for table in ("wanted", "remarks"):
                database.execute(f"DELETE FROM {table} WHERE suite NOT IN ({MARKS})", SUITES)  # our names
            database.execute(f"DELETE FROM suites WHERE name NOT IN ({MARKS})", SUITES)  # our names
            for table in ("cells", "metrics"):
                database.execute(f"DELETE FROM {table} WHERE key NOT IN (SELECT key FROM wanted)")  # our names
            own = "SELECT key FROM wanted WHERE suite = ?"
            database.execute(f"DELETE FROM predictions WHERE file IS NULL OR key NOT IN ({own})", (WITH_PREDICTIONS,))
            kept_names = {name for (name,) in database.execute("SELECT file FROM predictions")}
            named = {name for (text,) in database.execute("SELECT metrics FROM suites") for name in json.loads(text)}
            for (name,) in database.execute("SELECT DISTINCT metric FROM metrics").fetchall():
                base, at, _ = name.partition("@")
                if not (name in named | READ or (at and base in named | CONDITIONED)):
                    database.execute("DELETE FROM metrics WHERE metric = ?", (name,))
            values = database.execute("SELECT DISTINCT value FROM metrics").fetchall()
            singles = [(float(np.float32(value)), value) for (value,) in values]
            database.execute("CREATE INDEX values_of_metrics ON metrics (value)")
            database.executemany("UPDATE metrics SET value = ? WHERE value = ?", singles)
            database.execute("DROP INDEX values_of_metrics")
            places = database.execute("SELECT key, suite, seed FROM wanted").fetchall()
            kept = {key for key, suite, seed in places if seed < ARRAYS.get(suite, 0)}
            database.executemany(
                "UPDATE cells SET arrays = NULL WHERE key = ?", [(key,) for key, *_ in places if key not in kept]
            )
            files = ArrayFiles(Path(f"{path}.arrays"))
            for key, name in database.execute("SELECT key, arrays FROM cells WHERE arrays IS NOT NULL").fetchall():
                single = _as_singles(files, name)
                kept_names.add(single)
                database.execute("UPDATE cells SET arrays = ? WHERE key = ?", (single, key))
            database.commit()
            database.execute("VACUUM")
        with tarfile.open(target, "w:xz", preset=9) as archive:
            for file in [path, *(files.folder / f"{name}.npz" for name in sorted(kept_names))]:
                archive.add(file, str(file.relative_to(folder)), filter=anonymous)


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member of an archive without its owner and time."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def _as_singles(files: ArrayFiles, name: str) -> str:
    """Write the arrays of a file in few bits, to be compressed with all others; return the new file's name."""
    with np.load(files.folder / f"{name}.npz", allow_pickle=False) as content:
        arrays = {
            part: array.astype(
                np.float32 if array.dtype.kind == "f" else np.int16 if array.dtype.kind == "i" else array.dtype
            )
            for part, array in content.items()
        }
    for part in ROUNDED & arrays.keys():
        significand, exponent = np.frexp(arrays[part])
        arrays[part] = np.ldexp(np.round(significand * 2**BITS) / 2**BITS, exponent).astype(np.float32)
    written = io.BytesIO()
    np.savez(written, allow_pickle=False, **arrays)
    return files.add(written.getvalue())


@contextmanager
def unpacked(archive: Path) -> Iterator[Store]:
    """Yield the store in an archive, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
        with Store(str(Path(folder) / STORE)) as store:
            yield store


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("store", help="the store with the suites")
    arguments.add_argument("archive", type=Path, help="the file to write")
    given = arguments.parse_args()
    with Store(given.store, create=False) as results:
        pack(results, given.archive)
