"""Dask clusters whose workers, scheduler or clients are not what they should be."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.driver import run
from bench.store.store import Store
from tests.faults.clusters import Cluster, started_cluster, until
from tests.faults.harness import assert_same, started

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Dask's own, of its sockets

SUITE = """
title = "Small"
seeds = 4
draws = 5
[training]
epochs = 10
[network]
hidden = [5]
[datasets.toy]
rows = 80
[methods.mc-dropout]
"""
CELLS = 4

# What strange workers run first; Dask runs it twice.
OLDER = """
import bench
bench.__version__ = "0.0.9"
"""
# It has the same uqbench, but other rows.
OTHER_ROWS = """
from dataclasses import replace
from bench.datasets import toy

def other(self, split, load=toy.Toy.load):
    found = load(self, split)
    return replace(found, train_y=found.train_y + 1)

toy.Toy.load = other
"""
WITHOUT_A_METHOD = """
from bench.errors import UserError
from bench.plugins.registry import Registry

def without(self, kind, name, options=None, make=Registry.make):
    if name == "mc-dropout":
        raise UserError("there is no method 'mc-dropout'")
    return make(self, kind, name, options)

Registry.make = without
"""
# Where something of it is unpickled, a file says in which process that was.
EVIL = """
import pickle
from distributed import get_worker
from distributed.protocol import ToPickle
from bench.run.executors import dask_worker

class Evil(Exception):
    def __reduce__(self):
        return exec, ("import os; open(FOLDER + '/' + str(os.getpid()), 'w').close()",)

"""
EVIL_WORKER = """
def answer(name, number, version, request, good=dask_worker.answer):
    if not request[0]:
        return good(name, number, version, request)
    worker, evil = get_worker(), pickle.dumps(Evil())
    worker.log_event("print", {"args": ("<printed by a stranger>",), "sep": " ", "end": "", "file": None})
    worker.log_event("warn", {"message": evil, "category": evil})
    queue = dask_worker._Queue(name, worker)
    for content in (evil, (1, "key", "outcome", evil), [evil]):
        queue.put([("message", number, content)])
    queue.put(evil)
    raise Evil()

dask_worker.answer = answer
"""
EVIL_SCHEDULER = """
async def get(**anything):
    return {"type": "msgpack", "value": ToPickle(Evil())}

def dask_setup(scheduler):
    scheduler.handlers["queue_get"] = get
