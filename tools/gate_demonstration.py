"""What the gate says to changes that were planted on purpose: exit code and message of each, for docs/gate.md.

    python -m tools.gate_demonstration docs/gate.md

A suite of two methods and ten seeds is run once. Its numbers are then replaced by known ones, so that the table is the
same on every machine, and every row plants one change into the stored results before the gate reads them.
"""

import argparse
import json
import math
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from bench.cli.main import app
from bench.errors import UserError
from bench.text_tables import markdown_table
from tools.pages import print_or_replace_part

SEEDS = 10
SUITE = f"""
title = "Demonstration"
seeds = {SEEDS}
draws = 5
metrics = ["rmse", "mae"]

[training]
epochs = 1
batch = 40

[network]
hidden = [2]

[datasets.toy]
rows = 40

[methods.deterministic]

[methods.mine]
"""
PLUGIN = '''"""A method of one's own."""

from dataclasses import dataclass

from bench.api import Method


@dataclass(frozen=True)
class Mine(Method):
    """Trains as usual."""
'''
FAILING_PLUGIN = (
    PLUGIN
    + '''
    def finish(self, net, train, validation, tape):
        """Fail where a row is far from the others, which one of the ten splits has."""
        if train.x.max() > 1.92:
            raise ValueError("a row is too far from the others")
        return super().finish(net, train, validation, tape)
'''
)
FILES = ("suite.toml", "mine.py", "known.db", "known.json", "now.db")
MARGIN = 0.005  # of rmse: 0.5 % of its mean, which is 1
NOISE = np.random.default_rng(5).normal(size=SEEDS)
NOISE = (NOISE - NOISE.mean()) / NOISE.std(ddof=1)  # exactly mean 0 and standard deviation 1

Plant = Callable[[sqlite3.Connection], None]


@dataclass(frozen=True)
class Case:
    """A planted change."""

    name: str
    plant: Plant
    plugin: str = PLUGIN  # the plug-in file of the run


def number(seed: int, metric: str) -> float:
    """Return the value of a metric at a seed in the baseline: mean 1, standard deviation 0.05 over seeds."""
    return 1.0 + 0.05 * float(np.roll(NOISE, 3 if metric == "mae" else 0)[seed])


def _of_mine(metric: str = "rmse") -> str:
    return f"metric = '{metric}' AND key IN (SELECT key FROM wanted WHERE method = 'mine' AND seed IN ({{seeds}}))"


def _set(values: dict[int, float | None]) -> Plant:
    """Set the RMSE of method mine at some seeds; None removes it, NaN is NULL in the store."""

    def plant(store: sqlite3.Connection) -> None:
        for seed, value in values.items():
            where = _of_mine().format(seeds=seed)
            if value is None:
                store.execute(f"DELETE FROM metrics WHERE {where}")
            else:
                store.execute(f"UPDATE metrics SET value = ? WHERE {where}", (None if math.isnan(value) else value,))

    return plant


def _moved(change: float, noise: float = 0.0) -> dict[int, float | None]:
    """Return every seed's RMSE with a change, and with noise of this standard deviation."""
    again = np.roll(NOISE, 5)
    return {seed: number(seed, "rmse") + change + noise * float(again[seed]) for seed in range(SEEDS)}


def _status(status: str, seeds: range) -> Plant:
    """Give the cells of method mine at some seeds another status, without values."""
    which = ", ".join(map(str, seeds))
    cells = f"key IN (SELECT key FROM wanted WHERE method = 'mine' AND seed IN ({which}))"

    def plant(store: sqlite3.Connection) -> None:
        store.execute(f"UPDATE cells SET status = '{status}', message = 'planted' WHERE {cells}")
        store.execute(f"DELETE FROM metrics WHERE {cells}")

    return plant


def _nothing(store: sqlite3.Connection) -> None:
    """Plant no change."""


