import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.leaderboard import collect
from bench.leaderboard.method_summaries import method_summaries
from bench.leaderboard.rerun import rerun, suite_text, toml
from bench.leaderboard.rows import Row, list_rows
from bench.leaderboard.site import write_site
from bench.plan.cells import Task, plan
from bench.plan.suite import Suite, load_suite
from bench.plugins.registry import Registry
from bench.run.driver import run
from bench.run.worker import _facts
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures.commands import Command


def rows_of(suite: Suite, registry: Registry, store: Store) -> list[Row]:
    run(suite, registry, store)
    return list_rows(suite.name, StoredResults(store, suite.name).cells)[0]


def keys_of(suite: Suite, registry: Registry) -> set[str]:
    return {cell.key for task in plan(suite, registry) if isinstance(task, Task) for cell in task.cells}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A checkout without changes: provenance would refuse others."""
    monkeypatch.setattr("bench.machine.environment.code_version", lambda: "0123456789ab")
    _facts.cache_clear()  # a worker looks once; other tests have looked before
    yield
    _facts.cache_clear()


@pytest.mark.slow
def test_the_suite_file_makes_the_very_same_cells(tiny: Suite, store: Store, tmp_path: Path) -> None:
    registry = Registry()
    rows = [row for row in rows_of(tiny, registry, store) if row.method == "mc-dropout"]
    again = rerun(rows, registry)
    assert again.lines[0] == "git checkout 0123456789ab"
    assert again.lines[1] == f"uqbench run {again.file} --store again.db"
    path = tmp_path / "again.toml"
    path.write_text(again.content, "utf-8")
    assert keys_of(load_suite(str(path)), registry) == {key for row in rows for key in row.sources}


@pytest.mark.slow
def test_seeds_that_share_splits_do_so_again(tiny_file: Path, store: Store, tmp_path: Path) -> None:
    registry, shared = Registry(), load_suite(str(tiny_file), ["seeds=4", "splits=2"])
    rows = [row for row in rows_of(shared, registry, store) if row.method == "mc-dropout"]
    path = tmp_path / "again.toml"
    path.write_text(rerun(rows, registry).content, "utf-8")
    again = load_suite(str(path))
    assert (again.seeds, again.splits) == (4, 2)
    assert keys_of(again, registry) == {key for row in rows for key in row.sources}


SEARCHED = """
title = "Searched"
seeds = 1
draws = 5
search = "grid"
folds = 2

[training]
epochs = 1
batch = 100

[network]
hidden = [4]

[grid]
learning_rate = [0.01, 0.001]

[datasets."own name"]
use = "toy"
rows = 40

[datasets.toy]
rows = 30
draws = 6

[methods."my dropout"]
use = "mc-dropout"
"""


@pytest.mark.slow
def test_names_of_ones_own_searches_and_changes_of_a_dataset(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "searched.toml"
    path.write_text(SEARCHED, "utf-8")
    registry = Registry()
    suite = load_suite(str(path))
    rows = rows_of(suite, registry, store)
    path.write_text(suite_text(rows, 1), "utf-8")
    assert keys_of(load_suite(str(path)), registry) == keys_of(suite, registry)


WRAPPED = (
    SEARCHED.partition("[datasets.toy]")[0]
    + """
[methods.wrapped]
use = "split-conformal"
method = { name = "my-inner", size = 4 }
coverages = [0.5]
"""
)
INNER = """
@dataclass(frozen=True)
class Inner(Method):
    size: int = 3
    strength: float = 0.5
    search_space = {"strength": (0.1, 0.2)}
"""


@pytest.mark.slow
def test_the_inner_method_of_a_wrapper_is_written_with_its_options_and_restored_with_its_file(
    tmp_path: Path, store: Store, write_plugin: Callable[[str, str], Path]
) -> None:
    path = tmp_path / "wrapped.toml"
    path.write_text(WRAPPED, "utf-8")
    registry = Registry([write_plugin("my_inner", INNER)])
    suite = load_suite(str(path))
    rows = rows_of(suite, registry, store)
    assert (
        method_summaries(rows, registry)["wrapped"].kind
        == "Split conformal prediction around my-inner, coverages = [0.5]"
    )
    text = suite_text(rows, 1)
    assert tomllib.loads(text)["methods"]["wrapped"]["method"] == {"name": "my-inner", "size": 4}
    path.write_text(text, "utf-8")
    assert keys_of(load_suite(str(path)), registry) == keys_of(suite, registry)
    assert rerun(rows, registry, store.plugins()).plugins.keys() == {f"rerun/{registry.sources[0].hash}/my_inner.py"}


def test_a_built_in_suite_is_named_where_it_does_the_same(store: Store) -> None:
    registry = Registry()
    suite = load_suite("quick", ["seeds=1", "training.epochs=1"]).only(["diabetes"], ["deterministic"])
    changed = rows_of(suite, registry, store)
    assert rerun(changed, registry).file  # not the suite as it is
    whole = load_suite("quick", ["seeds=3"]).only(["diabetes"], ["deterministic"])
    (task,) = (task for task in plan(whole, registry) if isinstance(task, Task))
    from bench.spec.cell import Outcome
    from bench.store.store import SuiteRecord
    from tests.fixtures.results import ENVIRONMENT

    store.want(SuiteRecord("quick", "t", None, [], "{}"), task.cells)
    store.save((cell, Outcome("ok", metrics={"rmse": 1.0}, environment=ENVIRONMENT)) for cell in task.cells)
    again = rerun(list_rows("quick", StoredResults(store, "quick").cells)[0], registry)
    assert again.lines[1] == "uqbench run quick --method deterministic --dataset diabetes --seeds 3 --store again.db"
    assert not again.file
    (row,) = list_rows("quick", StoredResults(store, "quick").cells)[0]
    there = {
        seed: replace(source, spec=source.spec and replace(source.spec, device="cuda"))
        for seed, source in row.sources.items()
    }
    gpu = rerun([replace(row, sources=there)], registry)
    assert gpu.lines[1].endswith("--seeds 3 --device cuda --store again.db")


VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(2**60), 2**60),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(codec="utf-8")),
        st.lists(st.integers(0, 9)),
    ),
    lambda inner: st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=50)
@given(st.dictionaries(st.text(st.characters(codec="utf-8")), VALUES, max_size=4))
def test_toml_is_read_back(content: dict[str, Any]) -> None:
    assert tomllib.loads(toml(content)) == content


PAIR = """
from typing import ClassVar
from bench.api import Metric
@dataclass(frozen=True)
class First(Method):
    def loss(self, net, batch, tape):
        return 2 * batch.loss(net(batch.x))
@dataclass(frozen=True)
class Second(First):
    pass
BIAS = Metric("own_bias", "regression", "predictive", "lower", None, "1", frozenset(), "mean_i (m_i - y_i)", "test",
              lambda forecast: (forecast.mean - forecast.observed).mean())
"""


@pytest.mark.slow
def test_the_plug_in_is_restored_and_the_printed_command_makes_the_same_cells(
    tiny_file: Path, tmp_path: Path, write_plugin: Callable[[str, str], Path], command: Command
) -> None:
    path = write_plugin("my_pair", PAIR)
    registry = Registry([path])
    suite = load_suite(str(tiny_file), methods=["my-pair:First"]).only([], ["my-pair:First"])
    store = Store(str(tmp_path / "s.db"))
    run(suite, registry, store)
    written = write_site(collect(store), Registry(), tmp_path / "site")
    again = rerun(list_rows("tiny", StoredResults(store, "tiny").cells)[0], Registry(), store.plugins())
    (restored,) = again.plugins
    assert restored == f"rerun/{registry.sources[0].hash}/my_pair.py"
    assert tmp_path / "site" / restored in written
    assert (tmp_path / "site" / restored).read_bytes() == path.read_bytes()
    assert "method my-pair:First and metric own_bias as it was run; read it before you run it" in again.remark
    line = again.lines[-1].replace("rerun/", f"{tmp_path}/site/rerun/").split()
    path.unlink()
    done = command(*line[1:-1], str(tmp_path / "again.db"))
    assert done.code == 0, done.err
    keys = [{row["key"] for row in Store(str(p)).cells(name)} for p, name in _stores(tmp_path)]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 2


def _stores(folder: Path) -> list[tuple[Path, str]]:
    again = folder / "again.db"
    (name,) = Store(str(again)).suites()
    return [(folder / "s.db", "tiny"), (again, name)]


def test_without_its_source_a_plug_in_is_named_by_its_hash(tiny: Suite, store: Store, write_plugin: Any) -> None:
    registry = Registry([write_plugin("my_pair", PAIR)])
    rows = rows_of(load_suite(tiny.where, methods=["my-pair:First"]).only([], ["my-pair:First"]), registry, store)
    again = rerun(rows, Registry())
    assert "--plugin my_pair.py" in again.lines[-1]
    assert f"BLAKE2b hash {registry.sources[0].hash}; it is not part of uqbench" in again.remark
    assert not again.plugins