"""


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    """A suite, and the store of an undisturbed run of it."""
    suite = tmp_path / "small.toml"
    suite.write_text(SUITE, "utf-8")
    reference = tmp_path / "reference.db"
    with Store(str(reference)) as store:
        assert run(load_suite(str(suite)), Registry(), store).stored == CELLS
    return suite, reference


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with started_cluster(tmp_path) as running:
        yield running


def preload(folder: Path, name: str, content: str) -> tuple[str, str]:
    """Return the options of a Dask process that runs this code first."""
    marks = folder / "unpickled"
    marks.mkdir(exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(content.replace("FOLDER", repr(str(marks)).replace("'", "\\'")), "utf-8")
    return "--preload", str(file)


def unpickled(folder: Path) -> set[int]:
    """Return the processes in which something evil was unpickled."""
    return {int(file.name) for file in (folder / "unpickled").iterdir()}


def test_workers_of_another_kind_are_named_and_left_out(
    cluster: Cluster, small: tuple[Path, Path], tmp_path: Path
) -> None:
    suite, reference = small
    store = tmp_path / "dask.db"
    run = started(suite, store, "--engine", "dask", "--address", cluster.address)
    assert run.stdout is not None
    assert run.stdout.readline() == f"uqbench: waiting for workers of {cluster.address} (none has joined)\n"
    strange = {"older": OLDER, "rows": OTHER_ROWS, "poor": WITHOUT_A_METHOD, "evil": EVIL + EVIL_WORKER}
    for name, content in strange.items():
        cluster.worker("--name", name, *preload(tmp_path, name, content))
    said: list[str] = []
    while len(said) < len(strange):
        said.append(run.stdout.readline())
        assert "left out" in said[-1] or "waiting for workers" in said[-1], said
        said = [line for line in said if "left out" in line]
    cluster.worker("--name", "good")
    rest = run.communicate()[0]
    assert run.returncode == 0, rest
    assert f"{CELLS} cells run, 0 stored before, 0 diverged, 0 failed" in rest
    text = "".join(said)
    assert "(older) is left out: it has uqbench 0.0.9, numbers of version" in text
    assert "(rows) is left out: this worker's dataset 'toy' has other rows than the driver's" in text
    assert "(poor) is left out: there is no method 'mc-dropout'" in text
    assert "(evil) is left out: it sent what is no message of this version" in text
    assert "Traceback" not in text + rest
    assert "stranger" not in text + rest
    assert_same(store, reference, CELLS)
    assert cluster.workers[3].pid in unpickled(tmp_path)  # Dask itself tries its pickles where it makes them
    assert run.pid not in unpickled(tmp_path)


def test_a_scheduler_that_sends_pickles_runs_nothing(small: tuple[Path, Path], tmp_path: Path) -> None:
    with started_cluster(tmp_path, *preload(tmp_path, "evil", EVIL + EVIL_SCHEDULER)) as cluster:
        run = started(small[0], tmp_path / "dask.db", "--engine", "dask", "--address", cluster.address)
        said = run.communicate()[0]
    assert run.returncode == 2
    assert said.splitlines()[-1].startswith("uqbench: --engine dask: the scheduler cannot be reached any more (Pickle")
    assert "Traceback" not in said
    assert unpickled(tmp_path) == set()


def queues(dask_scheduler: Any = None) -> tuple[list[str], int]:
    """On the scheduler: the queues there are, and how many tasks."""
    return list(dask_scheduler.extensions["queues"].queues), len(dask_scheduler.tasks)


def test_a_dead_driver_leaves_nothing_behind(cluster: Cluster, small: tuple[Path, Path], tmp_path: Path) -> None:
    suite, reference = small
    store = tmp_path / "dask.db"
    cluster.worker()
    where = ("--engine", "dask", "--address", cluster.address)
    first = started(suite, store, *where, "--set", "training.epochs=100000")  # it does not end by itself
    until(lambda: first.poll() is not None or cluster.ask(queues)[1] > 0)
    assert len(cluster.ask(queues)[0]) == 1
    first.kill()
    first.communicate()
    until(lambda: cluster.ask(queues) == ([], 0), 10)
    # The worker notices at the next message of its order, and is free for the next driver.
    again = started(suite, store, *where)
    said = again.communicate()[0]
    assert again.returncode == 0, said
    until(lambda: cluster.ask(queues) == ([], 0), 10)
    assert_same(store, reference, CELLS)


def test_a_scheduler_that_dies_is_one_line(cluster: Cluster, small: tuple[Path, Path], tmp_path: Path) -> None:
    run = started(small[0], tmp_path / "dask.db", "--engine", "dask", "--address", cluster.address)
    assert run.stdout is not None
    assert "waiting for workers" in run.stdout.readline()
    cluster.scheduler.kill()
    said = run.communicate()[0]
    assert run.returncode == 2
    assert len(said.splitlines()) == 1, said
    assert said.startswith("uqbench: --engine dask: the scheduler cannot be reached any more (")


def test_a_cluster_of_its_own_lets_no_stranger_in(tmp_path: Path) -> None:
    distributed: Any = pytest.importorskip("distributed")
    from bench.run.executors.dask_cluster import ClusterSettings, OwnCluster

    own = OwnCluster(ClusterSettings(1))
    try:
        strangers = {own.address.replace("tls://", "tcp://"): None, own.address: distributed.Security.temporary()}
        for address, security in strangers.items():
            with pytest.raises(OSError, match=r"imed out|[Cc]losed|certificate|SSL|TLS"):
                distributed.Client(address, timeout=3, set_as_default=False, security=security)
        with distributed.Client(own.address, set_as_default=False, security=own.security) as client:
            assert client.submit(os.getppid).result() > 0
    finally:
        own.close()


def test_a_secured_scheduler(small: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/clusters.md says: certificates in Dask's configuration, which scheduler, workers and driver read."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    suite, reference = small
    request = (
        "openssl req -x509 -newkey rsa:3072 -nodes -days 365 -subj /CN=uqbench -keyout cluster.key -out cluster.pem"
    )
    assert request in Path("docs/clusters.md").read_text("utf-8")
    subprocess.run(request.split(), cwd=tmp_path, check=True, capture_output=True)
    secured = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}
    secured["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] = str(tmp_path / "cluster.pem")
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        for name, file in (("CERT", "cluster.pem"), ("KEY", "cluster.key")):
            secured[f"DASK_DISTRIBUTED__COMM__TLS__{role}__{name}"] = str(tmp_path / file)
    with monkeypatch.context() as context:
        for name, content in secured.items():
            context.setenv(name, content)
        with started_cluster(tmp_path, "--protocol", "tls") as cluster:
            cluster.worker()
            store, where = tmp_path / "dask.db", ("--engine", "dask", "--address", cluster.address)
            run = started(suite, store, *where)
            said = run.communicate()[0]
            assert run.returncode == 0, said
            assert_same(store, reference, CELLS)
            for name in secured:
                context.delenv(name)
            stranger = started(suite, tmp_path / "other.db", *where)
            said = stranger.communicate()[0]
    assert stranger.returncode == 2
    assert len(said.splitlines()) == 1
    assert said.startswith(f"uqbench: --address {cluster.address}: certificates are needed;")
