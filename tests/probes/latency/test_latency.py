"""Latencies of whole cells as they are stored."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from bench.errors import UserError
from bench.metrics import condition, declaration
from bench.plan.cells import Task, plan
from bench.plan.suite import Suite, load_suite
from bench.plan.units import Units, cut
from bench.plugins.registry import Registry
from bench.probes import make_probe
from bench.probes.base import Subject
from bench.probes.latency import Latency, cases, modes
from bench.probes.latency.modes import Mode
from bench.run.driver import RunSettings, rerun, run
from bench.spec.cell import Cell, Outcome
from bench.store.results import StoredResults
from bench.store.store import Store
from bench.training.drawing import Drawing
from bench.training.limits import Limits

SMALL = [
    "probe.draws=[1, 3]",
    "probe.rows=20",
    "probe.batch=10",
    "probe.repeats=3",
    'probe.modes=["engine", "naive"]',
    "probe.single_rows=0",
    "network.hidden=[5]",
]


def small(*changes: str) -> Suite:
    return load_suite("latency-tabular", [*SMALL, *changes])


def test_a_suite_is_one_unit_however_many_workers_there_are() -> None:
    suite = small("seeds=3", "probe.repeats=1000000")
    collected = Units()
    for task in plan(suite, Registry()):
        assert isinstance(task, Task)
        collected.add_task(task, task.cells)
    (unit,) = cut(collected.cut(1), 4)
    assert len(unit.cells) == 15
    assert len(unit.repeats) == 1


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(str(tmp_path_factory.mktemp("latency") / "store.db"))
    summary = run(small(), Registry(), store)
    assert summary.well
    assert summary.stored == 5
    return store


@pytest.mark.slow
def test_every_method_has_its_conditions(stored: Store) -> None:
    frame = StoredResults(stored, "latency-tabular").frame
    forward = frame[frame["metric"].str.startswith("latency_forward@")]
    found = {method: sorted(condition(m) for m in own["metric"]) for method, own in forward.groupby("method")}
    assert found.pop("deterministic") == ["T=1", "T=1,mode=naive"]
    assert len(found) == 4
    assert set(map(tuple, found.values())) == {("T=1", "T=1,mode=naive", "T=3", "T=3,mode=naive")}
    assert all(declaration(name).family == "cost" for name in frame["metric"].unique())
    assert (frame["value"] >= 0).all()


def test_values_come_from_the_stored_repeats(stored: Store) -> None:
    results = StoredResults(stored, "latency-tabular")
    for _, cell in results.cells.iterrows():
        arrays = results.arrays(cell["key"])
        values = results.frame[results.frame["key"] == cell["key"]].set_index("metric")["value"]
        plain = arrays["latency/plain"]
        for name in [name for name in values.index if name.startswith("latency_forward@")]:
            repeats = arrays[f"latency/{name}"]
            assert repeats.shape == (3,)
            assert values[name] == pytest.approx(np.median(repeats) * 1000 / 20)
            which = condition(name)
            assert values[f"latency_ratio@{which}"] == pytest.approx(np.median(repeats) / np.median(plain))
            transfer, total = (arrays[f"latency/latency_{span}@{which}"] for span in ("transfer", "total"))
            assert (repeats <= transfer).all()
            assert (transfer <= total).all()
        if "latency_forward@T=3" in values:
            ratio = values["latency_forward@T=3"] / (3 * values["latency_forward@T=1"])
            assert values["latency_scaling@T=3"] == pytest.approx(ratio)


def test_a_row_says_how_it_was_measured(stored: Store) -> None:
    cells = StoredResults(stored, "latency-tabular").cells
    for _, cell in cells.iterrows():
        about = json.loads(cell["training"])["latency"]
        facts = about["facts"]
        assert (facts["rows"], facts["batch"], facts["repeats"], facts["dtype"]) == (20, 10, 3, "float32")
        assert facts["torch"] == facts["libraries"]["torch"] == torch.__version__
        assert (facts["device"], facts["driver"]) == ("cpu", "none")
        assert facts["floor"]["kernel"] > facts["floor"]["launch"] > 0
        assert facts["gpu"]["before"] == {"reason": "a cpu device tells no clocks, throttling or energy"}
        assert facts["modes"] == ["engine", "naive"]
        for one in about["series"].values():
            assert set(one["chunks"]) == {"large", "by_row", "rows", "draws", "networks", "recorded"}
            assert one["throughput"] > 0
        assert cell["message"] == "; ".join([*about["doubts"], *about["remarks"]])


def test_tuned_modes_and_single_rows_have_rows_of_their_own(store: Store) -> None:
    suite = small('probe.modes=["engine", "tuned"]', "probe.single_rows=2", "probe.tuning_seconds=0.1")
    assert run(suite.only([], ["mc-dropout"]), Registry(), store).well
    results = StoredResults(store, "latency-tabular")
    (key,) = results.cells["key"]
    about = json.loads(results.cells.iloc[0]["training"])["latency"]["series"]
    assert set(about) == {f"T={t}{mode}{at}" for t in (1, 3) for mode in ("", ",mode=tuned") for at in ("", ",batch=1")}
    arrays = results.arrays(key)
    values = results.frame.set_index("metric")["value"]
    for name, one in about.items():
        single = name.endswith("batch=1")
        assert one["batch"] == (1 if single else 10)
        times = arrays[f"latency/latency_forward@{name}"]
        plain = arrays["latency/plain@batch=1" if single else "latency/plain"]
        assert values[f"latency_ratio@{name}"] == pytest.approx(np.median(times) / np.median(plain))
        assert values[f"latency_forward@{name}"] == pytest.approx(np.median(times) * 1000 / (2 if single else 20))
        if "tuned" in name:
            choice = one["choice"]
            assert one["mode"] == choice["chosen"]
            assert choice["chosen"] in choice["tried"]
            assert isinstance(choice["bit_equal"], bool)
        else:
            assert one["mode"] == "engine"
            assert "choice" not in one
    table = Latency.table(results)
    assert "chosen by mode tuned" in table
    assert "tuned, batch 1" in table
    assert max(map(len, table.splitlines())) <= 100


def test_options_that_came_later_are_no_part_of_a_key() -> None:
    assert not {"single_rows", "tuning_seconds"} & Latency().spec.keys()
    assert Latency(single_rows=3).spec["single_rows"] == 3


@pytest.mark.slow
def test_an_ensemble_of_t_is_t_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = []
    real = modes.MODES["engine"]

    def noted(job: Drawing, limits: Limits) -> Mode:
        jobs.append(job)
        return real(job, limits)

    monkeypatch.setitem(modes.MODES, "engine", noted)
    suite = small('probe.modes=["engine"]', "probe.draws=[2, 7]").only([], ["deep-ensemble"])
    (task,) = plan(suite, Registry())
    assert isinstance(task, Task)
    subject = Subject(task.plugin, task.network, task.protocol, task.splits[0], 0)
    ((_, found),) = make_probe(task.protocol.probe).measure_together([subject], "cpu", Limits())
    assert not isinstance(found, Exception)
    ensembles = [job for job in jobs if type(job.method) is type(task.plugin)]
    assert [len(job.networks) for job in ensembles] == [2, 7]
    first = [job.networks[k].params["layers.0.weight"] for job in ensembles for k in (0, 1)]
    assert torch.equal(first[0], first[2])
    assert not torch.equal(first[0], first[1])


@pytest.mark.slow
def test_a_method_that_raises_fails_alone(write_plugin: Any, store: Store) -> None:
    text = """
