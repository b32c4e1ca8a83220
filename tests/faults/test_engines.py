"""Whole runs on every engine: the same numbers, and faults that stay where they are."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.driver import RunSettings, rerun, run
from bench.run.executors import Executor
from bench.run.executors.choice import choose
from bench.run.executors.local import LocalExecutor, Settings
from bench.run.worker import PluginFile, WorkItem, WorkOrder, run_order
from bench.spec.cell import Outcome
from bench.store.store import Store

WritePlugin = Callable[[str, str], Path]


def values(store: Store, methods: set[str] | None = None) -> dict[tuple[Any, ...], float]:
    return {
        (row["dataset"], row["method"], row["seed"], row["metric"]): row["value"]
        for row in store.values("tiny")
        if methods is None or row["method"] in methods
    }


def statuses(store: Store) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in store.cells("tiny"):
        found.setdefault(row["method"], []).append(row["status"])
    return found


def plugin(name: str, body: str) -> str:
    return f"@dataclass(frozen=True)\nclass {name}(Method):\n    def loss(self, net, batch, tape):\n{body}"


METRIC = """
from bench.api import Metric
METRICS = (
    Metric("own_bias", "regression", "predictive", "target", 0.0, "1", frozenset(), "mean_i (m_i - y_i)", "test",
           lambda forecast: (forecast.mean - forecast.observed).mean(), signed=True),
)
"""
# Its numbers are those of every global generator, and of every cell that its process saw before. A process that finds
# the marker removes it and dies.
ALONE = """
import os, random, signal
from pathlib import Path
import torch
from bench.api import Estimator, Points
CALLS = []

@dataclass(frozen=True)
class Alone(Estimator):
    marker: str = ""

    def fit(self, train, validation, seed):
        CALLS.append(seed)
        if Path(self.marker).is_file():
            Path(self.marker).unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return random.random() + np.random.rand() + torch.rand(1).item() + 100 * len(CALLS)

    def predict(self, state, x, draws, seed):
        return Points(state + np.random.rand(1, len(x)) + random.random() + torch.rand(1).item())
