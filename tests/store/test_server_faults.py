"""Database servers that are away, or do not let us in or write: one line each."""

import re
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.store.gc import clean
from bench.store.status import status
from bench.store.store import Store
from tests.fixtures.numbered_cells import SUITE, cell, outcome
from tests.fixtures.stores import PASSWORD


def test_a_server_that_does_not_let_us_in(server: Any) -> None:
    with pytest.raises(UserError, match="password authentication failed") as caught:
        Store(server.url(password="wrong-secret"))
    assert "wrong-secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match='database "nowhere" does not exist'):
        Store(server.url("nowhere"))


def test_no_server() -> None:
    pytest.importorskip("psycopg")
    for url in ("postgresql://me:pass-word@127.0.0.1:1/db", "postgresql://me:pass-word@/db?host=/nowhere"):
        with pytest.raises(UserError, match="connection") as caught:
            Store(url)
        assert "pass-word" not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_user_of_a_server_who_may_only_read(server: Any, tmp_path: Path) -> None:
    import psycopg

    url = server.new_url(arrays=str(tmp_path / "arrays"))
    with Store(url) as store:
        store.want(SUITE, [cell(0)])
        store.save([(cell(0), outcome(0))])
    schema = re.search(r"search_path%3D(\w+)", url)
    assert schema is not None
    with psycopg.connect(server.url(), autocommit=True) as connection:
        for statement in (
            f"CREATE ROLE reader_{schema[1]} LOGIN PASSWORD 'r'",
            f"GRANT USAGE ON SCHEMA {schema[1]} TO reader_{schema[1]}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema[1]} TO reader_{schema[1]}",
        ):
            connection.execute(statement.encode())
    theirs = url.replace(f"uqbench:{PASSWORD}@", f"reader_{schema[1]}:r@")
    with Store(theirs, create=False, writable=False) as reader:
        assert len(reader.values("tiny")) == 5
        assert status(reader).rows[0]["done"] == 1
        assert clean(reader, dry_run=True).results == 0
        assert reader.drivers() == []
    with Store(theirs, create=False) as writer, pytest.raises(UserError, match="permission denied"):
        writer.save([(cell(1), outcome(1))])
