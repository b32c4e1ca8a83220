"""Stores to test: an SQLite file, and a real PostgreSQL server, started for the session where it is installed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from bench.store.store import Store

PASSWORD = "a-secret"
NewStore = Callable[..., Store]
numbers = count()


class Server:
    """A PostgreSQL server of its own, reached through a socket."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries, self.folder = binaries, folder
        (folder / "password").write_text(PASSWORD, "utf-8")
        if os.getuid() == 0:
            for path in (folder, folder / "password"):
                shutil.chown(path, "postgres", "postgres")
        self._run(
            "initdb",
            "-D",
            str(folder / "data"),
            "-U",
            "uqbench",
            "--no-sync",
            "--auth=scram-sha-256",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            f"--pwfile={folder / 'password'}",
        )
        self._run(
            "pg_ctl",
            "-D",
            str(folder / "data"),
            "-w",
            "-l",
            str(folder / "log"),
            "-o",
            f"-k {folder} -c listen_addresses='' -c fsync=off",
            "start",
        )

    def _run(self, program: str, *arguments: str) -> None:
        # PostgreSQL refuses to run as root.
        who = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        done = subprocess.run(
            [*who, str(self._binaries / program), *arguments],
            cwd=self.folder,
            text=True,
            check=False,
            timeout=60,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, done.stdout

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")

    def url(self, database: str = "postgres", password: str = PASSWORD, **query: str) -> str:
        more = "".join(f"&{name}={value}" for name, value in query.items())
        return f"postgresql://uqbench:{password}@/{database}?host={self.folder}{more}"

    def new_url(self, **query: str) -> str:
        """Return the address of an empty place: a schema of its own, which is made quicker than a database."""
        import psycopg

        name = f"test_{next(numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return self.url(options=f"-csearch_path%3D{name}", **query)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Start a server; the test is skipped where there is none to start."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if not found and not on_path:
        pytest.skip("PostgreSQL is not installed (no initdb)")
    pytest.importorskip("psycopg")
    folder = Path(tempfile.mkdtemp(prefix="uqbench-pg-"))  # a short path: that of a socket may have 107 characters
    started = Server((found[-1] if found else Path(str(on_path))).parent, folder)
    yield started
    started.stop()
    shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewStore]:
    """Make new stores of either kind."""
    made: list[Store] = []

    def make() -> Store:
        if request.param == "sqlite":
            url = str(tmp_path / f"store{next(numbers)}.db")
        else:
            running: Server = request.getfixturevalue("server")
            url = running.new_url(arrays=str(tmp_path / f"{next(numbers)}.arrays"))
        made.append(Store(url))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def any_store(new_store: NewStore) -> Store:
    """A new store of either kind."""
    return new_store()
