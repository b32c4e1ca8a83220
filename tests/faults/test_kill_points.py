"""kill -9 at every kind of write of every command that writes: afterwards the same command gives the same store.

`make faults` does a few of them; `make faults KILLS=100` a hundred, and prints which phases they hit.
"""

import json
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.store.store import Store
from tests.faults.clusters import Cluster, started_cluster
from tests.faults.harness import KILLS
from tests.faults.prepared import Ended, Kill, Prepared, tally
from tests.fixtures.stores import Server

pytestmark = pytest.mark.slow

MOST_SECONDS = 1800.0
SUITE = """
title = "To be killed"
seeds = 6
draws = 5
[training]
epochs = 2
batch = 40
[network]
hidden = [5]
[datasets.toy]
rows = 80
[methods.deterministic]
[methods.mc-dropout]
"""
CELLS = 2 * 6
EVERYTHING = Counter[tuple[str, str]]()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    running = Prepared(tmp_path_factory.mktemp("prepared"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("suite") / "killed.toml"
    path.write_text(SUITE, "utf-8")
    return str(path)


@pytest.fixture(scope="module")
def reference(prepared: Prepared, suite: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """The store of an undisturbed run without workers, and its writes."""
    store = tmp_path_factory.mktemp("reference") / "store.db"
    ended = prepared.run(["run", suite, "--store", str(store), "--engine", "inline"])
    assert ended.code == 0, ended.output
    return store, ended


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with started_cluster(tmp_path_factory.mktemp("dask")) as cluster:
        for _ in range(2):
            cluster.worker()
        yield cluster


def content(url: str) -> dict[str, Any]:
    """Return what a store has, without times and machines: no cell twice, none with arrays that cannot be read."""
    if "://" not in url:
        with sqlite3.connect(url) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
    with Store(url, create=False, writable=False) as store:
        found: dict[str, Any] = {}
        for suite in store.suites():
            cells = store.cells(suite)
            assert len({cell["key"] for cell in cells}) == len(cells)
            values = sorted((row["key"], row["metric"], row["value"]) for row in store.values(suite))
            arrays = {cell["key"]: store.load_arrays(cell["key"]) for cell in cells}
            assert None not in arrays.values()
            sums = {key: {name: each.tobytes() for name, each in (some or {}).items()} for key, some in arrays.items()}
            found[suite] = (sorted((cell["key"], cell["status"]) for cell in cells), values, sums)
        return found


def count_kill(place: str, ended: Ended) -> None:
    """Count a kill, and print it."""
    if ended.killed:
        EVERYTHING[place, ended.killed] += 1
        print(f"\n{place}: {ended.killed}", end="", flush=True)


def points(writes: int, count: int) -> list[Kill]:
    """Return so many moments of a command, evenly over its writes, before and after them in turn."""
    moments = [(number, before) for number in range(1, writes + 1) for before in (True, False)]
    step = len(moments) / count
    return [Kill(*moments[int(step * (k + 0.5))]) for k in range(count)]


def run_with_kills(
    prepared: Prepared, place: str, command: list[str], kills: list[Kill], urls: Iterator[str], wanted: dict[str, Any]
) -> None:
    """Kill a run at these moments, three in a row on one store, let it end each time, and compare its store."""
    left = list(kills)
    while left:
        url = next(urls)
        for _ in range(3):
            if not left:
                break
            kill = left.pop(0)
            ended = prepared.run([*command, "--store", url], kill)
            count_kill(place, ended)
            if not ended.killed and kill.write > 1:  # the run had fewer writes: earlier, on another store
                left.append(replace(kill, write=kill.write // 2))
            if ended.code != -9:
                assert ended.code == 0, ended.output
                break
        ended = prepared.run([*command, "--store", url])
        assert ended.code == 0, ended.output
        assert content(url) == wanted


def places(kind: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the addresses of empty stores."""
    number = 0
    while True:
        number += 1
        if kind == "sqlite":
            yield str(folder / f"store{number}.db")
        else:
            server: Server = request.getfixturevalue("server")
            yield server.new_url(arrays=str(folder / f"{number}.arrays"))


# Of a hundred kills; the rest is for commands that write without running cells.
SHARES = {
    ("inline", "sqlite"): 26,
    ("inline", "postgresql"): 19,
    ("local", "sqlite"): 8,
    ("local", "postgresql"): 4,
    ("dask", "sqlite"): 12,
    ("dask", "postgresql"): 6,
}


@pytest.mark.parametrize(("engine", "kind"), SHARES)
def test_runs(
    engine: str,
    kind: str,
    prepared: Prepared,
    suite: str,
    reference: tuple[Path, Ended],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    began, (store, undisturbed) = time.monotonic(), reference
    command = ["run", suite, "--engine", engine]
    if engine == "local":
        command += ["--workers", "1"]
    if engine == "dask":
        cluster: Cluster = request.getfixturevalue("dask")
        command += ["--address", cluster.address]
    count = max(1, KILLS * SHARES[engine, kind] // 100)
    urls, wanted = places(kind, tmp_path, request), content(str(store))
    # With workers, cells arrive together: fewer writes than without.
    writes = len(undisturbed.writes) if engine == "inline" else 2 * len(undisturbed.writes) // 3
    kills = points(writes, count)
    run_with_kills(prepared, f"{engine} {kind}", command, kills, urls, wanted)
    if engine != "inline":
        for number in range(1 + count // 4):
            victims: tuple[int, ...] = ()
            if engine == "dask":
                victims = (cluster.workers[-1].pid,)
            kill = Kill(writes // 2 + number, before=False, victims=victims, worker=engine == "local")
            run_with_kills(prepared, f"{engine} {kind}", command, [kill], urls, wanted)
            if engine == "dask":
                cluster.workers[-1].wait()
                cluster.worker()
    assert time.monotonic() - began < MOST_SECONDS


# The other commands that write.
COMMANDS: dict[str, list[str]] = {
    "merge": ["merge", "{other}", "--store", "{store}"],
    "gc": ["gc", "--store", "{store}", "--checkpoints"],
    "store check --repair": ["store", "check", "--repair", "--store", "{store}"],
    "retry": ["retry", "--failed", "--store", "{store}", "--engine", "inline"],
    "export": ["export", "--store", "{store}", "--out", "{out}/values.csv"],
    "report": ["report", "--store", "{store}", "--out", "{out}/report"],
    "leaderboard": ["leaderboard", "--store", "{store}", "--out", "{out}/site"],
    "baseline": ["baseline", "{suite}", "--store", "{store}", "--out", "{out}/base.json"],
    "history": ["history", "--metric", "rmse", "--store", "{store}", "--out", "{out}/history"],
}


def damaged(store: Path) -> None:
    """Lose an array file and a result, and leave a file that nobody refers to: work for the commands that repair."""
    files = sorted(Path(f"{store}.arrays").glob("*.npz"))
    files[0].unlink()
    shutil.copy(files[1], files[1].with_name("0" * 32 + ".npz"))


def outputs(folder: Path) -> set[str]:
    """Return the files that a command wrote, all of them whole; a temporary one is no output."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.suffix != ".part"]
    for file in files:
        written = file.read_bytes()
        assert file.suffix != ".html" or written.endswith(b"</html>"), file
        assert file.suffix not in (".csv", ".md", ".tex") or written.endswith(b"\n"), file
        assert file.suffix != ".json" or json.loads(written), file
    return {str(file.relative_to(folder)) for file in files}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str, prepared: Prepared, suite: str, reference: tuple[Path, Ended], tmp_path: Path) -> None:
    arguments = COMMANDS[name]
    whole = content(str(reference[0]))

    def prepare(number: str) -> list[str]:
        folder = tmp_path / number
        (folder / "out").mkdir(parents=True)
        store, other = folder / "store.db", folder / "other.db"
        for target in (store, other):
            shutil.copy(reference[0], target)
            shutil.copytree(f"{reference[0]}.arrays", f"{target}.arrays")
        if name == "merge":
            with sqlite3.connect(store) as connection:
                gone = [row[0] for row in connection.execute("SELECT key FROM cells ORDER BY key LIMIT 5")]
                for table in ("cells", "metrics"):
                    connection.executemany(f"DELETE FROM {table} WHERE key = ?", [(key,) for key in gone])
            connection.close()
        if name in ("gc", "store check --repair", "retry"):
            damaged(store)
        if name == "retry":
            done = prepared.run(["store", "check", "--repair", "--store", str(store)])
            assert "lost" in done.output, done.output
        there = {"store": str(store), "other": str(other), "out": str(folder / "out"), "suite": suite}
        return [part.format(**there) for part in arguments]

    undisturbed = prepared.run(prepare("undisturbed"))
    assert undisturbed.writes, f"{name} writes nothing: {undisturbed.output}"
    count = max(1, min(KILLS // 4 // len(COMMANDS) + 1, 2 * len(undisturbed.writes)))
    for number, kill in enumerate(points(len(undisturbed.writes), count)):
        command = prepare(f"killed{number}")
        ended = prepared.run(command, kill)
        assert ended.code == -9, ended.output
        count_kill(name, ended)
        there = tmp_path / f"killed{number}" / "out"
        assert outputs(there) <= outputs(tmp_path / "undisturbed" / "out")
        again = prepared.run(command)
        assert again.code == undisturbed.code, again.output
        assert outputs(there) == outputs(tmp_path / "undisturbed" / "out")
        if name in ("gc", "store check --repair"):
            with Store(str(tmp_path / f"killed{number}" / "store.db")) as store:
                left = {key for suite_ in store.suites() for key in (c["key"] for c in store.cells(suite_))}
            assert len(left) == CELLS
        else:
            assert content(str(tmp_path / f"killed{number}" / "store.db")) == whole


def test_the_kills_that_were_done() -> None:
    """Last: print them, and require that the phases were met that matter."""
    print(f"\n{tally(EVERYTHING)}")
    assert sum(EVERYTHING.values()) >= KILLS
    phases = " ".join(phase for _, phase in EVERYTHING)
    always = ["storing cells", "writing predictions", "writing a file", "recording the plan", "a worker"]
    rarer = ["storing cells, before", "storing cells, after", "leasing cells", "returning leases", "making the tables"]
    for phase in always + (rarer if KILLS >= 100 else []):
        assert phase in phases, phase
