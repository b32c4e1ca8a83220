"""`uqbench data`, over a local server and a dataset that only the tests know."""

import functools
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bench.cli.data import data
from bench.cli.main import app
from bench.errors import UserError
from bench.machine.data_files import VARIABLE

CONTENT = b"1 2\n3 4\n5 7\n"
PLUGIN = '''
"""Springs, from a server."""
from dataclasses import dataclass
from bench.api import Dataset
from bench.machine.data_files import File

@dataclass(frozen=True)
class Springs(Dataset):
    task = "regression"
    files = (File("springs/data.txt", "{url}", {size}, "{sha256}"),)
'''


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "springs.txt").write_bytes(CONTENT)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path / "site")))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/springs.txt"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def plugin(tmp_path: Path, address: str) -> Path:
    path = tmp_path / "springs.py"
    path.write_text(PLUGIN.format(url=address, size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest()), "utf-8")
    return path


Call = Callable[[Sequence[str]], Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: Path) -> Call:
    """Run a sub-command with the plug-in, in a world with an empty data folder and an empty cache."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(arguments: Sequence[str]) -> Result:
        command, *rest = arguments
        result = CliRunner().invoke(data, [command, "--plugin", str(plugin), *rest])
        if isinstance(result.exception, UserError):
            raise result.exception
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run


def test_fetch_list_and_verify_follow_one_another(call: Call, tmp_path: Path) -> None:
    place = tmp_path / "data" / "springs" / "data.txt"
    assert f"searched: {tmp_path / 'data'} (no such folder)" in call(["list"]).stdout
    row = next(line for line in call(["list"]).stdout.splitlines() if line.startswith("springs"))
    assert row.split()[1:3] == ["missing", "springs/data.txt"]
    assert call(["verify", "springs"]).exit_code == 1
    assert call(["verify"]).exit_code == 0  # nobody said that it should be there

    fetched = call(["fetch", "springs"])
    assert (fetched.exit_code, fetched.stdout) == (0, f"springs: downloaded to {tmp_path / 'data'} and verified\n")
    assert fetched.stderr == ""
    assert place.read_bytes() == CONTENT
    assert call(["fetch", "springs"]).stdout == "springs: there already\n"
    assert call(["verify", "springs"]).stdout == f"ok       springs   {place}\n"

    place.write_bytes(CONTENT[:-2] + b"8\n")
    damaged = call(["verify"])
    assert damaged.exit_code == 1
    assert f"damaged  springs   {place}: sha256 " in damaged.stdout
    assert call(["fetch", "springs"]).exit_code == 0
    assert place.read_bytes() == CONTENT


def test_json(call: Call, tmp_path: Path, address: str) -> None:
    told = json.loads(call(["list", "--json", "springs"]).stdout)
    assert told["folders"] == [str(tmp_path / "data"), str(tmp_path / "cache" / "uqbench")]
    assert told["files"] == [
        {
            "dataset": "springs",
            "file": "springs/data.txt",
            "bytes": 12,
            "state": "missing",
            "path": None,
            "url": address,
        }
    ]
    assert json.loads(call(["verify", "--json", "springs"]).stdout)[0]["state"] == "missing"


def test_the_named_folder_is_made_and_used(call: Call, tmp_path: Path) -> None:
    call(["fetch", "springs", "--data", str(tmp_path / "other" / "place")])
    assert (tmp_path / "other" / "place" / "springs" / "data.txt").is_file()
    with pytest.raises(UserError, match="no such folder"):
        call(["list", "--data", str(tmp_path / "nowhere")])


def test_a_failed_download_is_one_line_with_address_and_place(call: Call, tmp_path: Path, address: str) -> None:
    (tmp_path / "site" / "springs.txt").unlink()
    result = call(["fetch", "springs"])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    for said in ("springs: ", address, "404", str(tmp_path / "data" / "springs" / "data.txt")):
        assert said in result.stderr


def test_datasets_without_files_need_no_download(call: Call) -> None:
    assert call(["fetch", "digits"]).stdout == "digits: needs no download\n"
    assert "no download" in call(["list", "digits"]).stdout


def test_an_unknown_name_is_met_with_the_nearest(call: Call) -> None:
    with pytest.raises(UserError, match="did you mean springs"):
        call(["fetch", "sprigns"])


def test_the_command_is_registered() -> None:
    assert CliRunner().invoke(app, ["data", "--help"]).exit_code == 0