CASES = (
    Case("an innocent refactoring: every number as before", _nothing),
    Case("rmse infinite at one seed", _set({4: math.inf})),
    Case("rmse NaN at one seed", _set({4: math.nan})),
    Case("rmse not computed any more", _set(dict.fromkeys(range(SEEDS)))),
    Case("a cell that diverges", _status("diverged", range(4, 5))),
    Case("a missing cell: the method fails on the rows of one seed", _nothing, FAILING_PLUGIN),
    Case("a method that diverges at every seed", _status("diverged", range(SEEDS))),
    Case("one seed 100 times worse", _set({4: 100.0})),
    Case("worse by one standard deviation over seeds", _set(_moved(0.05, 0.005))),
    Case("worse by 0.9 margins", _set(_moved(0.9 * MARGIN, 0.0001))),
    Case("better by one standard deviation over seeds", _set(_moved(-0.05, 0.005))),
    Case("the file of a plug-in changed, its numbers did not", _nothing, PLUGIN.replace("as usual", "as ever")),
)


def demonstrations() -> Iterator[tuple[str, int, str]]:
    """Yield the name of every case, the exit code of the gate, and what it says."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "suite.toml").write_text(SUITE, "utf-8")
        (folder / "mine.py").write_text(PLUGIN, "utf-8")
        _uqbench(folder, "run", "suite.toml", "--plugin", "mine.py", "--store", "known.db")
        _make_known(folder / "known.db")
        _uqbench(folder, "baseline", "suite.toml", "--plugin", "mine.py", "--store", "known.db", "--out", "known.json")
        for case in CASES:
            _copy(folder / "known.db", folder / "now.db")
            (folder / "mine.py").write_text(case.plugin, "utf-8")
            if case.plugin != PLUGIN:
                _uqbench(folder, "run", "suite.toml", "--plugin", "mine.py", "--store", "now.db", wanted=(0, 1))
                _make_known(folder / "now.db")
            with sqlite3.connect(folder / "now.db") as store:
                case.plant(store)
            store.close()
            command = ("gate", "suite.toml", "--plugin", "mine.py", "--baseline", "known.json", "--store", "now.db")
            code, text = _uqbench(folder, *command, "--json", wanted=(0, 1))
            yield case.name, code, _verdicts_in_words(text)


def _uqbench(folder: Path, *arguments: str, wanted: tuple[int, ...] = (0,)) -> tuple[int, str]:
    """Run a command on files of a folder; return its exit code and what it printed."""
    placed = [str(folder / each) if each in FILES else each for each in arguments]
    done = CliRunner().invoke(app, placed)
    if done.exit_code not in wanted:
        raise UserError(f"{' '.join(arguments)}: exit code {done.exit_code}: {done.output.strip()[-500:]}")
    return done.exit_code, done.stdout


def _copy(store: Path, to: Path) -> None:
    """Copy a store, its latest transactions included."""
    to.unlink(missing_ok=True)
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(to)) as copy:
        source.backup(copy)


def _make_known(path: Path) -> None:
    """Replace the numbers of a store by known ones."""
    with sqlite3.connect(path) as store:
        cells = store.execute("SELECT key, seed FROM wanted").fetchall()
        for key, seed in cells:
            for metric in ("rmse", "mae"):
                store.execute(
                    "UPDATE metrics SET value = ? WHERE key = ? AND metric = ?", (number(seed, metric), key, metric)
                )
        store.execute("DELETE FROM metrics WHERE metric NOT IN ('rmse', 'mae')")
    store.close()


def _verdicts_in_words(printed: str) -> str:
    """Return what a gate said about metrics and plug-ins that changed, or else its summary."""
    found = json.loads(printed)
    said = [_sentence(row) for row in found["rows"] if row["verdict"] not in ("identical", "new")]
    return "; ".join(said + [f"plug-in: {line}" for line in found["plugins"]]) or found["summary"]


def _sentence(row: Mapping[str, Any]) -> str:
    change = f" {row['baseline']:.3g} to {row['now']:.3g}" if row["baseline"] is not None and not row["note"] else ""
    return f"{row['verdict']}: {row['metric']}{change}" + (f": {row['note']}" if row["note"] else "")


def table() -> str:
    """Return all cases as a table."""
    rows = [(name, str(code), said) for name, code, said in demonstrations()]
    return "\n".join(markdown_table(("planted", "exit code", "the gate says"), rows, [1]))


def main() -> None:
    """Print the table, or write it between the marks of a page."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("page", nargs="?", type=Path)
    print_or_replace_part(reader.parse_args().page, "demonstration", table())


if __name__ == "__main__":
    main()
