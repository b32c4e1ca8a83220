"""Methods on kept networks give what they give when everything is trained, to the last bit."""

import json
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run import options
from bench.run.driver import RunSettings, run
from bench.spec.keep import Keep
from bench.store.check import check, repair
from bench.store.gc import clean
from bench.store.merge import merge
from bench.store.results import StoredResults
from bench.store.status import status
from bench.store.store import Store
from bench.training.stored_networks import files_of
from tests.fixtures.runs import new_store, values

SUITE = """
title = "Kept"
seeds = 1
draws = 6

[training]
epochs = 4
batch = 32

[network]
hidden = [6]

[datasets.two-moons]

[methods.deterministic]
[methods.deep-ensemble]
networks = 3
[methods.temperature-scaling]
[methods.adaptive-sets]
method = "deterministic"
"""
KEEPING = RunSettings(keep=Keep(networks=True))


def started(tmp_path: Path, store: Store, settings: RunSettings, *methods: str, text: str = SUITE) -> dict[str, int]:
    """Run some methods of the suite; return how many networks of each were not trained."""
    (tmp_path / "kept.toml").write_text(text, "utf-8")
    suite = load_suite(str(tmp_path / "kept.toml")).only([], methods)
    summary = run(suite, Registry(), store, settings)
    assert summary.well, summary.failures
    cells = StoredResults(store, "kept").cells
    counts = [json.loads(text).get("stored_networks", 0) for text in cells["training"]]
    return dict(zip(cells["method"], counts, strict=True))


def test_post_hoc_methods_use_kept_networks_bit_for_bit(tmp_path: Path) -> None:
    store, whole, other = (new_store(tmp_path, name) for name in ("kept", "whole", "other"))
    started(tmp_path, store, KEEPING, "deterministic")
    assert len(files_of(store.arrays.folder)) == 1
    every = ("deterministic", "deep-ensemble", "temperature-scaling", "adaptive-sets")
    found = started(tmp_path, store, KEEPING, *every)
    assert found == {"deterministic": 0, "deep-ensemble": 1, "temperature-scaling": 1, "adaptive-sets": 1}
    assert len(files_of(store.arrays.folder)) == 3
    started(tmp_path, whole, RunSettings(), *every)
    assert files_of(whole.arrays.folder) == []
    assert values(store, "kept") == values(whole, "kept")
    assert merge(other, store).networks == 3
    store.forget("kept")
    clean(store, unwanted=True)
    assert started(tmp_path, store, KEEPING, "deep-ensemble") == {"deep-ensemble": 3}
    wanted = {place: value for place, value in values(whole, "kept").items() if place[1] == "deep-ensemble"}
    assert values(store, "kept") == wanted


def test_another_probe_with_other_draws_uses_the_kept_networks_bit_for_bit(tmp_path: Path) -> None:
    store, whole = (new_store(tmp_path, name) for name in ("kept", "whole"))
    shifted = SUITE.replace("draws = 6", "draws = 5") + '[probe]\nkind = "row-shift"\n'
    started(tmp_path, store, KEEPING, "deep-ensemble")
    assert started(tmp_path, store, KEEPING, "deep-ensemble", text=shifted) == {"deep-ensemble": 3}
    started(tmp_path, whole, RunSettings(), "deep-ensemble", text=shifted)
    assert values(store, "kept") == values(whole, "kept")


def test_a_damaged_network_is_trained_again(tmp_path: Path) -> None:
    store = new_store(tmp_path, "kept")
    started(tmp_path, store, KEEPING, "deterministic")
    (path,) = files_of(store.arrays.folder)
    content = path.read_bytes()
    path.write_bytes(content[:-4] + b"\x00\x01\x02\x03")
    found = check(store)
    assert (found.networks, found.damaged_networks) == (1, (str(path),))
    with pytest.warns(UserWarning, match="not a kept network .*; the network is trained again"):
        assert started(tmp_path, store, KEEPING, "temperature-scaling")["temperature-scaling"] == 0
    assert path.read_bytes() == content
    path.write_bytes(b"x")
    repair(store, check(store))
    assert check(store).networks == 0
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    assert status(store).network_files == 1
    assert clean(store, networks=True).network_files == 1
    assert files_of(store.arrays.folder) == []


def test_what_is_kept_is_checked() -> None:
    with pytest.raises(UserError, match="did you mean moments"):
        options.RunOptions(keep="moment")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="unknown keep_precision 'float16'"):
        options.RunOptions(keep_precision="float16")  # type: ignore[arg-type]