@dataclass(frozen=True)
class Broken(Method):
    def draw(self, net, x, tape):
        raise RuntimeError("this draw is broken")
"""
    path = write_plugin("broken", text)
    suite = load_suite("latency-tabular", SMALL, ["broken"]).only([], ["broken", "mc-dropout"])
    summary = run(suite, Registry([path]), store)
    assert [cell.method for cell, _ in summary.failures] == ["broken"]
    assert "this draw is broken" in summary.failures[0][1]
    assert summary.stored == 1
    again = rerun(store.failed(), Registry([path]), store)
    assert len(again.failures) == 1


@pytest.mark.parametrize("fact", ["cpu", "load_average", "driver", "modes", "libraries", "floor", "gpu", "device"])
def test_the_store_refuses_times_without_their_facts(fact: str, stored: Store, store: Store) -> None:
    row = StoredResults(stored, "latency-tabular").cells.iloc[0]
    about = json.loads(row["training"])
    cell = Cell(row["key"], "random-rows", 0, "deterministic", 0, row["spec"])
    whole = Outcome("ok", metrics={"latency_forward@T=1": 1.0}, training=about)
    store.save([(cell, whole)])
    del about["latency"]["facts"][fact]
    with pytest.raises(UserError, match=f"must say how it was measured; it lacks {fact}"):
        store.save([(replace(cell, key="other"), replace(whole, training=about))])
    assert store.done(["other"]) == set()


def test_the_store_refuses_a_condition_of_which_it_is_not_told_how_it_was_cut(store: Store) -> None:
    outcome = Outcome("ok", metrics={"latency_total@T=9": 1.0}, training={})
    with pytest.raises(UserError, match="chunks of T=9"):
        store.save([(Cell("k", "d", 0, "m", 0, "{}"), outcome)])


@pytest.mark.slow
def test_without_a_compiler_the_mode_is_left_out_with_a_remark(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    monkeypatch.setattr(cases, "compiler_found", lambda: False)
    suite = small('probe.modes=["engine", "compiled"]').only([], ["mc-dropout"])
    summary = run(suite, Registry(), store)
    (why,) = (why for _, why in summary.doubts)
    assert "the mode 'compiled' is left out" in why
    names = StoredResults(store, "latency-tabular").frame["metric"]
    assert not names.str.contains("compiled").any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("probe.draws=[]", "probe.draws: name at least one, and none twice"),
        ("probe.draws=[1, 1]", "probe.draws: name at least one, and none twice"),
        ("probe.repeat=3", "unknown key 'repeat'; did you mean repeats?"),
        ('probe.modes=["fast"]', "modes"),
        ("probe.batch=0", "batch"),
    ],
)
def test_a_wrong_option_is_answered_in_one_line(change: str, message: str) -> None:
    with pytest.raises(UserError) as told:
        load_suite("latency-tabular", [change])
    assert message in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_is_measured_by_its_own_clock(store: Store) -> None:
    summary = run(
        small("network.hidden=[2000, 2000]", "probe.rows=2000"), Registry(), store, RunSettings(device="cuda")
    )
    assert summary.well
    results = StoredResults(store, "latency-tabular")
    about = json.loads(results.cells.iloc[0]["training"])["latency"]["facts"]
    assert about["device_name"] == torch.cuda.get_device_name()
    assert "NVIDIA" in about["driver"] or about["driver"] == "unknown"
    assert results.frame["metric"].str.startswith("latency_memory").any()
