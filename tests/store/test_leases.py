import os
import subprocess
import sys
import time

import pytest
from sqlalchemy import text

from bench.spec.cell import Cell, Outcome
from bench.store.leases import LIFETIME, Owner, is_alive, new_owner
from bench.store.store import Store

KEYS = [f"k{i}" for i in range(1200)]


def test_two_drivers_never_have_the_same_cell(any_store: Store) -> None:
    one, two = new_owner(), new_owner()
    assert one != two
    assert any_store.lease(KEYS[:800], one) == set(KEYS[:800])
    assert any_store.lease(KEYS[:800], one) == set(KEYS[:800])  # what is ours stays ours
    assert any_store.lease(KEYS, two) == set(KEYS[800:])
    any_store.release(one, KEYS[:2])
    assert any_store.lease(KEYS[:5], two) == {"k0", "k1"}
    assert {driver["name"] for driver in any_store.drivers()} == {one.name, two.name}
    any_store.release(one)
    assert any_store.lease(KEYS, two) == set(KEYS)
    assert [driver["name"] for driver in any_store.drivers()] == [two.name]


def test_a_result_ends_a_lease(any_store: Store) -> None:
    one, two = new_owner(), new_owner()
    cells = [Cell(key, "toy", 0, "m", 0, "{}") for key in KEYS[:3]]
    any_store.lease(KEYS[:3], one)
    any_store.save([(cells[0], Outcome("ok")), (cells[1], Outcome("failed"))])
    assert any_store.lease(KEYS[:3], two) == {"k1"}  # a failed cell may run again


@pytest.mark.slow
def test_a_driver_that_was_killed_here_is_dead_at_once(any_store: Store) -> None:
    code = "import sys; from bench.store.store import *; print(len(Store(sys.argv[1]).lease(['k0'], new_owner())))"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}; sys.stdout.flush(); sys.stdin.read()", any_store.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        mine = new_owner()
        assert any_store.lease(KEYS[:2], mine) == {"k1"}
        process.kill()
        process.wait()
    assert [driver["name"] for driver in any_store.drivers()] == [mine.name]
    assert any_store.lease(KEYS[:2], mine) == {"k0", "k1"}


def test_a_driver_elsewhere_is_dead_when_its_last_renewal_is_old(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere, mine = Owner("another-machine:1:abc"), new_owner()
    now = time.time()
    clock = {"ahead": 0.0}
    monkeypatch.setattr("bench.store.database.time.time", lambda: now + clock["ahead"])
    store.lease(["k0", "k1"], elsewhere)
    clock["ahead"] = LIFETIME - 1
    assert store.lease(["k0"], mine) == set()
    store.renew(elsewhere)
    clock["ahead"] = 2 * LIFETIME - 2
    assert store.lease(["k0"], mine) == set()
    clock["ahead"] = 2 * LIFETIME
    assert store.lease(["k0"], mine) == {"k0"}
    store.renew(elsewhere)  # it was only slow: it lives again, without what was taken from it
    assert store.lease(["k0", "k1"], elsewhere) == {"k1"}


def test_a_servers_clock_is_what_counts(server: object, monkeypatch: pytest.MonkeyPatch) -> None:
    url = server.new_url()  # type: ignore[attr-defined]
    store = Store(url)
    elsewhere = Owner("another-machine:1:abc")
    store.lease(["k0"], elsewhere)
    wrong = time.time() + 10 * LIFETIME
    monkeypatch.setattr("bench.store.database.time.time", lambda: wrong)
    assert store.lease(["k0"], new_owner()) == set()
    store.close()


def test_who_is_alive() -> None:
    here = new_owner()
    host = here.host
    assert here.pid == os.getpid()
    assert is_alive(here, 0)
    assert is_alive(here, LIFETIME - 1)
    assert not is_alive(here, LIFETIME)
    assert is_alive(here, -1)  # clocks of two machines
    assert not is_alive(here, -LIFETIME)
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert not is_alive(Owner(f"{host}:{child.pid}:x"), 0)
    assert is_alive(Owner(f"not-{host}:{child.pid}:x"), 0)
    assert is_alive(Owner(f"{host}:1:x"), 0)  # there, though not ours to signal
    for strange in ("", ":", "a:b:c", f"{host}:{10**30}:x", f"{host}:-1:x"):
        assert is_alive(Owner(strange), 0) == (strange != f"{host}:{10**30}:x")


@pytest.mark.parametrize("beat", ["1e300", "(SELECT max(beat) FROM drivers) + 3600", "NULL"])
def test_a_renewal_in_the_future_is_none(beat: str, any_store: Store) -> None:
    elsewhere, mine = Owner("another-machine:1:abc"), new_owner()
    any_store.lease(KEYS, elsewhere)
    any_store.database.write(lambda connection: connection.execute(text(f"UPDATE drivers SET beat = {beat}")))
    assert any_store.drivers() == []
    assert any_store.lease(KEYS, mine) == set(KEYS)
