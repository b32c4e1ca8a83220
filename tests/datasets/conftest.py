"""Where the tests find real data: `UQBENCH_DATA`, else a folder `shared/data` beside the checkout."""

import os
from pathlib import Path

import pytest

from bench.machine.data_files import VARIABLE

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the harness at the folder of real data, or skip and say why."""
    folder = Path(os.environ.get(VARIABLE) or BESIDE)
    if not folder.is_dir():
        pytest.skip(f"no real data here: set {VARIABLE}, or put it into shared/data beside the checkout")
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder and an empty cache: nothing of this machine's own data is found."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv(VARIABLE, str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder
