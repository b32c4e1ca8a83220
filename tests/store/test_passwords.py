"""A password in an address is shown nowhere, whatever form the address has."""

import contextlib
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import UserError
from bench.store.address import parse_address
from bench.store.passwords import hide_passwords, show_address
from bench.store.store import Store
from tests.fixtures.commands import Command
from tests.fixtures.stores import PASSWORD

SECRET = "Geh3im"
FORMS = [
    "postgresql://me:{}@127.0.0.1:1/db",
    "postgresql://:{}@127.0.0.1:1/db",
    "postgresql://me:a/{}@127.0.0.1:1/db",
    "postgresql://me:a@{}@127.0.0.1:1/db",
    "postgresql://me:{}?x@127.0.0.1:1/db",
    "postgresql://me:%41{}@127.0.0.1:1/db",
    "postgresql://me:{}%00@127.0.0.1:1/db",
    "postgresql://me:a b{}@127.0.0.1:1/db",
    "postgresql://me:[{}@127.0.0.1:1/db",
    "postgresql://me:{}@127.0.0.1:port/db",
    "postgresql://me:{}@127.0.0.1:1",
    "postgresql://me:{}",
    "postgresql://me@127.0.0.1:1/db?password={}",
    "postgresql://me@127.0.0.1:1/db?password=a@{}",
    "postgresql://127.0.0.1:1/db?user=me&pass%77ord={}",
    "postgresql://127.0.0.1:1/db?sslpassword={}&sslmode=bad",
    "postgresql://127.0.0.1:1/db?foo={}",
    "postgresql://me:{}@127.0.0.1:1/db?port=q",
    "postgres+psycopg2://me:{}@127.0.0.1:1/db",
    "POSTGRESQL://me:{}@127.0.0.1:1/db",
    "mysql://me:{}@host/db",
    "sqlite://me:{}@host/db",
    "postgresql:me:{}@host/db",
    "postgres:/me:{}@host/db",
    "host=127.0.0.1 password={} dbname=db",
    "password='{}' host=127.0.0.1",
]


@pytest.mark.parametrize("form", FORMS)
def test_errors_show_no_password(form: str) -> None:
    pytest.importorskip("psycopg")
    url = form.format(SECRET)
    assert SECRET not in show_address(url)
    with pytest.raises(UserError) as caught:
        Store(url)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_address_in_the_wrong_place(command: Command) -> None:
    for form in FORMS:
        answer = command("list", form.format(SECRET))
        assert answer.code == 2
        # Without an @ or the word password nothing tells that it is an address with one.
        if form != "postgresql://me:{}" and "foo=" not in form and "%77" not in form:
            assert SECRET not in answer.out + answer.err, form


@given(
    st.text(min_size=5).filter(lambda text: text not in "postgresql://me:***@host:5432/db?user=password&arrays=here")
)
def test_any_password_in_any_place(password: str) -> None:
    encoded = quote(password, safe="", errors="surrogatepass")
    for written in {encoded, password}:
        for url in (f"postgresql://me:{written}@host:5432/db", f"postgresql://host/db?user=me&password={written}"):
            with contextlib.suppress(UserError):
                assert parse_address(url).without_password == show_address(url)
            assert written not in show_address(url) or written != encoded
    assert show_address(f"postgresql://me:{encoded}@host:5432/db?arrays=here") == (
        "postgresql://me:***@host:5432/db?arrays=here"
    )


@pytest.mark.parametrize(
    "plain",
    [
        "runs/a:b@c.db",
        "sqlite:///runs/a:b@c.db",
        "postgresql://me@host/db?arrays=/shared/x&sslmode=require",
        "postgresql:///db?host=/run/pg",
        "metric 'nll@group=x' of file:Class",
        "--store postgresql://me:***@host/db: unknown metric 'nll@x'",
    ],
)
def test_what_has_no_password_stays(plain: str) -> None:
    assert hide_passwords(plain) == plain
    if " " not in plain:
        assert show_address(plain) == plain


def test_commands_show_no_password(server: Any, command: Command, tiny_file: Path, tmp_path: Path) -> None:
    by_query = server.new_url(arrays=str(tmp_path / "arrays")).replace(f":{PASSWORD}@", "@") + f"&password={PASSWORD}"
    run = ("run", str(tiny_file), "--engine", "inline")
    others = [("status",), ("export",), ("retry", "--failed"), ("report", "--out", "page")]
    calls = [(*run, "--dry-run"), (*run, "--json"), run, *others]
    answers = [command(*arguments, "--store", by_query) for arguments in calls]
    assert answers[0].out.endswith("4 cells to run, 0 stored\n")  # before there is a store
    assert json.loads(answers[1].out)["store"].endswith("&password=***")
    assert {answer.code for answer in answers} == {0}
    assert all(PASSWORD not in answer.out + answer.err for answer in answers)
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not any(PASSWORD.encode() in content for content in files)


def test_a_password_need_not_be_in_the_address(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = server.new_url(arrays=str(tmp_path)).replace(f":{PASSWORD}@", "@")
    for name in ("PGPASSWORD", "PGPASSFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UserError, match="no password supplied"):
        Store(url)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    Store(url).close()
    monkeypatch.delenv("PGPASSWORD")
    file = tmp_path / "pgpass"
    file.write_text(f"*:*:*:uqbench:{PASSWORD}\n", "utf-8")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    Store(url).close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the list of processes is that of Linux")
def test_the_list_of_processes_shows_no_password() -> None:
    pytest.importorskip("psycopg")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        url = f"postgresql://me:{SECRET}@127.0.0.1:{silent.getsockname()[1]}/db"
        command = [sys.executable, "-m", "bench", "status", "--store", url]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[2]) as process:
            try:
                silent.accept()[0].close()
                shown = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            finally:
                process.kill()
    assert b"postgresql://me:***@127.0.0.1" in shown
    assert SECRET.encode() not in shown