"""
SHARED = plugin("Mine", "        return 2 * batch.loss(net(batch.x))\n") + METRIC


def cluster(workers: int) -> Executor:
    pytest.importorskip("distributed")
    from bench.run.executors.dask import ClusterExecutor

    return ClusterExecutor(None, workers)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Dask's own, of its sockets and of its event loop
@pytest.mark.parametrize(
    "engine", [lambda: LocalExecutor([Settings(), Settings()]), lambda: cluster(2)], ids=["local", "dask"]
)
def test_every_engine_gives_the_same_bits(
    engine: Callable[[], Executor], tiny_file: Path, store: Store, tmp_path: Path, write_plugin: WritePlugin
) -> None:
    files = [write_plugin("mine", SHARED), write_plugin("alone", ALONE)]  # which reach the workers, too
    registry, marker = Registry(files), tmp_path / "marker"
    suite = load_suite(str(tiny_file), [f"methods.alone.marker={json.dumps(str(marker))}"], methods=["mine", "alone"])
    inline = Store(str(tmp_path / "inline.db"))
    run(suite, registry, inline)
    marker.touch()
    summary = run(suite, registry, store, RunSettings(engine()))
    assert (summary.stored, summary.failures, marker.exists()) == (8, [], False)
    assert values(store) == values(inline)
    assert len(values(store)) > 30
    own = {value for (_, method, _, metric), value in values(store).items() if (method, metric) == ("alone", "rmse")}
    assert len(own) == 2
    assert max(own) < 150  # no process had fitted before
    assert {place[1] for place in values(store) if place[3] == "own_bias"} == set(suite.methods)


@pytest.mark.slow
def test_deaths_and_endless_calls_cost_their_own_cells_only(
    tiny_file: Path, store: Store, tmp_path: Path, write_plugin: WritePlugin
) -> None:
    marker = tmp_path / "died"
    kill = "            os.kill(os.getpid(), signal.SIGKILL)\n"
    wait = "            time.sleep(0.05)\n"
    done = "        return batch.loss(net(batch.x))\n"
    head = "import os, signal\nfrom pathlib import Path\n"
    once = f"        if not Path({str(marker)!r}).exists():\n            Path({str(marker)!r}).touch()\n{kill}{done}"
    files = [
        write_plugin("once", head + plugin("Once", once)),
        write_plugin("always", head + plugin("Always", f"        if True:\n{kill}")),
        write_plugin("endless", "import time\n" + plugin("Endless", f"        while True:\n{wait}")),
    ]
    names = ["once", "always", "endless"]
    suite = load_suite(str(tiny_file), ["seeds=1"], methods=names)
    executor = LocalExecutor([Settings(time_limit=12.0), Settings(time_limit=12.0)])
    summary = run(suite, Registry(files), store, RunSettings(executor))
    assert statuses(store) == {
        "deterministic": ["ok"],
        "mc-dropout": ["ok"],
        "once": ["ok"],
        "always": ["failed"],
        "endless": ["failed"],
    }
    told = {cell.method: message for cell, message in summary.failures}
    assert told["always"].startswith("its worker died of SIGKILL")
    assert "tried 3 times alone" in told["always"]
    assert told["endless"].startswith("not done within the time limit (12 s)")
    assert "in loss" in told["endless"]  # where it hung
    plain = Store(str(tmp_path / "plain.db"))
    run(load_suite(str(tiny_file), ["seeds=1"]), Registry(), plain)
    assert values(store, {"deterministic", "mc-dropout"}) == values(plain)


@pytest.mark.slow
def test_failed_cells_are_retried_by_their_specs(tiny_file: Path, store: Store, write_plugin: WritePlugin) -> None:
    """A fault of the surroundings: the plug-in is the same, the file it needs is there at the second try."""
    needed = tiny_file.with_name("needed.txt")
    path = write_plugin(
        "needy", plugin("Needy", f"        open({str(needed)!r}).close()\n        return batch.loss(net(batch.x))\n")
    )
    registry = Registry([path])
    suite = load_suite(str(tiny_file), methods=["needy"])
    assert len(run(suite, registry, store).failures) == 2
    needed.touch()
    failed = store.failed()
    assert {cell.method for cell in failed} == {"needy"}
    summary = rerun(failed, registry, store)
    assert (summary.stored, summary.failures) == (2, [])
    assert statuses(store)["needy"] == ["ok", "ok"]


@pytest.mark.slow
def test_a_worker_with_another_plugin_refuses(tiny_file: Path, store: Store, write_plugin: WritePlugin) -> None:
    path = write_plugin("mine", SHARED)
    suite = load_suite(str(tiny_file), ["seeds=1"], methods=["mine"]).only([], ["mine"])
    run(suite, Registry([path]), store)
    (row,) = (row for row in store.cells("tiny") if row["method"] == "mine")
    other = PluginFile("/nowhere/mine.py", path.read_bytes() + b"# edited\n")
    (message,) = run_order(WorkOrder(1, (WorkItem(row["key"], row["spec"]),), (other,)))
    outcome = message.content
    assert isinstance(outcome, Outcome)
    assert outcome.status == "failed"
    assert outcome.message.startswith("this worker has another method 'mine'")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("inline", 2, None, "cpu", None), "--engine inline has no workers"),
        (("local", None, "tcp://x:1", "cpu", None), "only --engine dask has an address"),
        (("dask", 2, "tcp://x:1", "cpu", None), "as many workers as it has"),
    ],
)
def test_options_that_do_not_go_together(given: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        choose(*given)


def test_little_work_needs_no_workers() -> None:
    make = choose("auto", None, None, "cpu", None)
    assert type(make(1.0)).__name__ == "InlineExecutor"
